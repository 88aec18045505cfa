//! The policy on an arm: states in, decisions at the trained rate, commands out through the guard. No clock, no network.
//!
//! Unconfigured (no policy) → inactive (a policy that fits arm and link) → active (decides, dry). Arming is asked for apart, and
//! never part of activation: until then nothing is commanded.

mod ask;
mod decide;
mod hear;
mod shell;
mod status;
#[cfg(test)]
mod tests;

pub use shell::{Inputs, Outputs, Request, run};
pub use status::Status;

use crate::config::Seed;
use crate::contract::Snapshot;
use crate::data::{JointState, Moved, OptionState, Scene, Stage};
use crate::error::{Error, Result};
use crate::guard::{self, Guard};
use crate::link::{Command, Due, Joints, Link, OUT_OF_ORDER_SECS, Preset, Rate, joint_names, shown};
use crate::option::Running;
use crate::policy::{Decision, Policy, Sampling};
use crate::robot::{Limits, PerJoint, Robot};
use crate::task::{Arm, Task};
use nalgebra::Isometry3;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a policy node is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The arm, `Panda` or `Fr3`.
    pub arm: Robot,
    /// How it speaks.
    pub preset: Preset,
    /// Prefix of its names; empty: its own.
    pub prefix: String,
    /// What its description allows; the tighter limits win.
    pub described: Option<Limits>,
    /// Of the guard.
    pub guard: guard::Config,
    /// Of options and terminations.
    pub seed: Seed,
    /// How actions are taken.
    pub sampling: Sampling,
    /// Configure and activate as soon as there are weights that fit, once.
    pub autostart: bool,
}

/// What a state led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acts {
    /// To the arm.
    pub command: Option<Command>,
    /// Where the policy wants to go, armed or dry.
    pub target: Option<JointState>,
    /// What the policy decided; without values until [`Pilot::value`].
    pub option: Option<OptionState>,
    /// For a person to look at.
    pub scene: Option<Scene>,
    /// The decision with what it was made on.
    pub decided: Option<Decided>,
}

/// A decision and what it was made on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What a transition records of it.
    pub decision: Decision,
    /// The arm as the task saw it.
    pub arm: Arm,
    /// Raw, D floats.
    pub observation: Vec<f32>,
}

/// Everything that needs a policy.
struct Loaded {
    guard: Guard,
    policy: Policy,
    snapshot: Arc<Snapshot>,
    task: &'static dyn Task,
    /// Newer weights that wait for the end of an option.
    waiting: Option<Arc<Snapshot>>,
}

/// The policy node as a state machine. Times are of a steady clock [s] if not said otherwise.
pub struct Pilot {
    settings: Settings,
    link: Link,
    joints: Joints,
    base_frame: String,
    /// The newest weights, which configuring loads.
    heard: Option<Arc<Snapshot>>,
    loaded: Option<Loaded>,
    active: bool,
    finalized: bool,
    moves: Vec<Moved>,
    base_from_goal: Option<Isometry3<f64>>,
    new_goal: bool,
    running: Running,
    /// What another leads the arm by [rad].
    led: Option<PerJoint>,
    /// Commands of others that answer the newest state or a later one: header stamp [s], positions [rad].
    given: VecDeque<(f64, PerJoint)>,
    /// Header stamp of the newest command heard [s].
    given_secs: Option<f64>,
    /// Newest measured position [rad].
    position: Option<PerJoint>,
    /// Control tick of the last decision: whole periods since stamp 0.
    decided_tick: Option<i64>,
    due: Due,
    /// Steady time of the newest state.
    state_at_secs: f64,
    /// Header stamp of the newest state, and a running mean of their distances [s].
    stamp_secs: Option<f64>,
    state_period_secs: f64,
    decided_at_secs: Option<f64>,
    trail: VecDeque<[f64; 3]>,
    decisions: u64,
    missed: u64,
    refused_states: u64,
    refused_weights: u64,
    resets: u64,
    trouble: Option<String>,
}

impl Pilot {
    /// Without a policy. Refuses an arm that is no one arm, or speaks otherwise, and settings of the guard out of range.
    pub fn new(settings: Settings) -> Result<Self> {
        if settings.arm == Robot::Both {
            return Err(Error::invalid(
                "robot = both names no arm: a policy for both runs on one; give robot: panda or robot: fr3",
            ));
        }
        let link = settings.preset.link_of(settings.arm)?;
        settings.guard.validate()?;
        settings.preset.check_clock(&settings.guard)?;
        let names = joint_names(settings.arm, &settings.prefix)?;
        let base_frame = names[0].replace("_joint1", "_link0");
        Ok(Self {
            link,
            joints: Joints::new(names),
            base_frame,
            heard: None,
            loaded: None,
            active: false,
            finalized: false,
            moves: Vec::new(),
            base_from_goal: None,
            new_goal: false,
            running: Running::default(),
            led: None,
            given: VecDeque::new(),
            given_secs: None,
            position: None,
            decided_tick: None,
            due: Due::default(),
            state_at_secs: f64::NEG_INFINITY,
            stamp_secs: None,
            state_period_secs: 0.0,
            decided_at_secs: None,
            trail: VecDeque::new(),
            decisions: 0,
            missed: 0,
            refused_states: 0,
            refused_weights: 0,
            resets: 0,
            trouble: None,
            settings,
        })
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        match (&self.loaded, self.active) {
            _ if self.finalized => Stage::Finalized,
            (None, _) => Stage::Unconfigured,
            (Some(_), false) => Stage::Inactive,
            (Some(_), true) => Stage::Active,
        }
    }

    /// How the arm speaks.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Time between two commands [s].
    pub fn tick_secs(&self) -> f64 {
        self.settings.guard.tick_secs()
    }

    /// Whether no command will come.
    pub fn is_quiet(&self) -> bool {
        self.loaded.as_ref().is_none_or(|loaded| loaded.guard.is_quiet())
    }

    /// A joint state: decides where a control tick is due by its stamp, and commands where the link has a command for each state.
    pub fn states(&mut self, state: &JointState, now_secs: f64) -> Result<Acts> {
        let outcome = self.take(state, now_secs);
        if outcome.is_err() {
            self.refused_states += 1;
        }
        outcome
    }

    fn take(&mut self, state: &JointState, now_secs: f64) -> Result<Acts> {
        let Some(loaded) = &mut self.loaded else { return Ok(Acts::default()) };
        let measured = self.joints.read(state);
        loaded.guard.observe(&shown(state, &measured), now_secs)?;
        self.forget_what_is_void();
        if !self.pace(state.stamp_secs) {
            return Ok(Acts::default()); // told again: time stands
        }
        self.state_at_secs = now_secs;
        self.follow(state.stamp_secs);
        let mut acts = Acts::default();
        let measured = measured?;
        if let (Some(measured), true) = (&measured, self.active) {
            self.decide(measured, now_secs, &mut acts)?;
        }
        self.position = measured.map(|measured| measured.position).or(self.position);
        self.leash();
        if self.link.rate == Rate::PerState && self.due.state(state.stamp_secs, self.tick_secs()) {
            acts.command = self.tick(state.stamp_secs, now_secs);
        }
        Ok(acts)
    }

    /// Call it every [`Self::tick_secs`]: the command of a fixed rate; and, where each state has a command, those that bring
    /// the arm to rest once states are missing.
    pub fn beat(&mut self, now_secs: f64) -> Option<Command> {
        let missing = now_secs - self.state_at_secs > self.settings.guard.state_timeout_secs;
        if self.is_quiet() || (self.link.rate == Rate::PerState && !missing) {
            return None;
        }
        self.tick(self.stamp_secs.unwrap_or(0.0), now_secs)
    }

    fn tick(&mut self, stamp_secs: f64, now_secs: f64) -> Option<Command> {
        let tick_secs = self.tick_secs();
        let guard = &mut self.loaded.as_mut()?.guard;
        let next = guard.tick(now_secs);
        let order = |next| self.joints.order(self.link.form, stamp_secs, tick_secs, next, || guard.way_to_rest());
        let command = next.as_ref().map(order);
        self.forget_what_is_void();
        command
    }

    /// Follows the distance of stamps; whether this one is another than the last, and not out of order.
    fn pace(&mut self, stamp_secs: f64) -> bool {
        if let Some(last) = self.stamp_secs {
            let period = stamp_secs - last;
            if (-OUT_OF_ORDER_SECS..=0.0).contains(&period) {
                return false;
            }
            if period < 0.0 {
                (self.due, self.decided_tick, self.led) = (Due::default(), None, None);
                self.given.clear();
                self.trail.clear();
            } else if period < 1.0 {
                let share = if self.state_period_secs == 0.0 { 1.0 } else { 0.1 };
                self.state_period_secs += share * (period - self.state_period_secs);
            }
        }
        self.stamp_secs = Some(stamp_secs);
        true
    }

    /// After an arming, an end or a jump of time, the running option is another episode's.
    fn forget_what_is_void(&mut self) {
        let Some(loaded) = &self.loaded else { return };
        let resets = loaded.guard.resets();
        if self.resets != resets {
            self.resets = resets;
            self.running = Running::default();
        }
    }
}
