//! What can be set of learning from bags.

use serde::{Deserialize, Serialize};

/// Implicit Q-learning over options (`iql`) and behaviour cloning (`bc`). What a run that goes on online must agree with is that of
/// [`super::HsPpo`]: `gamma`, `deliberation_cost`, `normalise_reward`, `observation_clip` and how networks start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Offline {
    /// The bags, apart by `;`.
    pub bags: String,
    /// Share of the episodes that validate.
    pub validation: f64,
    /// Share of the episodes that are kept for the end.
    pub test: f64,
    /// Gradient steps of the whole run.
    pub gradient_steps: u64,
    /// Gradient steps of an update, after each of which the validation is looked at.
    pub update_steps: u64,
    /// Steps of one gradient.
    pub batch_size: usize,
    /// Adam's learning rate.
    pub lr: f64,
    /// iql: the expectile of the values, 0.5 (their mean) to 1 (their maximum).
    pub expectile: f64,
    /// iql: how much more a better action counts, in scaled rewards: with returns of deviation 1, where Kostrikov et al. scale theirs to
    /// a range of 1000 and take 3.
    pub temperature: f64,
    /// iql: the same for the choice of an option.
    pub option_temperature: f64,
    /// iql: weight of the options' values in the loss of the terminations, beside their likelihood.
    pub termination_weight: f64,
    /// iql: weight of the executed option in the losses of critics and actions; the rest is spread over all, as a step tells of each
    /// option that could have taken it (intra-option learning, Sutton, Precup & Singh 1998).
    pub executed_weight: f64,
    /// iql: share of the way that target networks go in a gradient step.
    pub tau: f64,
}

impl Default for Offline {
    fn default() -> Self {
        Self {
            bags: String::new(),
            validation: 0.1,
            test: 0.1,
            gradient_steps: 15_000,
            update_steps: 200,
            batch_size: 256,
            lr: 3e-4,
            expectile: 0.9,
            temperature: 30.0,
            option_temperature: 3.0,
            termination_weight: 1.0,
            executed_weight: 0.5,
            tau: 0.005,
        }
    }
}

impl Offline {
    /// Apart by `;`.
    pub fn paths(&self) -> Vec<std::path::PathBuf> {
        self.bags.split(';').filter(|path| !path.is_empty()).map(Into::into).collect()
    }
}
