//! The learner of half-step PPO.

use super::batch::{Anchor, Batch};
use super::beside::Beside;
use super::estimate::{Estimated, Scale, estimate, option_weights, past_returns};
use super::gather::Gathered;
use super::init;
use super::loss::{Weights, losses};
use super::metrics::Metrics;
use super::normaliser::Moments;
use super::optimiser::{Adam, AdamState, Rates, clip_gradient, head_norms};
use super::watch::{self, Seen, Watched};
use crate::config::{self, Purpose, Seed};
use crate::contract::{Contract, Group, Normaliser, Snapshot};
use crate::data::Fragment;
use crate::defect::defect;
use crate::error::{Error, Result};
use crate::policy::{Network, Outputs, floats};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Everything that a checkpoint keeps of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Flat, in the order of the contract's layout.
    pub parameters: Vec<f32>,
    /// The optimiser's.
    pub adam: AdamState,
    /// Statistics of the observation, D.
    pub observations: Moments,
    /// Statistics of the discounted return, 1.
    pub returns: Moments,
    /// Updates done; the order of minibatches hangs on it.
    pub updates: u64,
    /// Transitions learned from.
    pub env_steps: u64,
    /// Minibatches skipped because their loss or gradient was not finite.
    pub skipped: u64,
}

/// Half-step PPO over the options of a contract. The critic learns beside the actor, on a second thread; one of torch's
/// own is enough, and the caller sets them.
pub struct HsPpo {
    contract: Arc<Contract>,
    config: config::HsPpo,
    seed: Seed,
    network: Network,
    beside: Beside,
    parameters: Vec<f32>,
    adam: Adam,
    observations: Moments,
    returns: Moments,
    updates: u64,
    env_steps: u64,
    skipped: u64,
    pulse: Arc<AtomicU64>,
}

/// One update's data, and what is constant in it.
pub(super) struct Prepared<'a> {
    pub(super) gathered: Gathered<'a>,
    pub(super) estimated: Estimated,
    pub(super) outputs: Outputs,
    /// Q, `[N + E, K]`.
    pub(super) values: Vec<f32>,
    pub(super) scale: Scale,
    /// With this update's.
    pub(super) returns: Moments,
    /// With this update's.
    pub(super) observations: Moments,
    /// Steps of each option.
    pub(super) counts: Vec<usize>,
    pub(super) weights: Vec<f64>,
    pub(super) anchor: Anchor,
    pub(super) batch: Batch,
    pub(super) rates: Rates,
}

impl HsPpo {
    /// Initial parameters, drawn below `seed`.
    pub fn new(contract: Arc<Contract>, config: &config::HsPpo, seed: Seed) -> Result<Self> {
        let parameters = init::parameters(&contract, config, seed);
        let network = Network::new(&contract, &parameters, false)?;
        let critic = network.share_critic().ok_or_else(|| Error::invalid("PPO needs an on-policy architecture"))?;
        Ok(Self {
            config: config.clone(),
            seed,
            beside: Beside::new(critic, config.value_loss_coef)?,
            network,
            parameters,
            adam: Adam::new(contract.layout()),
            observations: Moments::new(contract.obs_size()),
            returns: Moments::new(1),
            updates: 0,
            env_steps: 0,
            skipped: 0,
            pulse: Arc::default(),
            contract,
        })
    }

    /// What acts, as version `version` of a run's life.
    pub fn snapshot(&self, run: Uuid, life: u32, version: u64) -> Snapshot {
        Snapshot {
            run,
            life,
            version,
            updates: self.updates,
            env_steps: self.env_steps,
            random_warmup: false,
            contract: Arc::clone(&self.contract),
            normaliser: self.normaliser(),
            parameters: self.parameters.clone().into(),
        }
    }

    /// Updates done.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Transitions learned from.
    pub fn env_steps(&self) -> u64 {
        self.env_steps
    }

    /// What a checkpoint keeps.
    pub fn state(&self) -> State {
        State {
            parameters: self.parameters.clone(),
            adam: self.adam.state().clone(),
            observations: self.observations.clone(),
            returns: self.returns.clone(),
            updates: self.updates,
            env_steps: self.env_steps,
            skipped: self.skipped,
        }
    }

    /// Goes on from a checkpoint exactly; refuses one of other sizes or with numbers that are not finite.
    pub fn restore(&mut self, state: State) -> Result<()> {
        let (found, want) = (state.parameters.len(), self.parameters.len());
        if found != want {
            return Err(Error::invalid(format!("the checkpoint has {found} parameters; this network has {want}")));
        }
        if !state.parameters.iter().all(|parameter| parameter.is_finite()) {
            return Err(Error::invalid("the checkpoint holds a parameter that is not finite"));
        }
        state.observations.check("observation", self.contract.obs_size())?;
        state.returns.check("return", 1)?;
        self.adam.restore(state.adam)?;
        self.network.load(&state.parameters);
        self.parameters = state.parameters;
        (self.observations, self.returns) = (state.observations, state.returns);
        (self.updates, self.env_steps, self.skipped) = (state.updates, state.env_steps, state.skipped);
        Ok(())
    }

    /// Learns from rows of successive steps, sorted by the caller; `version` is the one that the learner published last.
    /// The statistics of the observation take the rows in only afterwards, so that the ratios of fresh data are 1.
    /// Refuses, and changes nothing, where a row does not fit the contract or holds a number that is not finite.
    pub fn update(&mut self, rows: &[Fragment], version: u64) -> Result<Metrics> {
        let prepared = self.prepare(rows, version)?;
        let watched = self.descend(&prepared.batch, &prepared.anchor, &prepared.rates)?;
        let metrics = watch::metrics(&prepared, &watched, self.lr(), version);
        self.returns = prepared.returns.clone();
        self.observations = prepared.observations.clone();
        self.updates += 1;
        self.env_steps += prepared.gathered.steps.len() as u64;
        self.skipped += watched.skipped;
        Ok(metrics)
    }

    /// Everything that does not change while the update descends.
    pub(super) fn prepare<'a>(&self, rows: &'a [Fragment], version: u64) -> Result<Prepared<'a>> {
        let gathered = Gathered::new(rows, &self.contract, version)?;
        let count = gathered.steps.len();
        let mut returns = self.returns.clone();
        returns.merge(&past_returns(&gathered, self.config.gamma))?;
        let mut observations = self.observations.clone();
        observations.merge_observations(&gathered.observations[..count * self.contract.obs_size()])?;

        let mut input = gathered.observations.clone();
        self.normaliser().apply(&mut input);
        let input = self.network.input(&input);
        let outputs = Outputs::new(&self.network, &input);
        let values = tch::no_grad(|| floats(&self.network.critic(&input)));
        let scale = Scale::of(&self.config, self.contract.options.count, &returns);
        let estimated = estimate(&gathered, &outputs, &values, &self.contract, &self.config, scale)?;

        let options = self.contract.options.count;
        let mut counts = vec![0; options];
        for step in &gathered.steps {
            counts[usize::from(step.choice.option)] += 1;
        }
        let weighted = 1 < options && self.config.option_weights;
        let weights = if weighted { option_weights(&counts) } else { vec![1.0; options] };
        let scarce = |option: &usize| 1 < options && counts[*option] < self.config.min_option_steps;
        let rare: Vec<usize> = (0..options).filter(scarce).collect();
        let anchor = Anchor {
            options: rare.clone(),
            log_std: (0..options).flat_map(|option| outputs.log_std(0, option)).copied().collect(),
        };
        let (anchored, decoupled) = (!rare.is_empty(), self.config.decoupled);
        let batch = Batch::new(&gathered, &estimated, &outputs, &weights, &input, anchored, decoupled);
        let rates = self.rates(&rare);
        Ok(Prepared {
            gathered,
            estimated,
            outputs,
            values,
            scale,
            returns,
            observations,
            counts,
            weights,
            anchor,
            batch,
            rates,
        })
    }

    /// Adam's step size now: falls linearly in the environment steps, from `lr` to `lr_final` of it.
    pub(super) fn lr(&self) -> f64 {
        let config = &self.config;
        let done = match config.lr_anneal_steps {
            0 => 0.0,
            steps => (self.env_steps as f64 / steps as f64).min(1.0),
        };
        config.lr * (1.0 - done * (1.0 - config.lr_final))
    }

    fn normaliser(&self) -> Normaliser {
        self.observations.normaliser(self.config.observation_clip as f32)
    }

    fn rates(&self, rare: &[usize]) -> Rates {
        let (lr, flat) = (self.lr(), self.contract.options.count == 1);
        let scale = if defect("one_rate_for_all") { 1.0 } else { self.config.lr_option_scale };
        Rates::new(&self.contract.layout(), |group| match group {
            Group::Trunk | Group::Critic => Some(lr),
            Group::Option(option) => (!rare.contains(&option)).then_some(lr),
            Group::Termination | Group::OverOptions => (!flat).then_some(lr * scale),
            Group::Temperature => None,
        })
    }

    /// Minibatches begun, ever: moves on while an update is under way.
    pub fn pulse(&self) -> Arc<AtomicU64> {
        self.pulse.clone()
    }

    fn descend(&mut self, batch: &Batch, anchor: &Anchor, rates: &Rates) -> Result<Watched> {
        let layout = self.contract.layout();
        let mut gradient = vec![0.0; self.parameters.len()];
        let mut watched = Watched::default();
        let weights = Weights::new(&self.config);
        'phase: for epoch in 0..self.config.num_learning_epochs {
            for rows in minibatches(self.seed, self.updates, epoch, batch.len(), self.config.minibatch_size) {
                self.pulse.fetch_add(1, Ordering::Relaxed);
                let minibatch = batch.select(&rows);
                self.beside.start(&minibatch)?;
                let kept = self.network.forward(&minibatch.input);
                let outputs = Outputs::of(&self.network, kept.output());
                let log_std = self.network.log_std().unwrap_or_default();
                let (losses, slopes) = losses(&outputs, &log_std, &minibatch, anchor, &self.config, &weights);
                self.network.backward(&kept, &slopes.heads, &slopes.log_std, &mut gradient);
                let seen = Seen::new(&losses, self.beside.finish(&mut gradient)?, &self.config);
                if !seen.finite() {
                    watched.skipped += 1;
                    continue;
                }
                if seen.too_far(&self.config) {
                    watched.stopped = true;
                    break 'phase;
                }
                let heads = head_norms(&layout, &gradient, self.contract.options.count);
                let norm = clip_gradient(&layout, &mut gradient, rates, self.config.max_grad_norm);
                if !norm.is_finite() {
                    watched.skipped += 1;
                    continue;
                }
                self.adam.step(&mut self.parameters, &gradient, rates);
                self.network.load(&self.parameters);
                watched.add(&seen, norm, &heads);
            }
        }
        Ok(watched)
    }
}

/// The seeded order of the steps in one epoch, cut into as many minibatches as `size` fits in, equal to one step.
pub(super) fn minibatches(seed: Seed, update: u64, epoch: usize, steps: usize, size: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..steps).collect();
    order.shuffle(&mut seed.of(Purpose::Minibatches).child(update).rng(epoch as u64));
    let parts = (steps / size.max(1)).max(1);
    (0..parts).map(|part| order[part * steps / parts..(part + 1) * steps / parts].to_vec()).collect()
}
