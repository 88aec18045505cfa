mod checkpoint;
mod folder;
mod journal;

use super::*;
use crate::config::Config;
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use crate::data::Vectors;
use crate::error::{Error, Result};
use crate::robot::Robot;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use uuid::Uuid;

fn contract() -> Contract {
    Contract {
        robot: Robot::Panda,
        joints: Robot::Panda.joint_names().to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }, Field { name: "goal_m".into(), len: 3 }],
        action: ActionMeaning::JointDelta { scale_rad: 0.08 },
        control_period_secs: 1.0 / 30.0,
        options: Options { count: 2, min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![6, 5] },
        told: Told { position_noise_rad: 1e-3, ..Told::default() },
    }
}

fn checkpoint(updates: u64, score: Option<f64>) -> Checkpoint {
    let contract = Arc::new(contract());
    let floats = contract.layout().len();
    let parameters: Vec<f32> = (0..floats).map(|i| (i as f32 + updates as f32).sin() / 3.0).collect();
    let normaliser = Normaliser {
        mean: (0..10).map(|i| i as f32 / 7.0).collect(),
        std: (1..11).map(|i| i as f32 / 3.0).collect(),
        clip: f32::INFINITY,
        count: 1.0 / 3.0,
    };
    let snapshot = Snapshot {
        run: Uuid::from_u128(0x1234),
        life: 3,
        version: u64::MAX,
        updates,
        env_steps: updates * 2048,
        random_warmup: true,
        contract,
        normaliser,
        parameters: parameters.into(),
    };
    let mut state = Vectors::default();
    state.floats.insert("adam.m".into(), (0..floats).map(|i| 1e-30 * i as f32).collect());
    state.floats.insert("empty".into(), Vec::new());
    state.doubles.insert("return.variance".into(), vec![0.1 + 0.2, -0.0, 1e300]);
    let learner = serde_json::json!({"admission": {"r0#01": {"next": u64::MAX}}, "ratio": 0.1 + 0.2});
    Checkpoint { snapshot, config: Config::default(), score, learner, state, replay: None }
}

fn run(parent: &TempDir) -> RunDir {
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    RunDir::create(parent.path(), "reach", "hs_ppo", 1, now, "learner: {}\n").unwrap()
}

fn save(run: &RunDir, checkpoint: &Checkpoint, keep: usize) -> Result<PathBuf> {
    super::save(run, checkpoint, keep, &|| {})
}

fn saved(parent: &TempDir) -> PathBuf {
    save(&run(parent), &checkpoint(40, Some(0.5)), 3).unwrap()
}
