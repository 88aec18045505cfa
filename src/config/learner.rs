//! What can be set of the learner node, whatever it learns by.

use super::{HsPpo, Offline, Osac};
use serde::{Deserialize, Serialize};

/// When data is learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// All fragments of an update come from one version.
    Sync,
    /// No waiting; lag is corrected and bounded.
    Async,
}

/// The learner node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Learner {
    /// The run folder; empty: checkpoints nothing.
    pub run_dir: String,
    /// The run's uuid; empty: a new one.
    pub run: String,
    /// When data is learned from.
    pub update_mode: UpdateMode,
    /// Rollouts that a phase waits for at first.
    pub min_rollouts: usize,
    /// Valid steps of each environment for one update.
    pub num_steps_per_env: usize,
    /// Transitions for one update in the asynchronous mode.
    pub batch_steps: usize,
    /// Older data is dropped in the asynchronous mode [versions].
    pub max_lag: u64,
    /// Updates between two checkpoints.
    pub save_interval: u64,
    /// Checkpoints kept besides the best.
    pub keep: usize,
    /// Threads of libtorch.
    pub torch_threads: usize,
    /// The run, or one of its checkpoints, whose parameters a new run starts with, as far as they fit; empty: none.
    pub init_from: String,
    /// Resume without the replay of the checkpoint.
    pub without_replay: bool,
    /// Half-step PPO.
    pub hs_ppo: HsPpo,
    /// Option soft actor-critic.
    pub osac: Osac,
    /// Learning from bags.
    pub offline: Offline,
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            run_dir: String::new(),
            run: String::new(),
            update_mode: UpdateMode::Sync,
            min_rollouts: 1,
            num_steps_per_env: 32,
            batch_steps: 1024,
            max_lag: 8,
            save_interval: 20,
            keep: 3,
            torch_threads: 1,
            init_from: String::new(),
            without_replay: false,
            hs_ppo: HsPpo::default(),
            osac: Osac::default(),
            offline: Offline::default(),
        }
    }
}
