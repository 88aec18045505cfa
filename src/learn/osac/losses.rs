//! What the critics learn: values of option soft actor-critic. Networks compute with tensors, all else in plain numbers.
//!
//! Soft values (Soft Options Critic: Lobo & Jordan 2019, arXiv 1905.11222; with one option SAC: Haarnoja et al. 2018,
//! arXiv 1812.05905): `Qs(s, o) = min_i Q_i(s, o, a_o) - alpha log pi_o(a_o | s)`, one a_o ~ pi_o for each option;
//! `V(s) = sum_o P(o | s) Qs(s, o)`; on arrival with o running `U(o, s) = (1 - beta_o) Qs(s, o) + beta_o (V(s) - eta)`,
//! terminations in expectation, so that every option learns from every step, whichever acted. The entropy of P is a matter
//! of P's own loss: as a part of V it would pay options for ending.

use super::imagine::imagine;
use crate::config::Osac as Config;
use crate::defect::defect;
use crate::learn::metrics::{explained_variance, std};
use crate::learn::twin::Twin;
use crate::option::{TERMINATION_LOGIT_MAX, log_sigmoid};
use crate::policy::{Network, Outputs, floats};
use tch::Tensor;

/// Temperatures of the actions and of the policy over options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temperatures {
    pub(super) action: f64,
    pub(super) option: f64,
}

/// B steps for the critics.
pub(super) struct Drawn {
    /// `[B, D]`, normalised.
    pub(super) input: Tensor,
    /// Where the steps led, `[B, D]`, normalised.
    pub(super) next: Tensor,
    /// What was carried out, `[B, A]`.
    pub(super) action: Tensor,
    /// B.
    pub(super) reward: Vec<f64>,
    /// gamma, 0 where the task ended the episode, B.
    pub(super) discount: Vec<f64>,
    /// Importance weights, B.
    pub(super) weight: Vec<f64>,
    /// The options that acted, B.
    pub(super) executed: Vec<usize>,
    /// Termination probability of the acting option on arrival, where d_min or d_max decides it, B.
    pub(super) forced: Vec<Option<f64>>,
    /// Normal draws for the actions where the steps led, B x K x A.
    pub(super) noise: Vec<f32>,
}

/// Networks that are learned, and those that follow them slowly.
pub(super) struct Networks {
    pub(super) actor: Network,
    pub(super) slow_actor: Network,
    pub(super) critics: Twin,
    pub(super) slow_critics: Twin,
}

/// The actor's outputs for `[N, D]`.
pub(super) fn outputs(actor: &Network, input: &Tensor) -> Outputs {
    Outputs::of(actor, actor.forward(input).output())
}

/// One action of each option in N states as the critics take it, `[N, K, A]`.
pub(super) fn actions(outputs: &Outputs, action: &[f32]) -> Tensor {
    Tensor::from_slice(action).view([-1, outputs.options() as i64, outputs.action_size() as i64])
}

/// Qs of the lesser twin's values, N x K.
pub(super) fn soft(least: &Tensor, log_prob: &[f64], alpha: f64) -> Vec<f64> {
    floats(least).iter().zip(log_prob).map(|(&value, log_prob)| f64::from(value) - alpha * log_prob).collect()
}

/// V of one state, of log P and Qs.
pub(super) fn value(log_over: &[f64], soft: &[f64]) -> f64 {
    log_over.iter().zip(soft).map(|(log, soft)| log.exp() * soft).sum()
}

/// `y_o = r + gamma m U(o, s')` for every option, B x K: values of the slow critics, terminations and choices of the slow
/// actor, actions of the learned one. What d_min and d_max decide is not drawn from the heads.
pub(super) fn targets(networks: &Networks, batch: &Drawn, alphas: Temperatures, config: &Config) -> Vec<f64> {
    let options = networks.actor.options();
    let next = outputs(&networks.actor, &batch.next);
    let imagined = imagine(&next, &batch.noise);
    let least = networks.slow_critics.least_of_own(&batch.next, &actions(&next, &imagined.action));
    let mut arrival = soft(&least, &imagined.log_prob, alphas.action);
    if 1 < options {
        let reached = if defect("ends_where_it_left") { &batch.input } else { &batch.next };
        let slow = outputs(&networks.slow_actor, reached);
        let eta = std(&arrival) * config.deliberation_cost;
        for (row, soft) in arrival.chunks_exact_mut(options).enumerate() {
            let acted = batch.executed[row];
            let stop = value(&slow.log_over_options(row), soft) - eta;
            if defect("one_value_for_all_options") {
                let own = soft[acted];
                soft.fill(own);
            }
            for (option, soft) in soft.iter_mut().enumerate() {
                let logit = slow.termination(row, option).clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
                let forced = if option == acted { batch.forced[row] } else { None };
                *soft += forced.unwrap_or_else(|| log_sigmoid(logit).exp()) * (stop - *soft);
            }
        }
    }
    for (row, values) in arrival.chunks_exact_mut(options).enumerate() {
        values.iter_mut().for_each(|value| *value = batch.reward[row] + batch.discount[row] * *value);
    }
    arrival
}

/// The critics' loss, and what replay hears of it.
pub(super) struct CriticLoss {
    /// `sum_i mean_b w_b sum_o v_o H(Q_i(s, o, a) - y_o)`, H Huber's or half the square.
    pub(super) loss: f64,
    /// Of the option that acted, mean of the twins' absolute ones, B.
    pub(super) errors: Vec<f64>,
    /// Share of the variance of the targets of the options that acted which the twins' mean explains.
    pub(super) explained: f64,
}

/// Takes the loss and, into the critics, its gradient. `v` is `executed_weight` on the option that acted, the rest is
/// spread over all.
pub(super) fn critic_loss(critics: &mut Twin, batch: &Drawn, targets: &[f64], config: &Config) -> CriticLoss {
    let rows = batch.executed.len();
    let options = targets.len() / rows;
    let even = (1.0 - config.executed_weight) / options as f64;
    let delta = if config.huber_delta == 0.0 { f64::INFINITY } else { config.huber_delta };
    let pass = critics.pass(&batch.input, &batch.action);
    let mut slopes = floats(&pass.values);
    let mut found = CriticLoss { loss: 0.0, errors: vec![0.0; rows], explained: 0.0 };
    let mut residual = vec![0.0; rows];
    for (at, value) in slopes.iter_mut().enumerate() {
        let pair = at % targets.len();
        let (row, acted) = (pair / options, pair % options == batch.executed[pair / options]);
        let weight = batch.weight[row] / rows as f64 * (even + if acted { config.executed_weight } else { 0.0 });
        let error = f64::from(*value) - targets[pair];
        // H = e² / 2 where |e| < delta, delta (|e| - delta / 2) beyond: H' = clamp(e), H = H' (e - H' / 2).
        let slope = error.clamp(-delta, delta);
        found.loss += weight * slope * (error - 0.5 * slope);
        found.errors[row] += if acted { 0.5 * error.abs() } else { 0.0 };
        residual[row] += if acted { 0.5 * error } else { 0.0 };
        *value = (weight * slope) as f32;
    }
    let acted: Vec<f64> = batch.executed.iter().zip(targets.chunks_exact(options)).map(|(&o, row)| row[o]).collect();
    found.explained = explained_variance(&acted, &residual);
    critics.learn(&pass, Tensor::from_slice(&slopes).view_as(&pass.values));
    found
}
