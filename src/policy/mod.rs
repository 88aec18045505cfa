//! The policy: networks built from a snapshot, and `decide`, the one way from observations to options and actions.
//! Rollout, evaluation, deployment and bag analysis all decide here.

mod decide;
mod network;
mod outputs;
#[cfg(test)]
pub(crate) mod tests;

pub use decide::{Decision, Policy, Sampling};
pub use network::{Heads, LOG_STD_RANGE, Network};
pub use outputs::Outputs;

pub(crate) use network::floats;
