//! The command line: what can be asked, and how its options become a configuration.

use crate::config::{self, Algo, Config, UpdateMode};
use crate::error::{Error, Result};
use crate::run::RunDir;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

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

/// `handoff train`.
#[derive(Args, Clone, Debug, Default)]
pub struct Train {
    /// ROS parameter file (`/**: ros__parameters: ...`); the options below override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set any parameter, e.g. `--set learner.hs_ppo.gamma=0.9`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// What to learn.
    #[arg(long)]
    pub task: Option<String>,
    /// How to learn: `hs_ppo` (options) or `ppo` (flat); `osac` or `sac` with replay; `iql` or `bc` from bags.
    #[arg(long)]
    pub algo: Option<String>,
    /// Number of options, K.
    #[arg(long, value_name = "K")]
    pub options: Option<usize>,
    /// Environments, over all rollouts.
    #[arg(long, value_name = "N")]
    pub envs: Option<usize>,
    /// Rollout nodes, each with its own simulator.
    #[arg(long, value_name = "N")]
    pub rollouts: Option<usize>,
    /// Seed of every random draw.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Time to train, counted from the first environment step; 0: no limit [default: 6].
    #[arg(long, value_parser = number, allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Environment steps to train; without `--minutes` there is then no time limit.
    #[arg(long, value_name = "N")]
    pub env_steps: Option<u64>,
    /// `sync` (one version an update, waits) or `async` (no waiting, lag corrected).
    #[arg(long, value_name = "MODE")]
    pub update_mode: Option<String>,
    /// On robots that speak so, not in lockstep: sim (paced ones, which start too), isaac, isaac_moveit, crisp, franka_fr3; through the
    /// guard. Asynchronous unless told otherwise.
    #[arg(long, conflicts_with = "serial")]
    pub link: Option<String>,
    /// With --link: namespaces of the robots, apart by commas, one rollout each [default: one robot without].
    #[arg(long, value_name = "NS,NS", requires = "link")]
    pub namespaces: Option<String>,
    /// The run folder to make [default: runs/<task>__<algo>__<seed>__<time>].
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,
    /// Go on with a run: its configuration, its newest checkpoint; `--minutes` counts anew. With `--serial` exactly.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["run", "config", "task", "algo", "options", "seed"])]
    pub resume: Option<PathBuf>,
    /// A new run that starts with the parameters of another run or checkpoint, as far as they fit: another algorithm, K or
    /// width takes over less, and says what not.
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    pub init_from: Option<PathBuf>,
    /// Learn from the transitions of these bags instead of acting, by `iql` unless `--algo bc`; needs no ROS.
    #[arg(long, value_name = "BAG", num_args = 1.., conflicts_with_all = ["resume", "init_from", "serial", "link", "peers", "discovery_server"])]
    pub offline: Vec<PathBuf>,
    /// With --offline: share of the episodes that validate [default: 0.1].
    #[arg(long, value_name = "SHARE", requires = "offline")]
    pub val: Option<f64>,
    /// With --resume: go on without what off-policy learning remembered.
    #[arg(long, requires = "resume")]
    pub without_replay: bool,
    /// The same state machines in one loop: no ROS, deterministic.
    #[arg(long)]
    pub serial: bool,
    /// Addresses of other hosts whose rollouts may join, apart by `;` (docs/two-machines.md) [default: this host alone].
    #[arg(long, value_name = "IP;IP", conflicts_with = "serial")]
    pub peers: Option<String>,
    /// Address of a Fast DDS discovery server through which rollouts of other hosts may join.
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["serial", "peers"])]
    pub discovery_server: Option<String>,
}

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

/// A finite number.
fn number(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a finite number is right, e.g. 2.5".into())
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

/// A node; what follows `--ros-args` goes to ROS.
#[derive(Args, Clone, Debug)]
pub struct Node {
    /// Stop when standard input closes: for a parent that starts nodes.
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

/// `handoff sim`.
#[derive(Args, Clone, Debug)]
pub struct Sim {
    /// In its own time, with JointState topics and /clock, as Isaac Sim speaks (parameter `sim.mode`).
    #[arg(long)]
    pub paced: bool,
    /// As a node.
    #[command(flatten)]
    pub node: Node,
}

/// `handoff policy`.
#[derive(Args, Clone, Debug)]
pub struct Policy {
    /// Run folder, or one of its checkpoints; without it, weights come from a learner (parameter `policy.run`).
    #[arg(long)]
    pub run: Option<PathBuf>,
    /// How the robot speaks: sim, isaac, isaac_moveit, crisp, franka_fr3 (parameter `policy.link`).
    #[arg(long)]
    pub link: Option<String>,
    /// As a node.
    #[command(flatten)]
    pub node: Node,
}

impl Policy {
    /// Parameters that it sets.
    pub fn assignments(&self) -> Vec<String> {
        let run = self.run.as_ref().map(|run| format!("policy.run={}", json!(run)));
        let link = self.link.as_ref().map(|link| format!("policy.link={}", json!(link)));
        run.into_iter().chain(link).collect()
    }
}

impl Train {
    /// The configuration: defaults, then the file, then the options, then `--set`.
    pub fn resolve(&self) -> Result<Config> {
        if let Some(run) = &self.resume {
            RunDir::open(run)?;
        }
        let resumed = self.resume.as_ref().map(|run| run.join("config.yaml"));
        let mut parameters = match self.config.as_ref().or(resumed.as_ref()) {
            None => Map::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
                config::parameters_of(&text).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))?
            }
        };
        if !self.offline.is_empty() {
            parameters.entry("algo").or_insert_with(|| json!(Algo::Iql.name()));
        }
        for (key, value) in self.overrides() {
            config::assign(&mut parameters, &format!("{key}={value}"))?;
        }
        for assignment in &self.assignments {
            config::assign(&mut parameters, assignment)?;
        }
        config::from_parameters(Value::Object(parameters))
    }

    fn overrides(&self) -> Vec<(&'static str, Value)> {
        let minutes = match (self.minutes, self.env_steps) {
            (None, Some(_)) => Some(0.0),
            (minutes, _) => minutes,
        };
        [
            ("task", self.task.as_ref().map(|value| json!(value))),
            ("algo", self.algo.as_ref().map(|value| json!(value))),
            ("options.count", self.options.map(|value| json!(value))),
            ("train.envs", self.envs.map(|value| json!(value))),
            ("train.rollouts", self.rollouts.map(|value| json!(value))),
            ("seed", self.seed.map(|value| json!(value))),
            ("train.minutes", minutes.map(|value| json!(value))),
            ("train.env_steps", self.env_steps.map(|value| json!(value))),
            ("learner.offline.bags", (!self.offline.is_empty()).then(|| json!(bags(&self.offline)))),
            ("learner.offline.validation", self.val.map(|value| json!(value))),
            ("learner.init_from", self.init_from.as_ref().map(|value| json!(value))),
            ("policy.link", self.link.as_ref().map(|value| json!(value))),
            ("rollout.on_link", self.link.as_ref().map(|_| json!(true))),
            ("train.namespaces", self.namespaces.as_ref().map(|value| json!(value))),
            // an arm does not wait
            ("learner.update_mode", self.link.as_ref().map(|_| json!("async"))),
            ("learner.update_mode", self.update_mode.as_ref().map(|value| json!(value))),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }
}

/// Paths that hold wherever they are read, apart by `;`.
fn bags(paths: &[PathBuf]) -> String {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    paths.iter().map(absolute).collect::<Vec<_>>().join(";")
}

/// Words for the first line of a training.
pub fn describe(config: &Config) -> String {
    let options = match config.option_count() {
        1 => "1 option".into(),
        count => format!("{count} options"),
    };
    if config.algo.offline() {
        let (algo, steps) = (config.algo.name(), config.learner.offline.gradient_steps);
        return format!(
            "{} · {algo} · {options} · from bags · seed {} · {steps} gradient steps",
            config.task, config.seed
        );
    }
    let mode = match config.learner.update_mode {
        UpdateMode::Sync => "sync",
        UpdateMode::Async => "async",
    };
    let budget = match (config.train.minutes, config.train.env_steps) {
        (0.0, 0) => "until stopped".to_owned(),
        (0.0, steps) => format!("{steps} steps"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, steps) => format!("{minutes} min or {steps} steps"),
    };
    format!(
        "{} · {options} · {} environments in {} rollouts · {mode} · seed {} · {budget}",
        config.task, config.train.envs, config.train.rollouts, config.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_the_file_and_set_overrides_both() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, "/**: {ros__parameters: {seed: 5, options: {count: 3}, task: reach}}").unwrap();
        let train = Train {
            config: Some(file),
            seed: Some(7),
            env_steps: Some(1000),
            assignments: vec!["learner.hs_ppo.gamma=0.5".into()],
            ..Train::default()
        };
        let config = train.resolve().unwrap();
        assert_eq!((config.seed, config.options.count, config.train.minutes), (7, 3, 0.0));
        assert_eq!(config.learner.hs_ppo.gamma, 0.5);
    }

    #[test]
    fn a_wrong_option_is_refused_with_its_key() {
        let train = Train { algo: Some("dqn".into()), ..Train::default() };
        let sentence = train.resolve().unwrap_err().to_string();
        assert!(sentence.contains("algo") && sentence.contains("dqn") && sentence.contains("hs_ppo"), "{sentence}");
    }

    #[test]
    fn a_policys_run_and_link_become_parameters() {
        let node = Node { until_stdin_closes: false };
        let policy = Policy { run: Some("runs/a b: c".into()), link: Some("crisp".into()), node };
        let mut parameters = Map::new();
        policy.assignments().iter().for_each(|given| config::assign(&mut parameters, given).unwrap());
        let config = config::from_parameters(Value::Object(parameters)).unwrap();
        assert_eq!((config.policy.run.as_str(), config.policy.link.name()), ("runs/a b: c", "crisp"));
        assert_eq!(config.guard.scale, 0.2);
    }

    #[test]
    #[cfg(feature = "torch")]
    fn a_goal_that_is_no_point_is_refused_by_its_name() {
        for goal in ["NaN,0,0", "0.4,inf,0", "0.4,0", "a,b,c"] {
            let said = Cli::try_parse_from(["handoff", "bag", "analyse", "a", "--goal", goal]).unwrap_err().to_string();
            assert!(said.contains("--goal") && said.contains(goal) && said.contains("three finite numbers"), "{said}");
        }
        assert_eq!(point("0.4, -0.1,0.5").unwrap(), [0.4, -0.1, 0.5]);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
