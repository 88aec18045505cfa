//! The rollout on a robot's own topics, through the guard: control ticks follow the stamps of its states, decisions are the
//! [`Agent`]'s, and an episode begins where a guarded move has led the arm. No clock, no network.

mod control;
mod reset;
mod say;
mod shell;
#[cfg(test)]
mod tests;
mod ticks;

pub use shell::{Inputs, Outputs, Request, run};

use super::Agent;
use crate::contract::Contract;
use crate::data::JointState;
use crate::error::{Error, Result};
use crate::guard::{self, Guard, Mode};
use crate::link::{Command, Due, Form, Joints, Link, Preset, Rate, joint_names, shown};
use crate::robot::{Limits, PerJoint, Robot};
use reset::Asked;
use std::sync::Arc;
use ticks::{Tick, Ticks};

/// What a rollout on a link is told at its start.
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
    /// A simulator is armed without being asked.
    pub arms_itself: bool,
    /// A service resets the simulator before each episode.
    pub resets: bool,
}

/// What follows from a state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acts {
    /// To the arm.
    pub command: Option<Command>,
    /// The simulator is to be reset now.
    pub reset: bool,
}

/// What the arm does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// As the agent decides.
    Acting,
    /// It goes to an episode's start [rad], since this stamp [s].
    Moving { start: PerJoint, since_secs: f64 },
    /// It comes to rest, disarmed, and stays so until its simulator is reset; then it goes to this start [rad].
    Resetting { start: PerJoint, asked: Option<Asked> },
}

/// One arm of a rollout, guarded. Times are of a steady clock [s] if not said otherwise.
pub struct OnLink {
    agent: Agent,
    contract: Arc<Contract>,
    settings: Settings,
    link: Link,
    joints: Joints,
    guard: Guard,
    ticks: Ticks,
    stage: Stage,
    tick: u64,
    /// When the newest state came, and its header stamp [s].
    heard_secs: Option<f64>,
    stamp_secs: f64,
    due: Due,
    /// Why the last arming was refused, or the last way blocked.
    trouble: Option<String>,
    leaves: bool,
    refused_states: u64,
    blocked_moves: u64,
}

impl OnLink {
    /// `agent` has one environment. Refuses an arm that is no one arm, and a guard that does not fit link or policy.
    pub fn new(agent: Agent, settings: Settings) -> Result<Self> {
        if settings.arm == Robot::Both {
            return Err(Error::invalid(
                "robot = both names no arm: a policy for both is trained on one; give robot: panda or robot: fr3",
            ));
        }
        let link = settings.preset.link_of(settings.arm)?;
        settings.preset.check_clock(&settings.guard)?;
        let contract = agent.rollout.contract.clone();
        let (step, leash) = (contract.action.step_rad(contract.control_period_secs), settings.guard.leash_rad);
        if step > leash {
            return Err(Error::invalid(format!(
                "an action moves a joint by up to {step} rad and guard.leash_rad is {leash}: no first target would be taken; give \
                 more leash, or a smaller action.scale"
            )));
        }
        let names = joint_names(settings.arm, &settings.prefix)?;
        let described = settings.described.as_ref();
        let guard = Guard::new(settings.guard.clone(), &contract, settings.arm, Some(names.clone()), described)?;
        let guard = guard.telling_the_way(link.form == Form::Trajectory);
        Ok(Self {
            agent: if link.simulated { agent } else { agent.unstoppable() },
            ticks: Ticks::new(contract.control_period_secs),
            contract,
            settings,
            link,
            joints: Joints::new(names),
            guard,
            stage: Stage::Acting,
            tick: 0,
            heard_secs: None,
            stamp_secs: 0.0,
            due: Due::default(),
            trouble: None,
            leaves: false,
            refused_states: 0,
            blocked_moves: 0,
        })
    }

    /// How the arm speaks.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Time between two commands [s].
    pub fn tick_secs(&self) -> f64 {
        self.settings.guard.tick_secs()
    }

    /// Its side of the protocol.
    pub fn agent(&mut self) -> &mut Agent {
        &mut self.agent
    }

    /// Whether newer weights may be taken: on hardware between two episodes only.
    pub fn may_swap(&self) -> bool {
        self.link.simulated || self.stage != Stage::Acting || self.guard.is_quiet()
    }

    // ---- what is heard and asked ----------------------------------------------------------------------------------------

    /// A simulator's clock.
    pub fn clock(&mut self, clock_secs: f64, now_secs: f64) {
        if self.settings.guard.use_sim_time {
            self.guard.observe_clock(clock_secs, now_secs);
            self.see_to_the_guard();
        }
    }

    /// Publishers of the command topic, this node among them.
    pub fn publishers(&mut self, count: usize) {
        self.guard.observe_publishers(count);
    }

    /// The robot's mode; one in which it executes no commands ends the episode.
    pub fn mode(&mut self, mode: Mode, now_secs: f64) {
        self.guard.observe_mode(mode, now_secs);
        self.see_to_the_guard();
    }

    /// The next step after the robot stopped itself; a person says whether the way is clear. Never arms.
    pub fn recover(&mut self, acknowledged: bool, now_secs: f64) -> Result<&'static str> {
        Ok(self.guard.recover(acknowledged, now_secs)?.advice())
    }

    /// Arms or disarms; a simulator that arms itself does so again at once. Says what is so now.
    pub fn arm(&mut self, armed: bool, now_secs: f64) -> Result<&'static str> {
        if armed {
            if self.is_resetting() {
                return Err(Error::invalid("not armed: the simulator is being reset; arm again"));
            }
            self.guard.arm(now_secs)?;
            self.ticks.restart();
            return Ok("armed: the arm moves to a start pose, then acts and learns");
        }
        self.settings.arms_itself = false;
        self.guard.disarm();
        Ok("disarmed: the arm comes to rest")
    }

    /// Brings the arm to rest; go on until [`Self::is_quiet`].
    pub fn shutdown(&mut self) {
        self.settings.arms_itself = false;
        self.guard.shutdown();
        self.interrupt("the node ends");
        self.agent.leave();
        self.leaves = true;
    }

    /// Whether no command will come.
    pub fn is_quiet(&self) -> bool {
        self.guard.is_quiet()
    }

    // ---- what goes out --------------------------------------------------------------------------------------------------

    /// A joint state: acts where a control tick is due by its stamp, and commands where the link has a command for each state.
    pub fn states(&mut self, state: &JointState, now_secs: f64) -> Result<Acts> {
        let outcome = self.take(state, now_secs);
        if outcome.is_err() {
            self.refused_states += 1;
        }
        outcome
    }

    fn take(&mut self, state: &JointState, now_secs: f64) -> Result<Acts> {
        let measured = self.joints.read(state);
        self.guard.observe(&shown(state, &measured), now_secs)?;
        let measured = measured?;
        self.heard_secs = Some(now_secs);
        self.stamp_secs = state.stamp_secs;
        self.see_to_the_guard();
        let mut acts = Acts { command: None, reset: self.is_reset_due(state.stamp_secs, now_secs) };
        let tick = self.ticks.state(state.stamp_secs);
        if self.guard.is_quiet() && !self.is_resetting() {
            self.arm_itself(now_secs);
        }
        let held = self.guard.is_quiet() || self.is_resetting() || self.leaves;
        let acting = !held && tick != Tick::Between;
        if let (Some(measured), true) = (measured, acting) {
            if tick == Tick::Broken {
                self.interrupt("too many states were late or missing");
            }
            self.control(&measured, now_secs)?;
        }
        if self.link.rate == Rate::PerState && self.due.state(state.stamp_secs, self.tick_secs()) {
            acts.command = self.command(now_secs);
        }
        Ok(acts)
    }

    /// Call it every [`Self::tick_secs`]: the command of a fixed rate; and, where each state has a command, those that bring
    /// the arm to rest once states are missing.
    pub fn beat(&mut self, now_secs: f64) -> Option<Command> {
        let missing = self.heard_secs.is_none_or(|at| now_secs - at > self.settings.guard.state_timeout_secs);
        if self.is_quiet() || (self.link.rate == Rate::PerState && !missing) {
            return None;
        }
        self.command(now_secs)
    }

    fn command(&mut self, now_secs: f64) -> Option<Command> {
        let next = self.guard.tick(now_secs);
        let (form, tick_secs) = (self.link.form, self.tick_secs());
        let order = |next| self.joints.order(form, self.stamp_secs, tick_secs, next, || self.guard.way_to_rest());
        let command = next.as_ref().map(order);
        self.see_to_the_guard();
        command
    }

    fn arm_itself(&mut self, now_secs: f64) {
        if !(self.link.simulated && self.settings.arms_itself) {
            return;
        }
        match self.guard.arm(now_secs) {
            Ok(()) => {
                self.trouble = None;
                self.ticks.restart();
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    /// What a guard that stopped the arm did is nothing that the policy has done.
    fn see_to_the_guard(&mut self) {
        if self.guard.is_quiet() && self.acts() {
            let why = self.guard.report().sentence;
            self.interrupt(&why);
        }
    }

    fn acts(&self) -> bool {
        self.stage == Stage::Acting && self.agent.rollout.under_way()
    }

    /// The episode under way ends as aborted.
    fn interrupt(&mut self, why: &str) {
        if self.acts() {
            tracing::warn!("an episode ends as aborted: {why}");
            self.agent.interrupt(self.stamp_secs);
        }
    }
}
