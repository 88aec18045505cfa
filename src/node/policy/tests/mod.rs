//! The policy against an arm that goes where it is told, in its own time.

mod driving;
mod endings;
mod shell;
mod stages;
mod weights;

use super::*;
use crate::config::Config;
use crate::contract::Normaliser;
use crate::data::{Change, GoalPose};
use crate::guard::{Reason, State};
use crate::link::Trajectory;
use crate::robot::{ARM_DOF, PerJoint, READY};
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
        described: None,
        guard: preset.guard(),
        seed: Seed::root(1),
        sampling: Sampling::MeanAction,
        autostart: false,
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
    trajectories: Vec<Trajectory>,
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
        pilot.change(Change::Configure).unwrap();
        Self {
            pilot,
            position: READY,
            velocity: [0.0; ARM_DOF],
            stamp: 0.0,
            now: 100.0,
            commands: vec![],
            trajectories: vec![],
            targets: vec![],
            options: vec![],
        }
    }

    fn state(&self) -> JointState {
        JointState {
            stamp_secs: self.stamp,
            names: self.pilot.joints.names().to_vec(),
            position: self.position.to_vec(),
            velocity: self.velocity.to_vec(),
        }
    }

    fn obey(&mut self, command: Option<Command>) {
        self.velocity = [0.0; ARM_DOF];
        if let Some(Command::Trajectory(trajectory)) = command {
            self.position = trajectory.points[0].position;
            self.trajectories.push(trajectory);
        } else if let Some(Command::Positions(command)) = command {
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
        let mut acts = self.pilot.states(&seen(self.state()), self.now).unwrap();
        self.pilot.value(&mut acts).unwrap();
        self.targets.extend(acts.target.take());
        if let (Some(option), Some(decided)) = (&acts.option, &acts.decided) {
            let critic = Policy::new(&self.pilot.loaded.as_ref().unwrap().snapshot).unwrap();
            assert_eq!(option.option_values, critic.values(&decided.observation).unwrap());
        }
        self.options.extend(acts.option);
        self.obey(acts.command);
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    /// Armed, after a second of deciding dry.
    fn armed() -> Self {
        let mut world = Self::new(Preset::Isaac);
        world.decides();
        world.pilot.arm(world.now).unwrap();
        world
    }

    /// A second of deciding dry.
    fn decides(&mut self) {
        self.pilot.goal(&goal()).unwrap();
        self.pilot.change(Change::Activate).unwrap();
        self.ticks(60);
    }

    fn guard(&self) -> guard::Report {
        self.pilot.status(self.now).guard.unwrap()
    }
}

fn refusal<T>(outcome: Result<T>) -> String {
    outcome.map(|_| ()).unwrap_err().to_string()
}
