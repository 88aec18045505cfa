//! What a policy node says of itself.

use super::Pilot;
use crate::data::Stage;
use crate::guard::{Reason, Report};

/// How it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// How far it is.
    pub stage: Stage,
    /// A sentence for a person.
    pub sentence: String,
    /// What arming would be refused with now, where the node is active and nothing is commanded.
    pub unarmable: Option<String>,
    /// Of the guard; none without a policy.
    pub guard: Option<Report>,
    /// Weights in use; 0 without a policy.
    pub version: u64,
    /// Newer weights wait for the end of an option.
    pub weights_wait: bool,
    /// Header stamp of the newest command heard, whoever gave it [s].
    pub command_secs: Option<f64>,
    /// Decisions since the start.
    pub decisions: u64,
    /// Control ticks that found no state.
    pub missed: u64,
    /// States that were refused.
    pub refused_states: u64,
    /// Weights that were refused.
    pub refused_weights: u64,
    /// States a second, by their stamps; 0 before the second.
    pub state_rate_hz: f64,
}

impl Status {
    /// Whether `next` is another state of node or guard.
    pub fn turned_to(&self, next: &Self) -> bool {
        let state = |status: &Self| (status.stage, status.guard.as_ref().map(|report| (report.state, report.reasons)));
        state(self) != state(next)
    }

    /// Whether somebody should look.
    pub fn is_trouble(&self) -> bool {
        let guard = self.guard.as_ref();
        let stepped_in = guard.is_some_and(|report| report.reasons.iter().any(|reason| reason != Reason::Disarmed));
        stepped_in || guard.is_some_and(|report| report.needs_recovery)
    }
}

impl Pilot {
    /// How it goes.
    pub fn status(&self, now_secs: f64) -> Status {
        let guard = self.loaded.as_ref().map(|loaded| loaded.guard.report());
        let stage = self.stage();
        let dry = stage == Stage::Active && self.is_quiet();
        let unarmable = if dry { self.unarmable(now_secs) } else { None };
        let sentence = match (stage, &guard) {
            (_, None) if self.heard.is_none() => format!("{stage}: no policy was heard"),
            (_, None) => format!("{stage}: a policy was heard; configure to load it"),
            (Stage::Active, Some(report)) => {
                let refuses =
                    unarmable.as_ref().map_or_else(String::new, |why| format!("; arming is refused now: {why}"));
                let trouble = self.trouble.as_ref().map_or_else(String::new, |trouble| format!("; {trouble}"));
                format!("{stage}, {}{refuses}{trouble}", report.sentence)
            }
            (_, Some(report)) => format!("{stage}, {}", report.sentence),
        };
        Status {
            stage,
            sentence,
            unarmable,
            guard,
            version: self.loaded.as_ref().map_or(0, |loaded| loaded.snapshot.version),
            weights_wait: self.loaded.as_ref().is_some_and(|loaded| loaded.waiting.is_some()),
            command_secs: self.given_secs,
            decisions: self.decisions,
            missed: self.missed,
            refused_states: self.refused_states,
            refused_weights: self.refused_weights,
            state_rate_hz: if self.state_period_secs > 0.0 { 1.0 / self.state_period_secs } else { 0.0 },
        }
    }
}
