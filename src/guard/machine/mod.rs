//! The guard itself: disarmed, armed, holding, stopped.

mod ask;
mod hear;
mod tick;

use super::arm::Arm;
use super::bounds::Bounds;
use super::intake::Names;
use super::pace::{Delay, Metronome, Stamps};
use super::reason::{Counts, Reason, Reasons, advice};
use super::still::Still;
use super::{Config, Mode, Report, State};
use crate::contract::Contract;
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Limits, PerJoint, Robot};
use std::collections::VecDeque;
use uuid::Uuid;

/// What the robot said last.
#[derive(Clone, Copy, Debug)]
struct Measured {
    position: PerJoint,
    at_rest: bool,
    /// When it was so, on the steady clock.
    at_secs: f64,
}

/// What the policy asked for last.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// [rad/s], where it speaks in velocities; they move the reference.
    velocity: PerJoint,
    /// What was taken from the target on arrival, and why.
    reasons: Reasons,
    at_secs: f64,
}

/// Stands between a policy's decisions and the wire. Every time is an argument, in seconds of a steady clock. See the module.
#[derive(Debug)]
pub struct Guard {
    config: Config,
    contract: Contract,
    names: Names,
    robots: [Robot; 2],
    limits: Limits,
    bounds: [Bounds; ARM_DOF],
    state: State,
    /// Why it holds or stopped.
    reasons: Reasons,
    /// Ends in a stop, not only in a hold.
    latched: Reasons,
    /// Only `recover` leads out.
    fault: bool,
    shut: bool,
    /// Its receiver knows the way to rest.
    tells_way: bool,
    arm: Option<Arm>,
    /// The first command of an arming is the anchor.
    fresh: bool,
    /// The last command, while it is what the robot still keeps to.
    kept: Option<PerJoint>,
    reference: PerJoint,
    wish: Option<Wish>,
    measured: Option<Measured>,
    still: Still,
    delay: Delay,
    mode: Option<(Mode, f64)>,
    publishers: Option<usize>,
    clock_secs: Option<f64>,
    stamps: Stamps,
    clocks: Stamps,
    ticks: Metronome,
    decisions: Metronome,
    weights: Option<(Uuid, (u32, u64))>,
    recoveries: VecDeque<f64>,
    /// The robot was asked to recover from its present stop.
    asked: bool,
    counts: Counts,
    holds: u64,
    saturation: f64,
    last: Reasons,
    resets: u64,
}

fn invalid<T>(sentence: impl Into<String>) -> Result<T> {
    Err(Error::invalid(sentence))
}

impl Guard {
    /// For a policy with this contract on this arm (`Panda` or `Fr3`), disarmed. `names` are the arm's joint names on the wire, by
    /// default the arm's own; `described` are the limits of the robot's description (NaN where it gives none). Of
    /// all limits the tighter win. Refuses a policy of another arm, a range or speed that leaves no motion, and settings out of range.
    pub fn new(
        config: Config,
        contract: &Contract,
        arm: Robot,
        names: Option<[String; ARM_DOF]>,
        described: Option<&Limits>,
    ) -> Result<Self> {
        config.validate()?;
        if contract.robot != arm && contract.robot != Robot::Both {
            return invalid(format!(
                "the policy was made for {:?} and the arm is {arm:?}; train with robot: both for either arm",
                contract.robot
            ));
        }
        if contract.joints != contract.robot.joint_names() {
            return invalid(format!(
                "the policy moves the joints {:?}; this guard guards {:?}",
                contract.joints,
                contract.robot.joint_names()
            ));
        }
        let period = contract.control_period_secs;
        if !(period > 0.0 && config.policy_timeout_secs >= 1.5 * period) {
            return invalid(format!(
                "guard.policy_timeout_secs = {} is under 1.5 control periods of {period} s: each target would be too old",
                config.policy_timeout_secs
            ));
        }
        if period < config.tick_secs() * (1.0 - 1e-9) {
            return invalid(format!(
                "guard.command_rate_hz = {} is under the policy's {} Hz: targets would be passed over",
                config.command_rate_hz,
                1.0 / period
            ));
        }
        let both = arm.limits().and(contract.robot.limits());
        let limits = described.map_or(both, |described| both.and(described));
        let robots = [arm, contract.robot];
        let bounds = Bounds::of(&config, config.scale, robots, &limits, config.tick_secs())?;
        Ok(Self {
            names: Names(names.unwrap_or_else(|| arm.joint_names())),
            contract: contract.clone(),
            robots,
            limits,
            bounds,
            state: State::Disarmed,
            reasons: Reasons::default(),
            latched: Reasons::default(),
            fault: false,
            shut: false,
            tells_way: false,
            arm: None,
            fresh: false,
            kept: None,
            reference: [0.0; ARM_DOF],
            wish: None,
            measured: None,
            still: Still::default(),
            delay: Delay::default(),
            mode: None,
            publishers: None,
            clock_secs: None,
            stamps: Stamps::default(),
            clocks: Stamps::default(),
            ticks: Metronome::new(config.tick_secs()),
            decisions: Metronome::new(period),
            weights: None,
            recoveries: VecDeque::new(),
            asked: false,
            counts: Counts::default(),
            holds: 0,
            saturation: 0.0,
            last: Reasons::default(),
            resets: 0,
            config,
        })
    }

    /// What forbids commands whatever the arm does: the robot's mode, or a clock that is missing. A mode that forbids them
    /// does so until another is heard, however long ago it was.
    fn forbidden(&self, now_secs: f64) -> Option<Reason> {
        if self.mode.is_some_and(|(mode, _)| !mode.is_ready()) {
            return Some(Reason::RobotMode);
        }
        if self.config.require_mode && self.fresh_mode(now_secs).is_none() {
            return Some(Reason::NoMode);
        }
        let heard = self.clock_secs.is_some_and(|at| now_secs - at <= self.config.clock_timeout_secs);
        (self.config.use_sim_time && !heard).then_some(Reason::NoClock)
    }

    fn fresh_mode(&self, now_secs: f64) -> Option<Mode> {
        self.mode.filter(|(_, at)| now_secs - at <= self.config.mode_timeout_secs).map(|(mode, _)| mode)
    }

    fn is_old(&self, at_secs: f64, now_secs: f64) -> bool {
        now_secs - at_secs > self.config.state_timeout_secs
    }

    /// Whether commands go out.
    fn commands(&self) -> bool {
        matches!(self.state, State::Armed | State::Holding)
    }

    /// The robot stopped itself, or is led by hand: nothing more is sent, and what was sent is void.
    fn fail(&mut self) {
        self.fault = true;
        self.asked = false;
        self.kept = None;
        self.counts.count(Reason::RobotMode.into());
        self.end(State::Stopped, Reason::RobotMode.into());
    }

    fn end(&mut self, state: State, reasons: Reasons) {
        self.state = state;
        self.reasons = reasons;
        self.latched = Reasons::default();
        // who holds the last command may have been started anew since
        const VOID: [Reason; 4] = [Reason::SecondWriter, Reason::ClockJump, Reason::StaleState, Reason::Deviation];
        if VOID.into_iter().any(|reason| reasons.contains(reason)) {
            self.kept = None;
        }
        self.arm = None;
        self.wish = None;
        self.resets += 1;
    }

    /// Where the policy is now leading the arm [rad]: what the next reference is integrated from.
    pub fn reference(&self) -> PerJoint {
        self.reference
    }

    /// Names on the wire, in the order of every command.
    pub fn names(&self) -> &[String; ARM_DOF] {
        &self.names.0
    }

    /// Goes up whenever option, filters and pending commands of the policy are void.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// What happened, what to do, and the figures.
    pub fn report(&self) -> Report {
        let mode = self.mode.map(|(mode, _)| mode);
        let first = self.reasons.iter().last().or_else(|| self.last.iter().last());
        let said = match (self.state, first) {
            (_, Some(reason)) => advice(reason, mode),
            (State::Armed, None) if self.wish.is_none() => "the arm stands at its anchor and waits for a target",
            (State::Armed, None) => "the arm follows the policy",
            (_, None) => "nothing is commanded: arm to begin",
        };
        Report {
            state: self.state,
            reasons: self.reasons,
            sentence: format!("{}: {said}", self.state.name()),
            counts: self.counts,
            holds: self.holds,
            saturation_ratio: self.saturation,
            scale: self.config.scale,
            ticks: self.ticks.pace(),
            decisions: self.decisions.pace(),
            needs_recovery: self.fault,
            resets: self.resets,
        }
    }
}
