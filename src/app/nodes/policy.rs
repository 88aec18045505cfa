//! Node `policy`.

use super::wire::{Drops, QUEUE, Queue, convert, joints, to_topic, topic_of};
use super::{run, start_with};
use crate::app::cli;
use crate::config::Seed;
use crate::contract::Snapshot;
use crate::data::GoalPose;
use crate::error::{Error, Result};
use crate::guard::Reason;
use crate::node::Shutdown;
use crate::node::policy::{Inputs, Outputs, Pilot, Request, Settings, Stage, Status, run as pilot_run};
use crate::policy::Sampling;
use crate::ros::{self, Graph, Health, Level, Node, Qos, msg, srv};
use crate::run::{RunDir, Which, load_snapshot};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a service waits for the actor.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the writers of the command topic are counted.
const WRITERS: Duration = Duration::from_millis(100);

type Asked = (Request, SyncSender<Result<&'static str>>);

/// Node `policy`: runs a trained policy on an arm, guarded.
pub(in crate::app) fn policy(arguments: &cli::Policy) -> Result<()> {
    let (mut node, config) = start_with("policy", &arguments.assignments())?;
    crate::policy::set_threads(1);
    let settings = &config.policy;
    let mut pilot = Pilot::new(Settings {
        arm: config.robot,
        preset: settings.link,
        prefix: settings.joint_prefix.clone(),
        guard: config.guard.clone(),
        seed: Seed::root(config.seed),
        sampling: if settings.stochastic { Sampling::Stochastic } else { Sampling::MeanAction },
    })?;
    let link = pilot.link();
    let (weights, weights_in) = watch::channel(None);
    let mut heard: Vec<(String, Qos)> = Vec::new();
    let drops = Drops::default();
    if settings.run.is_empty() {
        let topic = topic_of(&settings.learner_ns, "policy_weights");
        heard.push((topic.clone(), ros::latched()));
        let unreadable = drops.clone();
        node.subscribe(&topic, ros::latched(), move |message: msg::PolicyWeights| {
            convert(message, "policy_weights", &unreadable, |snapshot: Snapshot| {
                weights.send_replace(Some(Arc::new(snapshot)));
            });
        })?;
    } else {
        let folder = RunDir::resolve(Path::new(&settings.run), Which::Newest)?;
        pilot.weights(&Arc::new(load_snapshot(&folder, None)?))?;
        tracing::info!("the policy of {}", folder.display());
    }

    let (led, led_in) = watch::channel(None);
    node.subscribe(link.commands, ros::newest(), move |message: msg::JointState| {
        led.send_replace(joints(message).ok()); // what is unreadable leads nothing
    })?;
    let (states, states_in) = mpsc::channel(QUEUE);
    let (mut states, unreadable) = (Queue::new(link.states, states, &drops), drops.clone());
    let states_qos = if link.reliable_states { ros::newest() } else { ros::sensor() };
    node.subscribe(link.states, states_qos.clone(), move |message: msg::JointState| match joints(message) {
        Ok(state) => states.put(state),
        Err(error) => {
            unreadable.count(link.states, "unreadable");
            tracing::warn!("a joint state was refused: {error}");
        }
    })?;
    heard.push((link.states.into(), states_qos));
    let (goal, goal_in) = watch::channel(None);
    let unreadable = drops.clone();
    node.subscribe("goal_pose", ros::newest(), move |message: msg::PoseStamped| {
        convert(message, "goal_pose", &unreadable, |pose: GoalPose| drop(goal.send_replace(Some(pose))));
    })?;
    let (clock, clock_in) = watch::channel(0.0);
    if config.guard.use_sim_time {
        node.subscribe("/clock", ros::sensor(), move |message: msg::Clock| match ros::secs(&message.clock) {
            Ok(secs) => drop(clock.send_replace(secs)),
            Err(error) => tracing::warn!("a clock was refused: {error}"),
        })?;
    }
    let (writers, publishers) = watch::channel(0);
    node.every(WRITERS, move |graph| match graph.writers(link.commands) {
        Ok(found) => drop(writers.send_replace(found.len())),
        Err(error) => tracing::warn!("{error}"),
    });
    let (ask, requests) = mpsc::channel::<Asked>(4);
    for (name, request) in [("~/activate", Request::Activate as fn(bool) -> Request), ("~/arm", Request::Arm)] {
        let ask = ask.clone();
        node.serve::<srv::SetBool::Service>(name, move |message| {
            let (success, message) = answer(&ask, request(message.data));
            srv::SetBool::Response { success, message }
        })?;
    }
    node.serve::<srv::Trigger::Service>("~/recover", move |_| {
        let (success, message) = answer(&ask, Request::Recover);
        srv::Trigger::Response { success, message }
    })?;
    let outputs = Outputs {
        commands: to_topic::<msg::JointState, _>(node.publish(link.commands, ros::newest())?),
        targets: to_topic::<msg::JointState, _>(node.publish("~/target", ros::newest())?),
        options: to_topic::<msg::OptionState, _>(node.publish("~/option_state", ros::everything())?),
        status: diagnose(&mut node, heard, drops)?,
    };
    let inputs = Inputs {
        states: states_in,
        led: led_in,
        weights: weights_in,
        goal: goal_in,
        clock: clock_in,
        publishers,
        requests,
    };
    let (stopper, shutdown) = Shutdown::new();
    run(&arguments.node, stopper, node.spin()?, pilot_run(pilot, inputs, outputs, shutdown))
}

/// Asks the actor, from the spin thread.
fn answer(ask: &mpsc::Sender<Asked>, request: Request) -> (bool, String) {
    let (reply, answer) = sync_channel(1);
    let asked = ask.try_send((request, reply)).map_err(|_| Error::invalid("the node is busy; ask again"));
    let waited = || answer.recv_timeout(PATIENCE).map_err(|_| Error::invalid("the node did not answer; ask again"));
    match asked.and_then(|()| waited()?) {
        Ok(done) => (true, done.into()),
        Err(error) => (false, error.to_string()),
    }
}

/// Publishes the health of the newest status.
fn diagnose(node: &mut Node, subscriptions: Vec<(String, Qos)>, drops: Drops) -> Result<crate::node::Output<Status>> {
    let newest: Arc<Mutex<Option<Status>>> = Arc::default();
    let shown = newest.clone();
    node.diagnose(move |graph: &Graph<'_>| {
        let newest = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let starting = || Health { level: Level::Ok, message: "starting".into(), values: vec![] };
        let mut health = newest.as_ref().map_or_else(starting, health_of);
        health.values.extend(drops.counts().into_iter().map(|(name, count)| (name, count.to_string())));
        for (topic, qos) in &subscriptions {
            for sentence in graph.mismatches(topic, qos).unwrap_or_default() {
                health.level = health.level.max(Level::Error);
                health.message = sentence;
            }
        }
        health
    })?;
    Ok(Box::new(move |status: &Status| {
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
    }))
}

fn health_of(status: &Status) -> Health {
    let mut values: Vec<(String, String)> = [
        ("version", status.version.to_string()),
        ("weights_wait", status.weights_wait.to_string()),
        ("decisions", status.decisions.to_string()),
        ("missed", status.missed.to_string()),
        ("refused_states", status.refused_states.to_string()),
        ("refused_weights", status.refused_weights.to_string()),
        ("state_rate_hz", format!("{:.2}", status.state_rate_hz)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(report) = &status.guard {
        for (key, value) in [
            ("guard/state", report.state.name().to_owned()),
            ("guard/scale", format!("{:.3}", report.scale)),
            ("guard/saturation_ratio", format!("{:.4}", report.saturation_ratio)),
            ("guard/command_period_secs", format!("{:.5}", report.ticks.period_secs)),
            ("guard/command_period_worst_secs", format!("{:.5}", report.ticks.worst_secs)),
        ] {
            values.push((key.to_owned(), value));
        }
        let counts = Reason::ALL.into_iter().map(|reason| (reason, report.counts.of(reason)));
        let stepped_in = counts.filter(|(_, count)| 0 < *count);
        values.extend(stepped_in.map(|(reason, count)| (format!("guard/{}", reason.key()), count.to_string())));
    }
    let level = match status.stage {
        _ if status.is_trouble() => Level::Error,
        Stage::Unconfigured => Level::Warn,
        _ if 0 < status.refused_weights => Level::Warn,
        _ => Level::Ok,
    };
    Health { level, message: status.sentence.clone(), values }
}
