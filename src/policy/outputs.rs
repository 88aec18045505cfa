//! The actor's outputs as plain numbers. What acts and what learns read the same densities here.

use super::network::{LOG_STD_RANGE, Network, floats};
use crate::option::log_softmax;
use tch::Tensor;

/// Actor outputs of N states.
pub struct Outputs {
    options: usize,
    action: usize,
    /// Floats of a row of `heads`.
    width: usize,
    /// `[N, width]`, as [`Network::actor`] has them.
    heads: Vec<f32>,
    /// `[N, K, A]`, or `[1, K, A]` where they are the same in all states.
    log_std: Vec<f64>,
}

impl Outputs {
    /// Runs the actor on `[N, D]`, without gradients.
    pub fn new(network: &Network, input: &Tensor) -> Self {
        tch::no_grad(|| Self::of(network, &network.actor(input)))
    }

    /// What the actor made of its input, `[N, width]`.
    pub fn of(network: &Network, heads: &Tensor) -> Self {
        Self::read(network, floats(heads), heads.size()[1] as usize)
    }

    /// What the actor made of its input, N x width.
    pub(super) fn read(network: &Network, heads: Vec<f32>, width: usize) -> Self {
        let (options, action) = (network.options(), network.action_size());
        let last = |row: &[f32]| row[options * (action + 2)..].to_vec();
        let log_std = network.log_std().unwrap_or_else(|| heads.chunks_exact(width).flat_map(last).collect());
        let clamped = |log_std: f32| f64::from(log_std).clamp(LOG_STD_RANGE.0, LOG_STD_RANGE.1);
        Self { options, action, width, log_std: log_std.into_iter().map(clamped).collect(), heads }
    }

    /// K.
    pub fn options(&self) -> usize {
        self.options
    }

    /// A.
    pub fn action_size(&self) -> usize {
        self.action
    }

    /// Floats of a state's outputs: means by option, terminations, over options; off-policy log_std after them.
    pub fn width(&self) -> usize {
        self.width
    }

    /// States.
    pub fn len(&self) -> usize {
        self.heads.len() / self.width
    }

    /// Whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.heads[row * self.width..(row + 1) * self.width]
    }

    /// Whether every output of a state is finite.
    pub fn finite(&self, row: usize) -> bool {
        self.row(row).iter().all(|output| output.is_finite())
    }

    /// Mean of an option's action before tanh, A floats.
    pub fn mean(&self, row: usize, option: usize) -> &[f32] {
        &self.row(row)[option * self.action..(option + 1) * self.action]
    }

    /// Means of all options' actions before tanh, K x A floats.
    pub fn means(&self, row: usize) -> &[f32] {
        &self.row(row)[..self.options * self.action]
    }

    /// log standard deviations of an option's action before tanh, A floats.
    pub fn log_std(&self, row: usize, option: usize) -> &[f64] {
        let all = self.options * self.action;
        let state = if self.log_std.len() == all { 0 } else { row * all };
        &self.log_std[state + option * self.action..][..self.action]
    }

    /// The same before they are clamped, A floats; off-policy alone, where they are outputs.
    pub fn raw_log_std(&self, row: usize, option: usize) -> &[f32] {
        &self.row(row)[self.options * (self.action + 2) + option * self.action..][..self.action]
    }

    /// An option's termination logit.
    pub fn termination(&self, row: usize, option: usize) -> f64 {
        f64::from(self.row(row)[self.options * self.action + option])
    }

    /// log P(. | s), K numbers.
    pub fn log_over_options(&self, row: usize) -> Vec<f64> {
        let first = self.options * (self.action + 1);
        let logits = &self.row(row)[first..first + self.options];
        let mut logs: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        log_softmax(&mut logs);
        logs
    }

    /// log density of a proposal (before tanh) under an option: a diagonal Gaussian. The Jacobian of tanh is left out:
    /// it depends on the proposal alone and cancels in every ratio.
    pub fn log_prob_action(&self, row: usize, option: usize, proposal: &[f32]) -> f64 {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        self.mean(row, option)
            .iter()
            .zip(self.log_std(row, option))
            .zip(proposal)
            .map(|((&mean, log_std), &proposal)| {
                let z = (f64::from(proposal) - f64::from(mean)) * (-log_std).exp();
                -0.5 * z * z - log_std - half_log_tau
            })
            .sum()
    }
}
