//! What a person asks of a policy node.

use super::Pilot;
use crate::data::{Change, Moved, Stage};
use crate::error::{Error, Result};
use crate::link::Rate;
use crate::option::Running;

impl Pilot {
    /// Leads from one stage to the next; refused where it leads nowhere, or what it needs is missing. Says what is so now.
    /// A node that is led by hand does not start by itself any more.
    pub fn change(&mut self, change: Change) -> Result<&'static str> {
        self.settings.autostart = false;
        self.step(change)
    }

    pub(super) fn step(&mut self, change: Change) -> Result<&'static str> {
        let from = self.stage();
        let Some(to) = change.leads(from) else {
            return Err(Error::invalid(format!("{change} leads nowhere from {from}")));
        };
        let said = match change {
            Change::Configure => {
                self.load()?;
                "inactive: there is a policy that fits"
            }
            Change::CleanUp if !self.is_quiet() => {
                return Err(Error::invalid("the arm is still coming to rest; clean up again"));
            }
            Change::CleanUp => {
                self.loaded = None;
                "unconfigured: there is no policy any more"
            }
            Change::Activate => {
                self.running = Running::default();
                self.decided_tick = None;
                self.decided_at_secs = None;
                "active: it decides, and commands nothing until it is armed"
            }
            Change::Deactivate => {
                self.disarm();
                "inactive"
            }
            Change::Shutdown => {
                self.finalized = true;
                if let Some(loaded) = &mut self.loaded {
                    loaded.guard.shutdown();
                }
                "finalized: start the node again to go on"
            }
        };
        self.active = to == Stage::Active;
        self.moves.push(Moved { change, from, to });
        Ok(said)
    }

    /// The changes of stage since the last call.
    pub fn moves(&mut self) -> Vec<Moved> {
        std::mem::take(&mut self.moves)
    }

    /// Arms. It must have decided, dry, on states that come fast enough. Says what is so now.
    pub fn arm(&mut self, now_secs: f64) -> Result<&'static str> {
        if let Some(why) = self.unarmable(now_secs) {
            return Err(Error::invalid(format!("not armed: {why}")));
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.arm(now_secs)?;
        }
        self.running = Running::default();
        Ok("armed: the arm follows the policy")
    }

    /// What [`Self::arm`] would be refused with now, if it would.
    pub(super) fn unarmable(&self, now_secs: f64) -> Option<String> {
        let (stage, tick, period) = (self.stage(), self.tick_secs(), self.state_period_secs);
        let Some(loaded) = &self.loaded else {
            return Some("there is no policy yet".into());
        };
        if stage != Stage::Active {
            return Some(format!("the node is {stage}; activate it first (ros2 lifecycle set)"));
        }
        if self.settings.guard.state_timeout_secs < now_secs - self.state_at_secs {
            return Some("no joint states come; look at the robot's driver, or at the simulator".into());
        }
        if self.base_from_goal.is_none() {
            return Some("no goal was heard on goal_pose".into());
        }
        if self.decided_at_secs.is_none_or(|at| now_secs - at > self.settings.guard.policy_timeout_secs) {
            return Some("the policy has not decided lately; look at the joint states and at /diagnostics".into());
        }
        if self.link.rate == Rate::PerState && 1.25 * tick < period {
            return Some(format!(
                "states come at {:.1} Hz and guard.command_rate_hz is {:.1}: each state gets one command, so the arm would be slow; \
                 give guard.command_rate_hz: {:.1}",
                1.0 / period,
                1.0 / tick,
                1.0 / period
            ));
        }
        loaded.guard.unarmable(now_secs)
    }

    /// Brings the arm to rest, and disarms. Says what is so now.
    pub fn disarm(&mut self) -> &'static str {
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.disarm();
        }
        "disarmed: the arm comes to rest"
    }

    /// The next step after the robot stopped itself; it never arms. `acknowledged`: a person looked, and the way is clear.
    pub fn recover(&mut self, acknowledged: bool, now_secs: f64) -> Result<&'static str> {
        let Some(loaded) = &mut self.loaded else {
            return Err(Error::invalid("there is no policy yet, and so nothing to recover"));
        };
        Ok(loaded.guard.recover(acknowledged, now_secs)?.advice())
    }

    /// Another share of the arm's limits, over 0 and at most 1. A moving arm is slowed within the old limits until it obeys the new.
    pub fn set_scale(&mut self, scale: f64) -> Result<&'static str> {
        let mut guard = self.settings.guard.clone();
        guard.scale = scale;
        guard.validate()?;
        if let Some(loaded) = &mut self.loaded {
            loaded.guard.set_scale(scale)?;
        }
        self.settings.guard = guard;
        Ok("the guard has another share of the limits")
    }

    /// Brings the arm to rest, for good; go on until [`Self::is_quiet`].
    pub fn shutdown(&mut self) {
        // refused where it was shut down before
        let _again = self.step(Change::Shutdown);
    }
}
