//! The nodes wired to ROS: parameters in, topics to channels and back. What they do is in `node`.

mod health;
mod learner;
mod rollout;
mod sim;
mod wire;

pub(super) use learner::learner;
pub(super) use rollout::rollout;
pub(super) use sim::sim;

use super::cli;
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::node::{Notes, Stopper};
use crate::report::audit::Audit;
use crate::ros::{self, Node};
use std::path::Path;
use uuid::Uuid;

/// Joins ROS, reads the parameters, starts the logs.
fn start(name: &str) -> Result<(Node, Config)> {
    let mut node = Node::start(name)?;
    let config = config::from_parameters(node.parameters()?)?;
    if let Ok(values) = serde_json::to_value(&config) {
        node.show_parameters(&values);
    }
    let (warnings, lines) = ros::rosout();
    node.rosout(lines)?;
    let logs = Path::new(&config.learner.run_dir).join("logs");
    let folder = (!config.learner.run_dir.is_empty() && logs.is_dir()).then_some(logs.as_path());
    crate::report::logs::start_with(&node.full_name()?, folder, None, Some(Box::new(warnings)))?;
    Ok((node, config))
}

/// Where the audit's notes go, if the configuration asks for an audit.
fn audit(node: &Node, config: &Config) -> Result<Option<Notes>> {
    if !config.audit {
        return Ok(None);
    }
    if config.learner.run_dir.is_empty() {
        return Err(Error::invalid("audit = true needs a run folder to write to: give learner.run_dir to every node"));
    }
    let mut audit = Audit::open(&Path::new(&config.learner.run_dir).join("logs"), &node.full_name()?)?;
    Ok(Some(Box::new(move |notes| audit.write(&notes))))
}

/// Drives an actor on this thread until it ends, the node dies, or somebody says stop: Ctrl-C, SIGTERM, the parent.
fn run(
    arguments: &cli::Node,
    stopper: Stopper,
    node: ros::Running,
    actor: impl Future<Output = Result<()>>,
) -> Result<()> {
    if arguments.until_stdin_closes {
        super::stop::when_stdin_closes(stopper.clone())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::invalid(format!("the runtime does not start: {error}")))?;
    let outcome = runtime.block_on(async {
        let signals = super::stop::when_signalled(stopper);
        tokio::select! {
            done = actor => done,
            died = node.ended() => died,
            never = signals => never,
        }
    });
    outcome.and(node.stop())
}

/// A number that no other start of a process has.
fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}
