//! What is watched during an update, and told after it.

use super::estimate::Estimated;
use super::hs_ppo::Prepared;
use super::loss::{Losses, OptionLosses, Weights};
use super::metrics::{Metrics, explained_variance, mean, quantile, std};
use crate::config::HsPpo;
use crate::data::Forced;

/// One minibatch before its step. Order of `numbers` as in [`NAMES`]; the total loss is last.
pub(super) struct Seen {
    numbers: Vec<f64>,
    /// The share of steps of each option, and their part in each of [`BY_OPTION`].
    by_option: Vec<[f64; 5]>,
}

const NAMES: [&str; 11] = [
    "losses/policy_loss",
    "losses/value_loss",
    "losses/entropy",
    "losses/approx_kl",
    "losses/clipfrac",
    "options/policy_loss",
    "options/entropy",
    "options/load_balance_kl",
    "options/approx_kl",
    "options/clipfrac",
    "options/anchor_kl",
];
const BY_OPTION: [&str; 4] = ["approx_kl", "clipfrac", "option_approx_kl", "option_clipfrac"];
const APPROX_KL: usize = 3;
const OPTION_APPROX_KL: usize = 8;

impl Seen {
    /// The numbers of a minibatch; `value` is the critic's loss.
    pub(super) fn new(losses: &Losses, value: f64, config: &HsPpo) -> Self {
        let weights = Weights::new(config);
        let by_option = losses.policy_by_option.iter().enumerate().map(|(option, acted)| {
            let chosen = losses.options.as_ref().map(|losses| &losses.policy_by_option[option]);
            let (kl, share) = chosen.map_or((0.0, 0.0), |chosen| (chosen.kl, chosen.share));
            [acted.steps, acted.kl, acted.share, kl, share]
        });
        let by_option = by_option.collect();
        let mut numbers = vec![losses.policy.loss, value, losses.entropy, losses.policy.kl, losses.policy.share];
        let mut total = weights.policy * losses.policy.loss
            + config.value_loss_coef * value
            + weights.entropy * losses.entropy
            + weights.anchor * losses.anchor.unwrap_or(0.0);
        if let Some(OptionLosses { policy, entropy, load_balance, .. }) = &losses.options {
            let anchor = losses.anchor.unwrap_or(0.0);
            numbers.extend([policy.loss, *entropy, *load_balance, policy.kl, policy.share, anchor]);
            total += weights.option_policy * policy.loss
                + weights.option_entropy * entropy
                + weights.load_balance * load_balance;
        }
        numbers.push(total);
        Self { numbers, by_option }
    }
}

impl Seen {
    /// Whether the minibatch may be stepped on: all in the range of the parameters' floats.
    pub(super) fn finite(&self) -> bool {
        self.numbers.iter().all(|&number| (number as f32).is_finite())
    }

    /// Whether the policy has left the proximal one by more than is allowed.
    pub(super) fn too_far(&self, config: &HsPpo) -> bool {
        let over = |index: usize, limit: f64| {
            let here = index + 1 < self.numbers.len();
            0.0 < limit && here && limit < self.numbers[index]
        };
        over(APPROX_KL, config.desired_kl) || over(OPTION_APPROX_KL, config.desired_option_kl)
    }
}

/// Sums over the minibatches that were stepped on.
#[derive(Default)]
pub(super) struct Watched {
    sums: Vec<f64>,
    by_option: Vec<[f64; 5]>,
    norm: f64,
    /// Of the options' heads.
    head_norms: Vec<f64>,
    steps: u64,
    /// Minibatches whose loss or gradient was not finite.
    pub(super) skipped: u64,
    /// The phase ended early.
    pub(super) stopped: bool,
}

impl Watched {
    /// Adds a minibatch, the norm of its gradient, and those of the gradients of the options' heads.
    pub(super) fn add(&mut self, seen: &Seen, norm: f64, head_norms: &[f64]) {
        self.head_norms.resize(head_norms.len(), 0.0);
        self.head_norms.iter_mut().zip(head_norms).for_each(|(sum, norm)| *sum += norm);
        self.by_option.resize(seen.by_option.len(), [0.0; 5]);
        for (sum, number) in self.by_option.iter_mut().flatten().zip(seen.by_option.iter().flatten()) {
            *sum += number;
        }
        self.sums.resize(seen.numbers.len(), 0.0);
        for (sum, number) in self.sums.iter_mut().zip(&seen.numbers) {
            *sum += number;
        }
        self.norm += norm;
        self.steps += 1;
    }
}

/// All metrics of an update; `lr` is the step size that was used.
pub(super) fn metrics(prepared: &Prepared<'_>, watched: &Watched, lr: f64, version: u64) -> Metrics {
    let mut all = Metrics::default();
    let Prepared { gathered, estimated, .. } = prepared;
    let taken = watched.steps.max(1) as f64;
    let options = prepared.counts.len();
    let count = gathered.steps.len() as f64;
    for (name, sum) in NAMES.iter().zip(&watched.sums[..watched.sums.len().saturating_sub(1)]) {
        all.push(*name, sum / taken);
    }
    let targets: Vec<f64> = estimated.estimates.iter().map(|estimate| estimate.target).collect();
    let residual: Vec<f64> = targets.iter().zip(&estimated.values).map(|(target, value)| target - value).collect();
    all.push("losses/explained_variance", explained_variance(&targets, &residual));
    all.push("losses/grad_norm", watched.norm / taken);
    all.push("losses/gradient_steps", watched.steps as f64);
    all.push("losses/skipped_minibatches", watched.skipped as f64);
    all.push("losses/stopped_early", f64::from(u8::from(watched.stopped)));
    all.push("losses/advantage_std", std(&raw_advantages(estimated)));
    all.push("charts/learning_rate", lr);
    all.push("charts/reward_scale", prepared.scale.reward);
    lags(&mut all, gathered.steps.iter().map(|step| version - step.version).collect());
    for (name, logs) in [("lag/ess_action", &estimated.log_rho_action), ("lag/ess_option", &estimated.log_rho_option)] {
        let (sum, square) = logs.iter().map(|log| log.exp()).fold((0.0, 0.0), |(s, q), rho| (s + rho, q + rho * rho));
        all.push(name, sum * sum / square / count); // effective sample size over N: what is left after weighing
    }

    let share = |holds: &dyn Fn(usize) -> bool| (0..gathered.steps.len()).filter(|&row| holds(row)).count() as f64;
    let running = |row: usize| estimated.arrivals[row].running;
    let arrivals = share(&|row| running(row).is_some()).max(1.0);
    let switches = share(&|row| running(row).is_some_and(|o| o != usize::from(gathered.steps[row].choice.option)));
    let forced = |row: usize| !matches!(gathered.steps[row].choice.forced, Forced::Free | Forced::Init);
    all.push("options/switch_rate", switches / arrivals);
    all.push("options/forced_share", share(&forced) / count);
    let choices: Vec<f64> = estimated.estimates.iter().map(|estimate| estimate.advantage_option).collect();
    all.push("options/advantage_std", std(&choices));
    all.push("options/deliberation_cost", prepared.scale.cost);
    all.push("options/spread", value_spread(&prepared.values[..gathered.steps.len() * options], options));
    for option in 0..options {
        one_option(&mut all, option, prepared);
        all.push(format!("options/{option}/grad_norm"), watched.head_norms.get(option).map_or(0.0, |sum| sum / taken));
        let [steps, sums @ ..] = watched.by_option.get(option).copied().unwrap_or_default();
        for (name, sum) in BY_OPTION.iter().zip(sums) {
            all.push(format!("options/{option}/{name}"), sum / steps.max(f64::MIN_POSITIVE));
        }
    }
    all
}

fn raw_advantages(estimated: &Estimated) -> Vec<f64> {
    estimated.estimates.iter().map(|estimate| estimate.advantage_action).collect()
}

/// Mean of (max_o Q - min_o Q) over the standard deviation of all Q: near 0 for long, the options are clones.
fn value_spread(q: &[f32], options: usize) -> f64 {
    let all: Vec<f64> = q.iter().map(|&value| f64::from(value)).collect();
    let range = |row: &[f64]| row.iter().fold(f64::MIN, |a, &b| a.max(b)) - row.iter().fold(f64::MAX, |a, &b| a.min(b));
    mean(all.chunks_exact(options).map(range)) / std(&all).max(f64::MIN_POSITIVE)
}

/// How old steps were when they were taken in [versions].
pub(super) fn lags(all: &mut Metrics, lags: Vec<u64>) {
    all.push("lag/mean", mean(lags.iter().map(|&lag| lag as f64)));
    all.push("lag/max", lags.iter().max().copied().unwrap_or(0) as f64);
    all.push("lag/min", lags.iter().min().copied().unwrap_or(0) as f64);
    for (name, range) in [("0", 0..1), ("1", 1..2), ("2_3", 2..4), ("4_7", 4..8), ("8_up", 8..u64::MAX)] {
        let inside = lags.iter().filter(|lag| range.contains(lag)).count();
        all.push(format!("lag/histogram_{name}"), inside as f64 / lags.len() as f64);
    }
}

fn one_option(all: &mut Metrics, option: usize, prepared: &Prepared<'_>) {
    let Prepared { gathered, estimated, .. } = prepared;
    let name = |what: &str| format!("options/{option}/{what}");
    let free = |row: &usize| {
        let arrival = &estimated.arrivals[*row];
        arrival.running == Some(option) && arrival.forced == Forced::Free
    };
    let mut betas: Vec<f64> =
        (0..gathered.steps.len()).filter(free).map(|row| estimated.arrivals[row].beta()).collect();
    let ended = gathered.steps.iter().zip(&estimated.arrivals);
    let ended = ended.filter(|(step, arrival)| arrival.running == Some(option) && step.choice.option_terminated);
    let mine = |row: &usize| usize::from(gathered.steps[*row].choice.option) == option;
    let advantages = (0..gathered.steps.len()).filter(mine).map(|row| estimated.advantage_action[row]);
    let half_log_tau_e = 0.5 * (std::f64::consts::TAU.ln() + 1.0);
    all.push(name("share"), prepared.counts[option] as f64 / gathered.steps.len() as f64);
    all.push(name("weight"), prepared.weights[option]);
    all.push(name("beta_mean"), mean(betas.iter().copied()));
    all.push(name("beta_p10"), quantile(&mut betas, 0.1));
    all.push(name("beta_p90"), quantile(&mut betas, 0.9));
    all.push(name("duration_mean"), mean(ended.map(|(step, _)| f64::from(step.choice.option_age))));
    all.push(name("advantage_mean"), mean(advantages));
    all.push(name("entropy"), prepared.outputs.log_std(0, option).iter().map(|log_std| log_std + half_log_tau_e).sum());
}
