//! The commands: what a person asks for, from the command line to an exit code.

pub mod bag;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod bench;
pub mod cli;
#[cfg(all(feature = "torch", feature = "sim"))]
mod commands;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod domain;
#[cfg(all(feature = "torch", feature = "sim"))]
pub mod evaluate;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod nodes;
#[cfg(feature = "torch")]
pub mod offline;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod pin;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod realtime;
#[cfg(all(feature = "torch", feature = "sim"))]
pub mod recording;
#[cfg(all(feature = "torch", feature = "sim"))]
pub mod rehearse;
#[cfg(all(feature = "torch", feature = "sim"))]
pub mod serial;
pub mod status;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod stop;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
pub mod supervise;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod sweep;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod train;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod transport;
#[cfg(feature = "torch")]
mod watch;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod watchdog;

/// Where types of messages may be looked up.
fn prefixes() -> Vec<std::path::PathBuf> {
    std::env::var_os("AMENT_PREFIX_PATH").iter().flat_map(std::env::split_paths).collect()
}

/// What runs actors on this thread.
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
fn runtime() -> crate::error::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| crate::error::Error::invalid(format!("the runtime does not start: {error}")))
}

#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
pub use run::run;

#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod run {
    use super::cli::{Bench, Cli, Command};
    use super::{bag, bench, commands, nodes, status, train};
    use crate::error::{Error, Result};
    use clap::Parser as _;
    use std::ffi::OsString;
    use std::path::Path;
    use std::process::ExitCode;

    /// Names under which the program is a node; the arguments then begin with the node's.
    const NODES: [&str; 4] = ["sim", "rollout", "learner", "policy"];

    /// Does what the arguments ask. Exit code 2: something from outside does not fit; 1: something went wrong.
    pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
        let mut arguments: Vec<OsString> = arguments.collect();
        let name = arguments.first().and_then(|program| Path::new(program).file_name()).unwrap_or_default().to_owned();
        if NODES.iter().any(|node| name == *node) {
            arguments.insert(1, name);
        }
        let own = arguments.into_iter().take_while(|argument| argument != "--ros-args");
        let outcome = match Cli::parse_from(own).command {
            Command::Train(arguments) => train::train(&arguments),
            Command::Eval(arguments) => commands::eval(&arguments),
            Command::Status(arguments) => status::status(&arguments).and_then(|words| commands::print(&words)),
            Command::Curve(arguments) => commands::curve(&arguments),
            Command::Bench(Bench::Train(arguments)) => bench::train(&arguments),
            Command::Bench(Bench::Weights(arguments)) => bench::weights(&arguments),
            Command::Bench(Bench::Learner(arguments)) => bench::learner(&arguments),
            Command::Bench(Bench::Latency(arguments)) => bench::latency(&arguments),
            Command::Bag(command) => return finish(bag::bag(&command)),
            Command::Sim(arguments) => nodes::sim(&arguments),
            Command::Rollout(arguments) => nodes::rollout(&arguments),
            Command::Learner(arguments) => nodes::learner(&arguments),
            Command::Policy(arguments) => nodes::policy(&arguments),
        };
        finish(outcome.map(|()| ExitCode::SUCCESS))
    }

    fn finish(outcome: Result<ExitCode>) -> ExitCode {
        outcome.unwrap_or_else(|error| {
            tracing::error!("{error}");
            if !tracing::event_enabled!(tracing::Level::ERROR) {
                eprintln!("handoff: {error}");
            }
            ExitCode::from(if matches!(error, Error::Io { .. }) { 1 } else { 2 })
        })
    }
}
