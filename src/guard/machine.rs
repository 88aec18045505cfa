//! The guard itself: disarmed, armed, holding, stopped.

use super::arm::{Aim, Arm};
use super::bounds::Bounds;
use super::intake::{JointStates, Names, Refusal};
use super::joint::Law;
use super::pace::{Metronome, Stamp, Stamps};
use super::reason::{Counts, Reason, Reasons, advice};
use super::space::Space;
use super::{Command, Config, Mode, Recovery, Report, State, Swap, Target, Values, check_scale};
use crate::contract::{Contract, Snapshot};
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Limits, PerJoint, Robot};
use std::collections::VecDeque;
use uuid::Uuid;

/// What the robot said last.
#[derive(Clone, Copy, Debug)]
struct Measured {
    position: PerJoint,
    at_rest: bool,
    stamp_secs: f64,
    /// Steady clock.
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
    arm: Option<Arm>,
    /// The first command of an arming is the anchor.
    fresh: bool,
    reference: PerJoint,
    wish: Option<Wish>,
    measured: Option<Measured>,
    desired: Option<(PerJoint, f64)>,
    mode: Option<(Mode, f64)>,
    publishers: Option<usize>,
    clock_secs: Option<f64>,
    stamps: Stamps,
    clocks: Stamps,
    ticks: Metronome,
    decisions: Metronome,
    weights: Option<(Uuid, (u32, u64))>,
    recoveries: VecDeque<f64>,
    counts: Counts,
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
            arm: None,
            fresh: false,
            reference: [0.0; ARM_DOF],
            wish: None,
            measured: None,
            desired: None,
            mode: None,
            publishers: None,
            clock_secs: None,
            stamps: Stamps::default(),
            clocks: Stamps::default(),
            ticks: Metronome::new(config.tick_secs()),
            decisions: Metronome::new(period),
            weights: None,
            recoveries: VecDeque::new(),
            counts: Counts::default(),
            saturation: 0.0,
            last: Reasons::default(),
            resets: 0,
            config,
        })
    }

    // ---- what is heard -----------------------------------------------------------------------------------------------

    /// A joint state of the robot. Refuses and counts what is malformed; ignores and counts what is out of order.
    pub fn observe(&mut self, states: &JointStates<'_>, now_secs: f64) -> Result<()> {
        let (position, velocity) = self.read(states)?;
        match self.stamps.admit(states.stamp_secs) {
            Stamp::Newer => {}
            Stamp::Old => {
                self.counts.count(Reason::OldStamp.into());
                return Ok(());
            }
            Stamp::Back => {
                self.measured = None;
                self.jumped();
            }
        }
        let most = self.config.rest_speed_rad_per_sec;
        let at_rest = match (velocity, self.measured) {
            (Some(velocity), _) => velocity.iter().all(|velocity| velocity.abs() <= most),
            // Isaac Sim rounds positions to 1e-4 rad: two of them may differ by as much at rest
            (None, Some(before)) => {
                let moved = |joint: usize| (position[joint] - before.position[joint]).abs();
                let secs = states.stamp_secs - before.stamp_secs;
                (0..ARM_DOF).all(|joint| moved(joint) <= most * secs + 1e-4)
            }
            (None, None) => false,
        };
        self.measured = Some(Measured { position, at_rest, stamp_secs: states.stamp_secs, at_secs: now_secs });
        Ok(())
    }

    /// The joint state that the robot itself is commanded to, where the link tells one: the anchor of the next arming.
    pub fn observe_desired(&mut self, states: &JointStates<'_>, now_secs: f64) -> Result<()> {
        let (position, _) = self.read(states)?;
        self.desired = Some((position, now_secs));
        Ok(())
    }

    fn read(&mut self, states: &JointStates<'_>) -> Result<(PerJoint, Option<PerJoint>)> {
        let count = states.names.len();
        let read = self.names.places(states.names, true).and_then(|places| {
            let position = self.names.pick("positions", Some(&places), count, states.positions)?;
            let velocity = (!states.velocities.is_empty())
                .then(|| self.names.pick("velocities", Some(&places), count, states.velocities))
                .transpose()?;
            if !states.stamp_secs.is_finite() {
                return Err(Refusal { reason: Reason::NonFinite, sentence: "its stamp is no number".into() });
            }
            Ok((position, velocity))
        });
        read.map_err(|refusal| self.refused("a joint state", refusal))
    }

    fn refused(&mut self, what: &str, refusal: Refusal) -> Error {
        self.counts.count(refusal.reason.into());
        Error::invalid(format!("{what} is refused: {}", refusal.sentence))
    }

    /// The robot's mode.
    pub fn observe_mode(&mut self, mode: Mode, now_secs: f64) {
        self.mode = Some((mode, now_secs));
    }

    /// How many publishers the command topic has, this node's own among them.
    pub fn observe_publishers(&mut self, count: usize) {
        self.publishers = Some(count);
    }

    /// A simulator's clock.
    pub fn observe_clock(&mut self, clock_secs: f64, now_secs: f64) {
        match self.clocks.admit(clock_secs) {
            Stamp::Newer => self.clock_secs = Some(now_secs),
            Stamp::Old => self.counts.count(Reason::OldStamp.into()),
            Stamp::Back => {
                self.clock_secs = Some(now_secs);
                self.jumped();
            }
        }
    }

    /// A simulator was reset: what was commanded is void, so nothing more is sent. On hardware, where only the stamps jumped, the
    /// arm is brought to rest.
    fn jumped(&mut self) {
        self.counts.count(Reason::ClockJump.into());
        if !self.commands() {
            self.resets += 1;
        } else if self.config.use_sim_time {
            self.end(State::Stopped, Reason::ClockJump.into());
        } else {
            self.latched.add(Reason::ClockJump);
        }
    }

    /// A decision of the policy. Refused, and counted, where it is malformed, while the guard is not armed, and where the first after
    /// an arming lies farther than the leash from the anchor.
    pub fn target(&mut self, target: &Target<'_>, now_secs: f64) -> Result<()> {
        let what = "a target";
        if !self.commands() || !self.latched.is_empty() {
            let sentence = format!("the guard is {}", self.state.name());
            return Err(self.refused(what, Refusal { reason: Reason::NotArmed, sentence }));
        }
        let (unit, values) = match target.values {
            Values::Positions(values) => ("positions", values),
            Values::Velocities(values) => ("velocities", values),
        };
        let count = target.names.map_or(ARM_DOF, <[String]>::len);
        let places = target.names.map(|names| self.names.places(names, false)).transpose();
        let picked = places.and_then(|places| self.names.pick(unit, places.as_ref(), count, values));
        let picked = picked.map_err(|refusal| self.refused(what, refusal))?;
        let Some(arm) = &self.arm else { return Ok(()) };
        let mut wish = Wish { velocity: [0.0; ARM_DOF], reasons: Reasons::default(), at_secs: now_secs };
        match target.values {
            Values::Velocities(_) => wish.velocity = picked,
            Values::Positions(_) => {
                let far = |joint: &usize| (picked[*joint] - self.reference[*joint]).abs() > self.config.leash_rad;
                if let (None, Some(joint)) = (self.wish, (0..ARM_DOF).find(far)) {
                    let sentence = format!(
                        "{} is asked to go to {:.3} rad at first and stands at {:.3} rad; start within {} rad",
                        self.names.0[joint], picked[joint], self.reference[joint], self.config.leash_rad
                    );
                    return Err(self.refused(what, Refusal { reason: Reason::FarTarget, sentence }));
                }
                (self.reference, wish.reasons) = arm.reachable(&picked);
            }
        }
        self.decisions.tick(now_secs);
        self.wish = Some(wish);
        Ok(())
    }

    /// New weights. They may be taken at once while nothing is commanded, otherwise when an option ends (`boundary`; with one option:
    /// an episode or a goal). Refuses broken ones, those of another contract, those that are not newer, and those of
    /// another run while armed; then the ones in use stay.
    pub fn offer(&mut self, snapshot: &Snapshot, boundary: bool) -> Result<Swap> {
        let offered = self.check_offer(snapshot);
        if offered.is_err() {
            self.counts.count(Reason::Weights.into());
        }
        offered?;
        if self.commands() && !boundary {
            return Ok(Swap::AtBoundary);
        }
        self.weights = Some((snapshot.run, snapshot.age()));
        Ok(Swap::Now)
    }

    fn check_offer(&self, snapshot: &Snapshot) -> Result<()> {
        snapshot.check()?;
        self.contract.require_same("the policy in use", &snapshot.contract, "the weights offered")?;
        match self.weights {
            Some((run, _)) if run != snapshot.run && self.commands() => invalid(format!(
                "weights of run {} are offered while those of run {run} move the arm; disarm first",
                snapshot.run
            )),
            Some((run, age)) if run == snapshot.run && snapshot.age() <= age => invalid(format!(
                "weights {}.{} are offered and {}.{} are in use; newer ones are right",
                snapshot.life, snapshot.version, age.0, age.1
            )),
            _ => Ok(()),
        }
    }

    // ---- what is asked ------------------------------------------------------------------------------------------------

    /// Arms: the arm is anchored, at rest, where the robot is commanded to be, or else where it stands. Refused with what is missing.
    pub fn arm(&mut self, now_secs: f64) -> Result<()> {
        let refuse = |sentence: &str| invalid(format!("not armed: {sentence}"));
        if self.shut {
            return refuse(advice(Reason::Shutdown, None));
        }
        if self.commands() {
            return refuse("it is armed, or still coming to rest");
        }
        if self.fault {
            return refuse(advice(Reason::RobotMode, self.mode.map(|(mode, _)| mode)));
        }
        let Some(measured) = self.measured.filter(|measured| !self.is_old(measured.at_secs, now_secs)) else {
            return refuse("no fresh joint state of the robot is heard; look at its driver");
        };
        if let Some(joint) = self.limits.outside(&measured.position) {
            return refuse(&format!(
                "{} stands at {:.4} rad, outside its limits; move it in by hand",
                self.names.0[joint], measured.position[joint]
            ));
        }
        if !measured.at_rest {
            return refuse("the arm moves; wait until it rests");
        }
        match self.publishers {
            None => return refuse("who else publishes commands is not known yet; wait for discovery"),
            Some(0 | 1) => {}
            Some(_) => return refuse(advice(Reason::SecondWriter, None)),
        }
        if let Some(reason) = self.forbidden(now_secs) {
            return refuse(advice(reason, self.mode.map(|(mode, _)| mode)));
        }
        let near = |desired: &PerJoint| {
            (0..ARM_DOF).all(|joint| (desired[joint] - measured.position[joint]).abs() <= self.config.leash_rad)
        };
        let desired = self.desired.filter(|(position, at)| !self.is_old(*at, now_secs) && near(position));
        let anchor = desired.map_or(measured.position, |(position, _)| position);
        let tick_secs = self.config.tick_secs();
        let law = Law::new(self.config.smoothing_periods * self.contract.control_period_secs, tick_secs);
        let speed = self.config.tcp_speed_m_per_sec;
        self.arm = Some(Arm::new(&anchor, self.bounds, law, Space::new(&self.config), speed, tick_secs));
        self.fresh = true;
        self.reference = anchor;
        self.wish = None;
        self.ticks = Metronome::new(tick_secs);
        self.decisions = Metronome::new(self.contract.control_period_secs);
        self.reasons = Reasons::default();
        self.latched = Reasons::default();
        self.state = State::Armed;
        self.resets += 1;
        Ok(())
    }

    /// Brings the arm to rest and disarms. While nothing is commanded it only clears a stop that needs no recovery.
    pub fn disarm(&mut self) {
        if self.commands() {
            self.latched.add(Reason::Disarmed);
        } else if !self.fault {
            self.end(State::Disarmed, Reason::Disarmed.into());
        }
    }

    /// As [`Self::disarm`], and never arms again: call it on SIGINT, go on ticking until [`Self::is_quiet`], then end.
    pub fn shutdown(&mut self) {
        self.shut = true;
        if self.commands() {
            self.latched.add(Reason::Shutdown);
        }
    }

    /// Whether no more commands will come without a new arming.
    pub fn is_quiet(&self) -> bool {
        !self.commands()
    }

    /// After the robot stopped itself. Tells the next step; never arms. After `max_recoveries` within the window a person must
    /// say that the way is clear (`acknowledged`).
    pub fn recover(&mut self, acknowledged: bool, now_secs: f64) -> Result<Recovery> {
        if !self.fault {
            return invalid("nothing to recover from: the robot did not stop itself");
        }
        let Some(mode) = self.fresh_mode(now_secs) else {
            return invalid(advice(Reason::NoMode, None));
        };
        match mode {
            Mode::Idle | Mode::Move => {
                self.fault = false;
                self.end(State::Disarmed, Reason::Disarmed.into());
                Ok(Recovery::Recovered)
            }
            Mode::Reflex | Mode::Other => {
                if acknowledged {
                    self.recoveries.clear();
                }
                let window = self.config.recovery_window_secs;
                self.recoveries.retain(|at| now_secs - at < window);
                if self.recoveries.len() >= self.config.max_recoveries as usize {
                    return invalid(format!(
                        "{} recoveries within {window} s: look at the arm, clear its way, then recover with acknowledged set",
                        self.recoveries.len()
                    ));
                }
                self.recoveries.push_back(now_secs);
                Ok(Recovery::AskRobot)
            }
            Mode::UserStopped | Mode::Guiding | Mode::AutomaticErrorRecovery => {
                invalid(advice(Reason::RobotMode, Some(mode)))
            }
        }
    }

    /// Another share of the limits, over 0 and at most 1. A moving arm is slowed under the old limits until it obeys the new.
    pub fn set_scale(&mut self, scale: f64) -> Result<()> {
        check_scale(scale)?;
        self.bounds = Bounds::of(&self.config, scale, self.robots, &self.limits, self.config.tick_secs())?;
        self.config.scale = scale;
        if let Some(arm) = &mut self.arm {
            arm.rebound(self.bounds);
        }
        Ok(())
    }

    // ---- what goes out --------------------------------------------------------------------------------------------------

    /// A command tick, `1 / command_rate_hz` after the last. The command to send, if one is due.
    pub fn tick(&mut self, now_secs: f64) -> Option<Command> {
        let Some(elapsed) = self.ticks.tick(now_secs) else {
            self.counts.count(Reason::OldStamp.into());
            return None;
        };
        if !self.commands() {
            return None;
        }
        self.supervise(elapsed, now_secs);
        if !self.commands() {
            return None;
        }
        let holds = !self.reasons.is_empty();
        self.state = if holds { State::Holding } else { State::Armed };
        let aim = if holds { None } else { Some(self.lead()) };
        let arm = self.arm.as_mut()?;
        let mut acted = Reasons::default();
        if self.fresh {
            self.fresh = false;
        } else if let Some((target, reasons)) = aim {
            acted = arm.advance(Aim::Track(target));
            acted.join(reasons);
        } else {
            arm.advance(Aim::Stop);
        }
        let command = Command { positions: arm.positions(), velocities: arm.velocities() };
        let saturated = if acted.is_empty() { 0.0 } else { 1.0 };
        self.saturation += (saturated - self.saturation) / self.config.command_rate_hz;
        self.last = acted;
        acted.join(self.reasons);
        self.counts.count(acted);
        if !self.latched.is_empty() && arm.is_rest() {
            let asked = self.latched.contains(Reason::Disarmed) || self.latched.contains(Reason::Shutdown);
            let only = self.latched.iter().count() == 1;
            self.end(if asked && only { State::Disarmed } else { State::Stopped }, self.latched);
        }
        Some(command)
    }

    /// Where the arm is led in this tick, and what was taken from the policy's wish.
    fn lead(&mut self) -> (PerJoint, Reasons) {
        let mut reasons = Reasons::default();
        if let Some(wish) = self.wish {
            reasons.join(wish.reasons);
            let tick_secs = self.config.tick_secs();
            for joint in 0..ARM_DOF {
                let (low, high) = self.bounds[joint].range();
                let asked = self.reference[joint] + wish.velocity[joint] * tick_secs;
                let kept = asked.max(low.min(self.reference[joint])).min(high.max(self.reference[joint]));
                reasons.add_if(kept != asked, Reason::Position);
                self.reference[joint] = kept;
            }
        }
        let Some(measured) = self.measured else { return (self.reference, reasons) };
        let leash = self.config.leash_rad;
        let leashed: PerJoint = std::array::from_fn(|joint| {
            self.reference[joint].clamp(measured.position[joint] - leash, measured.position[joint] + leash)
        });
        if leashed != self.reference {
            // told until the next target
            if let Some(wish) = &mut self.wish {
                wish.reasons.add(Reason::Leash);
            }
            reasons.add(Reason::Leash);
            self.reference = leashed;
        }
        (leashed, reasons)
    }

    /// Looks at everything that may end or interrupt the motion.
    fn supervise(&mut self, elapsed_secs: f64, now_secs: f64) {
        if let Some(reason) = self.forbidden(now_secs) {
            if reason == Reason::RobotMode {
                self.fault = true;
                self.counts.count(reason.into());
                return self.end(State::Stopped, reason.into());
            }
            self.latched.add(reason);
        }
        self.latched.add_if(self.publishers.is_some_and(|count| count > 1), Reason::SecondWriter);
        let Some(arm) = &self.arm else { return };
        match &self.measured {
            Some(measured) if !self.is_old(measured.at_secs, now_secs) => {
                let commanded = arm.positions();
                let off = |joint: usize| (commanded[joint] - measured.position[joint]).abs();
                let lost = (0..ARM_DOF).any(|joint| off(joint) > 2.0 * self.config.leash_rad);
                self.latched.add_if(lost, Reason::Deviation);
            }
            _ => self.latched.add(Reason::StaleState),
        }
        let late_ratio = self.ticks.pace().late_ratio;
        if elapsed_secs >= self.config.tick_secs() + self.config.late_secs || late_ratio >= self.config.late_ratio {
            self.reasons.add(Reason::Overrun);
        } else if arm.is_rest() && late_ratio <= 0.5 * self.config.late_ratio {
            self.reasons.remove(Reason::Overrun);
        }
        let timeout = self.config.policy_timeout_secs;
        if self.wish.is_some_and(|wish| now_secs - wish.at_secs > timeout) {
            self.reasons.add(Reason::StalePolicy);
        } else {
            self.reasons.remove(Reason::StalePolicy);
        }
        self.reasons.join(self.latched);
    }

    /// What forbids commands whatever the arm does: the robot's mode, or a clock that is missing.
    fn forbidden(&self, now_secs: f64) -> Option<Reason> {
        match self.fresh_mode(now_secs) {
            Some(Mode::Idle | Mode::Move) => {}
            Some(_) => return Some(Reason::RobotMode),
            None if self.config.require_mode => return Some(Reason::NoMode),
            None => {}
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

    fn end(&mut self, state: State, reasons: Reasons) {
        self.state = state;
        self.reasons = reasons;
        self.latched = Reasons::default();
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
            saturation_ratio: self.saturation,
            scale: self.config.scale,
            ticks: self.ticks.pace(),
            decisions: self.decisions.pace(),
            needs_recovery: self.fault,
            resets: self.resets,
        }
    }
}
