//! What the actor learns, with the gradient at its heads written out: [`Network::backward`] takes it on from there.

use super::imagine::imagine;
use super::losses::{Networks, Temperatures, actions, soft, value};
use crate::config::Osac as Config;
use crate::defect::defect;
use crate::learn::loss::leads_back;
use crate::learn::metrics::std;
use crate::option::{TERMINATION_LOGIT_MAX, log_sigmoid};
use crate::policy::{Outputs, floats};
use tch::Tensor;

/// N steps for the actor.
pub(super) struct Picked {
    /// `[N, D]`, normalised.
    pub(super) input: Tensor,
    /// h: how far each option is responsible for what is done here, N x K, rows sum to 1.
    pub(super) responsibility: Vec<f64>,
    /// g: belief that an option runs on arrival here, N x K; rows are 0 where the termination was not the policy's.
    pub(super) running: Vec<f64>,
    /// Normal draws for the actions, N x K x A.
    pub(super) noise: Vec<f32>,
}

/// The actor's losses; each moves its own parameters. Neither terminations nor choices reach the trunk.
pub(super) struct ActorLosses {
    /// `mean sum_o h_o (alpha log pi_o(a_o) - min_i Q_i(s, o, a_o))`: of trunk and options.
    pub(super) policy: f64,
    /// `mean sum_o h_o log pi_o(a_o)`: minus the entropy.
    pub(super) log_prob: f64,
    /// The entropy of each option's actions where it is responsible, K.
    pub(super) entropies: Vec<f64>,
    /// For more than one option.
    pub(super) options: Option<OptionLosses>,
}

/// The losses of the option level.
pub(super) struct OptionLosses {
    /// `mean sum_o P(o) (alpha_P log P(o) - Qs(s, o)) + c KL(mean P || uniform)`: exact in the options.
    pub(super) over_options: f64,
    /// `mean sum_o g_o (beta_o (Qs - V + eta) - t H(beta_o))`: at its optimum `beta_o = sigmoid(-(Qs - V + eta) / t)`.
    pub(super) termination: f64,
    /// Mean entropy of P.
    pub(super) entropy: f64,
    /// KL(mean P || uniform).
    pub(super) balance: f64,
    /// Mean of beta over the belief that an option runs, K.
    pub(super) beta: Vec<f64>,
    /// Mean of (max - min over options) over the standard deviation of Qs.
    pub(super) spread: f64,
}

/// Gradient by the logs of both temperatures, of `log alpha (H - target)` (Haarnoja et al. 2018, arXiv 1812.05905, eq. 18, by the
/// log as Stable-Baselines3 has it): an entropy below its target raises its temperature.
pub(super) fn temperature_gradient(losses: &ActorLosses, (action, option): (f64, f64)) -> [f32; 2] {
    let turned = if defect("target_entropy_turned") { -1.0 } else { 1.0 };
    let over = |entropy: f64, target: f64| (entropy - turned * target) as f32;
    [over(-losses.log_prob, action), losses.options.as_ref().map_or(0.0, |options| over(options.entropy, option))]
}

/// Takes every loss of the actor, and writes the gradient of its parameters, flat. Terminations and choices learn the slow critics'
/// values: what an option gains by going on must not change with each step of the critics.
pub(super) fn actor_losses(
    networks: &Networks,
    picked: &Picked,
    alphas: Temperatures,
    config: &Config,
    gradient: &mut [f32],
) -> ActorLosses {
    let actor = &networks.actor;
    let kept = actor.forward(&picked.input);
    let outputs = Outputs::of(actor, kept.output());
    let imagined = imagine(&outputs, &picked.noise);
    let own = actions(&outputs, &imagined.action);
    let least = networks.critics.least(&picked.input, &own);
    let soft_values = soft(&least.value, &imagined.log_prob, alphas.action);
    let rows = outputs.len() as f64;
    let mean = |values: &[f64]| values.iter().zip(&picked.responsibility).map(|(v, h)| v * h).sum::<f64>() / rows;
    let entropy = |option: usize| {
        let steps = picked.responsibility.iter().zip(&imagined.log_prob).skip(option).step_by(outputs.options());
        let (mass, sum) = steps.fold((0.0, 0.0), |(mass, sum), (h, log)| (mass + h, sum - h * log));
        sum / mass.max(1e-6)
    };

    let mut heads = vec![0.0; outputs.len() * outputs.width()];
    act(&outputs, picked, &imagined.action, &floats(&least.slope), alphas.action, &mut heads);
    let options = (1 < actor.options()).then(|| {
        let slow = networks.slow_critics.least_of_own(&picked.input, &own);
        let slow = soft(&slow, &imagined.log_prob, alphas.action);
        choose(&outputs, picked, &slow, alphas, config, &mut heads)
    });
    actor.backward(&kept, &heads, &[], gradient);
    ActorLosses {
        policy: -mean(&soft_values),
        log_prob: mean(&imagined.log_prob),
        entropies: (0..outputs.options()).map(entropy).collect(),
        options,
    }
}

/// Adds the gradient of the policy's loss by means and log standard deviations. With u before tanh it is
/// `d log pi / d u = 2 a`, `d Q / d u = (1 - a²) dQ / da`, and `d log pi / d log std = -1` besides.
fn act(outputs: &Outputs, picked: &Picked, action: &[f32], slope: &[f32], alpha: f64, heads: &mut [f32]) {
    let (options, width) = (outputs.options(), outputs.action_size());
    let rows = outputs.len() as f64;
    let first_log_std = options * (width + 2);
    for (at, responsibility) in picked.responsibility.iter().enumerate() {
        let (row, option) = (at / options, at % options);
        let share = responsibility / rows;
        let out = &mut heads[row * outputs.width()..(row + 1) * outputs.width()];
        let log_stds = outputs.log_std(row, option).iter().zip(outputs.raw_log_std(row, option));
        for (joint, (&log_std, &raw)) in log_stds.enumerate() {
            let (here, place) = (at * width + joint, option * width + joint);
            let a = f64::from(action[here]);
            let by_u = share * (alpha * 2.0 * a - (1.0 - a * a) * f64::from(slope[here]));
            out[place] = by_u as f32;
            let slope = by_u * log_std.exp() * f64::from(picked.noise[here]) - share * alpha;
            if leads_back(slope, f64::from(raw), log_std) {
                out[first_log_std + place] = slope as f32;
            }
        }
    }
}

/// The option level: losses, and their gradient by the logits of terminations and choices.
fn choose(
    outputs: &Outputs,
    picked: &Picked,
    soft_values: &[f64],
    alphas: Temperatures,
    config: &Config,
    heads: &mut [f32],
) -> OptionLosses {
    let options = outputs.options();
    let rows = outputs.len() as f64;
    let scale = std(soft_values);
    let (eta, temperature) = (scale * config.deliberation_cost, scale * config.termination_temperature);
    let logs: Vec<Vec<f64>> = (0..outputs.len()).map(|row| outputs.log_over_options(row)).collect();
    let mut law = vec![0.0; options];
    logs.iter().for_each(|log| law.iter_mut().zip(log).for_each(|(law, log)| *law += log.exp() / rows));
    let popular: Vec<f64> =
        law.iter().map(|law| (law.max(f64::from(f32::MIN_POSITIVE)) * options as f64).ln()).collect();
    let balance = law.iter().zip(&popular).map(|(law, log)| law * log).sum();
    let weight = scale * config.load_balance_coef;
    let mut losses = OptionLosses {
        over_options: weight * balance,
        termination: 0.0,
        entropy: 0.0,
        balance,
        beta: vec![0.0; options],
        spread: 0.0,
    };
    let mut mass = vec![0.0; options];
    let first = options * outputs.action_size();
    for (row, (log_over, soft)) in logs.iter().zip(soft_values.chunks_exact(options)).enumerate() {
        let out = &mut heads[row * outputs.width() + first..][..2 * options];
        let stop = value(log_over, soft) - eta;
        // The loss by P, but for a constant, which a softmax does not feel.
        let by_over: Vec<f64> =
            (0..options).map(|o| alphas.option * log_over[o] - soft[o] + weight * popular[o]).collect();
        let middle = value(log_over, &by_over);
        for option in 0..options {
            let over = log_over[option].exp();
            losses.over_options += over * (alphas.option * log_over[option] - soft[option]) / rows;
            losses.entropy -= over * log_over[option] / rows;
            out[options + option] = (over * (by_over[option] - middle) / rows) as f32;

            let logit = outputs.termination(row, option);
            let clamped = logit.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
            let (log_stop, log_go) = (log_sigmoid(clamped), log_sigmoid(-clamped));
            let (beta, running) = (log_stop.exp(), picked.running[row * options + option]);
            let advantage = soft[option] - stop;
            let entropy = -beta * log_stop - (1.0 - beta) * log_go;
            losses.termination += running * (beta * advantage - temperature * entropy) / rows;
            losses.beta[option] += running * beta;
            mass[option] += running;
            let slope = beta * (1.0 - beta) * (advantage + temperature * clamped);
            if leads_back(slope, logit, clamped) {
                out[option] = (running * slope / rows) as f32;
            }
        }
        let (most, least) = soft.iter().fold((f64::MIN, f64::MAX), |(most, least), &q| (most.max(q), least.min(q)));
        losses.spread += (most - least) / rows / scale.max(1e-12);
    }
    losses.beta.iter_mut().zip(mass).for_each(|(beta, mass)| *beta /= mass.max(1e-6));
    losses
}
