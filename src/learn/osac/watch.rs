//! What is watched during an update, and told after it.

use super::Osac;
use super::actor::ActorLosses;
use super::losses::CriticLoss;
use crate::data::{Gathered, Transition};
use crate::learn::metrics::{Metrics, mean, std};
use crate::learn::watch::lags;

/// Order of the numbers of a gradient step; those from `options/policy_loss` on are there for more than one option,
/// followed by [`BY_OPTION`], K numbers each.
const NAMES: [&str; 11] = [
    "losses/value_loss",
    "losses/policy_loss",
    "losses/entropy",
    "losses/target_mean",
    "losses/target_std",
    "losses/explained_variance",
    "options/policy_loss",
    "options/termination_loss",
    "options/entropy",
    "options/spread",
    "options/load_balance_kl",
];

const BY_OPTION: [&str; 2] = ["beta_mean", "entropy"];

/// Sums over the gradient steps of an update.
#[derive(Default)]
pub(super) struct Watched {
    sums: Vec<f64>,
    steps: u64,
    /// Priorities that came too late.
    pub(super) dropped: u64,
}

impl Watched {
    /// Adds a gradient step.
    pub(super) fn add(&mut self, critics: &CriticLoss, targets: &[f64], losses: &ActorLosses) {
        let mut all = vec![critics.loss, losses.policy, -losses.log_prob, mean(targets.iter().copied()), std(targets)];
        all.push(critics.explained);
        if let Some(options) = &losses.options {
            all.extend([options.over_options, options.termination, options.entropy, options.spread, options.balance]);
            all.extend(options.beta.iter().chain(&losses.entropies));
        }
        self.sums.resize(all.len(), 0.0);
        self.sums.iter_mut().zip(all).for_each(|(sum, number)| *sum += number);
        self.steps += 1;
    }

    /// All metrics of an update that took `rows` in; an update without a gradient step tells of its data alone.
    pub(super) fn metrics(&self, rows: &[Gathered], version: u64, learner: &Osac) -> Metrics {
        let mut all = Metrics::default();
        let taken = self.steps.max(1) as f64;
        for (name, sum) in NAMES.iter().zip(&self.sums) {
            all.push(*name, sum / taken);
        }
        let options = learner.contract.options.count;
        for (index, sum) in self.sums.iter().skip(NAMES.len()).enumerate() {
            all.push(format!("options/{}/{}", index % options, BY_OPTION[index / options]), sum / taken);
        }
        let alphas = learner.alphas();
        all.push("losses/temperature", alphas.action);
        all.push("options/temperature", alphas.option);
        all.push("losses/gradient_steps", self.steps as f64);
        all.push("losses/skipped_minibatches", learner.skipped as f64);
        all.push("charts/learning_rate", learner.config.lr);
        let (inserts, samples) = learner.limiter.counts();
        all.push("replay/steps", learner.replay.len() as f64);
        all.push("replay/samples_per_insert", samples as f64 / inserts.max(1) as f64);
        all.push("replay/dropped_priorities", self.dropped as f64);

        let steps: Vec<&Transition> = rows.iter().flat_map(|row| &row.fragment.steps).collect();
        let count = steps.len().max(1) as f64;
        lags(&mut all, steps.iter().map(|step| version.saturating_sub(step.version)).collect());
        let running = |step: &&&Transition| usize::from(step.choice.option_prev) < options;
        let switches =
            steps.iter().filter(running).filter(|step| step.choice.option != step.choice.option_prev).count();
        all.push("options/switch_rate", switches as f64 / steps.iter().filter(running).count().max(1) as f64);
        for (option, remembered) in learner.replay.counts().iter().enumerate() {
            let share = steps.iter().filter(|step| usize::from(step.choice.option) == option).count() as f64 / count;
            all.push(format!("options/{option}/share"), share);
            all.push(format!("options/{option}/remembered"), *remembered as f64);
        }
        all
    }
}
