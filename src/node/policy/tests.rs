//! The policy against an arm that goes where it is told, in its own time.

use super::*;
use crate::config::Config;
use crate::contract::Normaliser;
use crate::guard::{Reason, State};
use crate::robot::{ARM_DOF, READY};
use rand::RngExt as _;
use uuid::Uuid;

const TICK: f64 = 1.0 / 60.0;

fn snapshot_of(config: &Config, version: u64) -> Arc<Snapshot> {
    let contract = Arc::new(config.contract().unwrap());
    let mut rng = Seed::root(version).rng(0);
    let parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.3..0.3)).collect();
    Arc::new(Snapshot {
        run: Uuid::nil(),
        life: 1,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        contract,
        parameters: parameters.into(),
    })
}

fn config() -> Config {
    Config { hidden: vec![8], ..Config::default() }
}

fn snapshot(version: u64) -> Arc<Snapshot> {
    snapshot_of(&config(), version)
}

fn settings(preset: Preset) -> Settings {
    Settings {
        arm: Robot::Panda,
        preset,
        prefix: String::new(),
        guard: preset.guard(),
        seed: Seed::root(1),
        sampling: Sampling::MeanAction,
    }
}

fn goal() -> GoalPose {
    GoalPose {
        stamp_secs: 0.0,
        frame: "panda_link0".into(),
        position: [0.45, 0.15, 0.4],
        orientation: [1.0, 0.0, 0.0, 0.0],
    }
}

/// A pilot, an arm that is where it was told one tick ago, and what was said.
struct World {
    pilot: Pilot,
    position: PerJoint,
    velocity: PerJoint,
    stamp: f64,
    now: f64,
    commands: Vec<JointState>,
    targets: Vec<JointState>,
    options: Vec<OptionState>,
}

impl World {
    fn new(preset: Preset) -> Self {
        Self::of(settings(preset), &snapshot(1))
    }

    fn of(settings: Settings, snapshot: &Arc<Snapshot>) -> Self {
        let mut pilot = Pilot::new(settings).unwrap();
        pilot.weights(snapshot).unwrap();
        Self {
            pilot,
            position: READY,
            velocity: [0.0; ARM_DOF],
            stamp: 0.0,
            now: 100.0,
            commands: vec![],
            targets: vec![],
            options: vec![],
        }
    }

    fn state(&self) -> JointState {
        JointState {
            stamp_secs: self.stamp,
            names: Robot::Panda.joint_names().to_vec(),
            position: self.position.to_vec(),
            velocity: self.velocity.to_vec(),
        }
    }

    fn obey(&mut self, command: Option<JointState>) {
        self.velocity = [0.0; ARM_DOF];
        if let Some(command) = command {
            let before = self.position;
            self.position = std::array::from_fn(|joint| command.position[joint]);
            self.velocity = std::array::from_fn(|joint| (self.position[joint] - before[joint]) / TICK);
            self.commands.push(command);
        }
    }

    /// One tick of the arm's time and ours.
    fn tick(&mut self) {
        self.tick_with(|state| state);
    }

    fn tick_with(&mut self, seen: impl Fn(JointState) -> JointState) {
        self.stamp += TICK;
        self.now += TICK;
        self.pilot.clock(self.stamp, self.now);
        self.pilot.publishers(1);
        let acts = self.pilot.states(&seen(self.state()), self.now).unwrap();
        self.targets.extend(acts.target);
        self.options.extend(acts.option);
        self.obey(acts.command);
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    /// Armed, after a second of deciding dry.
    fn armed() -> Self {
        let mut world = Self::new(Preset::Isaac);
        world.pilot.goal(&goal()).unwrap();
        world.pilot.activate(true).unwrap();
        world.ticks(60);
        world.pilot.arm(true, world.now).unwrap();
        world
    }

    fn guard(&self) -> guard::Report {
        self.pilot.status().guard.unwrap()
    }
}

fn refusal<T>(outcome: Result<T>) -> String {
    outcome.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn it_decides_dry_at_the_trained_rate_and_commands_nothing() {
    let mut world = World::new(Preset::Isaac);
    world.ticks(60);
    assert_eq!((world.pilot.stage(), world.options.len()), (Stage::Inactive, 0));
    world.pilot.activate(true).unwrap();
    world.ticks(60);
    assert_eq!(world.options.len(), 0, "no goal was heard");
    world.pilot.goal(&goal()).unwrap();
    world.ticks(60);
    assert_eq!((world.options.len(), world.commands.len()), (20, 0), "20 Hz of a second of 60 states");
    for pair in world.options.windows(2) {
        assert!((pair[1].stamp_secs - pair[0].stamp_secs - 0.05).abs() < 1e-9);
        let (before, after) = (pair[0].duration, pair[1].duration);
        assert!(after == before + 1 || after == 1, "{before} then {after}");
    }
    assert!(world.options[0].switched && world.options[0].option_probs.len() == 4);
    // dry, it wants to go one action from where the arm stands
    for target in &world.targets {
        for (position, ready) in target.position.iter().zip(&READY) {
            assert!((position - ready).abs() <= 0.08 + 1e-9);
        }
    }
}

#[test]
fn armed_it_starts_at_rest_where_the_arm_stands_and_keeps_the_limits() {
    let mut world = World::armed();
    world.tick();
    assert_eq!(world.commands[0].position, READY);
    world.ticks(600);
    assert_eq!(world.commands.len(), 601, "one command for each state");
    let limits = Robot::Panda.limits();
    for pair in world.commands.windows(2) {
        for joint in 0..ARM_DOF {
            let speed = (pair[1].position[joint] - pair[0].position[joint]).abs() / TICK;
            assert!(speed <= limits.velocity_rad_per_sec[joint] + 1e-9, "joint {joint} at {speed} rad/s");
        }
    }
    let moved = (0..ARM_DOF).map(|joint| (world.position[joint] - READY[joint]).abs()).fold(0.0, f64::max);
    assert!(moved > 0.1, "the arm moved {moved} rad");
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn the_order_of_joints_more_joints_and_missing_velocities_change_little_or_nothing() {
    let run = |seen: &dyn Fn(JointState) -> JointState| {
        let mut world = World::new(Preset::Isaac);
        (0..2).for_each(|_| world.tick_with(seen)); // one position has no velocity
        world.pilot.goal(&goal()).unwrap();
        world.pilot.activate(true).unwrap();
        (0..60).for_each(|_| world.tick_with(seen));
        world.pilot.arm(true, world.now).unwrap();
        (0..120).for_each(|_| world.tick_with(seen));
        world.commands
    };
    let plain = run(&|state| state);
    let permuted = run(&|mut state| {
        state.names.reverse();
        state.position.reverse();
        state.velocity.reverse();
        state.names.insert(3, "panda_finger_joint1".into());
        state.position.insert(3, f64::NAN);
        state.velocity.insert(3, f64::NAN);
        state
    });
    assert_eq!(permuted, plain);
    let blind = run(&|state| JointState { velocity: vec![], ..state });
    for (blind, plain) in blind.iter().zip(&plain) {
        for joint in 0..ARM_DOF {
            assert!((blind.position[joint] - plain.position[joint]).abs() < 1e-3);
        }
    }
}

#[test]
fn arming_is_refused_with_what_is_missing() {
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    assert!(refusal(pilot.activate(true)).contains("no policy"));
    assert!(refusal(pilot.arm(true, 0.0)).contains("no policy"));
    let mut world = World::new(Preset::Isaac);
    assert!(refusal(world.pilot.arm(true, world.now)).contains("~/activate"));
    world.pilot.activate(true).unwrap();
    world.ticks(9);
    assert!(refusal(world.pilot.arm(true, world.now)).contains("goal_pose"));
    world.pilot.goal(&goal()).unwrap();
    assert!(refusal(world.pilot.arm(true, world.now)).contains("has not decided"));
    world.ticks(9);
    world.pilot.publishers(2);
    assert!(refusal(world.pilot.arm(true, world.now)).contains("not armed"));
    world.pilot.publishers(1);
    world.pilot.arm(true, world.now).unwrap();
}

#[test]
fn states_slower_than_the_command_rate_are_refused_with_the_rate_that_would_be_right() {
    let mut slow = settings(Preset::Isaac);
    slow.guard.command_rate_hz = 120.0;
    let mut world = World::of(slow, &snapshot(1));
    world.pilot.goal(&goal()).unwrap();
    world.pilot.activate(true).unwrap();
    world.ticks(30);
    let said = refusal(world.pilot.arm(true, world.now));
    assert!(said.contains("guard.command_rate_hz: 60.0"), "{said}");
}

#[test]
fn faster_states_get_no_more_commands_than_the_command_rate() {
    let mut slow = settings(Preset::Isaac);
    slow.guard.command_rate_hz = 20.0;
    let mut world = World::of(slow, &snapshot(1));
    world.pilot.goal(&goal()).unwrap();
    world.pilot.activate(true).unwrap();
    world.ticks(60);
    world.pilot.arm(true, world.now).unwrap();
    world.ticks(60);
    assert_eq!(world.commands.len(), 20);
}

#[test]
fn lost_states_bring_the_arm_to_rest_and_end_the_commands() {
    let mut world = World::armed();
    world.ticks(120);
    let armed = world.commands.len();
    for _ in 0..120 {
        world.now += TICK;
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    let report = world.guard();
    assert_eq!(report.state, State::Stopped, "{}", report.sentence);
    assert!(report.reasons.contains(Reason::StaleState), "{}", report.sentence);
    assert!(world.commands.len() > armed, "it is braked by commands");
    // the last step is within one tick's deceleration of rest
    let last = &world.commands[world.commands.len() - 2..];
    for (joint, most) in Robot::Panda.limits().acceleration_rad_per_sec2.iter().enumerate() {
        assert!((last[0].position[joint] - last[1].position[joint]).abs() <= most * TICK * TICK);
    }
    let before = world.commands.len();
    world.ticks(60);
    assert_eq!(world.commands.len(), before, "never again on its own");
}

#[test]
fn deactivation_brings_the_arm_to_rest_and_disarms() {
    let mut world = World::armed();
    world.ticks(120);
    world.pilot.activate(false).unwrap();
    world.ticks(60);
    assert_eq!((world.guard().state, world.pilot.stage()), (State::Disarmed, Stage::Inactive));
    let before = world.commands.len();
    world.ticks(10);
    assert_eq!(world.commands.len(), before);
}

#[test]
fn the_end_brings_the_arm_to_rest() {
    let mut world = World::armed();
    world.ticks(120);
    world.pilot.shutdown();
    assert!(!world.pilot.is_quiet());
    world.ticks(60);
    assert!(world.pilot.is_quiet());
    assert!(refusal(world.pilot.arm(true, world.now)).contains("not armed"));
}

#[test]
fn a_reset_simulator_ends_the_motion_and_the_option() {
    let mut world = World::armed();
    world.ticks(120);
    world.stamp = 0.0;
    world.position = READY;
    let before = world.commands.len();
    world.ticks(60);
    assert_eq!((world.guard().state, world.commands.len()), (State::Stopped, before));
    assert!(world.pilot.stage() == Stage::Active && world.options.last().unwrap().stamp_secs > 0.8, "it decides, dry");
    world.pilot.arm(true, world.now).unwrap();
    world.ticks(3);
    assert_eq!(world.commands[before].position, READY);
}

#[test]
fn weights_change_at_the_end_of_an_option() {
    let mut world = World::armed();
    world.ticks(30);
    let mut offered = false;
    let first = world.options.len();
    for _ in 0..600 {
        world.tick();
        if !offered && world.options.last().unwrap().duration == 1 {
            world.pilot.weights(&snapshot(2)).unwrap();
            assert!(world.pilot.status().weights_wait);
            offered = true;
        }
    }
    let at = world.options.iter().position(|option| option.version == 2).expect("the weights are taken");
    assert!(at > first);
    assert_eq!(world.options[at].duration, 1, "an option begins with them");
    assert!(world.options[at..].iter().all(|option| option.version == 2));
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn unarmed_weights_change_at_once_and_wrong_ones_leave_the_good_ones() {
    let mut world = World::new(Preset::Isaac);
    world.pilot.weights(&snapshot(2)).unwrap();
    assert_eq!(world.pilot.status().version, 2);
    world.pilot.weights(&snapshot(2)).unwrap(); // latched, heard again
    assert!(refusal(world.pilot.weights(&snapshot(1))).contains("newer"));
    let other = snapshot_of(&Config { hidden: vec![9], ..Config::default() }, 3);
    assert!(refusal(world.pilot.weights(&other)).contains("[9]"));
    let mut broken = (*snapshot(4)).clone();
    broken.parameters = broken.parameters.iter().map(|_| f32::NAN).collect();
    assert!(world.pilot.weights(&Arc::new(broken)).is_err());
    assert_eq!((world.pilot.status().version, world.pilot.status().refused_weights), (2, 3));
}

#[test]
fn a_flat_policy_changes_at_a_new_goal() {
    let flat = Config { algo: crate::config::Algo::Ppo, hidden: vec![8], ..Config::default() };
    let mut world = World::of(settings(Preset::Isaac), &snapshot_of(&flat, 1));
    world.pilot.goal(&goal()).unwrap();
    world.pilot.activate(true).unwrap();
    world.ticks(60);
    world.pilot.arm(true, world.now).unwrap();
    world.ticks(60);
    world.pilot.weights(&snapshot_of(&flat, 2)).unwrap();
    world.ticks(300);
    assert_eq!(world.options.last().unwrap().version, 1);
    world.pilot.goal(&goal()).unwrap();
    world.ticks(6);
    assert_eq!(world.options.last().unwrap().version, 2);
}

#[test]
fn policies_and_settings_that_do_not_fit_are_refused() {
    let fr3 = snapshot_of(&Config { robot: Robot::Fr3, ..config() }, 1);
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    assert!(refusal(pilot.weights(&fr3)).contains("Fr3"));
    assert_eq!(pilot.stage(), Stage::Unconfigured);
    let both = snapshot_of(&Config { robot: Robot::Both, ..config() }, 1);
    pilot.weights(&both).unwrap();
    assert_eq!(pilot.stage(), Stage::Inactive);
    let mut short = settings(Preset::Isaac);
    short.guard.leash_rad = 0.05;
    let said = refusal(Pilot::new(short).unwrap().weights(&snapshot(1)));
    assert!(said.contains("0.08") && said.contains("0.05"), "{said}");
    let no_arm = Settings { arm: Robot::Both, ..settings(Preset::Isaac) };
    assert!(refusal(Pilot::new(no_arm)).contains("robot: fr3"));
    let no_clock = Settings { guard: Preset::Crisp.guard(), ..settings(Preset::Isaac) };
    assert!(refusal(Pilot::new(no_clock)).contains("guard.use_sim_time"));
    let said = refusal(pilot.goal(&GoalPose { frame: "world".into(), ..goal() }));
    assert!(said.contains("world") && said.contains("panda_link0"), "{said}");
}

#[test]
fn a_broken_state_is_refused_and_moves_nothing() {
    let mut world = World::armed();
    world.ticks(30);
    let before = world.commands.len();
    world.stamp += TICK;
    world.now += TICK;
    let mut broken = world.state();
    broken.position[2] = f64::NAN;
    assert!(world.pilot.states(&broken, world.now).is_err());
    assert_eq!((world.commands.len(), world.pilot.status().refused_states), (before, 1));
    assert_eq!(world.guard().counts.of(Reason::NonFinite), 1);
    world.ticks(30);
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn hardware_is_commanded_at_a_fixed_rate_within_a_fifth_of_the_limits() {
    let mut world = World::new(Preset::Crisp);
    world.pilot.goal(&goal()).unwrap();
    world.pilot.activate(true).unwrap();
    world.ticks(60);
    assert_eq!(world.commands.len(), 0);
    world.pilot.arm(true, world.now).unwrap();
    for step in 0..1000 {
        world.now += 0.01;
        world.stamp += 0.01;
        world.pilot.publishers(1);
        if step % 2 == 0 {
            let acts = world.pilot.states(&world.state(), world.now).unwrap();
            assert_eq!(acts.command, None, "states trigger no command");
        }
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    assert_eq!(world.commands.len(), 1000, "{}", world.guard().sentence);
    let limits = Robot::Panda.limits();
    for pair in world.commands.windows(2) {
        assert_eq!(pair[1].names, Robot::Panda.joint_names(), "crisp copies by place");
        for joint in 0..ARM_DOF {
            let speed = (pair[1].position[joint] - pair[0].position[joint]).abs() / 0.01;
            assert!(speed <= 0.2 * limits.velocity_rad_per_sec[joint] + 1e-9, "joint {joint} at {speed} rad/s");
        }
    }
}
