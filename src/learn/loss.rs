//! The losses on one minibatch of steps, and their gradient at the networks' outputs, in closed form.
//! Below the outputs `policy` takes the gradient on.

use super::batch::{Anchor, Column, Minibatch};
use crate::config::HsPpo;
use crate::defect::defect;
use crate::option::{TERMINATION_LOGIT_MAX, log_sigmoid, log_sum_exp};
use crate::policy::{LOG_STD_RANGE, Outputs};

/// What each loss counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    pub(super) policy: f64,
    pub(super) entropy: f64,
    pub(super) option_policy: f64,
    pub(super) option_entropy: f64,
    pub(super) load_balance: f64,
    pub(super) anchor: f64,
}

impl Weights {
    /// Entropies are to grow, all else to fall.
    pub(super) fn new(config: &HsPpo) -> Self {
        Self {
            policy: 1.0,
            entropy: -config.entropy_coef,
            option_policy: 1.0,
            option_entropy: -config.option_entropy_coef,
            load_balance: config.load_balance_coef,
            anchor: config.anchor_coef,
        }
    }
}

/// Each loss of the actor apart, with what is watched. The option level is none for one option.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Losses {
    /// PPO's clipped loss of the actions.
    pub(super) policy: Clipped,
    /// The same by the option that acted, K parts.
    pub(super) policy_by_option: Vec<Clipped>,
    /// Mean entropy of the acting options' Gaussians, before tanh.
    pub(super) entropy: f64,
    /// The losses of the option level.
    pub(super) options: Option<OptionLosses>,
    /// KL(proximal || new) of the anchored options, mean over the states, summed.
    pub(super) anchor: Option<f64>,
}

/// The option level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OptionLosses {
    /// PPO's clipped loss of the option transitions.
    pub(super) policy: Clipped,
    /// The same by the option that acted, K parts.
    pub(super) policy_by_option: Vec<Clipped>,
    /// Mean entropy of the policy over options.
    pub(super) entropy: f64,
    /// KL(mean p^ || uniform).
    pub(super) load_balance: f64,
}

/// PPO's clipped loss of some steps, and how far their ratios are from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clipped {
    /// Share of all steps that these are.
    pub(super) steps: f64,
    /// Sum over these of the loss, each times its share; so are the next two.
    pub(super) loss: f64,
    /// KL(proximal || new) as Schulman's k3, r - 1 - log r.
    pub(super) kl: f64,
    /// Ratios outside of the clip.
    pub(super) share: f64,
    /// The largest |log r|.
    pub(super) most: f64,
}

impl Clipped {
    /// Takes a step in, which is `share` of all. Returns the slope of the loss along the log ratio: 0 where the clip holds
    /// the objective (Schulman et al. 2017, eq. 7).
    pub(super) fn add(&mut self, log_ratio: f64, advantage: f64, clip: f64, share: f64) -> f64 {
        let ratio = log_ratio.exp();
        let (free, held) = (ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage);
        let outside = clip < (ratio - 1.0).abs();
        self.steps += share;
        self.loss -= share * free.min(held);
        self.kl += share * (ratio - 1.0 - log_ratio);
        self.share += if outside { share } else { 0.0 };
        self.most = self.most.max(log_ratio.abs());
        // Not "held < free": a ratio that is not a number must not pass as a slope of 0.
        if outside && held < free { 0.0 } else { -share * free }
    }

    /// Of all steps, out of parts.
    fn of(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |all, part| Self {
            steps: all.steps + part.steps,
            loss: all.loss + part.loss,
            kl: all.kl + part.kl,
            share: all.share + part.share,
            most: all.most.max(part.most),
        })
    }
}

/// The gradient of the weighted sum of the losses at the actor's outputs.
pub(super) struct Slopes {
    /// B x (K A + 2 K), as the actor has its heads.
    pub(super) heads: Vec<f32>,
    /// K x A.
    pub(super) log_std: Vec<f32>,
}

/// Whether a descent along `slope` keeps what is clamped where it counts, or brings it back there: beyond the bounds the loss is
/// flat, and what crossed them would stay.
pub(super) fn leads_back(slope: f64, parameter: f64, clamped: f64) -> bool {
    parameter == clamped || 0.0 < slope * (parameter - clamped)
}

/// Takes every loss of the actor. `log_std` is the parameter itself, K x A, not clamped.
pub(super) fn losses(
    outputs: &Outputs,
    log_std: &[f32],
    batch: &Minibatch,
    anchor: &Anchor,
    config: &HsPpo,
    weights: &Weights,
) -> (Losses, Slopes) {
    let mut log_std_slopes = vec![0.0; log_std.len()];
    let mut heads = vec![0.0; outputs.len() * outputs.width()];
    let options = (outputs.width() - log_std.len()) / 2;
    let mut losses = actions(outputs, batch, config, weights, &mut heads, &mut log_std_slopes);
    if 1 < options {
        losses.options = Some(choices(outputs, options, batch, config, weights, &mut heads));
    }
    losses.anchor = anchored(outputs, options, batch, anchor, weights, &mut heads, &mut log_std_slopes);
    let slopes = log_std_slopes.iter().zip(log_std).map(|(&slope, &parameter)| {
        let clamped = f64::from(parameter).clamp(LOG_STD_RANGE.0, LOG_STD_RANGE.1);
        if leads_back(slope, f64::from(parameter), clamped) { slope as f32 } else { 0.0 }
    });
    let log_std = slopes.collect();
    (losses, Slopes { heads: heads.into_iter().map(|slope| slope as f32).collect(), log_std })
}

/// The action level.
fn actions(
    outputs: &Outputs,
    batch: &Minibatch,
    config: &HsPpo,
    weights: &Weights,
    heads: &mut [f64],
    log_std_slopes: &mut [f64],
) -> Losses {
    let (share, half_log_tau_e) = (1.0 / batch.rows.len() as f64, 0.5 * (std::f64::consts::TAU.ln() + 1.0));
    let options = (outputs.width() - log_std_slopes.len()) / 2;
    let mut losses = Losses { policy_by_option: vec![Clipped::default(); options], ..Losses::default() };
    for (at, (&row, heads)) in batch.rows.iter().zip(heads.chunks_exact_mut(outputs.width())).enumerate() {
        let steps = &*batch.steps;
        let option = if defect("trains_the_option_before") { steps.running[row] } else { steps.option[row] };
        let proposal = steps.proposal(row);
        let log_std = outputs.log_std(at, option);
        let log_ratio = outputs.log_prob_action(at, option, proposal) - steps.column(row, Column::LogProbAction);
        let advantage = steps.column(row, Column::AdvantageAction);
        let clipped = &mut losses.policy_by_option[option];
        let slope = weights.policy * clipped.add(log_ratio, advantage, config.clip_param, share);
        let density = if defect("log_of_density_plus_small") {
            outputs.log_prob_action(at, option, proposal).exp()
        } else {
            f64::INFINITY
        };
        let slope = slope / (1.0 + 1e-5 / density);
        let first = option * proposal.len();
        for (joint, (&proposal, &log_std)) in proposal.iter().zip(log_std).enumerate() {
            let scale = (-log_std).exp();
            let z = (f64::from(proposal) - f64::from(outputs.mean(at, option)[joint])) * scale;
            losses.entropy += share * (log_std + half_log_tau_e);
            heads[first + joint] += slope * z * scale;
            log_std_slopes[first + joint] += slope * (z * z - 1.0) + weights.entropy * share;
        }
    }
    losses.policy = Clipped::of(&losses.policy_by_option);
    losses
}

/// What the second pass needs of a step.
struct Chosen {
    /// P, K numbers.
    over: Vec<f64>,
    /// Probability of a new draw on arrival, and its slope along the termination logit.
    beta: f64,
    beta_slope: f64,
}

/// The option level: two passes, since the load balance is that of the mean law.
fn choices(
    outputs: &Outputs,
    options: usize,
    batch: &Minibatch,
    config: &HsPpo,
    weights: &Weights,
    heads: &mut [f64],
) -> OptionLosses {
    let (steps, share, width) = (&*batch.steps, 1.0 / batch.rows.len() as f64, outputs.width());
    let mut losses = OptionLosses { policy_by_option: vec![Clipped::default(); options], ..OptionLosses::default() };
    let mut law = vec![0.0; options];
    let first = width - 2 * options;
    let mut all = Vec::with_capacity(batch.rows.len());
    for (at, &row) in batch.rows.iter().enumerate() {
        let credited = if defect("credits_the_first_row") { batch.rows[0] } else { row };
        let (option, running) = (steps.option[credited], steps.running[row]);
        let set = |column: Column| steps.column(row, column) != 0.0;
        let (drawn, same, other) = (set(Column::Drawn), set(Column::FreeSame), set(Column::FreeOther));
        let logit = outputs.termination(at, running).clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
        let (log_stop, log_go) = (log_sigmoid(logit), log_sigmoid(-logit));
        let (stop, go) = (log_stop.exp(), log_go.exp());
        let log_over = outputs.log_over_options(at);
        let over: Vec<f64> = log_over.iter().map(|log| log.exp()).collect();

        // log p^(option), and its slopes along log P(option) and the logit.
        let chosen = log_stop + log_over[option];
        let (log_prob, by_over, by_logit) = if drawn {
            (log_over[option], 1.0, 0.0)
        } else if same {
            let both = log_sum_exp(&[log_go, chosen]);
            let ended = (chosen - both).exp();
            (both, ended, ended * go - (1.0 - ended) * stop)
        } else if other {
            (chosen, 1.0, go)
        } else {
            (0.0, 0.0, 0.0)
        };
        let (proximal, advantage) =
            (steps.column(row, Column::LogProbOption), steps.column(row, Column::AdvantageOption));
        let proximal = if defect("sampled_without_its_probability") { 0.0 } else { proximal };
        let clipped = &mut losses.policy_by_option[option];
        let slope =
            weights.option_policy * clipped.add(log_prob - proximal, advantage, config.option_clip_param, share);
        let entropy: f64 = -over.iter().zip(&log_over).map(|(p, log)| p * log).sum::<f64>();
        losses.entropy += share * entropy;

        let out = &mut heads[at * width + first..(at + 1) * width];
        out[running] += slope * by_logit;
        for other in 0..options {
            let picked = if other == option { 1.0 } else { 0.0 };
            out[options + other] += slope * by_over * (picked - over[other])
                - weights.option_entropy * share * over[other] * (log_over[other] + entropy);
        }

        let free = same || other;
        let beta = if drawn {
            1.0
        } else if free {
            stop
        } else {
            0.0
        };
        let marked = if defect("marks_options_of_other_rows") { 0..options } else { running..running + 1 };
        law[marked].iter_mut().for_each(|law| *law += share * (1.0 - beta));
        law.iter_mut().zip(&over).for_each(|(law, over)| *law += share * beta * over);
        all.push(Chosen { over, beta, beta_slope: if free { stop * go } else { 0.0 } });
    }

    losses.policy = Clipped::of(&losses.policy_by_option);

    // d KL / d law, of a minibatch in which an option may have no probability at all.
    let log_uniform = (options as f64).ln();
    let logs: Vec<f64> = law.iter().map(|law| law.max(f64::from(f32::MIN_POSITIVE)).ln() + log_uniform).collect();
    losses.load_balance = law.iter().zip(&logs).map(|(law, log)| law * log).sum();
    let pull: Vec<f64> = logs.iter().map(|log| weights.load_balance * share * (log + 1.0)).collect();
    for (at, (&row, chosen)) in batch.rows.iter().zip(&all).enumerate() {
        let Chosen { over, beta, beta_slope } = chosen;
        let running = steps.running[row];
        let mean: f64 = over.iter().zip(&pull).map(|(p, pull)| p * pull).sum();
        let out = &mut heads[at * width + first..(at + 1) * width];
        out[running] += (mean - pull[running]) * beta_slope;
        let logit = outputs.termination(at, running);
        if !leads_back(out[running], logit, logit.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX)) {
            out[running] = 0.0;
        }
        for option in 0..options {
            out[options + option] += beta * over[option] * (pull[option] - mean);
        }
    }
    losses
}

/// KL between diagonal Gaussians, proximal || new, mean over the states, summed over the anchored options.
fn anchored(
    outputs: &Outputs,
    options: usize,
    batch: &Minibatch,
    anchor: &Anchor,
    weights: &Weights,
    heads: &mut [f64],
    log_std_slopes: &mut [f64],
) -> Option<f64> {
    let proximal = batch.steps.anchor.as_ref()?;
    let (share, all) = (1.0 / batch.rows.len() as f64, log_std_slopes.len());
    let (action, width) = (all / options, outputs.width());
    let mut loss = 0.0;
    for (at, &row) in batch.rows.iter().enumerate() {
        let before = &proximal[row * all..(row + 1) * all];
        for &option in &anchor.options {
            for (joint, &log_std) in outputs.log_std(at, option).iter().enumerate() {
                let index = option * action + joint;
                let (was, precision) = (anchor.log_std[index], (-2.0 * log_std).exp());
                let apart = f64::from(outputs.mean(at, option)[joint]) - f64::from(before[index]);
                let square = ((2.0 * was).exp() + apart * apart) * precision;
                loss += share * (log_std - was + 0.5 * square - 0.5);
                heads[at * width + index] += weights.anchor * share * apart * precision;
                log_std_slopes[index] += weights.anchor * share * (1.0 - square);
            }
        }
    }
    Some(loss)
}

/// The critic's mean squared error at the options that acted, weighted, and `coef` times its gradient at the values,
/// B x K.
pub(super) fn value_loss(values: &[f32], batch: &Minibatch, coef: f64) -> (f64, Vec<f32>) {
    let (steps, share) = (&*batch.steps, 1.0 / batch.rows.len() as f64);
    let options = values.len() / batch.rows.len();
    let (mut loss, mut slopes) = (0.0, vec![0.0; values.len()]);
    for (at, &row) in batch.rows.iter().enumerate() {
        let place = at * options + steps.option[row];
        let error = f64::from(values[place]) - steps.column(row, Column::Target);
        let weight = share * steps.column(row, Column::Weight);
        loss += weight * error * error;
        slopes[place] = (coef * 2.0 * weight * error) as f32;
    }
    (loss, slopes)
}
