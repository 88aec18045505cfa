//! Others in a Python of their own: Stable-Baselines3's PPO on the same task, its SAC's learning alone, a policy node in rclpy and PyTorch.

use super::account::Reached;
use super::latency::Owned;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::robot::READY;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const TRAINING: &str = include_str!("../../../scripts/peers/ppo_reach.py");
const LEARNER: &str = include_str!("../../../scripts/peers/sac_learner.py");
const POLICY: &str = include_str!("../../../scripts/peers/policy_node.py");
const MODEL: &str = include_str!("../../../model/panda.xml");
/// Names a Python with Stable-Baselines3, torch and mujoco; `./handoff` makes one and sets it.
const PYTHON: &str = "HANDOFF_PEER";

/// A Python that can run the peer.
pub(super) struct Program(PathBuf);

/// What the script prints at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    /// Name and versions.
    name: String,
    /// Environment steps a second, acting and learning.
    env_steps_per_sec: f64,
    /// After each of its updates: env steps, seconds, success at 5 cm, success at 1 cm, of the last 100 episodes.
    curve: Vec<(u64, f64, f64, f64)>,
    /// When 99 % at 5 cm and 97 % at 1 cm were reached: env steps, seconds.
    learned: [Option<(u64, f64)>; 2],
}

impl Program {
    /// The one that the environment names.
    pub(super) fn find() -> Result<Self> {
        match std::env::var_os(PYTHON) {
            Some(python) => Ok(Self(python.into())),
            None => Err(Error::invalid(format!(
                "--peers needs {PYTHON} to name a Python with stable-baselines3, torch and mujoco: \
                 `./handoff bench ... --peers` makes one"
            ))),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        // Some machines set these for old builds; they slow numpy down.
        command.env_remove("OPENBLAS_CORETYPE").env_remove("OPENBLAS_L2_SIZE").stderr(Stdio::inherit());
        command
    }

    /// Starts a peer that learns, and does nothing else.
    pub(super) fn learner(&self, settings: &serde_json::Value) -> Result<Learner> {
        let child = self
            .command()
            .args(["-c", LEARNER])
            .arg(settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(Error::io(&self.0))?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::invalid("the peer has no standard input or output"));
        };
        let mut learner = Learner { child, asks, answers: BufReader::new(answers), name: String::new() };
        learner.name = learner.line()?;
        Ok(learner)
    }

    /// Starts a policy node in this namespace; its name and versions, once it listens. rclpy is that of the Python on PATH.
    pub(super) fn policy(&self, namespace: &str, mut settings: serde_json::Value) -> Result<(String, Owned)> {
        let find = "import pathlib, rclpy; print(pathlib.Path(rclpy.__file__).parents[1])";
        let found = Command::new("python3").args(["-c", find]).output().map_err(Error::io("python3"))?;
        if !found.status.success() {
            return Err(Error::invalid("python3 has no rclpy: source ROS 2, or use `./handoff bench latency --peers`"));
        }
        settings["rclpy"] = String::from_utf8_lossy(&found.stdout).trim().into();
        let child = self
            .command()
            .args(["-c", POLICY])
            .arg(settings.to_string())
            .args(["--ros-args", "-r", &format!("__ns:={namespace}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Owned(child.map_err(Error::io(&self.0))?);
        let mut name = String::new();
        if let Some(words) = child.0.stdout.take() {
            BufReader::new(words).read_line(&mut name).map_err(Error::io("the peer's standard output"))?;
        }
        if name.is_empty() {
            return Err(Error::invalid("the peer has ended; its words are above"));
        }
        Ok((name.trim_end().to_owned(), child))
    }

    /// Trains the peer for the configured time, with this configuration's rate, network, epochs and model.
    pub(super) fn run(&self, folder: &Path, config: &Config) -> Result<Peer> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        for (name, text) in [("ppo_reach.py", TRAINING), ("panda.xml", MODEL)] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Error::io(&path))?;
        }
        let limits = config.robot.limits();
        let settings = serde_json::json!({
            "seed": config.seed,
            "minutes": config.train.minutes,
            "control_rate_hz": config.control_rate_hz,
            "timestep_secs": config.sim.timestep_secs,
            "scale_rad": config.action.scale,
            "hidden": config.hidden,
            "epochs": config.learner.hs_ppo.num_learning_epochs,
            "ready_rad": READY,
            "position_min_rad": limits.position_min_rad,
            "position_max_rad": limits.position_max_rad,
        });
        tracing::info!("Stable-Baselines3 on the same task, {} min", config.train.minutes);
        let output = self
            .command()
            .arg(folder.join("ppo_reach.py"))
            .arg(settings.to_string())
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::io(&self.0))?;
        if !output.status.success() {
            return Err(Error::invalid(format!("the peer failed ({}); its words are above", output.status)));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::invalid(format!("the peer's outcome cannot be read: {error}")))
    }
}

/// A peer that waits to be asked for gradient steps. It ends with its standard input.
pub(super) struct Learner {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Name and versions.
    pub(super) name: String,
}

impl Learner {
    /// Seconds on the processor of so many gradient steps.
    pub(super) fn learn(&mut self, steps: u64) -> Result<f64> {
        writeln!(self.asks, "{steps}").map_err(Error::io("the peer's standard input"))?;
        let line = self.line()?;
        line.parse()
            .map_err(|_| Error::invalid(format!("the peer answered `{line}`; a number of seconds was expected")))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(Error::io("the peer's standard output"))?;
        if line.is_empty() {
            return Err(Error::invalid("the peer has ended; its words are above"));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// For a terminal, beside our rate and when we had learned.
    pub(super) fn text(&self, rate: f64, ours: &[Option<Reached>; 2]) -> String {
        let mut lines = vec![format!(
            "{}: {:.0} env steps/s; handoff does {:.1} times as many.",
            self.name,
            self.env_steps_per_sec,
            rate / self.env_steps_per_sec
        )];
        let moment = |reached: Option<(u64, f64)>| {
            reached.map_or("not reached".to_owned(), |(steps, secs)| format!("{steps} steps, {secs:.0} s"))
        };
        for (index, what) in ["99 % at 5 cm", "97 % at 1 cm"].into_iter().enumerate() {
            let own = ours[index].map(|reached| (reached.env_steps, reached.secs));
            let ratio = match (own, self.learned[index]) {
                (Some((_, own)), Some((_, peer))) => format!(" ({:.1} times our time)", peer / own),
                _ => String::new(),
            };
            lines.push(format!("{what}: handoff {}; peer {}{ratio}", moment(own), moment(self.learned[index])));
        }
        let every = self.curve.len().div_ceil(10).max(1);
        lines.push("peer's env steps, seconds, success at 5 cm, at 1 cm:".into());
        for (steps, secs, success, strict) in self.curve.iter().skip(every - 1).step_by(every) {
            lines.push(format!("{steps:>9} {secs:>7.0} s {:>6.1} % {:>6.1} %", 100.0 * success, 100.0 * strict));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_set_beside_us() {
        let outcome = r#"{"name": "SB3", "env_steps_per_sec": 1250.0, "learned": [[81920, 60.0], null],
                          "curve": [[2048, 1.5, 0.25, 0.0], [4096, 3.0, 0.5, 0.125]]}"#;
        let peer: Peer = serde_json::from_str(outcome).unwrap();
        let text = peer.text(10_000.0, &[Some(Reached { env_steps: 70_000, secs: 7.5 }), None]);
        assert!(text.contains("8.0 times as many"), "{text}");
        assert!(text.contains("handoff 70000 steps, 8 s; peer 81920 steps, 60 s (8.0 times our time)"), "{text}");
        assert!(text.contains("97 % at 1 cm: handoff not reached; peer not reached"), "{text}");
        assert!(text.lines().any(|line| line.split_whitespace().eq("4096 3 s 50.0 % 12.5 %".split(' '))), "{text}");
    }
}
