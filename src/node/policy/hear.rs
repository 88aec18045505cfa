//! What a policy hears beside states: weights, goals, a clock, other writers.

use super::{Loaded, Pilot};
use crate::contract::Snapshot;
use crate::data::{Change, GoalPose, JointState, Stage};
use crate::error::{Error, Result};
use crate::guard::{Guard, Mode, Swap};
use crate::link::Form;
use crate::option::Running;
use crate::policy::Policy;
use crate::robot::PerJoint;
use nalgebra::{Isometry3, Quaternion, UnitQuaternion};
use std::sync::Arc;

/// Commands of others that wait for their state.
const GIVEN: usize = 64;
/// A command is stamped by the clock of the states if it is at most this far ahead [s].
const SAME_CLOCK_SECS: f64 = 0.1;
/// Goals that differ by less are the same one [m, rad].
const SAME_GOAL: f64 = 1e-6;

impl Pilot {
    /// Weights: configuring loads the newest; once loaded, newer ones are taken at once while nothing is commanded, otherwise when an
    /// option ends (of a flat policy: at a new goal). What does not fit is refused, and the ones in use stay.
    pub fn weights(&mut self, snapshot: &Arc<Snapshot>) -> Result<()> {
        self.heard = Some(snapshot.clone());
        let outcome = match self.stage() {
            Stage::Finalized => Ok(()),
            Stage::Unconfigured if self.settings.autostart => {
                let configured = self.step(Change::Configure);
                configured.and_then(|_| self.step(Change::Activate)).map(|_| self.settings.autostart = false)
            }
            Stage::Unconfigured => Ok(()),
            Stage::Inactive | Stage::Active => self.offer(snapshot, false),
        };
        if outcome.is_err() {
            self.refused_weights += 1;
        }
        outcome
    }

    /// Loads the newest weights, if they fit task, arm and guard.
    pub(super) fn load(&mut self) -> Result<()> {
        let Some(snapshot) = &self.heard else {
            return Err(Error::invalid(
                "there is no policy yet: give policy.run, or start a learner that publishes weights",
            ));
        };
        let contract = &snapshot.contract;
        let task = crate::task::find(&contract.task)?;
        if contract.observation != task.observation() {
            return Err(Error::invalid(format!(
                "the policy was trained on another layout of the observation of {} than this program's; train it anew",
                contract.task
            )));
        }
        if task.cube() {
            return Err(Error::invalid(format!("{} needs the pose of an object, which no link tells", contract.task)));
        }
        let (step, leash) = (contract.action.step_rad(contract.control_period_secs), self.settings.guard.leash_rad);
        if step > leash {
            return Err(Error::invalid(format!(
                "an action of the policy moves a joint by up to {step} rad and guard.leash_rad is {leash}: no first target would be \
                 taken; give more leash, or train with a smaller action.scale"
            )));
        }
        let names = self.joints.names().clone();
        let settings = &self.settings;
        let described = settings.described.as_ref();
        let guard = Guard::new(settings.guard.clone(), contract, settings.arm, Some(names), described)?;
        let mut guard = guard.telling_the_way(self.link.form == Form::Trajectory);
        let policy = Policy::new(snapshot)?;
        guard.offer(snapshot, true)?;
        self.resets = guard.resets();
        self.loaded = Some(Loaded { guard, policy, snapshot: snapshot.clone(), task, waiting: None });
        Ok(())
    }

    fn offer(&mut self, snapshot: &Arc<Snapshot>, boundary: bool) -> Result<()> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        if (loaded.snapshot.run, loaded.snapshot.age()) == (snapshot.run, snapshot.age()) {
            return Ok(()); // latched weights come again
        }
        let policy = Policy::new(snapshot)?;
        match loaded.guard.offer(snapshot, boundary)? {
            Swap::Now => {
                loaded.policy = policy;
                loaded.snapshot = snapshot.clone();
                loaded.waiting = None;
                self.running = Running::default();
            }
            Swap::AtBoundary => loaded.waiting = Some(snapshot.clone()),
        }
        Ok(())
    }

    /// Takes the weights that wait, at a boundary; whether it did.
    pub(super) fn swap(&mut self) -> bool {
        let Some(waiting) = self.loaded.as_mut().and_then(|loaded| loaded.waiting.take()) else { return false };
        match self.offer(&waiting, true) {
            Ok(()) => true,
            Err(error) => {
                self.refused_weights += 1;
                self.trouble = Some(error.to_string());
                false
            }
        }
    }

    /// Where the tool shall go; refused in another frame than the arm's base. The same one again changes nothing. A new one outside
    /// of the guard's workspace is left to the policy, with a sentence that says so.
    pub fn goal(&mut self, goal: &GoalPose) -> Result<Option<String>> {
        if goal.frame != self.base_frame {
            return Err(Error::invalid(format!(
                "goal_pose is in frame {:?}; it must be in {:?}",
                goal.frame, self.base_frame
            )));
        }
        let [qw, qx, qy, qz] = goal.orientation;
        let rotation = UnitQuaternion::from_quaternion(Quaternion::new(qw, qx, qy, qz));
        let goal = Isometry3::from_parts(goal.position.into(), rotation);
        let same = |before: Isometry3<f64>| {
            let moved = before.inv_mul(&goal);
            moved.translation.vector.norm() < SAME_GOAL && moved.rotation.angle() < SAME_GOAL
        };
        let new = !self.base_from_goal.is_some_and(same);
        self.new_goal |= new;
        self.base_from_goal = Some(goal);
        Ok(if new { self.beyond(goal.translation.vector.into()) } else { None })
    }

    /// What is to be said of a goal outside of the guard's workspace.
    fn beyond(&self, goal: [f64; 3]) -> Option<String> {
        let (low, high) = (self.settings.guard.workspace_min_m, self.settings.guard.workspace_max_m);
        let inside = goal.iter().zip(low.iter().zip(&high)).all(|(at, (low, high))| (low..=high).contains(&at));
        (!inside).then(|| {
            format!(
                "the goal {goal:?} m lies outside of the guard's workspace, {low:?} to {high:?} m: the arm ends at its edge; give a goal \
                 inside, or another guard.workspace_min_m and guard.workspace_max_m"
            )
        })
    }

    /// A command to the arm, whoever gave it, which leads it from the first state on that is younger by its stamp: topics have no
    /// order among them. One that does not name every joint says nothing.
    pub fn led(&mut self, command: &JointState) {
        if let Ok(position) = self.joints.position(command) {
            self.given_secs = Some(command.stamp_secs);
            self.given.push_back((command.stamp_secs, position));
            if GIVEN < self.given.len() {
                self.take_up();
            }
        }
    }

    /// Nobody leads the arm any more.
    pub fn unled(&mut self) {
        self.led = None;
        self.given.clear();
    }

    /// Takes up the commands that were in force when the state with this stamp was measured.
    pub(super) fn follow(&mut self, stamp_secs: f64) {
        let later = |&(given, _): &(f64, PerJoint)| (0.0..SAME_CLOCK_SECS).contains(&(given - stamp_secs));
        while self.given.front().is_some_and(|given| !later(given)) {
            self.take_up();
        }
    }

    fn take_up(&mut self) {
        if let Some((_, position)) = self.given.pop_front() {
            self.led = Some(position);
            self.leash();
        }
    }

    /// What leads a dry arm is drawn to the arm as the guard would draw it, after each state.
    pub(super) fn leash(&mut self) {
        if let (Some(led), Some(position)) = (&mut self.led, &self.position) {
            let leash = self.settings.guard.leash_rad;
            led.iter_mut().zip(position).for_each(|(led, at)| *led = led.clamp(at - leash, at + leash));
        }
    }

    /// A simulator's clock.
    pub fn clock(&mut self, clock_secs: f64, now_secs: f64) {
        if let (Some(loaded), true) = (&mut self.loaded, self.settings.guard.use_sim_time) {
            loaded.guard.observe_clock(clock_secs, now_secs);
        }
    }

    /// The robot's mode. One in which it executes no commands ends them at once, and the option that ran.
    pub fn mode(&mut self, mode: Mode, now_secs: f64) {
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.observe_mode(mode, now_secs);
            self.forget_what_is_void();
        }
    }

    /// Publishers of the command topic, this node among them.
    pub fn publishers(&mut self, count: usize) {
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.observe_publishers(count);
        }
    }
}
