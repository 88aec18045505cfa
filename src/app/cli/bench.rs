//! What is measured.

use super::number;
use clap::{Args, Subcommand};

/// `handoff bench`.
#[derive(Clone, Debug, Subcommand)]
pub enum Bench {
    /// Train over ROS 2, then with the same actors over channels: rates, where time goes, the price of ROS.
    Train(BenchTrain),
    /// Weights of 0.3, 1 and 5 MB: time from publishing to acting with them.
    Weights(BenchWeights),
    /// Gradient steps a second of `sac` and `osac` on made-up steps, one thread.
    Learner(BenchLearner),
    /// The policy node at 100 Hz: time from a joint state to its command, over ROS 2, guarded.
    Latency(BenchLatency),
}

/// `handoff bench train`.
#[derive(Args, Clone, Debug)]
pub struct BenchTrain {
    /// Time to train, each way.
    #[arg(long, value_parser = number, default_value_t = 1.0, allow_negative_numbers = true)]
    pub minutes: f64,
    /// Set any parameter, as in `train`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Stable-Baselines3 PPO beside it: the same model, rate, network and epochs.
    #[arg(long)]
    pub peers: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `handoff bench weights`.
#[derive(Args, Clone, Debug)]
pub struct BenchWeights {
    /// Versions of each size.
    #[arg(long, default_value_t = 200)]
    pub versions: usize,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `handoff bench learner`.
#[derive(Args, Clone, Debug)]
pub struct BenchLearner {
    /// Gradient steps of each learner.
    #[arg(long, default_value_t = 2000)]
    pub steps: u64,
    /// Stable-Baselines3 SAC beside them: the same sizes.
    #[arg(long)]
    pub peers: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `handoff bench latency`.
#[derive(Args, Clone, Debug)]
pub struct BenchLatency {
    /// States that are measured, 100 a second.
    #[arg(long, default_value_t = 6000)]
    pub states: usize,
    /// Beside a learner on every core.
    #[arg(long)]
    pub loaded: bool,
    /// The same policy as a node in rclpy and PyTorch beside it, without a guard.
    #[arg(long)]
    pub peers: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}
