//! The learner of half-step PPO.

use super::estimate::{Estimated, Scale, estimate, option_weights, past_returns};
use super::gather::Gathered;
use super::init;
use super::loss::{Anchor, Batch, COLUMNS, Column, losses};
use super::metrics::Metrics;
use super::normaliser::Moments;
use super::optimiser::{Adam, AdamState, Rates, clip_gradient};
use super::report::{self, Watched};
use crate::config::{self, Purpose, Seed};
use crate::contract::{Contract, Group, Normaliser, Snapshot};
use crate::data::{Forced, Fragment};
use crate::error::{Error, Result};
use crate::policy::{Network, Outputs, floats};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tch::Tensor;
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

/// Half-step PPO over the options of a contract. One thread of torch's is enough; the caller sets them.
pub struct HsPpo {
    contract: Arc<Contract>,
    config: config::HsPpo,
    seed: Seed,
    network: Network,
    parameters: Vec<f32>,
    adam: Adam,
    observations: Moments,
    returns: Moments,
    updates: u64,
    env_steps: u64,
    skipped: u64,
}

impl HsPpo {
    /// Initial parameters, drawn below `seed`.
    pub fn new(contract: Arc<Contract>, config: &config::HsPpo, seed: Seed) -> Result<Self> {
        let parameters = init::parameters(&contract, config, seed);
        Ok(Self {
            config: config.clone(),
            seed,
            network: Network::new(&contract, &parameters, true)?,
            parameters,
            adam: Adam::new(contract.layout()),
            observations: Moments::new(contract.obs_size()),
            returns: Moments::new(1),
            updates: 0,
            env_steps: 0,
            skipped: 0,
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
        let gathered = Gathered::new(rows, &self.contract, version)?;
        let count = gathered.steps.len();
        let mut returns = self.returns.clone();
        returns.merge(&past_returns(&gathered, self.config.gamma))?;
        let mut observations = self.observations.clone();
        observations.merge(&gathered.observations[..count * self.contract.obs_size()])?;

        let scale = self.scale(&returns);
        let normaliser = self.normaliser();
        let mut input = gathered.observations.clone();
        normaliser.apply(&mut input);
        let input = self.network.input(&input);
        let outputs = Outputs::new(&self.network, &input);
        let q = tch::no_grad(|| floats(&self.network.critic(&input)));
        let estimated = estimate(&gathered, &outputs, &q, &self.contract, &self.config, scale)?;

        let options = self.contract.options.count;
        let mut counts = vec![0; options];
        for step in &gathered.steps {
            counts[usize::from(step.option)] += 1;
        }
        let weights =
            if options == 1 || !self.config.option_weights { vec![1.0; options] } else { option_weights(&counts) };
        let rare: Vec<usize> = if options == 1 {
            Vec::new()
        } else {
            (0..options).filter(|&option| counts[option] < self.config.min_option_steps).collect()
        };
        let anchor = Anchor {
            options: rare.iter().map(|&option| option as i64).collect(),
            log_std: self.network.log_std().detach(),
        };
        let batch = batch(&gathered, &estimated, &outputs, &weights, &input, !rare.is_empty());
        let watched = self.descend(&batch, &anchor, &self.rates(&rare))?;

        (self.returns, self.observations) = (returns, observations);
        self.updates += 1;
        self.env_steps += count as u64;
        self.skipped += watched.skipped;
        let about = report::About { version, scale, config: &self.config, weights: &weights, counts: &counts, q: &q };
        Ok(report::metrics(&gathered, &estimated, &outputs, &watched, &about))
    }

    /// Rewards in units of the return's standard deviation, and the deliberation cost; none for one option.
    fn scale(&self, returns: &Moments) -> Scale {
        let reward = if self.config.normalise_reward { returns.std(0) } else { 1.0 };
        let fraction = if self.contract.options.count == 1 { 0.0 } else { self.config.deliberation_cost };
        Scale { reward, cost: fraction * returns.std(0) / reward }
    }

    fn normaliser(&self) -> Normaliser {
        self.observations.normaliser(self.config.observation_clip as f32)
    }

    fn rates(&self, rare: &[usize]) -> Rates {
        let (lr, flat) = (self.config.lr, self.contract.options.count == 1);
        Rates::new(&self.contract.layout(), |group| match group {
            Group::Trunk | Group::Critic => Some(lr),
            Group::Option(option) => (!rare.contains(&option)).then_some(lr),
            Group::Termination | Group::OverOptions => (!flat).then_some(lr * self.config.lr_option_scale),
        })
    }

    fn descend(&mut self, batch: &Batch, anchor: &Anchor, rates: &Rates) -> Result<Watched> {
        let layout = self.contract.layout();
        let mut gradient = vec![0.0; self.parameters.len()];
        let mut watched = Watched::default();
        let steps = batch.option.size()[0] as usize;
        'phase: for epoch in 0..self.config.num_learning_epochs {
            let orders = minibatches(self.seed, self.updates, epoch, steps, self.config.minibatch_size);
            for order in orders {
                let losses = losses(&self.network, &batch.select(&Tensor::from_slice(&order)), anchor, &self.config);
                let total = losses.total(&self.config);
                let seen = report::watch(&losses, &total, &self.config);
                if !seen.finite() {
                    watched.skipped += 1;
                    continue;
                }
                if seen.too_far(&self.config) {
                    watched.stopped = true;
                    break 'phase;
                }
                total.backward();
                self.network.take_gradient(&mut gradient);
                let norm = clip_gradient(&layout, &mut gradient, rates, self.config.max_grad_norm);
                if !norm.is_finite() {
                    watched.skipped += 1;
                    continue;
                }
                self.adam.step(&mut self.parameters, &gradient, rates);
                self.network.load(&self.parameters);
                watched.add(&seen, norm);
            }
        }
        Ok(watched)
    }
}

/// The seeded order of the steps in one epoch, cut into as many minibatches as `size` fits in, equal to one step.
pub(super) fn minibatches(seed: Seed, update: u64, epoch: usize, steps: usize, size: usize) -> Vec<Vec<i64>> {
    let mut order: Vec<i64> = (0..steps as i64).collect();
    order.shuffle(&mut seed.of(Purpose::Minibatches).child(update).rng(epoch as u64));
    let parts = (steps / size.max(1)).max(1);
    (0..parts).map(|part| order[part * steps / parts..(part + 1) * steps / parts].to_vec()).collect()
}

/// Lays the update's steps out as tensors.
fn batch(
    gathered: &Gathered<'_>,
    estimated: &Estimated,
    outputs: &Outputs,
    weights: &[f64],
    input: &Tensor,
    anchored: bool,
) -> Batch {
    let count = gathered.steps.len();
    let mut columns = vec![0.0f32; count * COLUMNS];
    for (row, columns) in columns.chunks_exact_mut(COLUMNS).enumerate() {
        let step = gathered.steps[row];
        let (arrival, estimate) = (&estimated.arrivals[row], &estimated.estimates[row]);
        let weight = weights[usize::from(step.option)];
        let mut set = |column: Column, value: f64| columns[column as usize] = value as f32;
        let (is_action, is_option) =
            (estimated.log_rho_action[row].exp().min(1.0), estimated.log_rho_option[row].exp().min(1.0));
        set(Column::LogProbAction, estimated.log_prob_action[row]);
        set(Column::LogProbOption, estimated.log_prob_option[row]);
        set(Column::AdvantageAction, weight * is_action * estimated.advantage_action[row]);
        if step.forced != Forced::Preempted {
            set(Column::AdvantageOption, is_option * estimated.advantage_option[row]);
        }
        set(Column::Target, estimate.target);
        set(Column::Weight, weight);
        let same = arrival.running == Some(usize::from(step.option));
        match arrival.forced {
            Forced::Free if same => set(Column::FreeSame, 1.0),
            Forced::Free => set(Column::FreeOther, 1.0),
            Forced::MinSteps => {}
            Forced::Init | Forced::MaxSteps | Forced::Preempted => set(Column::Drawn, 1.0),
        }
    }
    let proposals: Vec<f32> = gathered.steps.iter().flat_map(|step| &step.proposal).copied().collect();
    let option: Vec<i64> = gathered.steps.iter().map(|step| i64::from(step.option)).collect();
    let running: Vec<i64> = estimated.arrivals.iter().map(|arrival| arrival.running.unwrap_or(0) as i64).collect();
    let steps = count as i64;
    Batch {
        input: input.narrow(0, 0, steps),
        option: Tensor::from_slice(&option),
        running: Tensor::from_slice(&running),
        proposal: Tensor::from_slice(&proposals).view([steps, -1]),
        columns: Tensor::from_slice(&columns).view([steps, COLUMNS as i64]),
        anchor: anchored.then(|| outputs.means().narrow(0, 0, steps)),
    }
}
