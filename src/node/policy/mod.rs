//! The policy on an arm: states in, decisions at the trained rate, commands out through the guard. No clock, no network.
//!
//! Unconfigured (no policy) → inactive (a policy that fits arm and link) → active (decides, dry). Arming is asked for apart, and
//! never part of activation: until then nothing is commanded.

mod shell;
mod status;
#[cfg(test)]
mod tests;

pub use shell::{Inputs, Outputs, Request, run};
pub use status::Status;

use crate::config::{Purpose, Seed};
use crate::contract::Snapshot;
use crate::data::{GoalPose, JointState, OptionState};
use crate::error::{Error, Result};
use crate::guard::{self, Guard, JointStates, Recovery, Swap, Target, Values};
use crate::link::{Joints, Link, Measured, OUT_OF_ORDER_SECS, Preset, Rate, joint_names};
use crate::option::Running;
use crate::policy::{Decision, Policy, Sampling};
use crate::robot::{PerJoint, Robot};
use crate::task::{Arm, Task};
use nalgebra::{Isometry3, Quaternion, UnitQuaternion};
use std::sync::Arc;

/// States' stamps are this exact [s].
const STAMP_SECS: f64 = 1e-3;
/// Control ticks between two decisions beyond which time is taken to have jumped.
const LATE_DECISIONS: i64 = 10;

/// What a policy node is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The arm, `Panda` or `Fr3`.
    pub arm: Robot,
    /// How it speaks.
    pub preset: Preset,
    /// Prefix of its names; empty: its own.
    pub prefix: String,
    /// Of the guard.
    pub guard: guard::Config,
    /// Of options and terminations.
    pub seed: Seed,
    /// How actions are taken.
    pub sampling: Sampling,
}

/// How far the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No policy.
    Unconfigured,
    /// A policy that fits.
    Inactive,
    /// It decides.
    Active,
}

/// What a state led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acts {
    /// To the arm.
    pub command: Option<JointState>,
    /// Where the policy wants to go, armed or dry.
    pub target: Option<JointState>,
    /// What the policy decided.
    pub option: Option<OptionState>,
    /// The same with what it was decided on.
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
    loaded: Option<Loaded>,
    active: bool,
    base_from_goal: Option<Isometry3<f64>>,
    new_goal: bool,
    running: Running,
    /// What another leads the arm by [rad].
    led: Option<PerJoint>,
    /// Newest measured position [rad].
    position: Option<PerJoint>,
    /// Control tick of the last decision: whole periods since stamp 0.
    decided_tick: Option<i64>,
    /// Header stamp of the last command tick [s].
    ticked_secs: Option<f64>,
    /// Steady time of the newest state.
    state_at_secs: f64,
    /// Header stamp of the newest state, and a running mean of their distances [s].
    stamp_secs: Option<f64>,
    state_period_secs: f64,
    decided_at_secs: Option<f64>,
    decisions: u64,
    missed: u64,
    refused_states: u64,
    refused_weights: u64,
    resets: u64,
    trouble: Option<String>,
}

impl Pilot {
    /// Without a policy. Refuses an arm that is no one arm, and settings of the guard out of range.
    pub fn new(settings: Settings) -> Result<Self> {
        if settings.arm == Robot::Both {
            return Err(Error::invalid(
                "robot = both names no arm: a policy for both runs on one; give robot: panda or robot: fr3",
            ));
        }
        settings.guard.validate()?;
        let link = settings.preset.link();
        if link.simulated != settings.guard.use_sim_time {
            let (name, given) = (settings.preset.name(), settings.guard.use_sim_time);
            return Err(Error::invalid(format!(
                "guard.use_sim_time = {given} with policy.link = {name}, which is {}",
                if link.simulated { "a simulator with a /clock: true is right" } else { "hardware: false is right" }
            )));
        }
        let names = joint_names(settings.arm, &settings.prefix)?;
        let base_frame = names[0].replace("_joint1", "_link0");
        Ok(Self {
            link,
            joints: Joints::new(names),
            base_frame,
            loaded: None,
            active: false,
            base_from_goal: None,
            new_goal: false,
            running: Running::default(),
            led: None,
            position: None,
            decided_tick: None,
            ticked_secs: None,
            state_at_secs: f64::NEG_INFINITY,
            stamp_secs: None,
            state_period_secs: 0.0,
            decided_at_secs: None,
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

    // ---- what is heard ------------------------------------------------------------------------------------------------

    /// Weights: the first ones configure; newer ones are taken at once while nothing is commanded, otherwise when an option ends
    /// (of a flat policy: at a new goal). What does not fit is refused, and the ones in use stay.
    pub fn weights(&mut self, snapshot: &Arc<Snapshot>) -> Result<()> {
        let outcome = match &self.loaded {
            None => self.load(snapshot),
            Some(_) => self.offer(snapshot, false),
        };
        if outcome.is_err() {
            self.refused_weights += 1;
        }
        outcome
    }

    fn load(&mut self, snapshot: &Arc<Snapshot>) -> Result<()> {
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
        let mut guard = Guard::new(self.settings.guard.clone(), contract, self.settings.arm, Some(names), None)?;
        let policy = Policy::new(snapshot)?;
        guard.offer(snapshot, true)?;
        self.resets = guard.report().resets;
        self.loaded = Some(Loaded { guard, policy, snapshot: snapshot.clone(), task, waiting: None });
        Ok(())
    }

    fn offer(&mut self, snapshot: &Arc<Snapshot>, boundary: bool) -> Result<()> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        let same = |other: &Arc<Snapshot>| (other.run, other.age()) == (snapshot.run, snapshot.age());
        if same(&loaded.snapshot) {
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
    fn swap(&mut self) -> bool {
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

    /// Where the tool shall go; refused in another frame than the arm's base.
    pub fn goal(&mut self, goal: &GoalPose) -> Result<()> {
        if goal.frame != self.base_frame {
            return Err(Error::invalid(format!(
                "goal_pose is in frame {:?}; it must be in {:?}",
                goal.frame, self.base_frame
            )));
        }
        let [qw, qx, qy, qz] = goal.orientation;
        let rotation = UnitQuaternion::from_quaternion(Quaternion::new(qw, qx, qy, qz));
        self.base_from_goal = Some(Isometry3::from_parts(goal.position.into(), rotation));
        self.new_goal = true;
        Ok(())
    }

    /// A command to the arm, whoever gave it. One that does not name every joint says nothing.
    pub fn led(&mut self, command: &JointState) {
        if let Ok(position) = self.joints.position(command) {
            self.led = Some(position);
            self.leash();
        }
    }

    /// A simulator's clock.
    pub fn clock(&mut self, clock_secs: f64, now_secs: f64) {
        if let (Some(loaded), true) = (&mut self.loaded, self.settings.guard.use_sim_time) {
            loaded.guard.observe_clock(clock_secs, now_secs);
        }
    }

    /// Publishers of the command topic, this node among them.
    pub fn publishers(&mut self, count: usize) {
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.observe_publishers(count);
        }
    }

    // ---- what is asked --------------------------------------------------------------------------------------------------

    /// Begins to decide, dry; or stops, and brings an armed arm to rest. Says what is so now.
    pub fn activate(&mut self, active: bool) -> Result<&'static str> {
        let Some(loaded) = &mut self.loaded else {
            return Err(Error::invalid(
                "there is no policy yet: give policy.run, or start a learner that publishes weights",
            ));
        };
        if !active {
            loaded.guard.disarm();
        } else if !self.active {
            self.running = Running::default();
            self.decided_tick = None;
            self.decided_at_secs = None;
        }
        self.active = active;
        Ok(if active { "active: it decides, and commands nothing until it is armed" } else { "inactive" })
    }

    /// Arms or disarms. To arm, it must have decided, dry, on states that come fast enough. Says what is so now.
    pub fn arm(&mut self, armed: bool, now_secs: f64) -> Result<&'static str> {
        let (stage, decided, timeout) = (self.stage(), self.decided_at_secs, self.settings.guard.policy_timeout_secs);
        let (period, tick) = (self.state_period_secs, self.tick_secs());
        let Some(loaded) = &mut self.loaded else {
            return Err(Error::invalid("not armed: there is no policy yet"));
        };
        if !armed {
            loaded.guard.disarm();
            return Ok("disarmed: the arm comes to rest");
        }
        let refuse = |sentence: String| Err(Error::invalid(format!("not armed: {sentence}")));
        if stage != Stage::Active {
            return refuse("the node is inactive; call ~/activate first".into());
        }
        if self.base_from_goal.is_none() {
            return refuse("no goal was heard on goal_pose".into());
        }
        if !decided.is_some_and(|at| now_secs - at <= timeout) {
            return refuse("the policy has not decided lately; look at the joint states and at /diagnostics".into());
        }
        if self.link.rate == Rate::PerState && 1.25 * tick < period {
            return refuse(format!(
                "states come at {:.1} Hz and guard.command_rate_hz is {:.1}: each state gets one command, so the arm would be slow; \
                 give guard.command_rate_hz: {:.1}",
                1.0 / period,
                1.0 / tick,
                1.0 / period
            ));
        }
        loaded.guard.arm(now_secs)?;
        self.running = Running::default();
        Ok("armed: the arm follows the policy")
    }

    /// The next step after the robot stopped itself; it never arms.
    pub fn recover(&mut self, now_secs: f64) -> Result<&'static str> {
        let Some(loaded) = &mut self.loaded else {
            return Err(Error::invalid("there is no policy yet, and so nothing to recover"));
        };
        Ok(match loaded.guard.recover(true, now_secs)? {
            Recovery::AskRobot => {
                "ask the robot to recover (its error recovery, then its controllers), then recover again"
            }
            Recovery::Recovered => "recovered, disarmed: call ~/arm to go on",
        })
    }

    /// Brings the arm to rest; go on until [`Self::is_quiet`].
    pub fn shutdown(&mut self) {
        self.active = false;
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.shutdown();
        }
    }

    /// Whether no command will come.
    pub fn is_quiet(&self) -> bool {
        self.loaded.as_ref().is_none_or(|loaded| loaded.guard.is_quiet())
    }

    // ---- what goes out --------------------------------------------------------------------------------------------------

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
        // where velocities are not told, the guard looks at positions alone
        let velocities: &[f64] = match &measured {
            Ok(Some(measured)) if measured.told => &state.velocity,
            _ => &[],
        };
        loaded.guard.observe(
            &JointStates { names: &state.names, positions: &state.position, velocities, stamp_secs: state.stamp_secs },
            now_secs,
        )?;
        self.state_at_secs = now_secs;
        self.pace(state.stamp_secs);
        self.forget_what_is_void();
        let mut acts = Acts::default();
        let measured = measured?;
        if let (Some(measured), true) = (&measured, self.active) {
            self.decide(measured, now_secs, &mut acts)?;
        }
        self.position = measured.map(|measured| measured.position).or(self.position);
        self.leash();
        let tick_secs = self.tick_secs();
        let due = self.ticked_secs.is_none_or(|last| 0.75 * tick_secs <= state.stamp_secs - last);
        if self.link.rate == Rate::PerState && due {
            self.ticked_secs = Some(state.stamp_secs);
            acts.command = self.tick(state.stamp_secs, now_secs);
        }
        Ok(acts)
    }

    /// Call it every [`Self::tick_secs`]: the command of a fixed rate; and, where each state has a command, those that bring
    /// the arm to rest once states are missing.
    pub fn beat(&mut self, now_secs: f64) -> Option<JointState> {
        let missing = now_secs - self.state_at_secs > self.settings.guard.state_timeout_secs;
        if self.is_quiet() || (self.link.rate == Rate::PerState && !missing) {
            return None;
        }
        self.tick(self.stamp_secs.unwrap_or(0.0), now_secs)
    }

    fn tick(&mut self, stamp_secs: f64, now_secs: f64) -> Option<JointState> {
        let command = self.loaded.as_mut()?.guard.tick(now_secs);
        self.forget_what_is_void();
        command.map(|command| self.joints.command(stamp_secs, &command.positions))
    }

    /// Follows the distance of stamps.
    fn pace(&mut self, stamp_secs: f64) {
        if let Some(last) = self.stamp_secs {
            let period = stamp_secs - last;
            if (-OUT_OF_ORDER_SECS..=0.0).contains(&period) {
                return;
            }
            if period < 0.0 {
                (self.ticked_secs, self.decided_tick) = (None, None);
            } else if period < 1.0 {
                let share = if self.state_period_secs == 0.0 { 1.0 } else { 0.1 };
                self.state_period_secs += share * (period - self.state_period_secs);
            }
        }
        self.stamp_secs = Some(stamp_secs);
    }

    /// After an arming, an end or a jump of time, the running option is another episode's.
    fn forget_what_is_void(&mut self) {
        let Some(loaded) = &self.loaded else { return };
        let resets = loaded.guard.report().resets;
        if self.resets != resets {
            self.resets = resets;
            self.running = Running::default();
        }
    }

    /// Decides where a control tick is due.
    fn decide(&mut self, measured: &Measured, now_secs: f64, acts: &mut Acts) -> Result<()> {
        let Some(goal) = self.base_from_goal else { return Ok(()) };
        let Some(period) = self.loaded.as_ref().map(|loaded| loaded.snapshot.contract.control_period_secs) else {
            return Ok(());
        };
        let tick = ((measured.stamp_secs + STAMP_SECS) / period).floor() as i64;
        let last = match self.decided_tick {
            Some(last) => last,
            // the first decision, too, falls on the beginning of a tick
            None if measured.stamp_secs - tick as f64 * period <= STAMP_SECS => tick - 1,
            None => tick,
        };
        self.decided_tick = Some(tick.max(last));
        let passed = tick - last;
        if passed < 1 {
            return Ok(());
        }
        self.missed += passed as u64 - 1;
        if LATE_DECISIONS < passed {
            self.running = Running::default();
        }
        if std::mem::take(&mut self.new_goal) {
            self.running = Running::default(); // as an episode begins
            self.swap();
        }
        let mut choice = self.choose(tick, measured, &goal)?;
        let flat = self.loaded.as_ref().is_none_or(|loaded| loaded.snapshot.contract.options.count == 1);
        if choice.0.decision.choice.option_terminated && !flat && self.swap() {
            choice = self.choose(tick, measured, &goal)?; // the option ended under the old weights; the new ones choose
        }
        let (Decided { decision, arm, observation }, target) = choice;
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        self.trouble = None;
        if !loaded.guard.is_quiet() {
            let said = loaded.guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs);
            self.trouble = said.err().map(|error| error.to_string());
        }
        let switched = decision.choice.option != decision.choice.option_prev;
        acts.target = Some(self.joints.command(measured.stamp_secs, &target));
        acts.option = Some(OptionState {
            stamp_secs: measured.stamp_secs,
            version: loaded.policy.version(),
            env: 0,
            option: decision.choice.option,
            duration: decision.next.age,
            switched,
            termination_prob: decision.choice.termination_prob,
            option_values: loaded.policy.values(&observation)?,
            option_probs: decision.over_options.clone(),
        });
        self.running = decision.next;
        acts.decided = Some(Decided { decision, arm, observation });
        self.decisions += 1;
        self.decided_at_secs = Some(now_secs);
        Ok(())
    }

    /// Where the next action is added to: dry, what another leads the arm by, or where it stands if nothing does.
    fn reference(&self, guard: &Guard, position: &PerJoint) -> PerJoint {
        if guard.is_quiet() { self.led.unwrap_or(*position) } else { guard.reference() }
    }

    /// What leads a dry arm is drawn to the arm as the guard would draw it, after each state.
    fn leash(&mut self) {
        if let (Some(led), Some(position)) = (&mut self.led, &self.position) {
            let leash = self.settings.guard.leash_rad;
            led.iter_mut()
                .zip(position)
                .for_each(|(led, position)| *led = led.clamp(position - leash, position + leash));
        }
    }

    /// The policy's choice at a control tick, and where it leads the arm. Its draws hang on seed and tick alone.
    fn choose(&self, tick: i64, measured: &Measured, goal: &Isometry3<f64>) -> Result<(Decided, PerJoint)> {
        let Some(loaded) = &self.loaded else { return Err(Error::invalid("there is no policy yet")) };
        let reference = self.reference(&loaded.guard, &measured.position);
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
