//! What is trained, and how.

use super::number;
use crate::config::{self, Algo, Config, UpdateMode};
use crate::error::{Error, Result};
use crate::run::RunDir;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

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
}
