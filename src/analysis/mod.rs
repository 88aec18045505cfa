//! What a bag says of the run that it recorded: what happened, what the policy did, whether it is what a policy would do now, how good
//! the critic thinks it was, whether the system was healthy, and what to look at first.
//!
//! One pass in the order of time (of recording, where the clock was set back), in memory that does not grow with the bag. States, commands
//! and goals go through the very node that moves an arm ([`crate::node::policy::Pilot`], dry), so that a bag played into a running node
//! gives the same decisions. Transitions are decided again on the observations that they carry.

mod attention;
pub mod episodes;
pub mod health;
#[cfg(feature = "torch")]
mod judge;
#[cfg(feature = "torch")]
mod lead;
#[cfg(feature = "torch")]
mod logged;
pub mod options;
#[cfg(feature = "torch")]
mod replay;
#[cfg(feature = "torch")]
mod rows;
#[cfg(feature = "torch")]
#[cfg(test)]
mod tests;
#[cfg(feature = "torch")]
mod topics;
pub mod trace;
#[cfg(feature = "torch")]
mod walk;

pub use attention::{Attention, Urgency, attention};
#[cfg(feature = "torch")]
pub use logged::{Recorded, transitions};
#[cfg(feature = "torch")]
pub use walk::{Decision, Present, Rewards, Setup, analyse};

use crate::bag::Survey;
use episodes::Episodes;
use health::Health;
use options::OptionUse;
use serde::Serialize;
use trace::{Mean, Moment, Trace};

/// A policy, in a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyName {
    /// Where it is from: a run's path, or "the bag".
    pub from: String,
    /// uuid of its run.
    pub run: String,
    /// Start of the learner, and version.
    pub version: (u32, u64),
}

/// How far one policy is from another, in one option.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OptionDivergence {
    /// Its number.
    pub option: usize,
    /// KL of the action's Gaussians before tanh, where it acted [nat].
    pub action: Option<Mean>,
    /// KL of the option transition p^, where it was running on arrival [nat].
    pub transition: Option<Mean>,
}

/// How far one policy is from another.
#[derive(Clone, Debug, Serialize)]
pub struct Divergence {
    /// By option.
    pub options: Vec<OptionDivergence>,
    /// Control ticks at which both took the same option, of those that tell.
    pub agreement: Option<f64>,
    /// Where they differ most.
    pub worst: Vec<Moment>,
    /// Both divergences together over time [nat].
    #[serde(skip)]
    pub trace: Trace,
}

/// What the critic says.
#[derive(Clone, Debug, Serialize)]
pub struct Values {
    /// Q(s, o) of the option that acted, in scaled rewards.
    pub values: Mean,
    /// r / scale + gamma U(s', o) - Q(s, o); none where the scale of rewards is not known.
    pub td_errors: Option<Mean>,
    /// Where it is largest.
    pub worst: Vec<Moment>,
    /// Q over time.
    #[serde(skip)]
    pub trace: Trace,
    /// TD errors over time.
    #[serde(skip)]
    pub td_trace: Trace,
}

/// All that a bag says.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Its contents and their health.
    pub survey: Survey,
    /// What was analysed: the states of a robot, transitions, or both.
    pub source: String,
    /// The policy of today.
    pub present: Option<PolicyName>,
    /// The one that it is compared with.
    pub against: Option<PolicyName>,
    /// Where to look first, the most urgent first.
    pub attention: Vec<Attention>,
    /// What could not be answered, and what would help.
    pub notes: Vec<String>,
    /// What happened.
    pub episodes: Option<Episodes>,
    /// What the policy did.
    pub options: Option<OptionUse>,
    /// Decisions of the present policy on the recorded states.
    pub decisions: u64,
    /// The policy that was recorded against the present one.
    pub now: Option<Divergence>,
    /// The present one against the other.
    pub between: Option<Divergence>,
    /// What the critic says.
    pub critic: Option<Values>,
    /// Whether the system was healthy.
    pub health: Health,
}
