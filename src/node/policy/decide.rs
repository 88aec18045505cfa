//! Decisions: at the trained rate, by the stamps of the states.

use super::{Acts, Decided, Pilot};
use crate::config::Purpose;
use crate::data::{OptionState, Scene};
use crate::error::{Error, Result};
use crate::guard::{Target, Values};
use crate::link::Measured;
use crate::option::Running;
use crate::robot::{PerJoint, tcp};
use crate::task::Arm;
use nalgebra::Isometry3;

/// States' stamps are this exact [s].
const STAMP_SECS: f64 = 1e-3;
/// Control ticks between two decisions beyond which time is taken to have jumped.
const LATE_DECISIONS: i64 = 10;
/// Decisions in the trail of the tool centre point.
const TRAIL: usize = 200;

impl Pilot {
    /// Decides where a control tick is due.
    pub(super) fn decide(&mut self, measured: &Measured, now_secs: f64, acts: &mut Acts) -> Result<()> {
        let Some(goal) = self.base_from_goal else { return Ok(()) };
        let Some(contract) = self.loaded.as_ref().map(|loaded| loaded.snapshot.contract.clone()) else {
            return Ok(());
        };
        let Some(tick) = self.tick_due(measured.stamp_secs, contract.control_period_secs) else { return Ok(()) };
        if std::mem::take(&mut self.new_goal) {
            self.running = Running::default(); // as an episode begins
            self.swap();
        }
        let mut decided = self.choose(tick, measured, &goal)?;
        let flat = contract.options.count == 1;
        if decided.0.decision.choice.option_terminated && !flat && self.swap() {
            decided = self.choose(tick, measured, &goal)?; // the option ended under the old weights; the new ones choose
        }
        let (decided, target) = decided;
        let (decision, choice) = (&decided.decision, &decided.decision.choice);
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        self.trouble = None;
        if !loaded.guard.is_quiet() {
            let said = loaded.guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs);
            self.trouble = said.err().map(|error| error.to_string());
        }
        let (switched, version) = (choice.option != choice.option_prev, loaded.policy.version());
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
            option_values: Vec::new(),
            option_probs: decision.over_options.clone(),
        });
        self.running = decision.next;
        acts.decided = Some(decided);
        self.decisions += 1;
        self.decided_at_secs = Some(now_secs);
        Ok(())
    }

    /// Adds what the critic says of the decision. Nothing waits for it: call it once the command has gone.
    pub fn value(&self, acts: &mut Acts) -> Result<()> {
        if let (Some(loaded), Some(option), Some(decided)) = (&self.loaded, &mut acts.option, &acts.decided) {
            option.option_values = loaded.policy.values(&decided.observation)?;
        }
        Ok(())
    }

    /// The control tick that has come, in whole periods since stamp 0; counts those that found no state.
    fn tick_due(&mut self, stamp_secs: f64, period_secs: f64) -> Option<i64> {
        let tick = ((stamp_secs + STAMP_SECS) / period_secs).floor() as i64;
        let last = match self.decided_tick {
            Some(last) => last,
            // the first decision, too, falls on the beginning of a tick
            None if stamp_secs - tick as f64 * period_secs <= STAMP_SECS => tick - 1,
            None => tick,
        };
        self.decided_tick = Some(tick.max(last));
        let passed = tick - last;
        if passed < 1 {
            return None;
        }
        self.missed += passed as u64 - 1;
        if LATE_DECISIONS < passed {
            self.running = Running::default();
        }
        Some(tick)
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

    /// The policy's choice at a control tick, and where it leads the arm. Its draws hang on seed and tick alone.
    fn choose(&self, tick: i64, measured: &Measured, goal: &Isometry3<f64>) -> Result<(Decided, PerJoint)> {
        let Some(loaded) = &self.loaded else { return Err(Error::invalid("there is no policy yet")) };
        // dry, another leads the arm, or it stands where it was left
        let dry = loaded.guard.is_quiet();
        let reference = if dry { self.led.unwrap_or(measured.position) } else { loaded.guard.reference() };
        let mut observation = Vec::new();
        let arm = Arm::new(measured.position, measured.velocity, reference);
        loaded.task.observe(&arm, goal, &mut observation);
        let mut draws = [self.settings.seed.of(Purpose::Decisions).rng(tick as u64)];
        let decided = loaded.policy.decide(&observation, &[self.running], &mut draws, self.settings.sampling)?;
        let Some(decision) = decided.into_iter().next() else { return Err(Error::invalid("the policy said nothing")) };
        let contract = &loaded.snapshot.contract;
        let step_rad = contract.action.step_rad(contract.control_period_secs);
        let limits = contract.robot.limits();
        let target = std::array::from_fn(|joint| {
            let moved = reference[joint] + step_rad * f64::from(decision.choice.action[joint]);
            moved.clamp(limits.position_min_rad[joint], limits.position_max_rad[joint])
        });
        Ok((Decided { decision, arm, observation }, target))
    }
}
