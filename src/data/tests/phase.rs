//! The learner's coordinator: who takes part, when a phase opens, and how it ends.

use super::make::{RUN, fragment, origin, rollout_status, secs, stream};
use crate::data::{Accept, Batch, Coordinator, Out, PhaseEvent, RolloutStatus, StreamId};
use uuid::Uuid;

const QUOTA: u64 = 10;

/// A coordinator with its time, which the test moves in steps of 0.2 s.
struct Bench {
    coordinator: Coordinator,
    ticks: u64,
    /// Rollouts whose status comes at each step: (stream, version held, steps).
    here: Vec<(StreamId, u64, u64)>,
}

impl Bench {
    fn new(min_rollouts: usize) -> Self {
        let mut coordinator = Coordinator::new(RUN, 1, QUOTA, min_rollouts);
        coordinator.published(1);
        Self { coordinator, ticks: 0, here: Vec::new() }
    }

    /// Two rollouts, ready, in an open phase.
    fn open() -> Self {
        let mut bench = Self::new(2);
        bench.join("a", 1, 1);
        bench.join("b", 1, 1);
        assert_eq!(bench.pass(0.2), [opened(1)]);
        bench
    }

    fn join(&mut self, rollout: &str, incarnation: u64, version: u64) {
        self.here.push((stream(rollout, incarnation), version, 0));
    }

    fn status(&mut self, change: impl FnOnce(&mut RolloutStatus)) {
        let mut status = rollout_status(&self.here[0].0, 1, self.here[0].1, self.here[0].2);
        change(&mut status);
        self.coordinator.status(status);
    }

    fn pass(&mut self, secs_: f64) -> Vec<PhaseEvent> {
        let mut events = Vec::new();
        for _ in 0..(secs_ / 0.2).round() as u64 {
            self.ticks += 1;
            for (stream, version, steps) in &self.here {
                self.coordinator.status(rollout_status(stream, 1, *version, *steps));
            }
            events.extend(self.coordinator.tick(secs(self.ticks as f64 * 0.2)));
        }
        events
    }

    /// Both environments of a stream deliver steps.
    fn admit(&mut self, stream: &StreamId, steps: u64) {
        let origin = origin(1, self.coordinator.phase());
        self.coordinator.admitted(&Batch {
            run: RUN,
            life: 1,
            stream: stream.clone(),
            seq: 0,
            base: 0,
            first_step: 0,
            phase: origin.phase,
            contract_hash: origin.contract_hash,
            fragments: (0..2).map(|env| fragment(env, 0, steps, 100, 1)).collect(),
            episodes: vec![],
        });
    }
}

fn opened(phase: u64) -> PhaseEvent {
    PhaseEvent::Opened { phase, short: None }
}

fn outs(events: &[PhaseEvent]) -> Vec<(String, Out)> {
    let out = |event: &PhaseEvent| match event {
        PhaseEvent::Out { stream, reason, .. } => Some((stream.to_string(), *reason)),
        _ => None,
    };
    events.iter().filter_map(out).collect()
}

#[test]
fn a_phase_opens_when_every_live_rollout_holds_the_newest_version() {
    let mut bench = Bench::new(1);
    bench.join("a", 1, 1);
    bench.join("b", 1, 0);
    assert_eq!(bench.pass(1.0), []);
    bench.here[1].1 = 1;
    assert_eq!(bench.pass(0.2), [opened(1)]);
    assert_eq!(bench.coordinator.members(), [stream("a", 1), stream("b", 1)]);
    assert_eq!(bench.coordinator.accept(&stream("a", 1)), Accept::Phase(1));
    assert_eq!(bench.coordinator.accept(&stream("c", 1)), Accept::Phase(0));
}

#[test]
fn nothing_opens_before_the_first_publish_nor_while_paused() {
    let mut coordinator = Coordinator::new(RUN, 1, QUOTA, 1);
    coordinator.status(rollout_status(&stream("a", 1), 1, 0, 0));
    assert_eq!(coordinator.tick(secs(0.0)), []);
    coordinator.published(1);
    coordinator.pause(true);
    coordinator.status(rollout_status(&stream("a", 1), 1, 1, 0));
    assert_eq!(coordinator.tick(secs(0.1)), []);
    coordinator.pause(false);
    assert_eq!(coordinator.tick(secs(0.2)), [opened(1)]);
}

#[test]
fn a_rollout_not_ready_5_seconds_after_a_publish_does_not_count_until_it_is() {
    let mut bench = Bench::new(1);
    bench.join("a", 1, 1);
    bench.join("b", 1, 0);
    assert_eq!(bench.pass(5.0), []);
    assert_eq!(bench.pass(0.4), [opened(1)]);
    assert_eq!(bench.coordinator.members(), [stream("a", 1)]);
}

#[test]
fn a_rollout_silent_for_2_seconds_is_not_waited_for() {
    let mut bench = Bench::new(1);
    bench.join("a", 1, 1);
    bench.coordinator.status(rollout_status(&stream("b", 1), 1, 0, 0));
    assert_eq!(bench.pass(2.0), []);
    assert_eq!(bench.pass(0.4), [opened(1)]);
}

#[test]
fn who_follows_another_run_or_life_is_no_member() {
    let mut bench = Bench::new(1);
    bench.join("a", 1, 1);
    bench.status(|status| (status.stream, status.run) = (stream("b", 1), Some(Uuid::from_u128(8))));
    assert_eq!(bench.pass(0.2), [opened(1)], "another run is not waited for");
    let mut bench = Bench::new(1);
    bench.here.push((stream("a", 1), 1, 0));
    bench.status(|status| (status.stream, status.life) = (stream("b", 1), 0));
    assert_eq!(bench.pass(0.2), [], "an older life is: it will follow");
}

#[test]
fn the_first_phase_waits_30_seconds_for_min_rollouts_and_says_so() {
    let mut bench = Bench::new(2);
    bench.join("a", 1, 1);
    assert_eq!(bench.pass(30.0), []);
    let events = bench.pass(0.4);
    let [PhaseEvent::Opened { phase: 1, short: Some(sentence) }] = &events[..] else { panic!("{events:?}") };
    assert!(sentence.contains("1 of 2 rollouts"), "{sentence}");
    bench.admit(&stream("a", 1), QUOTA);
    assert_eq!(bench.pass(0.2), [PhaseEvent::Complete { phase: 1 }]);
    bench.coordinator.published(2);
    bench.here[0].1 = 2;
    assert_eq!(bench.pass(0.2), [opened(2)], "it waited once");
}

#[test]
fn a_phase_is_complete_when_each_environment_of_each_member_has_its_quota() {
    let mut bench = Bench::open();
    bench.admit(&stream("a", 1), QUOTA);
    bench.admit(&stream("b", 1), QUOTA - 1);
    assert_eq!(bench.pass(0.2), []);
    bench.admit(&stream("b", 1), 1);
    assert_eq!(bench.pass(0.2), [PhaseEvent::Complete { phase: 1 }]);
    assert_eq!((bench.coordinator.phase(), bench.coordinator.members()), (0, vec![]));
    assert_eq!(bench.coordinator.accept(&stream("a", 1)), Accept::Phase(0));
    assert_eq!(bench.pass(1.0), [], "nothing opens before the next publish");
}

#[test]
fn a_member_whose_steps_stand_still_is_out_and_the_phase_completes_without_it() {
    let mut bench = Bench::open();
    bench.admit(&stream("b", 1), QUOTA);
    bench.here[0].2 = 7;
    assert_eq!(bench.pass(4.8), []);
    let events = bench.pass(0.4);
    let [PhaseEvent::Out { stream: member, reason: Out::Still, sentence }, PhaseEvent::Complete { phase: 1 }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(*member, stream("a", 1));
    assert!(sentence.contains("out of phase 1 at 0 of 10 steps: its steps stood still for 5 s"), "{sentence}");
}

#[test]
fn a_slow_member_is_waited_for_while_its_steps_move() {
    let mut bench = Bench::open();
    bench.admit(&stream("b", 1), QUOTA);
    for _ in 0..5 {
        bench.here[0].2 += 1;
        assert_eq!(bench.pass(4.0), []);
    }
    bench.admit(&stream("a", 1), QUOTA);
    assert_eq!(bench.pass(0.2), [PhaseEvent::Complete { phase: 1 }]);
}

#[test]
fn time_in_which_the_learner_was_paused_or_stopped_does_not_count() {
    let mut bench = Bench::open();
    assert_eq!(bench.pass(3.0), []);
    bench.coordinator.pause(true);
    assert_eq!(bench.pass(60.0), []);
    bench.coordinator.pause(false);
    bench.ticks += 300;
    assert_eq!(bench.pass(1.0), [], "60 s without a tick: the learner was stopped");
    assert_eq!(outs(&bench.pass(2.0)).len(), 2);
}

#[test]
fn a_leaving_member_is_out_at_once() {
    let mut bench = Bench::open();
    bench.admit(&stream("b", 1), QUOTA);
    bench.status(|status| status.leaving = true);
    bench.here.remove(0);
    let events = bench.pass(0.2);
    assert_eq!(outs(&events), [(stream("a", 1).to_string(), Out::Leaving)]);
    assert_eq!(events.last(), Some(&PhaseEvent::Complete { phase: 1 }));
}

#[test]
fn a_new_incarnation_takes_the_place_of_the_old_one_for_good() {
    let mut bench = Bench::open();
    bench.admit(&stream("a", 1), QUOTA);
    bench.here[0].0 = stream("a", 2);
    assert_eq!(outs(&bench.pass(0.2)), [(stream("a", 1).to_string(), Out::Replaced)]);
    bench.coordinator.status(rollout_status(&stream("a", 1), 1, 1, 0));
    bench.admit(&stream("b", 1), QUOTA);
    assert_eq!(bench.pass(0.2), [PhaseEvent::Complete { phase: 1 }]);
    bench.coordinator.published(2);
    bench.here.iter_mut().for_each(|rollout| rollout.1 = 2);
    bench.coordinator.status(rollout_status(&stream("a", 1), 1, 2, 0));
    assert_eq!(bench.pass(0.2), [opened(2)]);
    bench.coordinator.status(rollout_status(&stream("a", 1), 1, 2, 0));
    assert_eq!(bench.pass(0.2), [], "a late word of the old one puts nobody out");
    assert_eq!(bench.coordinator.members(), [stream("a", 2), stream("b", 1)]);
}

#[test]
fn a_phase_that_loses_all_members_ends_without_an_update() {
    let mut bench = Bench::open();
    bench.here.clear();
    let events = bench.pass(5.4);
    assert_eq!(outs(&events).len(), 2);
    assert_eq!(events.last(), Some(&PhaseEvent::Empty { phase: 1 }));
    assert_eq!(bench.coordinator.phase(), 0);
    bench.coordinator.published(2);
    bench.join("c", 1, 2);
    assert_eq!(bench.pass(0.2), [opened(2)]);
}

#[test]
fn a_rollout_that_claims_no_or_countless_environments_harms_nobody() {
    let mut bench = Bench::new(1);
    bench.join("a", 1, 1);
    bench.status(|status| (status.stream, status.num_envs) = (stream("b", 1), 0));
    bench.status(|status| (status.stream, status.num_envs) = (stream("c", 1), u32::MAX));
    let events = bench.pass(5.4);
    assert_eq!(events, [opened(1)]);
    bench.admit(&stream("a", 1), QUOTA);
    assert_eq!(bench.pass(5.4).last(), Some(&PhaseEvent::Complete { phase: 1 }));
}
