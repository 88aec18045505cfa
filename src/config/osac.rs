//! What can be set of option soft actor-critic.

use serde::{Deserialize, Serialize};

/// How replay prefers steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prioritisation {
    /// All alike.
    Uniform,
    /// By the error, with importance weights.
    Proportional,
    /// By the error where it is large.
    Lap,
}

/// Option soft actor-critic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Osac {
    /// Discount of a control tick.
    pub gamma: f64,
    /// Adam's learning rate of critics, options and temperatures.
    pub lr: f64,
    /// Learning rate of the termination and policy-over-options heads.
    pub lr_option: f64,
    /// Steps of one gradient of the critics.
    pub batch_size: usize,
    /// Steps of one gradient of the actor.
    pub actor_batch_size: usize,
    /// Gradient steps for each recorded step, in the mean.
    pub update_to_data: f64,
    /// Steps that recording may be ahead of learning, or behind: at least one full batch of every stream.
    pub slack_steps: u64,
    /// Steps recorded at random before the first gradient.
    pub warmup_steps: u64,
    /// Observations that replay holds; a fragment of n steps takes n + 1.
    pub capacity: usize,
    /// Longest fragment in replay [steps].
    pub fragment_steps: usize,
    /// How the critics' steps are drawn.
    pub prioritisation: Prioritisation,
    /// Exponent of the priorities.
    pub priority_exponent: f64,
    /// Exponent of the importance weights at first; 1 after `anneal_steps`.
    pub importance_exponent: f64,
    /// Share of the critics' draws that is spread evenly over the options.
    pub option_share: f64,
    /// Share of the way that target networks go in a gradient step.
    pub tau: f64,
    /// Errors over this count linearly in the critics' loss; 0: none do.
    pub huber_delta: f64,
    /// Weight of the executed option in the critics' loss; the rest is spread over all.
    pub executed_weight: f64,
    /// Fragments behind the actor's steps of one gradient.
    pub actor_fragments: usize,
    /// Share of the responsibilities that is spread over all options.
    pub responsibility_floor: f64,
    /// Temperatures at the start.
    pub temperature_init: f64,
    /// Entropy that an option's action shall have, of each joint.
    pub target_entropy: f64,
    /// Entropy that the policy over options shall have at first, as a share of log K.
    pub option_entropy_start: f64,
    /// The same after `anneal_steps`.
    pub option_entropy_end: f64,
    /// Recorded steps in which shares and exponents go from their first to their last value.
    pub anneal_steps: u64,
    /// Weight of KL(mean P || uniform), as a fraction of the values' standard deviation.
    pub load_balance_coef: f64,
    /// Temperature of the terminations' entropy, as a fraction of the values' standard deviation.
    pub termination_temperature: f64,
    /// Deliberation cost of a termination, as a fraction of the values' standard deviation.
    pub deliberation_cost: f64,
    /// Termination logit at the start.
    pub termination_bias_init: f64,
    /// Normalised observations are clipped to this.
    pub observation_clip: f64,
}

impl Default for Osac {
    fn default() -> Self {
        Self {
            gamma: 0.95,
            lr: 7e-4,
            lr_option: 1e-4,
            batch_size: 256,
            actor_batch_size: 256,
            update_to_data: 1.0,
            slack_steps: 256,
            warmup_steps: 1000,
            capacity: 1_000_000,
            fragment_steps: 16,
            prioritisation: Prioritisation::Lap,
            priority_exponent: 0.4,
            importance_exponent: 0.4,
            option_share: 0.5,
            tau: 0.005,
            huber_delta: 1.0,
            executed_weight: 0.5,
            actor_fragments: 32,
            responsibility_floor: 0.1,
            temperature_init: 0.1,
            target_entropy: -1.0,
            option_entropy_start: 0.5,
            option_entropy_end: 0.1,
            anneal_steps: 50_000,
            load_balance_coef: 0.05,
            termination_temperature: 0.01,
            deliberation_cost: 0.02,
            termination_bias_init: -2.0,
            observation_clip: 10.0,
        }
    }
}
