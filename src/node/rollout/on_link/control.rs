//! A control tick of a rollout on a link: the way to an episode's start, and what the agent decides.

use super::{OnLink, Stage};
use crate::data::{ArmStates, HAND_DOF, Operation, STATE_DOF};
use crate::error::Result;
use crate::guard::{Reason, State, Target, Values};
use crate::link::Measured;
use crate::node::rollout::OPEN_FINGERS_M;
use crate::robot::{ARM_DOF, PerJoint};

/// The arm is at its start within this [rad].
const AT_START_RAD: f64 = 0.05;
/// Joints faster than this still move [rad/s].
const AT_REST_RAD_PER_SEC: f64 = 0.02;
/// A way to a start that takes longer is blocked [s].
const LONGEST_MOVE_SECS: f64 = 20.0;

impl OnLink {
    /// A control tick.
    pub(super) fn control(&mut self, measured: &Measured, now_secs: f64) -> Result<()> {
        if let Stage::Moving { start, since_secs } = self.stage {
            // after a reset time is earlier
            let since_secs = since_secs.min(measured.stamp_secs);
            self.stage = Stage::Moving { start, since_secs };
            if !self.is_at(&start, measured) {
                self.move_to(&start, measured.stamp_secs - since_secs, now_secs);
                return Ok(());
            }
            self.stage = Stage::Acting;
        }
        let report = self.guard.report();
        if report.state == State::Holding && report.reasons.iter().any(|reason| reason != Reason::StalePolicy) {
            self.interrupt(&report.sentence); // the arm is braked: it does not do what it is told
            return Ok(());
        }
        self.agent.rollout.led(0, &self.guard.reference());
        self.tick += 1;
        let row = |arm: &PerJoint, fingers: [f64; HAND_DOF]| -> [f64; STATE_DOF] {
            std::array::from_fn(|joint| if joint < ARM_DOF { arm[joint] } else { fingers[joint - ARM_DOF] })
        };
        let commands = self.agent.states(&ArmStates {
            sim_life: 0,
            tick: self.tick,
            stamp_secs: measured.stamp_secs,
            bound: None,
            position: vec![row(&measured.position, OPEN_FINGERS_M)],
            velocity: vec![row(&measured.velocity, [0.0; HAND_DOF])],
            object_pose: Vec::new(),
            told: Default::default(),
        })?;
        let target: PerJoint = match commands.position.first() {
            Some(row) => std::array::from_fn(|joint| row[joint]),
            None => return Ok(()),
        };
        match commands.operation.first() {
            Some(Operation::Step) => {
                let taken = self.guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs);
                if let Err(error) = taken {
                    self.interrupt(&error.to_string());
                }
            }
            Some(Operation::Reset) if self.settings.resets => {
                self.stage = Stage::Resetting { start: target, asked: None };
                self.guard.disarm();
            }
            Some(Operation::Reset) => {
                self.stage = Stage::Moving { start: target, since_secs: measured.stamp_secs };
            }
            // time goes on here: no transition crosses a hold
            Some(Operation::Hold) | None => {
                let why = self.agent.status().state;
                self.interrupt(&why);
            }
        }
        Ok(())
    }

    /// Whether the arm is led to `start`, and rests there.
    fn is_at(&self, start: &PerJoint, measured: &Measured) -> bool {
        let reference = self.guard.reference();
        (0..ARM_DOF).all(|joint| {
            (reference[joint] - start[joint]).abs() < 1e-6
                && (measured.position[joint] - start[joint]).abs() < AT_START_RAD
                && measured.velocity[joint].abs() < AT_REST_RAD_PER_SEC
        })
    }

    /// One step towards an episode's start, as long as an action's. A way that is blocked is given up for another start.
    fn move_to(&mut self, start: &PerJoint, moved_secs: f64, now_secs: f64) {
        if LONGEST_MOVE_SECS < moved_secs {
            self.blocked_moves += 1;
            self.trouble = Some(format!("the arm does not come to a start pose: {}", self.guard.report().sentence));
            self.stage = Stage::Acting;
            self.agent.interrupt(self.stamp_secs);
            return;
        }
        let step = self.contract.action.step_rad(self.contract.control_period_secs);
        let reference = self.guard.reference();
        let target: PerJoint =
            std::array::from_fn(|joint| reference[joint] + (start[joint] - reference[joint]).clamp(-step, step));
        // refused while the arm comes to rest
        let moved = self.guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs);
        self.trouble = moved.err().map(|error| error.to_string());
    }
}
