//! What goes out: a command each tick, while nothing forbids it.

use super::Guard;
use crate::guard::arm::{Aim, Arm};
use crate::guard::{Command, Reason, Reasons, State};
use crate::robot::{ARM_DOF, PerJoint};

impl Guard {
    /// A command tick, `1 / command_rate_hz` after the last. The command to send, if one is due.
    pub fn tick(&mut self, now_secs: f64) -> Option<Command> {
        let Some(elapsed) = self.ticks.tick(now_secs) else {
            self.counts.count(Reason::OldStamp.into());
            return None;
        };
        if !self.commands() {
            return None;
        }
        let late_secs = elapsed - self.config.tick_secs();
        if let (true, Some(arm)) = (self.tells_way && late_secs >= 0.5 * self.config.tick_secs(), &mut self.arm) {
            arm.coast(late_secs);
        }
        self.supervise(elapsed, now_secs);
        let holds = !self.reasons.is_empty();
        self.holds += u64::from(holds && self.state == State::Armed);
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
        self.kept = Some(command.positions);
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

    /// Where commands would go on to if this was the last tick: the stop, tick by tick, the last at rest. None at rest.
    pub fn way_to_rest(&self) -> Vec<Command> {
        let way = self.arm.as_ref().map(Arm::way_to_rest).unwrap_or_default();
        way.into_iter().map(|(positions, velocities)| Command { positions, velocities }).collect()
    }

    /// For a receiver that is told [`Self::way_to_rest`] with each command: where one is late by half a tick or more, the arm has gone
    /// that way meanwhile, and is led on from there. Any other is taken to keep the last command.
    pub fn telling_the_way(self, tells_way: bool) -> Self {
        Self { tells_way, ..self }
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
            self.latched.add(reason);
        }
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
}
