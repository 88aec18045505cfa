//! The policy: networks built from a snapshot, and `decide`, the one way from observations to options and actions.
//! Rollout, evaluation, deployment and bag analysis all decide here.

mod alone;
mod decide;
mod dense;
mod network;
mod outputs;
mod recall;
#[cfg(test)]
pub(crate) mod tests;

pub use decide::{Decision, Policy, Sampling};
pub use dense::Kept;
pub(crate) use network::floats;
pub use network::{Critic, Heads, LOG_STD_RANGE, Network};
pub use outputs::Outputs;
pub use recall::{log_prob_error, running};

/// Threads that libtorch computes with in this process, from here on.
pub fn set_threads(threads: usize) {
    tch::set_num_threads(i32::try_from(threads).unwrap_or(1));
}
