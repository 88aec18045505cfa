//! `handoff train`: starts the graph as processes, shows progress, evaluates at the end.

use super::domain::Domain;
use super::supervise::{Event, Graph, Node};
use super::sweep::Sweep;
use super::watch::Watch;
use super::{cli, commands, offline, pin, runtime, serial, transport};
use crate::config::{self, Config, UpdateMode};
use crate::contract::Inheritance;
use crate::data::audit::account;
use crate::error::{Error, Result};
use crate::guard::Lead;
use crate::link::Preset;
use crate::node::Shutdown;
use crate::node::learner::LOOKS;
use crate::report;
use crate::run::{self, RunDir, Which};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// How often children and metrics are looked at.
const BEAT: Duration = Duration::from_millis(200);
/// How long a learner may be late to end by itself.
const GRACE_SECS: f64 = 2.0;

/// Trains as told, then evaluates.
pub(super) fn train(arguments: &cli::Train) -> Result<()> {
    crate::report::logs::start("train", None, None)?;
    let mut config = arguments.resolve()?;
    config.contract()?;
    if config.audit && (arguments.serial || config.algo.offline()) {
        return Err(Error::invalid("audit = true is about processes, and this training is one: leave it out"));
    }
    on_link(&mut config)?;
    if let (Some(rollouts), true) = (arguments.rollouts, config.rollout.on_link)
        && rollouts != config.train.rollouts
    {
        return Err(Error::invalid(format!(
            "--rollouts {rollouts} does not fit: each robot has one rollout, and --namespaces names {}",
            config.train.rollouts
        )));
    }
    if let (Some(guard), false) = (config.lead(), config.rollout.on_link || config.algo.offline()) {
        Lead::new(guard, config.robot, 1.0 / config.control_rate_hz)?;
    }
    config.learner.min_rollouts = config.train.rollouts;
    if arguments.resume.is_none() {
        inherit(&mut config)?;
    }
    if 0 < config.train.forced_lag && !arguments.serial {
        return Err(Error::invalid("train.forced_lag is for --serial; over ROS data lags by itself"));
    }
    if arguments.serial {
        if arguments.update_mode.as_deref() == Some("async") {
            return Err(Error::invalid(
                "--serial is synchronous: in one loop nothing runs beside learning; leave out --update-mode async",
            ));
        }
        // waiting costs nothing there, and between two updates all can be saved
        config.learner.update_mode = UpdateMode::Sync;
    }
    if config.algo.offline() {
        return offline(arguments, config);
    }
    let domain = Domain::choose(arguments, config.rollout.on_link && config.policy.link != Preset::Sim)?;
    let folder = match &arguments.resume {
        Some(run) => resume(run, &mut config)?,
        None => make_folder(arguments, &mut config)?,
    };
    // For this start alone: the folder does not say it to the next one.
    config.learner.without_replay = arguments.without_replay;
    if arguments.serial {
        say(&format!("{} · serial · {}", cli::describe(&config), folder.path().display()));
        serial::train(&config)?;
    } else {
        say(&format!("{} · ROS domain {} · {}", cli::describe(&config), domain.number, folder.path().display()));
        runtime()?.block_on(supervise(&config, &folder, &domain, &mut |_| {}))?;
    }
    if config.audit {
        audit(&folder)?;
    }
    commands::report(folder.path(), &config)
}

/// Learns from bags; a folder is made once they are fit for it.
fn offline(arguments: &cli::Train, mut config: Config) -> Result<()> {
    let algorithm = offline::algorithm(&config, &super::prefixes())?;
    let folder = match &arguments.resume {
        Some(run) => resume(run, &mut config)?,
        None => make_folder(arguments, &mut config)?,
    };
    say(&format!("{} · {}", cli::describe(&config), folder.path().display()));
    offline::train(&config, algorithm)?;
    commands::report(folder.path(), &config)
}

/// On a link each robot has a rollout of its own, and is one environment.
fn on_link(config: &mut Config) -> Result<()> {
    if !config.rollout.on_link {
        return Ok(());
    }
    if config.policy.link != Preset::Sim {
        config.train.rollouts = config.train.robots().len();
    } else if !config.train.namespaces.is_empty() {
        return Err(Error::invalid(
            "train.namespaces is for robots that are there; those of link sim start with --rollouts",
        ));
    }
    config.train.envs = config.train.rollouts;
    config.validate()
}

/// Finds the checkpoint that a new run starts from, and says what of it does not fit.
fn inherit(config: &mut Config) -> Result<()> {
    let path = Path::new(&config.learner.init_from);
    if config.learner.init_from.is_empty() {
        return Ok(());
    }
    let path = std::path::absolute(path).map_err(Error::io(path))?;
    let checkpoint = RunDir::resolve(&path, Which::Newest)?;
    let snapshot = run::load_snapshot(&checkpoint, None)?;
    let inheritance = Inheritance::new(&snapshot.contract, &config.contract()?);
    let (fitting, all) = (inheritance.fitting(), config.contract()?.layout().len());
    say(&format!("{fitting} of the policy's {all} parameters are those of {}", checkpoint.display()));
    inheritance.left.iter().for_each(|sentence| say(sentence));
    config.learner.init_from = checkpoint.display().to_string();
    Ok(())
}

/// Checks the notes of all processes, and says how many transitions became what.
fn audit(folder: &RunDir) -> Result<()> {
    let account = account(&report::audit::read(&folder.logs())?)?;
    say(&format!("audit: {account}"));
    Ok(())
}

/// Runs the nodes of a training until it ends. `look` sees them at each beat from the first update on.
pub(super) async fn supervise(
    config: &Config,
    folder: &RunDir,
    domain: &Domain,
    look: &mut dyn FnMut(&Graph),
) -> Result<()> {
    let program = std::env::current_exe().map_err(Error::io("the program itself"))?;
    let sweep = Sweep::new();
    let mut environment = domain.environment.clone();
    if domain.ours {
        environment.extend(transport::profile(folder.path())?);
    }
    if std::env::var_os("ROS_LOG_DIR").is_none() {
        environment.push(("ROS_LOG_DIR".into(), folder.logs().join("ros").display().to_string()));
    }
    let patience = Some(config.train.watchdog_secs).filter(|secs| 0.0 < *secs).map(Duration::from_secs_f64);
    let mut graph = Graph::new(program, environment, folder.logs(), patience);
    let mut watch = Watch::new(folder.path(), config.option_count(), "starting");
    let (stopper, mut shutdown) = Shutdown::new();
    let signals = super::stop::when_signalled(stopper);
    let watched = async {
        let mut told = String::new();
        let mut waiting: VecDeque<Node> = nodes(config, folder.path()).into();
        loop {
            // In a domain that others may use, the learner looks around before rollouts and simulators disturb anybody.
            while graph.is_empty() || !domain.shared || graph.is_past("learner", LOOKS) {
                let Some(node) = waiting.pop_front() else { break };
                graph.start(node)?;
            }
            match graph.watch()? {
                Event::Finished => return Ok(()),
                Event::Restarted(sentence) => tracing::warn!("{sentence}"),
                Event::Quiet => {}
            }
            let silent = graph.silent();
            if told.is_empty() && !silent.is_empty() {
                tracing::warn!("{silent}");
            }
            told.clone_from(&silent);
            watch.trouble(silent);
            watch.show()?;
            if 0.0 < watch.trained_secs() {
                look(&graph);
            }
            // The learner keeps its time itself; one that was restarted has lost count.
            if 0.0 < config.train.minutes && config.train.minutes * 60.0 + GRACE_SECS < watch.trained_secs() {
                return Ok(());
            }
            tokio::time::sleep(BEAT).await;
        }
    };
    let outcome = tokio::select! {
        outcome = watched => outcome,
        () = shutdown.wait() => Ok(()),
        never = signals => never,
    };
    graph.stop().await;
    sweep.sweep();
    watch.finish();
    outcome
}

/// The learner first: it is stopped first, too, and saves.
pub(super) fn nodes(config: &Config, folder: &Path) -> Vec<Node> {
    let file = folder.join("config.yaml").display().to_string();
    let rollouts = config.train.rollouts;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.sim.threads == 0 { (cores / rollouts).max(1) } else { config.sim.threads };
    let newest =
        |folder: &Path| RunDir::open(folder).and_then(|folder| folder.checkpoint(Which::Newest)).ok().flatten();
    let (without_replay, first, run) = (config.learner.without_replay, newest(folder), folder.to_owned());
    // a learner that dies before it saves anew starts with what this start was told
    let learner = move |_| {
        vec![format!("learner.without_replay:={}", without_replay && first.is_some() && newest(&run) == first)]
    };
    // a training that goes on draws anew
    let before = RunDir::open(folder).and_then(|folder| folder.life()).map_or(0, |life| u64::from(life) << 32);
    let mut nodes = vec![node("learner", "learner", "/", file.clone(), learner)];
    let (links, robots) = (config.rollout.on_link, config.train.robots());
    let ours = !links || config.policy.link == Preset::Sim;
    for index in 0..rollouts {
        let envs = config.train.envs / rollouts + usize::from(index < config.train.envs % rollouts);
        let namespace = if ours { format!("/r{index}") } else { robots.get(index).cloned().unwrap_or_default() };
        let core = pin::of_pair(config.train.pin, index);
        let parameters = move |restarts: u64| {
            vec![
                format!("rollout.id:=r{index}"),
                format!("rollout.index:={index}"),
                format!("rollout.restarts:={}", before + restarts),
                format!("rollout.num_envs:={envs}"),
                format!("sim.threads:={threads}"),
                format!("core:={core}"),
            ]
        };
        let paced = move |restarts: u64| {
            // one clock for all
            let own = [
                format!("sim.mode:={}", if links { "paced" } else { "lockstep" }),
                format!("sim.clock:={}", index == 0),
            ];
            parameters(restarts).into_iter().chain(own).collect()
        };
        if ours {
            nodes.push(node(&format!("sim{index}"), "sim", &namespace, file.clone(), paced));
        }
        nodes.push(node(&format!("rollout{index}"), "rollout", &namespace, file.clone(), parameters));
    }
    nodes
}

fn node(
    name: &str,
    kind: &'static str,
    namespace: &str,
    file: String,
    parameters: impl Fn(u64) -> Vec<String> + 'static,
) -> Node {
    let namespace = namespace.to_owned();
    let arguments = move |restarts| {
        let mut arguments: Vec<String> = [kind, "--until-stdin-closes", "--ros-args", "--params-file", &file]
            .into_iter()
            .map(str::to_owned)
            .collect();
        arguments.extend(["-r".into(), format!("__ns:={namespace}")]);
        for parameter in parameters(restarts) {
            arguments.extend(["-p".into(), parameter]);
        }
        arguments
    };
    Node { name: name.into(), arguments: Box::new(arguments), ends_training: kind == "learner" }
}

/// The folder may have moved, and what was told anew must reach the nodes.
fn resume(run: &Path, config: &mut Config) -> Result<RunDir> {
    let folder = RunDir::open(std::path::absolute(run).map_err(Error::io(run))?)?;
    folder.hold()?;
    if let Some(newest) = folder.checkpoint(Which::Newest)? {
        run::require_contract(&newest, &config.contract()?)?;
    }
    config.learner.run_dir = folder.path().display().to_string();
    folder.write_config(&config::to_yaml(config)?)?;
    Ok(folder)
}

/// The wall clock, for names of run folders [s].
pub(super) fn unix_secs() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(super) fn make_folder(arguments: &cli::Train, config: &mut Config) -> Result<RunDir> {
    config.learner.run = Uuid::new_v4().to_string();
    config.rollout.run.clone_from(&config.learner.run);
    let path = match &arguments.run {
        Some(path) => path.clone(),
        None => {
            let secs = unix_secs();
            let name = format!("{}__{}__{}__{secs}", config.task, config.algo.name(), config.seed);
            Path::new("runs").join(name)
        }
    };
    let path = std::path::absolute(&path).map_err(Error::io(&path))?;
    config.learner.run_dir = path.display().to_string();
    RunDir::create_at(&path, &config::to_yaml(config)?)
}

fn say(line: &str) {
    tracing::info!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of one node of a training in this folder, after some restarts.
    fn arguments(config: &Config, folder: &Path, name: &str, restarts: u64) -> Vec<String> {
        let nodes = nodes(config, folder);
        (nodes.iter().find(|node| node.name == name).unwrap().arguments)(restarts)
    }

    #[test]
    fn a_training_that_goes_on_draws_anew() {
        let parent = tempfile::tempdir().unwrap();
        let run = RunDir::create_at(&parent.path().join("run"), "").unwrap();
        let config = Config::default();
        let draws = |restarts| {
            let arguments = arguments(&config, run.path(), "rollout1", restarts);
            arguments.into_iter().find(|argument| argument.starts_with("rollout.restarts:=")).unwrap()
        };
        let mut seen = std::collections::BTreeSet::new();
        for start in 0..3 {
            assert!((0..3).all(|restarts| seen.insert(draws(restarts))), "start {start}: {seen:?}");
            run.start_life().unwrap();
            run.start_life().unwrap(); // the learner was restarted, too
        }
        assert!(seen.contains("rollout.restarts:=0"));
    }

    #[test]
    fn what_a_start_leaves_out_is_left_out_until_it_has_saved() {
        let parent = tempfile::tempdir().unwrap();
        let run = RunDir::create_at(&parent.path().join("run"), "").unwrap();
        let mut config = Config::default();
        config.learner.without_replay = true;
        let told = |nodes: &[Node], restarts| {
            (nodes[0].arguments)(restarts).contains(&"learner.without_replay:=true".to_owned())
        };
        assert!(!told(&nodes(&config, run.path()), 0), "there is nothing to leave out");
        let checkpoint = |updates: u64| run.checkpoint_folder().join(format!("{updates:010}"));
        std::fs::create_dir_all(checkpoint(500)).unwrap();
        let nodes = nodes(&config, run.path());
        assert!(told(&nodes, 0) && told(&nodes, 1));
        std::fs::create_dir_all(checkpoint(1000)).unwrap();
        assert!(!told(&nodes, 2), "it is this training's own replay");
    }
}
