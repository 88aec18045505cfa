//! The option process in plain numbers: option transition, termination, d_min and d_max, half-step returns.

mod filter;
mod half_step;
mod process;
#[cfg(test)]
pub(crate) mod tests;

pub use filter::Filter;
pub use half_step::{Estimate, HalfStep, Traces, half_step};
pub use process::{
    Arrival, TERMINATION_LOGIT_MAX, arrival_value, beta_effective, log_sigmoid, log_softmax, log_sum_exp, transition,
};

/// What runs in one environment between two ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Running {
    /// The option; none at the start of an episode.
    pub option: Option<u8>,
    /// Control ticks since it was chosen (by a termination or at the start).
    pub age: u32,
}
