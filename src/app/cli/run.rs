//! What is asked of runs.

use clap::Args;
use std::path::PathBuf;

/// `handoff eval`.
#[derive(Args, Clone, Debug)]
pub struct Eval {
    /// The run folder, or one of its checkpoints.
    pub run: PathBuf,
    /// Episodes.
    #[arg(long, default_value_t = 300)]
    pub episodes: usize,
    /// Seed of starts, goals, options and terminations.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sample the actions, too (otherwise they are the mean).
    #[arg(long)]
    pub stochastic: bool,
    /// Write the episodes as a bag, to analyse or to learn from (train --offline).
    #[arg(long, value_name = "BAG", conflicts_with = "link")]
    pub record: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The checkpoint with the best training score instead of the newest.
    #[arg(long)]
    pub best: bool,
    /// The same episodes through a simulator's link too (sim, isaac, isaac_moveit): policy node and guard on the paced arm.
    #[arg(long, value_name = "LINK", conflicts_with = "stochastic")]
    pub link: Option<String>,
    /// With --link: set a parameter of the guard, e.g. `--set guard.scale=0.1`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "link")]
    pub assignments: Vec<String>,
    /// With --link: joints in another order with more joints between them, and no velocities.
    #[arg(long, requires = "link")]
    pub scrambled: bool,
}

/// `handoff status`.
#[derive(Args, Clone, Debug)]
pub struct Status {
    /// The run folder [default: the newest below runs/].
    pub run: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `handoff curve`.
#[derive(Args, Clone, Debug)]
pub struct Curve {
    /// Run folders.
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    /// The picture to write.
    #[arg(long, short, default_value = "curve.svg")]
    pub out: PathBuf,
}
