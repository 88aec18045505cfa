//! Two rollouts and a learner with the network between them, and the harness's own books.

use super::super::make::{RUN, contract, fragment, origin, stream};
use super::super::network::{Faults, Link};
use crate::data::audit::{Account, Note, Step, account};
use crate::data::{
    Accept, Ack, Admission, Batch, Fragment, Hold, Origin, Outbox, Refusal, StreamId, Table, Transition, Verdict,
};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) const WINDOW: usize = 4;
/// Ticks of 50 ms under faults ...
pub(super) const BAD_TICKS: u64 = 400;
/// ... and on the healed network, until a last batch is recorded, and until all must have arrived: what silence made wait
/// is sent again within 4 s, what fails its check is judged when it comes again, and the batches behind follow, a window
/// at a time.
const LAST_TICK: u64 = 100;
const HEALED_TICKS: u64 = 1200;

type Key = (StreamId, u64);

#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) seed: u64,
    pub(super) faults: Faults,
    pub(super) hold: Hold,
    pub(super) accept: Accept,
    /// Ticks at which a process is killed and started anew.
    pub(super) learner_kills: Vec<u64>,
    pub(super) rollout_kills: Vec<u64>,
    /// Ticks from which the network is cut for 3 s.
    pub(super) cuts: Vec<u64>,
    pub(super) poison: f64,
    /// Chance, each tick, that somebody sends a bad batch with the next number of a stream.
    pub(super) forge: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Poison {
    None,
    Malformed,
    NonFinite,
}

pub(super) struct Rollout {
    pub(super) outbox: Outbox,
    pub(super) life: u32,
    recorded: u64,
    next_seq: u64,
    /// What acks of this life said, by the harness's own reading.
    received: BTreeSet<u64>,
    inbox: Link<ToRollout>,
    notes: Vec<Note>,
}

#[derive(Clone)]
enum ToRollout {
    Life(u32),
    Ack(Ack),
}

impl Rollout {
    fn new(id: StreamId, script: &Script) -> Self {
        let mut outbox = Outbox::new(id, WINDOW, script.hold);
        outbox.audit();
        Self {
            outbox,
            notes: Vec::new(),
            life: 0,
            recorded: 0,
            next_seq: 0,
            received: BTreeSet::new(),
            inbox: Link::new(script.faults),
        }
    }
}

pub(super) struct World {
    script: Script,
    rng: ChaCha8Rng,
    pub(super) now: Duration,
    pub(super) rollouts: Vec<Rollout>,
    pub(super) admission: Admission,
    life: u32,
    data: Link<Batch>,
    pending: Vec<Key>,
    /// Moved into the store of an update.
    stored: Vec<Key>,
    /// Verdicts that the learner's present state stands for: true if admitted.
    judged: BTreeMap<Key, bool>,
    saved: (Table, BTreeMap<Key, bool>),
    /// All that was ever recorded.
    recorded: BTreeMap<Key, (Vec<Fragment>, Poison)>,
    totals: BTreeMap<StreamId, u64>,
    /// How far the learner got in each stream, as it is on disk.
    marks: BTreeMap<StreamId, u64>,
    /// Notes of the processes that are dead, and of the learner that lives.
    dead: Vec<Vec<Note>>,
    notes: Vec<Note>,
}

impl World {
    pub(super) fn new(script: Script) -> Self {
        let mut admission = Admission::new(RUN, 1, contract());
        admission.audit();
        Self {
            rng: ChaCha8Rng::seed_from_u64(script.seed),
            now: Duration::ZERO,
            rollouts: (0..2).map(|r| Rollout::new(stream(&format!("r{r}"), 0), &script)).collect(),
            admission,
            life: 1,
            data: Link::new(script.faults),
            pending: Vec::new(),
            stored: Vec::new(),
            judged: BTreeMap::new(),
            saved: (Table::default(), BTreeMap::new()),
            recorded: BTreeMap::new(),
            totals: BTreeMap::new(),
            marks: BTreeMap::new(),
            dead: Vec::new(),
            notes: Vec::new(),
            script,
        }
    }

    fn record(&mut self, index: usize, poison: Poison) {
        let rollout = &mut self.rollouts[index];
        let steps = self.rng.random_range(1..5);
        let mut good = fragment(0, rollout.recorded, steps, 7, 1);
        let fragments = vec![good.clone()];
        match poison {
            Poison::None => {}
            Poison::Malformed => good.steps[0].choice.option = 200,
            Poison::NonFinite => good.steps[0].reward = f32::NAN,
        }
        let key = (rollout.outbox.stream().clone(), rollout.next_seq);
        let ids = good.steps.iter().zip(good.first..);
        let steps_of = |(step, index): (&Transition, u64)| Step { env: 0, index, episode: step.episode, t: step.t };
        rollout.notes.push(Note::Recorded { stream: key.0.clone(), steps: ids.map(steps_of).collect() });
        rollout.outbox.push(vec![good], vec![], origin(rollout.life, 0));
        rollout.recorded += steps;
        rollout.next_seq += 1;
        *self.totals.entry(key.0.clone()).or_default() += steps;
        self.recorded.insert(key, (fragments, poison));
    }

    fn run_rollout(&mut self, index: usize, record: bool) {
        let rollout = &mut self.rollouts[index];
        for message in rollout.inbox.arrived(self.now) {
            match message {
                ToRollout::Life(life) => {
                    rollout.outbox.adopt(RUN, life);
                    if rollout.life < life {
                        rollout.life = life;
                        rollout.received.clear();
                    }
                }
                ToRollout::Ack(ack) => {
                    rollout.outbox.acknowledge(&ack);
                    if ack.life == rollout.life {
                        rollout.received.extend(0..ack.received);
                        let masked = (0..64).filter(|bit| ack.received_mask >> bit & 1 == 1);
                        rollout.received.extend(masked.map(|bit| ack.received + 1 + bit));
                    }
                }
            }
        }
        if record && 0 < rollout.life && !rollout.outbox.full() && self.rng.random_bool(0.5) {
            let draw = self.rng.random::<f64>();
            let poison = match () {
                () if draw < self.script.poison / 2.0 => Poison::Malformed,
                () if draw < self.script.poison => Poison::NonFinite,
                () => Poison::None,
            };
            self.record(index, poison);
        }
        let rollout = &mut self.rollouts[index];
        let forged = record && 0.0 < self.script.forge && self.rng.random_bool(self.script.forge);
        if forged && 0 < rollout.life {
            let bad = fragment(0, 0, 3, 7, 1);
            let mut outbox = Outbox::new(rollout.outbox.stream().clone(), 1, Hold::Consumed);
            outbox.adopt(RUN, rollout.life);
            outbox.push(vec![bad], vec![], Origin { contract_hash: [3; 32], ..origin(rollout.life, 0) });
            let seq = rollout.next_seq;
            let forged = outbox.due(self.now).into_iter().map(|batch| Batch { seq, ..batch });
            forged.for_each(|batch| self.data.send(batch, self.now, &mut self.rng));
        }
        for batch in rollout.outbox.due(self.now) {
            assert!(!rollout.received.contains(&batch.seq), "what is received is not sent again");
            assert_eq!(batch.base, rollout.outbox.base());
            self.data.send(batch, self.now, &mut self.rng);
        }
        assert!(rollout.outbox.in_flight() <= WINDOW);
    }

    fn run_learner(&mut self) {
        for batch in self.data.arrived(self.now) {
            let key = (batch.stream.clone(), batch.seq);
            if batch.contract_hash == [3; 32] {
                let verdict = self.admission.receive(batch, self.now, self.script.accept);
                assert!(!matches!(verdict, Verdict::Admitted(_) | Verdict::Refused(_)), "{verdict:?}");
                continue;
            }
            let (fragments, poison) = &self.recorded[&key];
            match self.admission.receive(batch, self.now, self.script.accept) {
                Verdict::Admitted(batch) => {
                    assert_eq!(*poison, Poison::None);
                    assert_eq!(batch.fragments, *fragments);
                    self.pending.push(key.clone());
                    assert_eq!(self.judged.insert(key, true), None, "admitted twice");
                }
                Verdict::Refused(refusal) => {
                    match refusal {
                        Refusal::Malformed(_) => assert_eq!(*poison, Poison::Malformed),
                        Refusal::NonFinite(_) => assert_eq!(*poison, Poison::NonFinite),
                        Refusal::Stale(_) => assert_eq!(self.script.accept, Accept::Life),
                        Refusal::Contract(sentence) => panic!("{sentence}"),
                    }
                    assert_eq!(self.judged.insert(key, false), None, "judged twice");
                }
                Verdict::Suspect(_) => assert_ne!(*poison, Poison::None),
                Verdict::Duplicate => {}
                // who has not heard of the new life goes on where the old one was; it comes again in its turn
                Verdict::Ignored(sentence) => {
                    assert!(1 < self.life && sentence.contains("too far ahead"), "{sentence}")
                }
            }
        }
        while !self.pending.is_empty() && self.rng.random_bool(0.6) {
            let (stream, seq) = self.pending.swap_remove(self.rng.random_range(0..self.pending.len()));
            self.admission.consumed(&stream, seq);
            self.stored.push((stream, seq));
        }
        while !self.stored.is_empty() && self.rng.random_bool(0.4) {
            let (stream, seq) = self.stored.swap_remove(self.rng.random_range(0..self.stored.len()));
            self.admission.learned(&stream, seq);
        }
        for rollout in &self.rollouts {
            self.admission.heard(rollout.outbox.stream(), rollout.outbox.in_flight() as u32, self.now);
        }
        self.marks.extend(self.admission.marks());
        self.notes.extend(self.admission.notes());
        let acks = self.admission.acks_due(self.now);
        for rollout in &mut self.rollouts {
            for ack in acks.iter().filter(|ack| ack.stream == *rollout.outbox.stream()) {
                rollout.inbox.send(ToRollout::Ack(ack.clone()), self.now, &mut self.rng);
            }
            rollout.inbox.send(ToRollout::Life(self.life), self.now, &mut self.rng);
        }
    }

    fn save(&mut self) {
        let table = serde_json::from_str(&serde_json::to_string(&self.admission.table()).unwrap()).unwrap();
        let mut judged = self.judged.clone();
        let unlearned = self.pending.iter().chain(&self.stored);
        unlearned.for_each(|key| assert_eq!(judged.remove(key), Some(true)));
        self.saved = (table, judged);
        self.admission.durable(&self.saved.0);
    }

    fn kill_learner(&mut self) {
        self.life += 1;
        self.dead.push(std::mem::take(&mut self.notes));
        let mut table = self.saved.0.clone();
        table.presume(self.marks.clone());
        self.admission = Admission::restore(table, RUN, self.life, contract());
        self.admission.audit();
        self.judged = self.saved.1.clone();
        self.pending.clear();
        self.stored.clear();
        self.data.clear();
    }

    fn kill_rollout(&mut self, index: usize) {
        let old = self.rollouts[index].outbox.stream();
        let id = stream(&old.rollout, old.incarnation + 1);
        let notes = self.notes_of(index);
        self.dead.push(notes);
        self.rollouts[index] = Rollout::new(id, &self.script);
    }

    fn notes_of(&mut self, index: usize) -> Vec<Note> {
        let Rollout { outbox, notes, .. } = &mut self.rollouts[index];
        notes.extend(outbox.notes());
        std::mem::take(notes)
    }

    /// By ids, over all processes that ever were.
    pub(super) fn account(&mut self) -> Account {
        let mut processes = std::mem::take(&mut self.dead);
        processes.extend((0..self.rollouts.len()).map(|index| self.notes_of(index)));
        let mut learner = std::mem::take(&mut self.notes);
        learner.extend(self.admission.notes());
        let totals = self.admission.totals();
        learner.push(Note::Totals { admitted: totals.admitted, refused: totals.refused.total(), lost: totals.lost });
        processes.push(learner);
        account(&processes).unwrap()
    }

    pub(super) fn tick(&mut self, record: bool) {
        for index in 0..self.rollouts.len() {
            self.run_rollout(index, record);
        }
        self.run_learner();
        self.now += Duration::from_millis(50);
    }

    fn heal(&mut self) {
        self.data.heal();
        self.rollouts.iter_mut().for_each(|rollout| rollout.inbox.heal());
    }

    pub(super) fn run(mut self) -> Self {
        for tick in 0..BAD_TICKS {
            let cut = self.script.cuts.iter().any(|from| (*from..from + 60).contains(&tick));
            self.data.cut = cut;
            self.rollouts.iter_mut().for_each(|rollout| rollout.inbox.cut = cut);
            if tick % 23 == 22 {
                self.save();
            }
            if self.script.learner_kills.contains(&tick) {
                self.kill_learner();
            }
            if self.script.rollout_kills.contains(&tick) {
                self.kill_rollout(tick as usize % 2);
            }
            self.tick(true);
        }
        self.heal();
        for tick in 0..HEALED_TICKS {
            if tick == LAST_TICK {
                (0..self.rollouts.len()).for_each(|index| self.record(index, Poison::None));
            }
            if tick % 23 == 22 {
                self.save();
            }
            self.tick(false);
            if LAST_TICK < tick && self.rollouts.iter().all(|rollout| rollout.outbox.held() == 0) {
                break;
            }
        }
        self
    }

    /// Transitions judged, from the harness's own books.
    fn judged_steps(&self, stream: &StreamId, admitted: bool) -> u64 {
        let mine = self.judged.iter().filter(|((of, _), verdict)| of == stream && **verdict == admitted);
        mine.map(|(key, _)| self.recorded[key].0[0].steps.len() as u64).sum()
    }

    pub(super) fn check(&self) -> Result<(), TestCaseError> {
        for rollout in &self.rollouts {
            let (id, ours) = (rollout.outbox.stream(), rollout.outbox.counters());
            let ack = self.admission.ack(id).unwrap();
            prop_assert_eq!(rollout.outbox.held_steps(), 0, "all is delivered once the network heals");
            prop_assert_eq!(ours.recorded, rollout.recorded);
            prop_assert_eq!(ours.recorded, ours.freed);
            prop_assert_eq!(ours.recorded, ack.admitted + ack.refused.total() + ack.lost);
            prop_assert_eq!(ack.received, rollout.next_seq);
            prop_assert_eq!(ack.consumed, rollout.next_seq);
        }
        for (id, recorded) in &self.totals {
            let Some(ack) = self.admission.ack(id) else { continue };
            prop_assert_eq!(ack.admitted, self.judged_steps(id, true));
            prop_assert_eq!(ack.refused.total(), self.judged_steps(id, false));
            prop_assert!(ack.admitted + ack.refused.total() + ack.lost <= *recorded);
        }
        Ok(())
    }

    pub(super) fn recorded_steps(&self) -> u64 {
        self.totals.values().sum()
    }

    pub(super) fn lost(&self) -> u64 {
        self.admission.totals().lost
    }
}
