//! One arm in its own time, that speaks as Isaac Sim does: JointState in and out, one command a tick.

use super::Arms;
use super::env::HOME;
use crate::config;
use crate::data::{JointState, Operation, STATE_DOF};
use crate::error::{Error, Result};
use crate::robot::{PerJoint, Robot};
use std::collections::VecDeque;

/// Commands that wait; one more drops the oldest (Isaac Sim: `queueSize` of OgnROS2SubscribeJointState).
const QUEUE: usize = 10;

/// An arm that moves on by itself. Each tick takes one command out of a queue of ten; what was commanded last is held for ever.
pub struct Paced {
    arms: Arms,
    names: Vec<String>,
    tick_secs: f64,
    rounding: f64,
    queue: VecDeque<JointState>,
    target: [f64; STATE_DOF],
    tick: u64,
    resets: u64,
    dropped: u64,
    untimely: u64,
}

impl Paced {
    /// At the ready pose, with open fingers, at time 0.
    pub fn new(robot: Robot, config: &config::Sim) -> Result<Self> {
        let tick_secs = 1.0 / config.state_rate_hz;
        let single = config::Sim { threads: 1, ..config.clone() };
        Ok(Self {
            arms: Arms::new(1, robot, &single, tick_secs, false)?,
            names: robot.joint_names().into_iter().chain(robot.finger_joint_names()).collect(),
            tick_secs,
            rounding: config.rounding,
            queue: VecDeque::with_capacity(QUEUE),
            target: HOME,
            tick: 0,
            resets: 0,
            dropped: 0,
            untimely: 0,
        })
    }

    /// Its time between two ticks [s].
    pub fn tick_secs(&self) -> f64 {
        self.tick_secs
    }

    /// Its time [s]; 0 after a reset.
    pub fn clock_secs(&self) -> f64 {
        self.tick as f64 * self.tick_secs
    }

    /// Commands that were dropped because ten newer ones waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Commands that were refused because of their stamps.
    pub fn untimely(&self) -> u64 {
        self.untimely
    }

    /// A command, to be taken in its turn. Refuses one that is stamped later than this arm's time and a tick: it answers a state
    /// from before a reset. One without a stamp, 0, is taken as Isaac Sim takes every one.
    pub fn push(&mut self, command: JointState) -> Result<()> {
        let clock_secs = self.clock_secs();
        if clock_secs + self.tick_secs < command.stamp_secs {
            self.untimely += 1;
            return Err(Error::invalid(format!(
                "a joint command is stamped {:.3} s and this arm's time is {clock_secs:.3} s: it is from before a reset, or of another \
                 clock; a stamp of this arm's time, or none (0), is right",
                command.stamp_secs
            )));
        }
        if self.queue.len() == QUEUE {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(command);
        Ok(())
    }

    /// One tick: takes one command, moves on. The state after it, and what was wrong with the command.
    pub fn step(&mut self) -> Result<(JointState, Option<Error>)> {
        let wrong = self.queue.pop_front().and_then(|command| self.obey(&command).err());
        self.arms.step(&[Operation::Step], &[self.target], &[0])?;
        self.tick += 1;
        Ok((self.state(), wrong))
    }

    /// Back to the ready pose, and to time 0; waiting commands are lost.
    pub fn reset(&mut self) -> Result<()> {
        self.reset_to(HOME)
    }

    /// As [`Self::reset`], but to this pose of the arm, with open fingers. Refuses a pose outside the limits.
    pub fn place(&mut self, position: &PerJoint) -> Result<()> {
        self.reset_to(std::array::from_fn(|joint| position.get(joint).copied().unwrap_or(HOME[joint])))
    }

    fn reset_to(&mut self, position: [f64; STATE_DOF]) -> Result<()> {
        self.resets += 1;
        self.arms.step(&[Operation::Reset], &[position], &[self.resets])?;
        self.queue.clear();
        (self.target, self.tick) = (position, 0);
        Ok(())
    }

    /// The state now, values rounded as configured.
    pub fn state(&self) -> JointState {
        let (position, velocity) = self.arms.measure();
        let rounded = |rows: Vec<[f64; STATE_DOF]>| -> Vec<f64> {
            let value =
                |value: f64| if self.rounding > 0.0 { (value / self.rounding).round() * self.rounding } else { value };
            rows.into_iter().flatten().map(value).collect()
        };
        JointState {
            stamp_secs: self.clock_secs(),
            names: self.names.clone(),
            position: rounded(position),
            velocity: rounded(velocity),
        }
    }

    /// Isaac Sim's rules (isaacsim.ros2.bridge, Ros2Message.cpp): names must be there, and positions or velocities as many; NaN leaves a
    /// joint as it is. This arm has position drives: velocities move nothing. Unlike Isaac Sim it refuses infinities and
    /// unknown names with a sentence.
    fn obey(&mut self, command: &JointState) -> Result<()> {
        let count = command.names.len();
        if count == 0 {
            return Err(Error::invalid("a joint command has no names: no joints found"));
        }
        if command.position.len() != count {
            if command.velocity.len() == count {
                return Ok(());
            }
            return Err(Error::invalid(format!(
                "a joint command has {count} names, {} positions and {} velocities; as many are right",
                command.position.len(),
                command.velocity.len()
            )));
        }
        let mut target = self.target;
        for (name, &value) in command.names.iter().zip(&command.position) {
            let Some(joint) = self.names.iter().position(|joint| joint == name) else {
                return Err(Error::invalid(format!(
                    "a joint command names {name}; this arm has {}",
                    self.names.join(", ")
                )));
            };
            if value.is_infinite() {
                return Err(Error::invalid(format!(
                    "a joint command has {value} for {name}; a finite number is right"
                )));
            }
            if !value.is_nan() {
                target[joint] = value;
            }
        }
        self.target = target;
        Ok(())
    }
}
