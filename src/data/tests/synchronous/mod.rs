//! The whole synchronous mode over a bad network: rollouts that die, hang or leave, and a learner that is restarted.
//! Each update holds exactly the quota of each environment of its members, of one version, whatever happens.

mod rollout;

use super::make::{RUN, contract, fragment, learner_status, secs, stream};
use super::network::{Faults, Link};
use crate::config::UpdateMode;
use crate::data::{Admission, Batch, Coordinator, Gather, PhaseEvent, RolloutStatus, StreamId, Table, Verdict, join};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rollout::{Rollout, ToRollout};
use std::time::Duration;

const ENVS: usize = 2;
const QUOTA: u64 = 10;
const PERIOD: u64 = 7;
/// Ticks of 50 ms.
const BAD_TICKS: u64 = 800;
const HEALED_TICKS: u64 = 600;
const LEARNING_TICKS: u64 = 6;

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillLearner,
    /// A rollout dies; its id is back with a new incarnation 1 s later.
    Kill(usize),
    /// A rollout does nothing for 8 s, then goes on.
    Hang(usize),
    /// A rollout says that it leaves, and comes back as a new incarnation.
    Leave(usize),
    /// Nothing passes for 3 s.
    Cut,
}

#[derive(Clone, Debug)]
struct Script {
    seed: u64,
    faults: Faults,
    events: Vec<(u64, Fault)>,
}

fn scripts() -> impl Strategy<Value = Script> {
    let faults =
        (0.0..0.3, 0.0..0.3, 0.0..0.5).prop_map(|(drop, repeat, delay_secs)| Faults { drop, repeat, delay_secs });
    let fault = prop_oneof![
        Just(Fault::KillLearner),
        (0..3_usize).prop_map(Fault::Kill),
        (0..3_usize).prop_map(Fault::Hang),
        (0..3_usize).prop_map(Fault::Leave),
        Just(Fault::Cut),
    ];
    let events = proptest::collection::vec((0..BAD_TICKS, fault), 0..8);
    (any::<u64>(), faults, events).prop_map(|(seed, faults, events)| Script { seed, faults, events })
}

struct World {
    script: Script,
    rng: ChaCha8Rng,
    tick: u64,
    rollouts: Vec<Rollout>,
    incarnations: u64,
    data: Link<Batch>,
    statuses: Link<RolloutStatus>,
    admission: Admission,
    gather: Gather,
    coordinator: Coordinator,
    life: u32,
    version: u64,
    learning_until: Option<u64>,
    saved: Table,
    updates: u64,
    outs: Vec<PhaseEvent>,
}

impl World {
    fn new(script: Script) -> Self {
        let mut world = Self {
            rng: ChaCha8Rng::seed_from_u64(script.seed),
            tick: 0,
            rollouts: (0..3).map(|r| Rollout::new(stream(&format!("r{r}"), r), script.faults, 0)).collect(),
            incarnations: 3,
            data: Link::new(script.faults),
            statuses: Link::new(script.faults),
            admission: Admission::new(RUN, 1, contract()),
            gather: Gather::new(UpdateMode::Sync, 1, 0),
            coordinator: Coordinator::new(RUN, 1, QUOTA, 3),
            life: 1,
            version: 0,
            learning_until: None,
            saved: Table::default(),
            updates: 0,
            outs: Vec::new(),
            script,
        };
        world.publish();
        world
    }

    fn now(&self) -> Duration {
        secs(self.tick as f64 * 0.05)
    }

    fn publish(&mut self) {
        self.version += 1;
        self.coordinator.published(self.version);
        let now = self.now();
        for rollout in &mut self.rollouts {
            rollout.inbox.send(ToRollout::Weights(self.life, self.version), now, &mut self.rng);
        }
    }

    fn run_rollouts(&mut self) {
        let now = self.now();
        for rollout in self.rollouts.iter_mut().filter(|rollout| rollout.asleep_until <= self.tick) {
            for message in rollout.inbox.arrived(now) {
                rollout.hear(message, now);
            }
            rollout.act();
            for batch in rollout.outbox.due(now) {
                self.data.send(batch, now, &mut self.rng);
            }
            assert!(rollout.outbox.in_flight() <= 4);
            if self.tick.is_multiple_of(4) || rollout.leaving {
                self.statuses.send(rollout.status(), now, &mut self.rng);
            }
            if rollout.follow.pull_due(now) {
                let weights = ToRollout::Weights(self.life, self.version);
                rollout.inbox.send(weights, now, &mut self.rng);
            }
        }
    }

    fn run_learner(&mut self) {
        let now = self.now();
        for status in self.statuses.arrived(now) {
            self.admission.heard(&status.stream, status.in_flight, now);
            self.coordinator.status(status);
        }
        for batch in self.data.arrived(now) {
            let accept = self.coordinator.accept(&batch.stream);
            if let Verdict::Admitted(batch) = self.admission.receive(batch, now, accept) {
                self.coordinator.admitted(&batch);
                self.gather.put(batch);
            }
        }
        for (stream, seq) in self.gather.moved() {
            self.admission.consumed(&stream, seq);
        }
        let members = self.coordinator.members();
        for event in self.coordinator.tick(now) {
            match event {
                PhaseEvent::Opened { .. } => assert_eq!(self.gather.stored(), 0),
                PhaseEvent::Out { ref stream, .. } => {
                    self.gather.drop_stream(stream);
                    self.outs.push(event);
                }
                PhaseEvent::Complete { .. } => {
                    self.update(&members);
                    self.learning_until = Some(self.tick + LEARNING_TICKS);
                }
                PhaseEvent::Empty { .. } => {
                    assert_eq!(self.gather.stored(), 0);
                    self.learning_until = Some(self.tick);
                }
            }
        }
        if self.learning_until.is_some_and(|until| until <= self.tick) {
            self.learning_until = None;
            self.publish();
        }
        let acks = self.admission.acks_due(now);
        let status =
            learner_status(self.life, self.version, self.coordinator.phase(), QUOTA, &self.coordinator.members());
        for rollout in &mut self.rollouts {
            for ack in acks.iter().filter(|ack| ack.stream == rollout.id) {
                rollout.inbox.send(ToRollout::Ack(ack.clone()), now, &mut self.rng);
            }
            if self.tick.is_multiple_of(4) {
                rollout.inbox.send(ToRollout::Status(status.clone()), now, &mut self.rng);
            }
        }
    }

    /// Each row is the quota of one environment, and exactly what its rollout recorded.
    fn update(&mut self, members: &[StreamId]) {
        let rows = join(self.gather.take(self.version).unwrap());
        let streams: std::collections::BTreeSet<_> = rows.iter().map(|row| row.stream.clone()).collect();
        assert!(!rows.is_empty() && streams.iter().all(|stream| members.contains(stream)));
        assert_eq!(rows.len(), streams.len() * ENVS, "one row an environment");
        for row in &rows {
            let recorded = fragment(row.fragment.env, row.fragment.first, QUOTA, PERIOD, self.version);
            assert_eq!(row.fragment, recorded, "{}", row.stream);
        }
        assert_eq!(self.gather.counters().dropped_lag, 0);
        self.updates += 1;
        self.gather.left().iter().for_each(|(stream, seq)| self.admission.learned(stream, *seq));
        self.saved = self.admission.table();
    }

    fn strike(&mut self, fault: Fault) {
        let back = |world: &mut Self, index: usize, asleep_until: u64| {
            world.incarnations += 1;
            let id = stream(&world.rollouts[index].id.rollout, world.incarnations);
            world.rollouts[index] = Rollout::new(id, world.script.faults, asleep_until);
        };
        match fault {
            Fault::KillLearner => {
                self.life += 1;
                self.version = 0;
                self.learning_until = None;
                self.admission = Admission::restore(self.saved.clone(), RUN, self.life, contract());
                self.gather = Gather::new(UpdateMode::Sync, 1, 0);
                self.coordinator = Coordinator::new(RUN, self.life, QUOTA, 3);
                self.data.clear();
                self.statuses.clear();
                self.publish();
            }
            Fault::Kill(index) => back(self, index, self.tick + 20),
            Fault::Hang(index) => self.rollouts[index].asleep_until = self.tick + 160,
            Fault::Leave(index) => {
                self.rollouts[index].leaving = true;
                let status = self.rollouts[index].status();
                let now = self.now();
                self.statuses.send(status, now, &mut self.rng);
                back(self, index, self.tick + 20);
            }
            Fault::Cut => {}
        }
    }

    fn step(&mut self) {
        self.run_rollouts();
        self.run_learner();
        self.tick += 1;
    }

    fn run(mut self) -> Self {
        for tick in 0..BAD_TICKS {
            let events: Vec<_> = self.script.events.clone();
            let cut = events.iter().any(|(at, fault)| matches!(fault, Fault::Cut) && (*at..at + 60).contains(&tick));
            self.data.cut = cut;
            self.statuses.cut = cut;
            self.rollouts.iter_mut().for_each(|rollout| rollout.inbox.cut = cut);
            events.iter().filter(|(at, _)| *at == tick).for_each(|(_, fault)| self.strike(*fault));
            self.step();
        }
        self.data.heal();
        self.statuses.heal();
        self.rollouts.iter_mut().for_each(|rollout| rollout.inbox.heal());
        self
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn updates_hold_the_quota_of_each_member_and_go_on_once_the_network_heals(script in scripts()) {
        let mut world = World::new(script).run();
        // What a hang or a half-dead phase may cost before all is well again: 8 s, then 5 s.
        for _ in 0..HEALED_TICKS / 2 {
            world.step();
        }
        let (updates, outs) = (world.updates, world.outs.len());
        for _ in 0..HEALED_TICKS / 2 {
            world.step();
        }
        prop_assert!(updates + 8 <= world.updates, "{} updates in 15 s", world.updates - updates);
        prop_assert_eq!(outs, world.outs.len(), "nobody is put out of a healthy phase");
        prop_assert!(world.rollouts.iter().all(|rollout| world.admission.ack(&rollout.id).is_some()));
    }
}
