//! The nodes.

use clap::Args;
use serde_json::json;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use serde_json::{Map, Value};

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
}
