//! `handoff bench latency`: from a joint state to the command that answers it, over ROS 2, out of a policy node's process. The bench
//! is the arm, as Isaac Sim speaks. A peer's states come between ours, so that what else the machine does meets both.

use super::{learner, peer};
use crate::app::sweep::Sweep;
use crate::app::{cli, commands, realtime, runtime};
use crate::config::{Config, Purpose, Seed};
use crate::contract::Snapshot;
use crate::error::{Error, Result};
use crate::learn::HsPpo;
use crate::report::{self, Answers};
use crate::robot::{ARM_DOF, PerJoint, READY};
use crate::ros::{self, Node, msg, srv};
use rand::RngExt as _;
use serde::Serialize;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// States, decisions and commands a second.
const RATE_HZ: f64 = 100.0;
/// Between two states of an arm; a command is due before the next state.
const PERIOD: Duration = Duration::from_millis(10);
/// Widths of the hidden layers, and options.
const HIDDEN: [usize; 2] = [256, 256];
const OPTIONS: usize = 4;
/// Largest joint step of a decision [rad].
const SCALE_RAD: f64 = 0.02;
/// States of one goal.
const STATES_OF_A_GOAL: usize = 100;
/// States after arming, before the first that counts.
const WARM_UP: usize = 300;
/// The longest that a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `bench latency` found.
#[derive(Debug, Serialize)]
struct Report {
    /// Beside learners on every core.
    loaded: bool,
    /// Ours, then the peer's.
    nodes: Vec<Answers>,
}

/// `handoff bench latency`.
pub(in crate::app) fn latency(arguments: &cli::BenchLatency) -> Result<()> {
    if arguments.states == 0 {
        return Err(Error::invalid("--states 0 measures nothing: give at least 1"));
    }
    let peer = arguments.peers.then(peer::Program::find).transpose()?;
    if super::ran_in_a_domain_of_its_own()? {
        return Ok(());
    }
    report::logs::start("bench", None, None)?;
    crate::policy::set_threads(1);
    let sweep = Sweep::new();
    let stop = Arc::new(AtomicBool::new(false));
    let cores = if arguments.loaded { std::thread::available_parallelism().map_or(1, usize::from) } else { 0 };
    let load: Vec<_> = (0..cores).map(|_| learner::until(stop.clone())).collect::<Result<_>>()?;
    let measured = measure(arguments.states, peer.as_ref());
    stop.store(true, Ordering::Relaxed);
    let loads = load.into_iter().map(|load| load.join().unwrap_or_else(|_| Err(Error::invalid("a learner died"))));
    let loaded: Result<()> = loads.collect();
    sweep.sweep();
    let report = Report { loaded: arguments.loaded, nodes: measured? };
    loaded?;
    let json = serde_json::to_string(&report)
        .map_err(|error| Error::invalid(format!("the report cannot be written as JSON: {error}")))?;
    let beside = if arguments.loaded { ", beside a learner on every core" } else { "" };
    let head = format!("{HIDDEN:?}, {OPTIONS} options, {RATE_HZ} Hz, over ROS 2{beside}");
    commands::print(&if arguments.json { json } else { format!("{head}\n{}", report::answers(&report.nodes)) })
}

fn measure(states: usize, peer: Option<&peer::Program>) -> Result<Vec<Answers>> {
    let config = config()?;
    let mut nodes = vec![("handoff".to_owned(), ours()?)];
    if let Some(peer) = peer {
        nodes.push(peer.policy("/peer", settings(&config)?)?);
    }
    // as a robot's driver
    if let Err(error) = realtime::prioritise_thread(config.policy.realtime_priority) {
        tracing::warn!("{error}");
    }
    let mut node = Node::start("arms")?;
    let weights = node.publish::<msg::PolicyWeights>("/policy_weights", ros::latched())?;
    let arming = node.client::<srv::SetBool::Service>("/handoff/policy/arm")?;
    let mut world =
        World { clock: node.publish("/clock", ros::newest())?, arms: Vec::new(), number: 0, due: Instant::now() };
    for namespace in ["/handoff", "/peer"].into_iter().take(nodes.len()) {
        world.arms.push(Arm::new(&mut node, namespace, &config)?);
    }
    let running = node.spin()?;
    weights.send(&(&snapshot(&config)?).into())?;

    let runtime = runtime()?;
    let start = Instant::now();
    loop {
        (0..STATES_OF_A_GOAL).try_for_each(|_| world.tick())?;
        let asked = runtime.block_on(arming.call(&srv::SetBool::Request { data: true }, PERIOD * 10));
        let refused = match asked {
            Ok(answer) if answer.success => break,
            Ok(answer) => answer.message,
            Err(error) => error.to_string(),
        };
        if PATIENCE < start.elapsed() {
            return Err(Error::invalid(format!(
                "the arm could not be armed within {} s: {refused}",
                PATIENCE.as_secs()
            )));
        }
    }
    (0..WARM_UP).try_for_each(|_| world.tick())?;
    let first = world.number;
    (0..states).try_for_each(|_| world.tick())?;
    std::thread::sleep(PERIOD);
    running.stop()?;
    let names = nodes.iter().map(|(name, _)| name.clone());
    let took = |arm: &Arm| -> Vec<Option<f64>> {
        arm.heard().states[first..].iter().map(|(_, took)| took.map(|took| took.as_secs_f64())).collect()
    };
    names.zip(&world.arms).map(|(name, arm)| Answers::new(name, &took(arm), PERIOD.as_secs_f64())).collect()
}

/// The policy that is measured.
fn config() -> Result<Config> {
    let mut config = Config { control_rate_hz: RATE_HZ, hidden: HIDDEN.to_vec(), ..Config::default() };
    config.options.count = OPTIONS;
    config.action.scale = SCALE_RAD;
    config.sim.timestep_secs = 0.25 / RATE_HZ;
    config.validate()?;
    Ok(config)
}

/// Weights that move the arm about.
fn snapshot(config: &Config) -> Result<Snapshot> {
    let contract = Arc::new(config.contract()?);
    let seed = Seed::root(config.seed).of(Purpose::Parameters);
    let first = HsPpo::new(contract, &config.learner.hs_ppo, seed)?.snapshot(Uuid::from_u128(1), 1, 1);
    let mut rng = seed.rng(1);
    let parameters: Vec<f32> = first.parameters.iter().map(|_| rng.random_range(-0.1..0.1)).collect();
    Ok(Snapshot { parameters: parameters.into(), ..first })
}

/// Our policy node.
fn ours() -> Result<Owned> {
    let program = std::env::current_exe().map_err(Error::io("the program itself"))?;
    let mut command = Command::new(&program);
    command.args(["policy", "--link", "isaac", "--until-stdin-closes", "--ros-args", "-r", "__ns:=/handoff"]);
    command.args(["-p", "policy.autostart:=true", "-p", &format!("guard.command_rate_hz:={RATE_HZ:?}")]);
    Ok(Owned(command.stdin(Stdio::piped()).spawn().map_err(Error::io(&program))?))
}

/// What the peer is told.
fn settings(config: &Config) -> Result<serde_json::Value> {
    let (contract, limits) = (config.contract()?, config.robot.limits());
    Ok(serde_json::json!({
        "obs": contract.obs_size(), "action": contract.action_size(), "hidden": HIDDEN, "options": OPTIONS,
        "joints": contract.joints, "scale_rad": SCALE_RAD, "leash_rad": config.guard.leash_rad,
        "min_steps": config.options.min_steps, "max_steps": config.options.max_steps,
        "position_min_rad": limits.position_min_rad, "position_max_rad": limits.position_max_rad,
    }))
}

/// A child process, ended with this value.
pub(super) struct Owned(pub(super) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an arm has heard.
#[derive(Default)]
struct Heard {
    /// It stands where it was commanded last [rad].
    position: PerJoint,
    /// When the state with this number was sent, and how long its command took to come.
    states: Vec<(Instant, Option<Duration>)>,
}

/// An arm that follows at once.
struct Arm {
    names: Vec<String>,
    states: ros::Publisher<msg::JointState>,
    goals: ros::Publisher<msg::PoseStamped>,
    heard: Arc<Mutex<Heard>>,
    before: PerJoint,
}

impl Arm {
    fn new(node: &mut Node, namespace: &str, config: &Config) -> Result<Self> {
        let heard = Arc::new(Mutex::new(Heard { position: READY, ..Heard::default() }));
        let hears = heard.clone();
        node.subscribe::<msg::JointState>(&format!("{namespace}/joint_command"), ros::newest(), move |command| {
            let now = Instant::now();
            let mut heard = hears.lock().unwrap_or_else(PoisonError::into_inner);
            let number = ros::secs(&command.header.stamp).map_or(0.0, |secs| (secs * RATE_HZ).round() - 1.0) as usize;
            if let Some((sent, took @ None)) = heard.states.get_mut(number) {
                *took = Some(now - *sent);
            }
            if let Ok(position) = command.position.try_into() {
                heard.position = position;
            }
        })?;
        Ok(Self {
            names: config.robot.joint_names().to_vec(),
            states: node.publish(&format!("{namespace}/joint_states"), ros::newest())?,
            goals: node.publish(&format!("{namespace}/goal_pose"), ros::newest())?,
            heard,
            before: READY,
        })
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the next state; at times a goal before it.
    fn tell(&mut self, number: usize) -> Result<()> {
        if number.is_multiple_of(STATES_OF_A_GOAL) {
            let mut goal = msg::PoseStamped::default();
            goal.header.frame_id = self.names[0].replace("_joint1", "_link0");
            let side = if number.is_multiple_of(2 * STATES_OF_A_GOAL) { 0.2 } else { -0.2 };
            (goal.pose.position.x, goal.pose.position.y, goal.pose.position.z) = (0.5, side, 0.4);
            goal.pose.orientation.w = 1.0;
            self.goals.send(&goal)?;
        }
        let position = self.heard().position;
        let mut state = msg::JointState { name: self.names.clone(), position: position.to_vec(), ..Default::default() };
        state.header.stamp = stamp(number);
        state.velocity = (0..ARM_DOF).map(|joint| RATE_HZ * (position[joint] - self.before[joint])).collect();
        self.before = position;
        self.heard().states.push((Instant::now(), None));
        self.states.send(&state)
    }
}

/// Sends the arms' states, each arm's between the others'.
struct World {
    arms: Vec<Arm>,
    clock: ros::Publisher<msg::Clock>,
    /// Of the next states.
    number: usize,
    /// When the next state is due.
    due: Instant,
}

impl World {
    fn tick(&mut self) -> Result<()> {
        self.clock.send(&msg::Clock { clock: stamp(self.number) })?;
        let gap = PERIOD / self.arms.len() as u32;
        for arm in &mut self.arms {
            std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
            arm.tell(self.number)?;
            self.due = (self.due + gap).max(Instant::now());
        }
        self.number += 1;
        Ok(())
    }
}

/// Of the states with this number; 0 would be no time.
fn stamp(number: usize) -> msg::Time {
    ros::stamp((number + 1) as f64 / RATE_HZ)
}
