//! The guard on a scripted arm, with a checker of streams that knows nothing of how they are made.

mod arming;
mod boundaries;
mod edges;
mod endings;
mod late;
mod limits;
mod recovery;
mod streams;
mod weights;

use super::*;
use crate::contract::Contract;
use crate::robot::{ARM_DOF, Limits, PerJoint, READY, Robot};

fn contract(robot: Robot) -> Contract {
    let config = crate::config::Config { robot, control_rate_hz: 50.0, ..crate::config::Config::default() };
    config.contract().unwrap()
}

/// A guard, a steady clock, and an arm that does what it is told.
struct Bench {
    guard: Guard,
    names: [String; ARM_DOF],
    now: f64,
    dt: f64,
    /// Stamps are the steady clock plus this.
    stamp_offset: f64,
    arm: PerJoint,
    /// What a tick tells the guard.
    states: bool,
    follows: bool,
    mode: Option<Mode>,
    publishers: usize,
    sent: Vec<Command>,
}

impl Bench {
    fn new(config: Config, robot: Robot, at: PerJoint) -> Self {
        let arm = if robot == Robot::Both { Robot::Fr3 } else { robot };
        let dt = 1.0 / config.command_rate_hz;
        let guard = Guard::new(config, &contract(robot), arm, None, None).unwrap();
        Self {
            names: guard.names().clone(),
            guard,
            now: 100.0,
            dt,
            stamp_offset: 1000.0,
            arm: at,
            states: true,
            follows: true,
            mode: Some(Mode::Move),
            publishers: 1,
            sent: Vec::new(),
        }
    }

    /// Hardware's settings at the ready pose.
    fn ready() -> Self {
        Self::new(Config::default(), Robot::Panda, READY)
    }

    /// The same, armed.
    fn armed() -> Self {
        let mut bench = Self::ready();
        bench.arm();
        bench
    }

    fn arm(&mut self) {
        self.hear();
        self.guard.arm(self.now).unwrap();
    }

    fn observe(&mut self, positions: &[f64], velocities: &[f64]) -> crate::error::Result<()> {
        let stamp_secs = self.now + self.stamp_offset;
        let states = JointStates { names: &self.names, positions, velocities, stamp_secs };
        self.guard.observe(&states, self.now)
    }

    fn hear(&mut self) {
        if self.states {
            let arm = self.arm;
            self.observe(&arm, &[0.0; ARM_DOF]).unwrap();
        }
        if let Some(mode) = self.mode {
            self.guard.observe_mode(mode, self.now);
        }
        self.guard.observe_publishers(self.publishers);
    }

    fn tick(&mut self) -> Option<Command> {
        self.now += self.dt;
        self.hear();
        let command = self.guard.tick(self.now);
        if let Some(command) = command {
            self.sent.push(command);
            if self.follows {
                self.arm = command.positions;
            }
        }
        command
    }

    /// Ticks for so long; the last command.
    fn run(&mut self, secs: f64) -> Option<Command> {
        (0..(secs / self.dt).round() as usize).map(|_| self.tick()).last().flatten()
    }

    /// Ticks for so long with a target every 20 ms.
    fn lead(&mut self, target: &PerJoint, secs: f64) -> Option<Command> {
        let mut last = None;
        for _ in 0..(secs / 0.02).round() as usize {
            self.to(target).unwrap();
            last = self.run(0.02);
        }
        last
    }

    fn to(&mut self, target: &PerJoint) -> crate::error::Result<()> {
        self.guard.target(&Target { names: None, values: Values::Positions(target) }, self.now)
    }

    fn state(&self) -> State {
        self.guard.report().state
    }

    fn count(&self, reason: Reason) -> u64 {
        self.guard.report().counts.of(reason)
    }

    fn reasons(&self) -> Vec<Reason> {
        self.guard.report().reasons.iter().collect()
    }

    fn says(&self, words: &str) -> bool {
        self.guard.report().sentence.contains(words)
    }
}

/// Joint 1 on its way, at full speed.
fn moving() -> Bench {
    let mut bench = Bench::armed();
    bench.to(&READY).unwrap();
    bench.lead(&ready_with(0, 0.5), 0.4);
    assert!(bench.sent.last().unwrap().velocities[0] > 0.15, "{:?}", bench.sent.last());
    bench
}

/// Ticks until nothing is sent; how many were, the last of them.
fn until_quiet(bench: &mut Bench) -> (usize, Command) {
    let before = bench.sent.len();
    while bench.tick().is_some() {
        assert!(bench.sent.len() < before + 2000, "it never ends");
    }
    (bench.sent.len() - before, *bench.sent.last().unwrap())
}

/// The ready pose with one joint moved.
fn ready_with(joint: usize, by: f64) -> PerJoint {
    let mut pose = READY;
    pose[joint] += by;
    pose
}

/// Backward-Euler derivatives of a stream that starts from rest and may end at any time.
struct Checker {
    robots: Vec<Robot>,
    limits: Limits,
    share: f64,
    dt: f64,
    /// The last positions, velocities and accelerations.
    last: [PerJoint; 3],
    worst: f64,
}

impl Checker {
    fn new(robot: Robot, share: f64, dt: f64, anchor: PerJoint) -> Self {
        let robots = if robot == Robot::Both { vec![Robot::Both, Robot::Fr3, Robot::Panda] } else { vec![robot] };
        Self { robots, limits: *robot.limits(), share, dt, last: [anchor, [0.0; ARM_DOF], [0.0; ARM_DOF]], worst: 0.0 }
    }

    /// What is outside, in words. One more position of the stream.
    fn check(&mut self, position: &PerJoint) -> Result<(), String> {
        let [last, last_velocity, last_acceleration] = self.last;
        let rate = |now: &PerJoint, before: &PerJoint| -> PerJoint {
            std::array::from_fn(|joint| (now[joint] - before[joint]) / self.dt)
        };
        let velocity = rate(position, &last);
        let acceleration = rate(&velocity, &last_velocity);
        let jerk = rate(&acceleration, &last_acceleration);
        self.last = [*position, velocity, acceleration];
        for joint in 0..ARM_DOF {
            for (what, found, most) in [
                ("velocity", velocity[joint], self.limits.velocity_rad_per_sec[joint]),
                ("acceleration", acceleration[joint], self.limits.acceleration_rad_per_sec2[joint]),
                ("jerk", jerk[joint], self.limits.jerk_rad_per_sec3[joint]),
            ] {
                let share = found.abs() / (most * self.share);
                self.worst = self.worst.max(share);
                if share.is_nan() || share > 1.0 {
                    return Err(format!("{what} of joint {} is {found}, over {}", joint + 1, most * self.share));
                }
            }
            for robot in &self.robots {
                for pose in [&last, position] {
                    let (low, high) = robot.velocity_range(pose);
                    if !(low[joint]..=high[joint]).contains(&velocity[joint]) {
                        return Err(format!(
                            "velocity of joint {} at {} is {}, outside {} to {}",
                            joint + 1,
                            pose[joint],
                            velocity[joint],
                            low[joint],
                            high[joint]
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The stream ends here: its receiver keeps the last position, and that must be no step either.
    fn end(&mut self) -> Result<(), String> {
        let position = self.last[0];
        (0..3).try_for_each(|_| self.check(&position))
    }
}
