//! Bags whose every answer is known: an arm that was really moved, and transitions that were really decided.

mod arms;
mod divergence;
mod episodes;
mod refusals;
mod scene;
mod steps;
mod transitions;

use super::trace::Mean;
use super::*;
use crate::bag::Bag;
use crate::bag::tests::recording::{self, Recording};
use crate::config::{Config, Seed};
use crate::contract::{Contract, Normaliser, Snapshot};
use crate::data::{Batch, End, EpisodeStats, JointState, OptionState};
use crate::policy::Sampling;
use crate::robot::{ARM_DOF, READY, Robot};
use rand::RngExt as _;
use scene::{GOAL, Scene, moved, recorded_arm};
use std::sync::Arc;
use steps::{constant, deviating, recorded, stats, transitions, transitions_by};
use uuid::Uuid;

fn contract() -> Arc<Contract> {
    Arc::new(Config { hidden: vec![8], ..Config::default() }.contract().unwrap())
}

fn snapshot(version: u64, spread: f32) -> Arc<Snapshot> {
    let contract = contract();
    let mut rng = Seed::root(7).rng(0);
    let mut parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.3..0.3)).collect();
    let mut rng = Seed::root(version).rng(1);
    parameters.iter_mut().for_each(|parameter| *parameter += spread * rng.random_range(-1.0f32..1.0));
    Arc::new(Snapshot {
        run: Uuid::from_u128(3),
        life: 1,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        contract,
        parameters: parameters.into(),
    })
}

fn ns(secs: f64) -> i64 {
    1_000_000_000_000 + (secs * 1e9).round() as i64
}

fn analysed(bag: &Recording, setup: &Setup) -> (Analysis, Vec<OptionState>) {
    let mut decided = Vec::new();
    let path = bag.write();
    let found = analyse(
        &Bag::open(&path).unwrap(),
        setup,
        &mut |decision: &Decision| decided.push(decision.clone()),
        &mut |_| {},
    );
    (found.unwrap(), decided)
}

fn present(snapshot: &Arc<Snapshot>) -> Option<Present> {
    Some(Present { from: "a run".into(), snapshot: snapshot.clone(), critic: true, rewards: None })
}
