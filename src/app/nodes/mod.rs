//! The nodes wired to ROS: parameters in, topics to channels and back. What they do is in `node`.

mod arm;
mod health;
mod learner;
mod policy;
mod record;
mod rollout;
mod sim;
pub(super) mod wire;

pub(super) use learner::learner;
pub(super) use policy::policy;
pub(super) use record::record;
pub(super) use rollout::rollout;
pub(super) use sim::sim;

use super::cli;
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::node::{Notes, Stopper, Times};
use crate::report::audit::Audit;
use crate::ros::{self, Node};
use std::path::Path;
use uuid::Uuid;

/// Joins ROS, reads the parameters, starts the logs.
fn start(name: &str) -> Result<(Node, Config)> {
    start_with(name, &[])
}

/// The same with parameters from the command line (`key=value`), which win.
fn start_with(name: &str, assignments: &[String]) -> Result<(Node, Config)> {
    let mut node = Node::start(name)?;
    let mut parameters = node.parameters()?;
    if let serde_json::Value::Object(parameters) = &mut parameters {
        assignments.iter().try_for_each(|assignment| config::assign(parameters, assignment))?;
    }
    let config = config::from_parameters(parameters)?;
    super::pin::pin(config.core)?;
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

/// Runs an actor beside its node's thread until it ends, the node dies, or somebody says stop.
fn run(
    arguments: &cli::Node,
    stopper: Stopper,
    node: ros::Running,
    actor: impl Future<Output = Result<()>>,
) -> Result<()> {
    let ended = async {
        tokio::select! {
            done = actor => done,
            died = node.ended() => died,
        }
    };
    let outcome = until_stopped(arguments, stopper, ended);
    outcome.and(node.stop())
}

/// Runs an actor and its node by turns until the actor ends, the node dies, or somebody says stop.
fn drive(arguments: &cli::Node, stopper: Stopper, node: Node, actor: impl Future<Output = Result<()>>) -> Result<()> {
    until_stopped(arguments, stopper, async { node.drive(actor).await? })
}

/// Stopped by Ctrl-C, SIGTERM or the parent, an actor comes to its end.
fn until_stopped(arguments: &cli::Node, stopper: Stopper, actor: impl Future<Output = Result<()>>) -> Result<()> {
    if arguments.until_stdin_closes {
        super::stop::when_stdin_closes(stopper.clone())?;
    }
    super::runtime()?.block_on(async {
        let signals = super::stop::when_signalled(stopper);
        tokio::select! {
            done = actor => done,
            never = signals => never,
        }
    })
}

/// Says, at the end, where an actor's time went; `bench` reads it from the logs.
fn tell(actor: &str, times: &Times) {
    tracing::info!(actor, secs = %times.to_json(), "time of the {actor}: {times}");
}

/// A number that no other start of a process has.
fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}
