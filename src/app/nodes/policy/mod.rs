//! Node `policy`.

mod health;

use super::wire::{Drops, QUEUE, Queue, convert, joints, to_topic, topic_of};
use super::{run, start_with};
use crate::app::cli;
use crate::config::{Config, Seed};
use crate::contract::Snapshot;
use crate::data::{GoalPose, Scene};
use crate::error::{Error, Result};
use crate::link::{Command, Form, Link, described_limits, joint_names};
use crate::node::policy::{Inputs, Outputs, Pilot, Request, Settings, Status, run as pilot_run};
use crate::node::{Output, Shutdown};
use crate::policy::Sampling;
use crate::robot::Limits;
use crate::ros::{self, Lifecycle, Node, Qos, msg, srv};
use crate::run::{RunDir, Which, load_snapshot};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a service waits for the actor.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the robot's description is waited for.
const DESCRIPTION: Duration = Duration::from_secs(30);
/// How often the writers of the command topic are counted.
const WRITERS: Duration = Duration::from_millis(100);

/// What a person asks of an actor, and where the answer goes.
type Asked<R = Request> = (R, SyncSender<Result<&'static str>>);

/// Node `policy`: runs a trained policy on an arm, guarded.
pub(in crate::app) fn policy(arguments: &cli::Policy) -> Result<()> {
    let (mut node, config) = start_with("policy", &arguments.assignments())?;
    crate::policy::set_threads(1);
    let described = described(&mut node, &config)?;
    let mut pilot = Pilot::new(settings(&config, described))?;
    let drops = Drops::default();
    let mut heard = Vec::new();
    let weights = weights(&mut node, &config, &mut pilot, &drops, &mut heard)?;
    let (ask, requests) = mpsc::channel(4);
    let lifecycle = serve(&mut node, &ask)?;
    let link = pilot.link();
    let inputs = hear(&mut node, &config, link, weights, requests, &drops, &mut heard)?;
    let status = health::diagnose(&mut node, heard, drops)?;
    let outputs = say(&mut node, link, lifecycle, status)?;
    let (stopper, shutdown) = Shutdown::new();
    run(&arguments.node, stopper, node.spin()?, pilot_run(pilot, inputs, outputs, shutdown))
}

fn settings(config: &Config, described: Option<Limits>) -> Settings {
    let policy = &config.policy;
    Settings {
        arm: config.robot,
        preset: policy.link,
        prefix: policy.joint_prefix.clone(),
        described,
        guard: config.guard.clone(),
        seed: Seed::root(config.seed),
        sampling: if policy.stochastic { Sampling::Stochastic } else { Sampling::MeanAction },
        autostart: policy.autostart,
    }
}

/// What the robot's description allows, where it is asked for.
pub(super) fn described(node: &mut Node, config: &Config) -> Result<Option<Limits>> {
    let topic = config.policy.robot_description.as_str();
    if topic.is_empty() {
        return Ok(None);
    }
    let names = joint_names(config.robot, &config.policy.joint_prefix)?;
    tracing::info!("waits for the robot's description on {}", node.resolve(topic));
    let urdf: msg::String = node.first(topic, ros::latched(), DESCRIPTION)?;
    described_limits(&urdf.data, &names).map(Some)
}

/// Of a run, at once; or as a learner publishes them.
fn weights(
    node: &mut Node,
    config: &Config,
    pilot: &mut Pilot,
    drops: &Drops,
    heard: &mut Vec<(String, Qos)>,
) -> Result<watch::Receiver<Option<Arc<Snapshot>>>> {
    let (weights, newest) = watch::channel(None);
    let settings = &config.policy;
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
    Ok(newest)
}

/// The services.
fn serve(node: &mut Node, ask: &mpsc::Sender<Asked>) -> Result<Lifecycle> {
    for (name, request) in [("~/arm", Request::Arm as fn(bool) -> Request), ("~/recover", Request::Recover)] {
        let ask = ask.clone();
        node.serve::<srv::SetBool::Service>(name, move |message| match answer(&ask, request(message.data)) {
            Ok(done) => srv::SetBool::Response { success: true, message: done.into() },
            Err(error) => srv::SetBool::Response { success: false, message: error.to_string() },
        })?;
    }
    let scale = ask.clone();
    node.set_parameter("guard.scale", move |share| answer(&scale, Request::Scale(share)).map(|_| ()));
    let change = ask.clone();
    node.manage(move |wanted| answer(&change, Request::Change(wanted)).is_ok())
}

/// Asks the actor, from the spin thread.
pub(super) fn answer<R>(ask: &mpsc::Sender<Asked<R>>, request: R) -> Result<&'static str> {
    let (reply, answer) = sync_channel(1);
    ask.try_send((request, reply)).map_err(|_| Error::invalid("the node is busy; ask again"))?;
    answer.recv_timeout(PATIENCE).map_err(|_| Error::invalid("the node did not answer; ask again"))?
}

fn hear(
    node: &mut Node,
    config: &Config,
    link: Link,
    weights: watch::Receiver<Option<Arc<Snapshot>>>,
    requests: mpsc::Receiver<Asked>,
    drops: &Drops,
    heard: &mut Vec<(String, Qos)>,
) -> Result<Inputs> {
    let (led, led_in) = mpsc::channel(QUEUE);
    if link.form == Form::Positions {
        let mut led = Queue::new(link.commands, led, drops);
        node.subscribe(link.commands, ros::newest(), move |message: msg::JointState| {
            if let Ok(command) = joints(message) {
                led.put(command); // what is unreadable leads nothing
            }
        })?;
    }
    let (states, states_in) = mpsc::channel(QUEUE);
    let (mut states, unreadable) = (Queue::new(link.states, states, drops), drops.clone());
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
    Ok(Inputs { states: states_in, led: led_in, weights, goal: goal_in, clock: clock_in, publishers, requests })
}

fn say(node: &mut Node, link: Link, lifecycle: Lifecycle, status: Output<Status>) -> Result<Outputs> {
    let markers = node.publish::<msg::MarkerArray>("~/markers", ros::newest())?;
    let shown = markers.clone();
    let mut scenes = to_topic::<msg::MarkerArray, Scene>(markers);
    Ok(Outputs {
        commands: commands(node, link)?,
        targets: to_topic::<msg::JointState, _>(node.publish("~/target", ros::newest())?),
        options: to_topic::<msg::OptionState, _>(node.publish("~/option_state", ros::everything())?),
        scenes: Box::new(move |scene: &Scene| {
            if 0 < shown.readers() {
                scenes(scene);
            }
        }),
        moves: Box::new(move |moved| lifecycle.moved(moved)),
        status,
    })
}

/// The only way to the arm.
pub(super) fn commands(node: &mut Node, link: Link) -> Result<Output<Command>> {
    Ok(match link.form {
        Form::Positions => {
            let mut send = to_topic::<msg::JointState, _>(node.publish(link.commands, ros::newest())?);
            Box::new(move |command: &Command| {
                if let Command::Positions(command) = command {
                    send(command);
                }
            })
        }
        Form::Trajectory => {
            let mut send = to_topic::<msg::JointTrajectory, _>(node.publish(link.commands, ros::newest())?);
            Box::new(move |command: &Command| {
                if let Command::Trajectory(command) = command {
                    send(command);
                }
            })
        }
    })
}
