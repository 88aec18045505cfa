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
    learner.rollout_status(status(RUN, 1, 7), now(0)).unwrap();
    assert_eq!(members(&mut learner, now(10)), [7]);
    learner.rollout_status(status(Uuid::from_u128(2), 1, 8), now(20)).unwrap();
    assert_eq!(members(&mut learner, now(30)), [7], "same id, other run");
    learner.rollout_status(status(RUN, 1, 9), now(40)).unwrap();
    assert_eq!(members(&mut learner, now(50)), [] as [u64; 0], "same id, same run, a new start");
}

#[test]
fn a_newer_learner_of_the_run_stops_this_one_with_both_lives() {
    let sentence = learner().rollout_status(status(RUN, 4, 7), Duration::ZERO).unwrap_err().to_string();
    assert!(sentence.contains("life 4") && sentence.contains("life 1"), "{sentence}");
}
