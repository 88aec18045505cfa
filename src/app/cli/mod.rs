//! The command line: what can be asked, and how its options become a configuration.

mod bag;
mod bench;
mod node;
mod run;
mod train;

#[cfg(feature = "torch")]
pub use bag::BagAnalyse;
pub use bag::{BagCheck, BagCommand, BagCut, BagInfo, BagPurpose, BagRecord};
pub use bench::{Bench, BenchLatency, BenchLearner, BenchTrain, BenchWeights};
pub use node::{Node, Policy, Sim};
pub use run::{Curve, Eval, Status};
pub use train::{Train, describe};

use clap::{Parser, Subcommand};

/// Options for a Franka arm: trained asynchronously over ROS 2, carried from simulation to hardware.
#[derive(Debug, Parser)]
#[command(name = "handoff", version, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train, show progress, evaluate. Starts simulators, rollouts and the learner as ROS 2 nodes.
    Train(Box<Train>),
    /// Evaluate the policy of a run.
    Eval(Eval),
    /// Say what the metrics of a run mean: learning or not, and what to change. While it goes on, and afterwards.
    Status(Status),
    /// Draw the learning curve of one or more runs (SVG).
    Curve(Curve),
    /// Look at, judge, or cut a rosbag2 recording (mcap, sqlite3; broken ones too).
    #[command(subcommand)]
    Bag(BagCommand),
    /// Measure speed.
    #[command(subcommand)]
    Bench(Bench),
    /// Node: the embedded MuJoCo arm, in lockstep with one rollout, or paced as Isaac Sim is.
    Sim(Sim),
    /// Node: acts and records.
    Rollout(Node),
    /// Node: learns and publishes weights.
    Learner(Node),
    /// Node: runs a trained policy on an arm, guarded. Starts inactive and disarmed.
    Policy(Policy),
}

/// A finite number.
fn number(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a finite number is right, e.g. 2.5".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
