//! `handoff bench`: how fast training is, where its time goes, and what of it is the price of ROS.

mod account;
mod channels;
mod latency;
mod learner;
mod peer;
mod usage;
mod weights;

pub(super) use latency::latency;
pub(super) use learner::learner;
pub(super) use weights::weights;

use super::domain::Domain;
use super::{cli, commands, runtime, supervise::Graph, train, transport};
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::report::{self, Speed};
use crate::run::RunDir;
use account::{Reached, Times, Transitions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use usage::Sampler;

/// What `bench train` found.
#[derive(Serialize)]
struct Report {
    /// Processes over ROS 2.
    ros: Speed,
    /// The same actors over channels in one process.
    channels: Speed,
    /// 1 - rate over ROS / rate over channels.
    price_of_ros: f64,
    /// When 99 % at 5 cm and 97 % at 1 cm were reached over ROS.
    learned: [Option<Reached>; 2],
    /// Stable-Baselines3 on the same task.
    peer: Option<peer::Peer>,
    /// Where the runs are.
    folder: PathBuf,
}

/// `handoff bench train`.
pub(super) fn train(arguments: &cli::BenchTrain) -> Result<()> {
    report::logs::start("bench", None, None)?;
    let secs = train::unix_secs();
    let folder = std::path::absolute(format!("runs/bench__{secs}")).map_err(Error::io("runs"))?;
    let peer = arguments.peers.then(peer::Program::find).transpose()?;
    let ros = over_ros(&settings(arguments, &folder.join("ros"))?)?;
    let learned = account::learned(&folder.join("ros"))?;
    let channels = over_channels(&settings(arguments, &folder.join("channels"))?)?;
    let peer = match peer {
        Some(program) => {
            Some(program.run(&folder.join("peer"), &settings(arguments, &folder.join("peer"))?.resolve()?)?)
        }
        None => None,
    };
    let price_of_ros = 1.0 - ros.env_steps_per_sec / channels.env_steps_per_sec;
    let report = Report { ros, channels, price_of_ros, learned, peer, folder };
    let json = serde_json::to_string(&report)
        .map_err(|error| Error::invalid(format!("the report cannot be written as JSON: {error}")))?;
    let path = report.folder.join("bench.json");
    std::fs::write(&path, format!("{json}\n")).map_err(Error::io(&path))?;
    commands::print(&if arguments.json { json } else { report.text() })
}

/// ROS reads its domain from the environment when a process starts: unless one is named there, this program runs again in a domain of
/// its own. Whether it did.
fn ran_in_a_domain_of_its_own() -> Result<bool> {
    if std::env::var_os("ROS_DOMAIN_ID").is_some() {
        return Ok(false);
    }
    let program = std::env::current_exe().map_err(Error::io("the program itself"))?;
    let runs = Path::new("runs");
    std::fs::create_dir_all(runs).map_err(Error::io(runs))?;
    let status = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .envs(Domain::choose(&cli::Train::default(), false)?.environment)
        .envs(transport::profile(runs)?)
        .status()
        .map_err(Error::io(&program))?;
    if status.success() { Ok(true) } else { Err(Error::invalid("the benchmark failed; its words are above")) }
}

/// The arm of the peer, for which it was tuned: it takes targets at once.
const PEERS_ARM: [&str; 2] = ["sim.led=false", "action.scale=0.08"];

/// As `train` would be asked.
fn settings(arguments: &cli::BenchTrain, run: &Path) -> Result<cli::Train> {
    let arm = if arguments.peers { &PEERS_ARM[..] } else { &[] };
    let settings = cli::Train {
        minutes: Some(arguments.minutes),
        assignments: arm.iter().map(|&set| set.to_owned()).chain(arguments.assignments.clone()).collect(),
        run: Some(run.to_owned()),
        ..cli::Train::default()
    };
    if settings.resolve()?.train.minutes <= 0.0 {
        return Err(Error::invalid(format!("--minutes {} measures nothing: give more than 0", arguments.minutes)));
    }
    Ok(settings)
}

/// Trains as processes, and reads what they left.
fn over_ros(settings: &cli::Train) -> Result<Speed> {
    let (config, folder) = open(settings)?;
    let domain = Domain::choose(settings, false)?;
    tracing::info!("over ROS 2, domain {}: {}", domain.number, cli::describe(&config));
    let mut sampler = Sampler::default();
    let mut look = |graph: &Graph| {
        let kind = |name: &str| name.trim_end_matches(|last: char| last.is_ascii_digit()).to_owned();
        let mut all: Vec<_> = graph.processes().map(|(name, id)| (kind(name), id)).collect();
        all.push(("bench".into(), std::process::id()));
        sampler.look(&all);
    };
    runtime()?.block_on(train::supervise(&config, &folder, &domain, &mut look))?;
    let (times, recorded) = account::last_words(&folder.logs())?;
    speed(folder.path(), times, recorded, &sampler)
}

/// Trains in this process, and reads what it left.
fn over_channels(settings: &cli::Train) -> Result<Speed> {
    let (config, folder) = open(settings)?;
    tracing::info!("over channels: {}", cli::describe(&config));
    let outcome = channels::train(&config, "starting")?;
    let mut times = Times::new();
    for (actor, spent) in outcome.times {
        let sum = times.entry(actor.to_owned()).or_default();
        for (activity, _) in spent.shares() {
            *sum.entry(activity.name().to_owned()).or_default() += spent.secs(activity);
        }
    }
    speed(folder.path(), times, outcome.recorded, &outcome.sampler)
}

fn open(settings: &cli::Train) -> Result<(Config, RunDir)> {
    let mut config = settings.resolve()?;
    config.contract()?;
    config.learner.min_rollouts = config.train.rollouts;
    let folder = train::make_folder(settings, &mut config)?;
    folder.write_config(&config::to_yaml(&config)?)?;
    Ok((config, folder))
}

fn speed(folder: &Path, times: Times, recorded: u64, sampler: &Sampler) -> Result<Speed> {
    let rate = account::rate(folder)?;
    let Transitions { recorded, learned, refused, lost, doubled, under_way } = account::transitions(folder, recorded)?;
    let usage = sampler.usage();
    let shares = |by: BTreeMap<String, f64>| {
        let total: f64 = by.values().sum();
        by.into_iter().map(|(activity, secs)| (activity, secs / total)).collect()
    };
    Ok(Speed {
        env_steps_per_sec: rate.env_steps_per_sec,
        env_steps: rate.env_steps,
        secs: rate.secs,
        lag: rate.lag,
        transitions: [
            ("recorded", recorded),
            ("learned", learned),
            ("refused", refused),
            ("lost", lost),
            ("doubled", doubled),
            ("under way at the stop", under_way),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .to_vec(),
        time: times.into_iter().map(|(actor, by)| (actor, shares(by))).collect(),
        busy: sampler.busy(),
        memory_bytes: usage.memory_bytes,
        descriptors: usage.descriptors,
        shared_files: usage.shared_files,
        shared_bytes: usage.shared_bytes,
    })
}

impl Report {
    fn text(&self) -> String {
        let columns = [("ROS 2", &self.ros), ("channels", &self.channels)];
        let mut parts = vec![
            report::speeds(&columns),
            report::times(&columns),
            report::busy(&columns),
            format!("The price of ROS is {:.1} %.", 100.0 * self.price_of_ros),
        ];
        if let Some(peer) = &self.peer {
            parts.push(peer.text(self.ros.env_steps_per_sec, &self.learned));
        }
        parts.push(self.folder.display().to_string());
        parts.join("\n\n")
    }
}
