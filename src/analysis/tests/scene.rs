//! An arm in its own simple world, and the policy node that moves it.

use super::*;
use crate::data::GoalPose;
use crate::link::{Command, Preset};
use crate::node::policy::{Pilot, Settings};

pub(super) const TICK: f64 = 1.0 / 60.0;
pub(super) const GOAL: [f64; 3] = [0.45, 0.15, 0.4];

/// Who leads the arm before it is armed, and what is recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct Scene {
    /// Where the policy wants to go is recorded.
    pub(super) targets: bool,
    /// Seconds that are recorded before the arming; none: from the first decision behind it on.
    pub(super) dry_secs: f64,
    /// Another moves the arm until then.
    pub(super) another: bool,
    /// When it is brought to rest again [s].
    pub(super) disarmed_secs: Option<f64>,
}

/// What an armed node said and heard from its first decision on, and the options that it published.
pub(super) fn moved(targets: bool) -> (Recording, Vec<OptionState>) {
    recorded_arm(Scene { targets, ..Scene::default() })
}

/// What a node said and heard, and the options that it published. It is armed after 4 s, and its states end after 14 s.
pub(super) fn recorded_arm(scene: Scene) -> (Recording, Vec<OptionState>) {
    const ARMED: u32 = 240;
    let settings = Settings {
        arm: Robot::Panda,
        preset: Preset::Isaac,
        prefix: String::new(),
        described: None,
        guard: Preset::Isaac.guard(),
        seed: Seed::root(5),
        sampling: Sampling::MeanAction,
        autostart: true,
    };
    let mut pilot = Pilot::new(settings).unwrap();
    pilot.weights(&snapshot(4, 0.0)).unwrap();
    let (frame, position, orientation) = ("panda_link0".to_owned(), GOAL, [1.0, 0.0, 0.0, 0.0]);
    pilot.goal(&GoalPose { stamp_secs: 0.0, frame, position, orientation }).unwrap();
    let mut bag = Recording::new();
    let topic = |bag: &mut Recording, name: &str, kind: &str| bag.topic(name, kind);
    let states = topic(&mut bag, "/joint_states", "sensor_msgs/msg/JointState");
    let commands = topic(&mut bag, "/joint_command", "sensor_msgs/msg/JointState");
    let goals = topic(&mut bag, "/goal_pose", "geometry_msgs/msg/PoseStamped");
    let options = topic(&mut bag, "/policy/option_state", "handoff/msg/OptionState");
    let weights = topic(&mut bag, "/policy_weights", "handoff/msg/PolicyWeights");
    bag.add(weights, ns(0.0), recording::weights(&snapshot(4, 0.0)));
    bag.add(goals, ns(0.0), recording::goal("panda_link0", GOAL));
    let lead = scene.targets.then(|| topic(&mut bag, "/policy/target", "sensor_msgs/msg/JointState"));
    let (mut position, mut velocity, mut said) = (READY, [0.0; ARM_DOF], Vec::new());
    let names = || Robot::Panda.joint_names().to_vec();
    let dry_from = ARMED - (scene.dry_secs / TICK).round() as u32;
    let mut recording = false;
    for tick in 1..=840 {
        let stamp = f64::from(tick) * TICK;
        pilot.clock(stamp, stamp);
        pilot.publishers(1);
        if tick == ARMED {
            pilot.arm(stamp).unwrap();
        }
        if scene.disarmed_secs.is_some_and(|at| (stamp - at).abs() < 0.5 * TICK) {
            pilot.disarm();
        }
        let state =
            JointState { stamp_secs: stamp, names: names(), position: position.to_vec(), velocity: velocity.to_vec() };
        let acts = pilot.states(&state, stamp).unwrap();
        recording |= dry_from <= tick && acts.option.is_some();
        // another's commands are stamped by its own clock, and end well before the arming
        let way = f64::from(tick).min(180.0) * TICK;
        let taught = (scene.another && tick <= 200).then(|| JointState {
            stamp_secs: stamp + 0.004,
            names: names(),
            position: (0..ARM_DOF).map(|joint| READY[joint] + 0.06 * (way + joint as f64).sin()).collect(),
            velocity: Vec::new(),
        });
        let own = match &acts.command {
            Some(Command::Positions(command)) => Some(command.clone()),
            _ => None,
        };
        let before = position;
        if let Some(command) = own.as_ref().or(taught.as_ref()) {
            position = std::array::from_fn(|joint| command.position[joint]);
        }
        velocity = std::array::from_fn(|joint| (position[joint] - before[joint]) / TICK);
        own.iter().chain(&taught).for_each(|command| pilot.led(command));
        if !recording {
            continue;
        }
        bag.add(states, ns(stamp), recording::joints(&state));
        for command in own.iter().chain(&taught) {
            bag.add(commands, ns(stamp + 0.003), recording::joints(command));
        }
        if let (Some(target), Some(lead)) = (&acts.target, lead) {
            bag.add(lead, ns(stamp + 0.001), recording::joints(target));
        }
        if let Some(option) = &acts.option {
            bag.add(options, ns(stamp + 0.002), recording::option(option));
            said.push(option.clone());
        }
    }
    (bag, said)
}
