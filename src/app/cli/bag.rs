//! What is done with recordings.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `handoff bag`. Exit codes: 0 fine, 1 not fit (check), 2 bad request, 3 damaged (what could be read is shown).
#[derive(Clone, Debug, Subcommand)]
pub enum BagCommand {
    /// Contents and health.
    Info(BagInfo),
    /// Is it fit for analysis, for learning? If not, why.
    Check(BagCheck),
    /// What happened, what the policy did and would do now, what the critic thinks, and whether the system was healthy.
    #[cfg(feature = "torch")]
    Analyse(BagAnalyse),
    /// Record what analysis and learning need (mcap), until stopped; as rosbag2 does by configs/record.yaml.
    #[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
    Record(BagRecord),
    /// Copy a part into a bag of its own (mcap); latched messages from before it are carried over.
    Cut(BagCut),
}

/// `handoff bag info`.
#[derive(Args, Clone, Debug)]
pub struct BagInfo {
    /// The bag's folder, or one of its files.
    pub bag: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `handoff bag check`.
#[derive(Args, Clone, Debug)]
pub struct BagCheck {
    /// The bag's folder, or one of its files.
    pub bag: PathBuf,
    /// What the exit code is about.
    #[arg(long = "for", value_name = "PURPOSE", default_value = "analysis")]
    pub purpose: BagPurpose,
    /// The robot that is meant, where there are several.
    #[arg(long)]
    pub namespace: Option<String>,
    /// The run whose contract holds, where the bag has no weights.
    #[arg(long)]
    pub run: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Three numbers.
#[cfg(feature = "torch")]
fn point(text: &str) -> std::result::Result<[f64; 3], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    let finite = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
    finite
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| "three finite numbers are right, e.g. 0.4,0,0.5".into())
}

/// `handoff bag analyse`.
#[cfg(feature = "torch")]
#[derive(Args, Clone, Debug)]
pub struct BagAnalyse {
    /// The bag's folder, or one of its files.
    pub bag: PathBuf,
    /// The policy of today: a run, or one of its checkpoints [default: the newest weights of the bag].
    #[arg(long)]
    pub run: Option<PathBuf>,
    /// Another policy to compare it with.
    #[arg(long, value_name = "RUN")]
    pub against: Option<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
    /// Print one JSON object, and write no page.
    #[arg(long)]
    pub json: bool,
    /// The robot that is meant, where there are several.
    #[arg(long)]
    pub namespace: Option<String>,
    /// Where the tool shall go, where no goal was recorded [m, base frame].
    #[arg(long, value_name = "X,Y,Z", value_parser = point, allow_hyphen_values = true)]
    pub goal: Option<[f64; 3]>,
    /// Seed of the options and terminations of today, as the node's parameter `seed`.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sample the actions, too (otherwise they are the mean).
    #[arg(long)]
    pub stochastic: bool,
}

/// `handoff bag record`.
#[derive(Args, Clone, Debug)]
pub struct BagRecord {
    /// The folder to make.
    pub out: PathBuf,
    /// Topics to record, by full name [default: by type, configs/record.yaml].
    #[arg(long, value_name = "TOPIC", num_args = 1.., value_delimiter = ',', conflicts_with = "all")]
    pub topics: Vec<String>,
    /// Every topic whose type this program knows.
    #[arg(long)]
    pub all: bool,
    /// Begin a new file after this much [MB; default: 1000].
    #[arg(long, value_name = "MB")]
    pub split_mb: Option<u64>,
    /// Begin a new file after this long [s].
    #[arg(long, value_name = "SECS")]
    pub split_secs: Option<f64>,
    /// Stop when standard input closes.
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

/// What a bag is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BagPurpose {
    /// To see what happened.
    Analysis,
    /// To train from it.
    Learning,
}

/// `handoff bag cut`.
#[derive(Args, Clone, Debug)]
pub struct BagCut {
    /// The bag's folder, or one of its files.
    pub bag: PathBuf,
    /// Begin here [s from the first message].
    #[arg(long, value_name = "SECS", allow_negative_numbers = true)]
    pub from: Option<f64>,
    /// End before here [s from the first message].
    #[arg(long, value_name = "SECS", allow_negative_numbers = true)]
    pub to: Option<f64>,
    /// Topics to keep [default: all].
    #[arg(long, value_name = "TOPIC", num_args = 1.., value_delimiter = ',')]
    pub topics: Vec<String>,
    /// The folder to make.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
}

#[cfg(all(test, feature = "torch"))]
mod tests {
    use super::point;
    use crate::app::cli::Cli;
    use clap::Parser as _;

    #[test]
    fn a_goal_that_is_no_point_is_refused_by_its_name() {
        for goal in ["NaN,0,0", "0.4,inf,0", "0.4,0", "a,b,c"] {
            let said = Cli::try_parse_from(["handoff", "bag", "analyse", "a", "--goal", goal]).unwrap_err().to_string();
            assert!(said.contains("--goal") && said.contains(goal) && said.contains("three finite numbers"), "{said}");
        }
        assert_eq!(point("0.4, -0.1,0.5").unwrap(), [0.4, -0.1, 0.5]);
    }
}
