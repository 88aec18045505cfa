//! How the guard leads an arm to a target, without what couples the joints: for simulators, so that a policy learns with the
//! limits that it will meet.

use super::Config;
use super::bounds::Bounds;
use super::joint::{Law, toward};
use super::stop::Motion;
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, PerJoint, Robot};

/// Bounds and law of an arm's joints.
#[derive(Clone, Debug)]
pub struct Lead {
    bounds: [Bounds; ARM_DOF],
    law: Law,
    ticks: usize,
}

/// The commanded motion of one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Led([Motion; ARM_DOF]);

impl Lead {
    /// As a guard with these settings leads a policy that decides every `control_period_secs`. Refuses what a guard refuses.
    pub fn new(config: &Config, robot: Robot, control_period_secs: f64) -> Result<Self> {
        config.validate()?;
        let tick_secs = config.tick_secs();
        if control_period_secs < tick_secs * (1.0 - 1e-9) {
            return Err(Error::invalid(format!(
                "guard.command_rate_hz = {} is under control_rate_hz = {:.1}: the guard would pass targets over; raise it, or set \
                 sim.led=false",
                config.command_rate_hz,
                1.0 / control_period_secs
            )));
        }
        Ok(Self {
            bounds: Bounds::of(config, config.scale, [robot; 2], robot.limits(), tick_secs)?,
            law: Law::new(config.smoothing_periods * control_period_secs, tick_secs),
            ticks: (control_period_secs / tick_secs).round().max(1.0) as usize,
        })
    }

    /// Commands in a control period.
    pub fn ticks(&self) -> usize {
        self.ticks
    }

    /// The next command on the way to `target` [rad].
    pub fn tick(&self, led: &mut Led, target: &PerJoint) -> PerJoint {
        for ((motion, bounds), &target) in led.0.iter_mut().zip(&self.bounds).zip(target) {
            let (low, high) = bounds.range();
            // an arm that was found beyond its range is not driven in by force
            let end = bounds.stop(*motion).end(*motion);
            *motion = toward(bounds, *motion, target.clamp(low.min(end), high.max(end)), &self.law).next;
        }
        led.0.map(|motion| motion.position)
    }
}

impl Led {
    /// At rest [rad].
    pub fn at(position: &PerJoint) -> Self {
        Self(position.map(Motion::rest))
    }

    /// Position [rad], velocity [rad/s] and acceleration [rad/s²] of each joint.
    pub fn numbers(&self) -> [[f64; 3]; ARM_DOF] {
        self.0.map(|motion| [motion.position, motion.velocity, motion.acceleration])
    }

    /// From [`Self::numbers`].
    pub fn of_numbers(numbers: [[f64; 3]; ARM_DOF]) -> Self {
        Self(numbers.map(|[position, velocity, acceleration]| Motion { position, velocity, acceleration }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::guard::{Guard, JointStates, Target, Values};
    use crate::robot::READY;

    #[test]
    fn a_policy_may_decide_as_often_as_commands_go_out_and_no_oftener() {
        let lead = |command_rate_hz: f64, period_secs: f64| {
            Lead::new(&Config { command_rate_hz, ..Config::simulation() }, Robot::Panda, period_secs)
        };
        assert_eq!(lead(50.0, 0.02).unwrap().ticks(), 1);
        assert_eq!(lead(50.0, 0.02 * (1.0 - 1e-12)).unwrap().ticks(), 1, "rounded");
        assert_eq!(lead(240.0, 1.0 / 50.0).unwrap().ticks(), 5, "4.8 of them");
        assert!(
            lead(50.0, 0.0199)
                .unwrap_err()
                .to_string()
                .contains("command_rate_hz = 50 is under control_rate_hz = 50.3")
        );
    }

    #[test]
    fn an_arm_is_led_as_the_guard_leads_it() {
        let settings = Config { command_rate_hz: 60.0, leash_rad: 1.0, use_sim_time: false, ..Config::simulation() };
        let contract = config::Config::default().contract().unwrap();
        let lead = Lead::new(&settings, Robot::Panda, contract.control_period_secs).unwrap();
        assert_eq!(lead.ticks(), 3);
        let mut guard = Guard::new(settings, &contract, Robot::Panda, None, None).unwrap();
        let names = guard.names().clone();
        let (mut led, mut now) = (Led::at(&READY), 0.0);
        let mut position = READY;
        for tick in 0..600 {
            now += 1.0 / 60.0;
            let velocities = &[0.0; ARM_DOF];
            guard
                .observe(&JointStates { names: &names, positions: &position, velocities, stamp_secs: now }, now)
                .unwrap();
            guard.observe_publishers(1);
            if tick == 0 {
                guard.arm(now).unwrap();
                guard.tick(now).unwrap(); // the anchor
                continue;
            }
            // a target that jumps, well inside the workspace
            let target: PerJoint =
                std::array::from_fn(|joint| READY[joint] + 0.15 * f64::from(tick / 12 * (joint as i32 + 3)).sin());
            if tick % 3 == 1 {
                guard.target(&Target { names: None, values: Values::Positions(&target) }, now).unwrap();
            }
            let reference = guard.reference();
            position = guard.tick(now).unwrap().positions;
            assert_eq!(lead.tick(&mut led, &reference), position, "tick {tick}");
        }
        assert_eq!(Led::of_numbers(led.numbers()), led);
    }
}
