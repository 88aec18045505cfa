//! Decisions: at the trained rate, by the stamps of the states.

use super::{Acts, Pilot};
use crate::config::Purpose;
use crate::data::{OptionState, Scene};
use crate::error::{Error, Result};
use crate::guard::{Target, Values};
use crate::link::Measured;
use crate::option::Running;
use crate::policy::Decision;
use crate::robot::{PerJoint, tcp};
use crate::task::Arm;
use nalgebra::Isometry3;

/// States' stamps are this exact [s].
const STAMP_SECS: f64 = 1e-3;
/// Decisions that were left out before time is taken to have jumped.
const LATE_DECISIONS: f64 = 10.0;
/// Decisions in the trail of the tool centre point.
const TRAIL: usize = 200;

impl Pilot {
    /// Decides where a control tick is due.
    pub(super) fn decide(&mut self, measured: &Measured, now_secs: f64, acts: &mut Acts) -> Result<()> {
        let Some(goal) = self.base_from_goal else { return Ok(()) };
        let Some(contract) = self.loaded.as_ref().map(|loaded| loaded.snapshot.contract.clone()) else {
            return Ok(());
        };
        if !self.is_decision_due(measured.stamp_secs, contract.control_period_secs) {
            return Ok(());
        }
        if std::mem::take(&mut self.new_goal) {
            self.running = Running::default(); // as an episode begins
            self.swap();
        }
        let mut decided = self.choose(measured, &goal)?;
        let flat = contract.options.count == 1;
        if decided.0.choice.option_terminated && !flat && self.swap() {
            decided = self.choose(measured, &goal)?; // the option ended under the old weights; the new ones choose
        }
        let (decision, observation, target) = decided;
        let choice = &decision.choice;
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        self.trouble = None;
        if !loaded.guard.is_quiet() {
            let said = loaded.guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs);
            self.trouble = said.err().map(|error| error.to_string());
        }
        let switched = choice.option != choice.option_prev;
        let (version, option_values) = (loaded.policy.version(), loaded.policy.values(&observation)?);
        acts.target = Some(self.joints.command(measured.stamp_secs, &target));
        acts.scene = Some(self.scene(measured, &goal, choice.option, contract.options.count));
        acts.option = Some(OptionState {
            stamp_secs: measured.stamp_secs,
            version,
            env: 0,
            option: choice.option,
            duration: decision.next.age,
            switched,
            termination_prob: choice.termination_prob,
            option_values,
            option_probs: decision.over_options,
        });
        self.running = decision.next;
        self.decisions += 1;
        self.decided_at_secs = Some(now_secs);
        Ok(())
    }

    /// Whether a control tick has come, by the stamp; counts those that found no state.
    fn is_decision_due(&mut self, stamp_secs: f64, period_secs: f64) -> bool {
        let due = self.due_secs.unwrap_or(stamp_secs);
        if stamp_secs < due - STAMP_SECS {
            return false;
        }
        let late = ((stamp_secs - due + STAMP_SECS) / period_secs).floor();
        self.missed += late as u64;
        if late > LATE_DECISIONS {
            self.running = Running::default();
        }
        self.due_secs = Some(due + (late + 1.0) * period_secs);
        true
    }

    /// What a person looks at.
    fn scene(&mut self, measured: &Measured, goal: &Isometry3<f64>, option: u8, options: usize) -> Scene {
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        self.trail.push_back(tcp(&measured.position).translation.vector.into());
        Scene {
            stamp_secs: measured.stamp_secs,
            frame: self.base_frame.clone(),
            goal: goal.translation.vector.into(),
            trail: self.trail.iter().copied().collect(),
            option,
            options,
        }
    }

    /// The policy's choice; its observation; and where it leads the arm.
    fn choose(&self, measured: &Measured, goal: &Isometry3<f64>) -> Result<(Decision, Vec<f32>, PerJoint)> {
        let Some(loaded) = &self.loaded else { return Err(Error::invalid("there is no policy yet")) };
        // dry, the arm stands where it was left: nothing leads it
        let reference = if loaded.guard.is_quiet() { measured.position } else { loaded.guard.reference() };
        let mut observation = Vec::new();
        let arm = Arm::new(measured.position, measured.velocity, reference);
        loaded.task.observe(&arm, goal, &mut observation);
        let mut draws = [self.settings.seed.of(Purpose::Decisions).rng(self.decisions)];
        let decided = loaded.policy.decide(&observation, &[self.running], &mut draws, self.settings.sampling)?;
        let Some(decision) = decided.into_iter().next() else { return Err(Error::invalid("the policy said nothing")) };
        let contract = &loaded.snapshot.contract;
        let step_rad = contract.action.step_rad(contract.control_period_secs);
        let limits = contract.robot.limits();
        let target = std::array::from_fn(|joint| {
            let moved = reference[joint] + step_rad * f64::from(decision.choice.action[joint]);
            moved.clamp(limits.position_min_rad[joint], limits.position_max_rad[joint])
        });
        Ok((decision, observation, target))
    }
}
