//! The front of the learner among several rollouts and runs.

use super::*;
use crate::config::Config;
use crate::contract::Normaliser;
use crate::data::StreamId;

const RUN: Uuid = Uuid::from_u128(1);

fn learner() -> Learner {
    let config = Config { hidden: vec![8], ..Config::default() };
    let contract = Arc::new(config.contract().unwrap());
    let mut learner = Learner::new(RUN, 1, contract.clone(), &config.learner, Table::default());
    let snapshot = Snapshot {
        run: RUN,
        life: 1,
        version: 1,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        parameters: vec![0.0; contract.layout().len()].into(),
        contract,
    };
    learner.published(&snapshot, snapshot.hash());
    learner
}

fn status(run: Uuid, life: u32, incarnation: u64) -> RolloutStatus {
    RolloutStatus {
        run: Some(run),
        life,
        stream: StreamId { rollout: "r0".into(), incarnation },
        version: 1,
        hash: Hash::default(),
        phase: 0,
        steps: 0,
        phase_steps: 0,
        num_envs: 2,
        leaving: false,
        state: String::new(),
        in_flight: 0,
        queue_batches: 0,
        aborted_episodes: 0,
        refused_weights: 0,
        held_ticks: 0,
    }
}

fn members(learner: &mut Learner, now: Duration) -> Vec<u64> {
    learner.due(now);
    learner.status().members.iter().map(|stream| stream.incarnation).collect()
}

#[test]
fn a_rollout_of_another_run_takes_nobodys_place() {
    let mut learner = learner();
    let now = Duration::from_millis;
    assert_eq!(learner.rollout_status(status(RUN, 1, 7), now(0)), Rival::None);
    assert_eq!(members(&mut learner, now(10)), [7]);
    assert_eq!(learner.rollout_status(status(Uuid::from_u128(2), 1, 8), now(20)), Rival::None);
    assert_eq!(members(&mut learner, now(30)), [7], "same id, other run");
    assert_eq!(learner.rollout_status(status(RUN, 1, 9), now(40)), Rival::None);
    assert_eq!(members(&mut learner, now(50)), [] as [u64; 0], "same id, same run, a new start");
}

#[test]
fn a_newer_learner_of_the_run_stops_this_one_with_both_lives_if_the_run_folder_knows_it() {
    let mut learner = learner();
    assert_eq!(learner.rollout_status(status(RUN, 4, 7), Duration::ZERO), Rival::Later(4));
    let heard = LearnerStatus { life: 4, ..learner.status() };
    assert_eq!(learner.learner_status(&heard), Rival::Later(4));
    assert_eq!(learner.learner_status(&learner.status()), Rival::None, "its own");
    for on_disk in [Some(4), Some(5), None] {
        let sentence = learner.overtaken(4, on_disk).unwrap_err().to_string();
        assert!(sentence.contains("life 4") && sentence.contains("life 1"), "{sentence}");
    }
    assert!(learner.overtaken(4, Some(1)).is_ok(), "anybody can say so; the folder counts the lives");
}

#[test]
fn of_two_learners_on_the_same_topics_the_one_that_has_done_nothing_stops() {
    let learner = learner();
    let other = |run, admitted| LearnerStatus { run: Uuid::from_u128(run), admitted, ..learner.status() };
    for (run, admitted) in [(9, 1), (0, 1), (0, 0)] {
        let Rival::Elder(sentence) = learner.learner_status(&other(run, admitted)) else { panic!("{run} {admitted}") };
        assert!(sentence.contains(&Uuid::from_u128(run).to_string()) && sentence.contains("learner_ns"), "{sentence}");
    }
    // Of two that have done nothing, one stops: the same one for both.
    assert!(matches!(learner.learner_status(&other(9, 0)), Rival::Younger(_)));
}

#[test]
fn a_phase_of_which_nothing_is_left_is_no_update() {
    let mut learner = learner();
    learner.pending = Some(PhaseEvent::Complete { phase: 1 });
    assert!(matches!(learner.due(Duration::ZERO).work, Some(Work::Republish)));
}

#[test]
fn its_report_moves_with_the_trainer_and_waits_only_while_it_is_idle() {
    let mut learner = learner();
    learner.rollout_status(status(RUN, 1, 7), Duration::ZERO);
    let idle = learner.report(3);
    assert!(idle.waits && idle.phase == "waiting", "{idle:?}");
    learner.busy = true;
    let (busy, later) = (learner.report(3), learner.report(4));
    assert!(!busy.waits && busy.phase == "learning" && busy.progress < later.progress, "{busy:?} {later:?}");
    let names: Vec<_> = busy.counts.iter().map(|(name, _)| *name).collect();
    for wanted in ["lost", "refused_malformed", "suspect_batches", "dropped_out_of_phase", "queue_batches"] {
        assert!(names.contains(&wanted), "{wanted} is missing from {names:?}");
    }
}

#[test]
fn who_is_silent_while_a_phase_waits_is_named() {
    let mut learner = learner();
    learner.rollout_status(status(RUN, 1, 7), Duration::ZERO);
    for beat in 0..60 {
        learner.due(Duration::from_millis(50 * beat));
    }
    assert_eq!(learner.report(0).waits_for, ["r0#00000007 is silent for 2 s"]);
}
