//! What the guard is asked for: arm, disarm, shut down, recover, scale.

use super::{Guard, Measured, invalid};
use crate::error::Result;
use crate::guard::arm::Arm;
use crate::guard::bounds::Bounds;
use crate::guard::joint::Law;
use crate::guard::pace::Metronome;
use crate::guard::reason::advice;
use crate::guard::space::Space;
use crate::guard::{Mode, Reason, Reasons, Recovery, State, check_scale};
use crate::robot::{ARM_DOF, PerJoint};

impl Guard {
    /// Arms: the arm is anchored, at rest, where the last command left it, as long as nothing speaks against it: it stands within
    /// half the leash of it, and there was no fault, no reset, no loss of its states and no other writer since; or else where it
    /// stands. Refused with what is missing.
    pub fn arm(&mut self, now_secs: f64) -> Result<()> {
        let measured = self.ready(now_secs).or_else(|why| invalid(format!("not armed: {why}")))?;
        let near = |position: &PerJoint| {
            let off = |joint: usize| (position[joint] - measured.position[joint]).abs();
            (0..ARM_DOF).all(|joint| off(joint) <= 0.5 * self.config.leash_rad)
        };
        let anchor = self.kept.filter(near).unwrap_or(measured.position);
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

    /// What [`Self::arm`] would be refused with now, if it would.
    pub fn unarmable(&self, now_secs: f64) -> Option<String> {
        self.ready(now_secs).err()
    }

    /// The state that an arming would start from, or what is missing.
    fn ready(&self, now_secs: f64) -> std::result::Result<Measured, String> {
        let why = |sentence: &str| Err(sentence.to_owned());
        if self.shut {
            return why(advice(Reason::Shutdown, None));
        }
        if self.commands() {
            return why("it is armed, or still coming to rest");
        }
        if self.fault {
            return why(advice(Reason::RobotMode, self.mode.map(|(mode, _)| mode)));
        }
        let Some(measured) = self.measured.filter(|measured| !self.is_old(measured.at_secs, now_secs)) else {
            return why("no fresh joint state of the robot is heard; look at its driver");
        };
        if let Some(joint) = self.limits.outside(&measured.position) {
            return Err(format!(
                "{} stands at {:.4} rad, outside its limits; move it in by hand",
                self.names.0[joint], measured.position[joint]
            ));
        }
        if !measured.at_rest {
            return why("the arm moves; wait until it rests");
        }
        match self.publishers {
            None => return why("who else publishes commands is not known yet; wait for discovery"),
            Some(0 | 1) => {}
            Some(_) => return why(advice(Reason::SecondWriter, None)),
        }
        match self.forbidden(now_secs) {
            Some(reason) => why(advice(reason, self.mode.map(|(mode, _)| mode))),
            None => Ok(measured),
        }
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
    /// say that the way is clear (`acknowledged`). A stop that the robot was recovered from by other means counts too.
    pub fn recover(&mut self, acknowledged: bool, now_secs: f64) -> Result<Recovery> {
        if !self.fault {
            return invalid("nothing to recover from: the robot did not stop itself");
        }
        let Some(mode) = self.fresh_mode(now_secs) else {
            return invalid(advice(Reason::NoMode, None));
        };
        if matches!(mode, Mode::UserStopped | Mode::Guiding | Mode::AutomaticErrorRecovery) {
            return invalid(advice(Reason::RobotMode, Some(mode)));
        }
        if !mode.is_ready() || !self.asked {
            self.count_recovery(acknowledged, now_secs)?;
        }
        self.asked = true;
        if !mode.is_ready() {
            return Ok(Recovery::AskRobot);
        }
        self.fault = false;
        self.end(State::Disarmed, Reason::Disarmed.into());
        Ok(Recovery::Recovered)
    }

    /// One more recovery, refused where there were too many.
    fn count_recovery(&mut self, acknowledged: bool, now_secs: f64) -> Result<()> {
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
        Ok(())
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
}
