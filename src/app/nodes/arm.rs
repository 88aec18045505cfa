//! What a node on an arm's own topics has, whatever it does there: ears, services, the only way to the arm.

use super::wire::{Drops, QUEUE, Queue, convert, joints, to_topic};
use crate::app::realtime;
use crate::config::Config;
use crate::data::{GoalPose, JointState};
use crate::error::{Error, Result};
use crate::guard::Mode;
use crate::link::{Command, Form, Link, ROBOT_STATE, described_limits, joint_names};
use crate::node::Output;
use crate::robot::Limits;
use crate::ros::{self, Node, Qos, msg, srv};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// How long a service waits for the actor.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the robot's description is waited for.
const DESCRIPTION: Duration = Duration::from_secs(30);
/// The robot's mode comes a thousand times a second; it is handed on this often, and when it has changed.
const MODES: Duration = Duration::from_millis(20);
/// How often the writers of the command topic are counted.
const WRITERS: Duration = Duration::from_millis(100);

/// What a person asks of an actor, and where the answer goes.
pub(super) type Asked<R> = (R, SyncSender<Result<&'static str>>);

/// What is heard of an arm.
pub(super) struct Ears {
    /// Its states.
    pub states: mpsc::Receiver<JointState>,
    /// A simulator's clock [s].
    pub clock: watch::Receiver<f64>,
    /// Publishers of the command topic.
    pub publishers: watch::Receiver<usize>,
}

/// Puts this process before others, where the machine permits it; says so where it does not.
pub(super) fn prioritise(config: &Config) {
    if let Err(error) = realtime::prioritise(config.policy.realtime_priority) {
        tracing::warn!("{error}");
    }
}

/// Hears an arm; adds to `heard` what it is heard on.
pub(super) fn hear(
    node: &mut Node,
    config: &Config,
    link: Link,
    drops: &Drops,
    heard: &mut Vec<(String, Qos)>,
) -> Result<Ears> {
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
    Ok(Ears { states: states_in, clock: clock_in, publishers })
}

/// Where the tool shall go.
pub(super) fn goal(node: &mut Node, drops: &Drops) -> Result<watch::Receiver<Option<GoalPose>>> {
    let (goal, newest) = watch::channel(None);
    let unreadable = drops.clone();
    node.subscribe("goal_pose", ros::newest(), move |message: msg::PoseStamped| {
        convert(message, "goal_pose", &unreadable, |pose: GoalPose| drop(goal.send_replace(Some(pose))));
    })?;
    Ok(newest)
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

/// The robot's modes; refused where the guard requires them and none can be heard.
pub(super) fn modes(node: &mut Node, config: &Config, link: Link, drops: &Drops) -> Result<mpsc::Receiver<Mode>> {
    let (modes, heard) = mpsc::channel(QUEUE);
    let (mut modes, mut last) = (Queue::new(ROBOT_STATE, modes, drops), None::<(u8, Instant)>);
    let each = move |mode| {
        if last.is_none_or(|(before, at)| before != mode || MODES <= at.elapsed()) {
            last = Some((mode, Instant::now()));
            modes.put(Mode::from_code(mode));
        }
    };
    let can = !link.simulated && node.hear_modes(ROBOT_STATE, each)?;
    if config.guard.require_mode && !can {
        let why = if link.simulated {
            "a simulator has no robot mode: false is right"
        } else {
            "this program was built without franka_msgs, in which a robot tells its mode: source them and build again"
        };
        return Err(Error::invalid(format!(
            "guard.require_mode = true with policy.link = {}: {why}",
            config.policy.link.name()
        )));
    }
    Ok(heard)
}

/// A service with which a person asks for something, or for its contrary.
pub(super) fn switch<R: Send + 'static>(
    node: &mut Node,
    name: &str,
    ask: mpsc::Sender<Asked<R>>,
    request: fn(bool) -> R,
) -> Result<()> {
    node.serve::<srv::SetBool::Service>(name, move |message| match answer(&ask, request(message.data)) {
        Ok(done) => srv::SetBool::Response { success: true, message: done.into() },
        Err(error) => srv::SetBool::Response { success: false, message: error.to_string() },
    })
}

/// Asks the actor, from the spin thread.
pub(super) fn answer<R>(ask: &mpsc::Sender<Asked<R>>, request: R) -> Result<&'static str> {
    let (reply, answer) = sync_channel(1);
    ask.try_send((request, reply)).map_err(|_| Error::invalid("the node is busy; ask again"))?;
    answer.recv_timeout(PATIENCE).map_err(|_| Error::invalid("the node did not answer; ask again"))?
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
