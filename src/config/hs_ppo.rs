//! What can be set of half-step PPO.

use serde::{Deserialize, Serialize};

/// Half-step PPO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HsPpo {
    /// Discount of a control tick.
    pub gamma: f64,
    /// Trace decay over actions.
    pub lam: f64,
    /// Trace decay over option decisions.
    pub lam_option: f64,
    /// Adam's learning rate.
    pub lr: f64,
    /// Environment steps over which the learning rate falls linearly; 0: it stays.
    pub lr_anneal_steps: u64,
    /// Where it falls to, relative to `lr`.
    pub lr_final: f64,
    /// Learning rate of the termination and policy-over-options heads, relative to `lr`.
    pub lr_option_scale: f64,
    /// Passes over the data of an update.
    pub num_learning_epochs: usize,
    /// Steps of one gradient.
    pub minibatch_size: usize,
    /// PPO's clip of the action ratio.
    pub clip_param: f64,
    /// PPO's clip of the option-transition ratio.
    pub option_clip_param: f64,
    /// Weight of the critic's loss.
    pub value_loss_coef: f64,
    /// Weight of the entropy of the options' actions.
    pub entropy_coef: f64,
    /// Weight of the entropy of the policy over options.
    pub option_entropy_coef: f64,
    /// Weight of KL(mean p^ || uniform).
    pub load_balance_coef: f64,
    /// Weight of the anchor on options with too little data.
    pub anchor_coef: f64,
    /// Options with fewer steps in an update are not stepped.
    pub min_option_steps: usize,
    /// Deliberation cost of a change of option, as a fraction of the returns' standard deviation.
    pub deliberation_cost: f64,
    /// Global gradient norm.
    pub max_grad_norm: f64,
    /// The update stops when KL(policy at its start || new) of the actions is over this; 0: never.
    pub desired_kl: f64,
    /// The update stops when KL of the option transition is over this; 0: never.
    pub desired_option_kl: f64,
    /// Truncation of V-trace's importance ratios (rho bar = c bar).
    pub rho_clip: f64,
    /// Weigh data that lags by the ratio of its actions; without is for comparison.
    pub action_ratios: bool,
    /// Weigh data that lags by the ratio of its option transitions; without is for comparison.
    pub option_ratios: bool,
    /// Clip the ratio to the policy at the update's start (Hilton et al. 2021); without, for comparison, to the one that recorded.
    pub decoupled: bool,
    /// log of the actions' standard deviation at the start.
    pub log_std_init: f64,
    /// Termination logit at the start.
    pub termination_bias_init: f64,
    /// Normalised observations are clipped to this.
    pub observation_clip: f64,
    /// Divide rewards by the running standard deviation of the discounted return.
    pub normalise_reward: bool,
    /// Weigh options by their share of the data.
    pub option_weights: bool,
}

impl Default for HsPpo {
    fn default() -> Self {
        Self {
            gamma: 0.95,
            lam: 0.85,
            lam_option: 1.0,
            lr: 7e-4,
            lr_anneal_steps: 1_500_000,
            lr_final: 0.1,
            lr_option_scale: 1.0,
            num_learning_epochs: 5,
            minibatch_size: 128,
            clip_param: 0.2,
            option_clip_param: 0.1,
            value_loss_coef: 0.5,
            entropy_coef: 0.0,
            option_entropy_coef: 0.005,
            load_balance_coef: 1.0,
            anchor_coef: 0.1,
            min_option_steps: 64,
            deliberation_cost: 0.02,
            max_grad_norm: 0.5,
            desired_kl: 0.2,
            desired_option_kl: 0.0,
            rho_clip: 1.0,
            action_ratios: true,
            option_ratios: true,
            decoupled: true,
            log_std_init: -0.5,
            termination_bias_init: -2.0,
            observation_clip: 10.0,
            normalise_reward: true,
            option_weights: true,
        }
    }
}
