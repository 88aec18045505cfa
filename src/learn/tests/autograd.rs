//! The losses written again, as tensors whose gradient autograd takes: an oracle for the closed form.

use crate::config::HsPpo;
use crate::learn::batch::{Anchor, COLUMNS, Column, Minibatch};
use crate::option::TERMINATION_LOGIT_MAX;
use crate::policy::{Critic, Heads, LOG_STD_RANGE, Network};
use tch::{Kind, Tensor};

/// A minibatch as tensors.
struct Batch {
    input: Tensor,
    /// `[B]`.
    option: Tensor,
    /// `[B]`.
    running: Tensor,
    /// `[B, A]`.
    proposal: Tensor,
    /// `[B, COLUMNS]`.
    columns: Tensor,
    /// `[B, K, A]`.
    anchor: Option<Tensor>,
}

impl Batch {
    fn new(batch: &Minibatch, options: usize) -> Self {
        let (steps, rows) = (&*batch.steps, &batch.rows);
        let count = rows.len() as i64;
        let of = |values: &[usize]| Tensor::from_slice(&rows.iter().map(|&row| values[row] as i64).collect::<Vec<_>>());
        let table = |floats: &[f32], width: usize| {
            let picked: Vec<f32> =
                rows.iter().flat_map(|&row| &floats[row * width..(row + 1) * width]).copied().collect();
            Tensor::from_slice(&picked)
        };
        let action = steps.proposal(0).len();
        let shape = [count, options as i64, action as i64];
        Self {
            input: batch.input.shallow_clone(),
            option: of(&steps.option),
            running: of(&steps.running),
            proposal: table(&steps.proposal, action).view([count, -1]),
            columns: table(&steps.columns, COLUMNS).view([count, COLUMNS as i64]),
            anchor: steps.anchor.as_ref().map(|means| table(means, options * action).view(shape)),
        }
    }

    fn column(&self, column: Column) -> Tensor {
        self.columns.select(1, column as i64)
    }
}

/// Each loss apart (scalars), with what is watched. The option level is none for one option.
pub(super) struct Losses {
    /// PPO's clipped loss of the actions.
    pub(super) policy: Tensor,
    /// Half the weight is PPO's convention; this is the mean squared error.
    pub(super) value: Tensor,
    /// Mean entropy of the acting options' Gaussians, before tanh.
    pub(super) entropy: Tensor,
    /// log of new / proximal, `[B]`.
    pub(super) log_ratio_action: Tensor,
    /// The losses of the option level.
    pub(super) options: Option<OptionLosses>,
    /// KL(proximal || new) of the anchored options, summed.
    pub(super) anchor: Option<Tensor>,
}

/// The option level.
pub(super) struct OptionLosses {
    /// PPO's clipped loss of the option transitions.
    pub(super) policy: Tensor,
    /// Mean entropy of the policy over options.
    pub(super) entropy: Tensor,
    /// KL(mean p^ || uniform).
    pub(super) load_balance: Tensor,
    /// log of new / proximal, `[B]`.
    pub(super) log_ratio: Tensor,
}

impl Losses {
    /// Their weighted sum.
    pub(super) fn total(&self, config: &HsPpo) -> Tensor {
        let mut total = &self.policy + &self.value * config.value_loss_coef - &self.entropy * config.entropy_coef;
        if let Some(options) = &self.options {
            total += &options.policy - &options.entropy * config.option_entropy_coef
                + &options.load_balance * config.load_balance_coef;
        }
        if let Some(anchor) = &self.anchor {
            total += anchor * config.anchor_coef;
        }
        total
    }
}

/// Mean squared error of the critic at the options that acted, weighted.
fn value_loss(critic: &Critic, batch: &Batch) -> Tensor {
    let value = critic.values(&batch.input).gather(1, &batch.option.unsqueeze(1), false).squeeze_dim(1);
    let error = (value - batch.column(Column::Target)).square() * batch.column(Column::Weight);
    error.mean(Kind::Float)
}

/// Runs the networks and takes every loss of them.
pub(super) fn losses(network: &Network, batch: &Minibatch, anchor: &Anchor, config: &HsPpo) -> Losses {
    let batch = &Batch::new(batch, network.options());
    let heads = network.split(&network.actor(&batch.input));
    let all_log_std = heads.log_std.squeeze_dim(0).clamp(LOG_STD_RANGE.0, LOG_STD_RANGE.1);
    let log_std = all_log_std.index_select(0, &batch.option);
    let mean = of_option(&heads.mean, &batch.option);
    let log_ratio_action = log_density(&mean, &log_std, &batch.proposal) - batch.column(Column::LogProbAction);
    let advantage = batch.column(Column::AdvantageAction);
    let half_log_tau_e = 0.5 * (std::f64::consts::TAU.ln() + 1.0);
    Losses {
        policy: -clipped(&log_ratio_action.exp(), &advantage, config.clip_param).mean(Kind::Float),
        entropy: (log_std + half_log_tau_e).sum_dim_intlist([1i64].as_slice(), false, Kind::Float).mean(Kind::Float),
        log_ratio_action,
        options: (1 < network.options()).then(|| option_losses(&heads, batch, config)),
        anchor: batch.anchor.as_ref().map(|proximal| anchored(&heads.mean, &all_log_std, proximal, anchor)),
        value: value_loss(&network.share_critic().unwrap(), batch),
    }
}

fn option_losses(heads: &Heads, batch: &Batch, config: &HsPpo) -> OptionLosses {
    let (drawn, same, other) =
        (batch.column(Column::Drawn), batch.column(Column::FreeSame), batch.column(Column::FreeOther));
    let running = batch.running.unsqueeze(1);
    let logit = heads.termination.gather(1, &running, false).squeeze_dim(1);
    let logit = logit.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
    let log_over = heads.over_options.log_softmax(1, Kind::Float);
    let over = log_over.exp();
    let picked = log_over.gather(1, &batch.option.unsqueeze(1), false).squeeze_dim(1);

    // log p^(option): P alone where drawn; 0 where d_min holds; the mixture where the policy chose.
    let chosen = logit.log_sigmoid() + &picked;
    let stays = (-&logit).log_sigmoid().logaddexp(&chosen);
    let log_prob = &drawn * &picked + &same * stays + &other * &chosen;
    let log_ratio = log_prob - batch.column(Column::LogProbOption);
    let objective = clipped(&log_ratio.exp(), &batch.column(Column::AdvantageOption), config.option_clip_param);

    let options = over.size()[1];
    let beta = (drawn + (same + other) * logit.sigmoid()).unsqueeze(1);
    let goes_on = Tensor::ones_like(&beta) - &beta;
    let goes_on = goes_on.expand([-1, options], false) * batch.running.one_hot(options).to_kind(Kind::Float);
    let law = (goes_on + beta * &over).mean_dim([0i64].as_slice(), false, Kind::Float);
    OptionLosses {
        policy: -objective.mean(Kind::Float),
        entropy: -(&over * &log_over).sum(Kind::Float) / over.size()[0] as f64,
        load_balance: (&law * (law.clamp_min(f64::from(f32::MIN_POSITIVE)).log() + (options as f64).ln()))
            .sum(Kind::Float),
        log_ratio,
    }
}

/// KL between diagonal Gaussians, proximal || new, mean over the states, summed over the anchored options.
fn anchored(mean: &Tensor, log_std: &Tensor, proximal: &Tensor, anchor: &Anchor) -> Tensor {
    let options = Tensor::from_slice(&anchor.options.iter().map(|&option| option as i64).collect::<Vec<_>>());
    let pick = |tensor: &Tensor, dim: i64| tensor.index_select(dim, &options);
    let before = Tensor::from_slice(&anchor.log_std).to_kind(Kind::Float).view_as(log_std);
    let (log_std, before) = (pick(log_std, 0), pick(&before, 0));
    let apart = (pick(proximal, 1) - pick(mean, 1)).square();
    let kl = &log_std - &before + ((&before * 2.0).exp() + apart) / ((&log_std * 2.0).exp() * 2.0) - 0.5;
    kl.sum(Kind::Float) / mean.size()[0] as f64
}

/// `[B, K, A]` to `[B, A]`.
fn of_option(mean: &Tensor, option: &Tensor) -> Tensor {
    let action = mean.size()[2];
    let index = option.view([-1, 1, 1]).expand([-1, 1, action], false);
    mean.gather(1, &index, false).squeeze_dim(1)
}

/// log density of diagonal Gaussians, `[B, A]` to `[B]`; in log space throughout.
pub(super) fn log_density(mean: &Tensor, log_std: &Tensor, proposal: &Tensor) -> Tensor {
    let z = (proposal - mean) * (-log_std).exp();
    let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
    let log = z.square() * -0.5 - log_std - half_log_tau;
    log.sum_dim_intlist([1i64].as_slice(), false, Kind::Float)
}

/// PPO's objective (Schulman et al. 2017, eq. 7).
fn clipped(ratio: &Tensor, advantage: &Tensor, clip: f64) -> Tensor {
    (ratio * advantage).minimum(&(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage))
}
