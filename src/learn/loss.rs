//! The losses, on one minibatch of steps.

use super::batch::{Anchor, Batch, Column};
use crate::config::HsPpo;
use crate::defect::defect;
use crate::option::TERMINATION_LOGIT_MAX;
use crate::policy::{Critic, Heads, Network};
use tch::{Kind, Tensor};

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
pub(super) fn value_loss(critic: &Critic, batch: &Batch) -> Tensor {
    let value = critic.values(&batch.input).gather(1, &batch.option.unsqueeze(1), false).squeeze_dim(1);
    let error = (value - batch.column(Column::Target)).square() * batch.column(Column::Weight);
    error.mean(Kind::Float)
}

/// Runs the actor and takes every loss of it; `value` gives the critic's, which is asked for last.
pub(super) fn losses<E>(
    network: &Network,
    batch: &Batch,
    anchor: &Anchor,
    config: &HsPpo,
    value: impl FnOnce() -> Result<Tensor, E>,
) -> Result<Losses, E> {
    let features = network.features(&batch.input);
    let features = if defect("trunk_detached") { features.detach() } else { features };
    let heads = network.split(&network.heads(&features));
    let all_log_std = heads.log_std.squeeze_dim(0);
    let acted = if defect("trains_the_option_before") { &batch.running } else { &batch.option };
    let log_std = all_log_std.index_select(0, acted);
    let mean = of_option(&heads.mean, acted);
    let log_ratio_action = log_density(&mean, &log_std, &batch.proposal) - batch.column(Column::LogProbAction);
    let advantage = batch.column(Column::AdvantageAction);
    let half_log_tau_e = 0.5 * (std::f64::consts::TAU.ln() + 1.0);
    Ok(Losses {
        policy: -clipped(&log_ratio_action.exp(), &advantage, config.clip_param).mean(Kind::Float),
        entropy: (log_std + half_log_tau_e).sum_dim_intlist([1i64].as_slice(), false, Kind::Float).mean(Kind::Float),
        log_ratio_action,
        options: (1 < network.options()).then(|| option_losses(&heads, batch, config)),
        anchor: batch.anchor.as_ref().map(|proximal| anchored(&heads.mean, &all_log_std, proximal, anchor)),
        value: value()?,
    })
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
    let picked = if defect("credits_the_first_row") { picked.narrow(0, 0, 1).expand_as(&picked) } else { picked };

    // log p^(option): P alone where drawn; 0 where d_min holds; the mixture where the policy chose.
    let chosen = logit.log_sigmoid() + &picked;
    let stays = (-&logit).log_sigmoid().logaddexp(&chosen);
    let log_prob = &drawn * &picked + &same * stays + &other * &chosen;
    let proximal = batch.column(Column::LogProbOption);
    let log_ratio = if defect("sampled_without_its_probability") { log_prob } else { log_prob - proximal };
    let objective = clipped(&log_ratio.exp(), &batch.column(Column::AdvantageOption), config.option_clip_param);

    let options = over.size()[1];
    let beta = (drawn + (same + other) * logit.sigmoid()).unsqueeze(1);
    let goes_on = Tensor::ones_like(&beta) - &beta;
    let ran = batch.running.one_hot(options).to_kind(Kind::Float);
    let ran =
        if defect("marks_options_of_other_rows") { ran.amax([0i64].as_slice(), true).expand_as(&ran) } else { ran };
    let goes_on = goes_on.expand([-1, options], false) * ran;
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
pub(super) fn anchored(mean: &Tensor, log_std: &Tensor, proximal: &Tensor, anchor: &Anchor) -> Tensor {
    let options = Tensor::from_slice(&anchor.options);
    let pick = |tensor: &Tensor, dim: i64| tensor.index_select(dim, &options);
    let (log_std, before) = (pick(log_std, 0), pick(&anchor.log_std, 0));
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
    let log = log.sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
    if defect("log_of_density_plus_small") { (log.exp() + 1e-5).log() } else { log }
}

/// PPO's objective (Schulman et al. 2017, eq. 7).
pub(super) fn clipped(ratio: &Tensor, advantage: &Tensor, clip: f64) -> Tensor {
    (ratio * advantage).minimum(&(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage))
}
