//! What the guard is told: states, modes, clocks, targets, weights.

use super::{Guard, Measured, Wish, invalid};
use crate::contract::Snapshot;
use crate::error::{Error, Result};
use crate::guard::intake::{JointStates, Refusal};
use crate::guard::pace::{Delay, Stamp};
use crate::guard::still::Still;
use crate::guard::{Mode, Reason, Reasons, State, Swap, Target, Values};
use crate::robot::{ARM_DOF, PerJoint};

impl Guard {
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
                (self.still, self.delay) = (Still::default(), Delay::default());
                self.jumped();
            }
        }
        let most = self.config.rest_speed_rad_per_sec;
        let still = self.still.is_still(&position, states.stamp_secs, most);
        let at_rest = velocity.map_or(still, |velocity| velocity.iter().all(|velocity| velocity.abs() <= most));
        // a simulator's time has its own pace
        let late_secs =
            if self.config.use_sim_time { 0.0 } else { self.delay.beyond_least(states.stamp_secs, now_secs) };
        self.measured = Some(Measured { position, at_rest, at_secs: now_secs - late_secs });
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

    /// The robot's mode. One in which it executes no commands ends them at once, also if it is gone before the next tick.
    pub fn observe_mode(&mut self, mode: Mode, now_secs: f64) {
        self.mode = Some((mode, now_secs));
        if !mode.is_ready() {
            self.kept = None;
            if self.commands() {
                self.fail();
            }
        }
    }

    /// How many publishers the command topic has, this node's own among them. A second one ends the motion, also if it is gone
    /// before the next tick.
    pub fn observe_publishers(&mut self, count: usize) {
        self.publishers = Some(count);
        if count > 1 {
            self.kept = None;
            let commands = self.commands();
            self.latched.add_if(commands, Reason::SecondWriter);
        }
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
        self.kept = None;
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
}
