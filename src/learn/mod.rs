//! Learning: half-step PPO over options, option soft actor-critic with replay, implicit Q-learning and cloning from bags; on our own
//! optimiser.
//!
//! Half-step PPO is PPO (Schulman et al. 2017, arXiv 1707.06347) at both levels of DAC (Zhang & Whiteson 2019,
//! arXiv 1904.12691) on the half-step chain of [`crate::option::half_step`], with the decoupled objective
//! (Hilton et al. 2021, arXiv 2110.00641) and V-trace for data that lags. With one option it is PPO.

mod algorithm;
mod batch;
mod beside;
mod estimate;
mod gather;
mod hs_ppo;
mod init;
mod learned;
mod loss;
mod metrics;
mod normaliser;
mod offline;
mod optimiser;
mod osac;
mod state;
#[cfg(test)]
mod tests;
mod twin;
mod uniform;
mod watch;

pub use algorithm::{Algorithm, algorithm};
pub use estimate::Scale;
pub use hs_ppo::{HsPpo, State};
pub use metrics::Metrics;
pub use normaliser::Moments;
pub use offline::{Dataset, Offline};
pub use optimiser::{Adam, AdamState, Rates, clip_gradient};
pub use osac::Osac;
pub use state::reward_scale;
