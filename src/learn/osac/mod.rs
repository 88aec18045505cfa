//! Option soft actor-critic: every option learns from every remembered step; with one option it is SAC.

mod actor;
mod gather;
mod imagine;
mod losses;
mod state;
#[cfg(test)]
mod tests;
mod watch;

use super::algorithm::Algorithm;
use super::learned::Learned;
use super::metrics::Metrics;
use super::normaliser::Moments;
use super::twin::Twin;
use super::uniform;
use crate::config::{self, Prioritisation, Purpose, Seed};
use crate::contract::{Contract, Group, Inheritance, Layout, Normaliser, Snapshot};
use crate::data::{Gathered, Vectors};
use crate::error::{Error, Result};
use crate::policy::Network;
use crate::replay::{Limiter, Priority, Replay, Shape, StepId, importance};
use actor::{actor_losses, temperature_gradient};
use gather::Frame;
use losses::{Networks, Temperatures, critic_loss, targets};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;
use watch::Watched;

/// Option soft actor-critic over the options of a contract. One thread of torch's is enough; the caller sets them.
pub struct Osac {
    contract: Arc<Contract>,
    config: config::Osac,
    seed: Seed,
    replay: Replay,
    limiter: Limiter,
    networks: Networks,
    actor: Learned,
    critics: Learned,
    /// log of both.
    temperatures: Learned,
    observations: Moments,
    updates: u64,
    env_steps: u64,
    /// The draws of a gradient step hang on its number.
    gradient_steps: u64,
    /// The policy was learned elsewhere: it records from the first step on.
    warm: bool,
    /// Gradient steps whose loss or gradient was not finite.
    skipped: u64,
    /// Gradient steps begun by this process.
    pulse: Arc<AtomicU64>,
}

impl Osac {
    /// Initial parameters, drawn below `seed`; an empty replay. `limiter` keeps learning in step with recording.
    pub fn new(contract: Arc<Contract>, config: &config::Osac, limiter: Limiter, seed: Seed) -> Result<Self> {
        let (obs, action, options) = (contract.obs_size(), contract.action_size(), contract.options.count);
        let shape = Shape { obs, action, options, fragment: config.fragment_steps };
        let alpha = config.priority_exponent;
        let priority = match config.prioritisation {
            Prioritisation::Uniform => Priority::Uniform,
            Prioritisation::Proportional => Priority::Proportional { alpha },
            Prioritisation::Lap => Priority::Lap { alpha },
        };
        let layout = contract.layout();
        let critics_layout = Layout::twin_critics(obs + action, &contract.network.hidden, options);
        let bias = config.termination_bias_init;
        let actor = uniform::parameters(&layout, 0, bias, seed);
        let critics = uniform::parameters(&critics_layout, layout.segments.len() as u64, bias, seed);
        let networks = Networks {
            actor: Network::new(&contract, &actor, false)?,
            slow_actor: Network::new(&contract, &actor, false)?,
            critics: Twin::new(&critics_layout, &critics),
            slow_critics: Twin::new(&critics_layout, &critics),
        };
        let (lr, lr_option) = (config.lr, (1 < options).then_some(config.lr_option));
        let temperature = config.temperature_init.ln() as f32;
        Ok(Self {
            replay: Replay::new(shape, config.capacity, priority)?,
            limiter,
            networks,
            actor: Learned::new(layout, actor, |group| match group {
                Group::Termination | Group::OverOptions => lr_option,
                _ => Some(lr),
            }),
            critics: Learned::new(critics_layout, critics, |_| Some(lr)),
            temperatures: Learned::new(Layout::temperatures(), vec![temperature; 2], |_| Some(lr)),
            observations: Moments::new(obs),
            updates: 0,
            env_steps: 0,
            gradient_steps: 0,
            warm: false,
            skipped: 0,
            pulse: Arc::default(),
            config: config.clone(),
            contract,
            seed,
        })
    }

    fn normaliser(&self) -> Normaliser {
        self.observations.normaliser(self.config.observation_clip as f32)
    }

    fn alphas(&self) -> Temperatures {
        let alpha = |index: usize| f64::from(self.temperatures.parameters[index]).exp();
        Temperatures { action: alpha(0), option: alpha(1) }
    }

    /// How far the run is in its annealing, 0 to 1.
    fn annealed(&self) -> f64 {
        (self.env_steps as f64 / self.config.anneal_steps.max(1) as f64).min(1.0)
    }

    /// Entropies that the actions and the policy over options shall have [nat].
    fn target_entropies(&self) -> (f64, f64) {
        let config::Osac { target_entropy, option_entropy_start: start, option_entropy_end: end, .. } = self.config;
        let share = start + self.annealed() * (end - start);
        (target_entropy * self.contract.action_size() as f64, share * (self.contract.options.count as f64).ln())
    }

    fn observe(&mut self, rows: &[Gathered]) -> Result<()> {
        let obs = self.contract.obs_size();
        rows.iter().try_for_each(|Gathered { fragment, .. }| {
            self.observations.merge_observations(&fragment.observations[..fragment.steps.len() * obs])
        })
    }

    fn insert(&mut self, row: &Gathered) -> Result<()> {
        let steps = row.fragment.steps.len() as u64;
        self.replay.insert(&row.fragment)?;
        self.limiter.inserted(steps);
        self.env_steps += steps;
        Ok(())
    }

    /// Takes rows in, and learns as much as the limiter wants.
    fn take(&mut self, rows: &[Gathered], watched: &mut Watched) -> Result<()> {
        self.observe(rows)?;
        let normaliser = self.normaliser();
        for row in rows {
            let steps = row.fragment.steps.len() as u64;
            while !self.limiter.may_insert(steps) && self.may_learn() {
                self.gradient_step(&normaliser, watched)?;
            }
            self.insert(row)?;
        }
        while self.may_learn() {
            self.gradient_step(&normaliser, watched)?;
        }
        Ok(())
    }

    fn may_learn(&self) -> bool {
        self.limiter.may_sample(self.config.batch_size as u64) && !self.replay.is_empty()
    }

    /// Critics, actor, temperatures, and the slow networks after them.
    fn gradient_step(&mut self, normaliser: &Normaliser, watched: &mut Watched) -> Result<()> {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        let config = &self.config;
        let frame = Frame { contract: &self.contract, normaliser };
        let mut draw = self.seed.of(Purpose::Replay).rng(self.gradient_steps);
        let mut noise = self.seed.of(Purpose::Imagination).rng(self.gradient_steps);
        let alphas = self.alphas();

        let draws = self.replay.draw(config.batch_size, config.option_share, &mut draw)?;
        let weights = match config.prioritisation {
            Prioritisation::Proportional => {
                let exponent = config.importance_exponent + self.annealed() * (1.0 - config.importance_exponent);
                importance(&draws, self.replay.len(), exponent)
            }
            Prioritisation::Uniform | Prioritisation::Lap => vec![1.0; draws.len()],
        };
        let batch = frame.drawn(&self.replay, &draws, weights, config.gamma, &mut noise);
        let wanted = targets(&self.networks, &batch, alphas, config);
        let critics = critic_loss(&mut self.networks.critics, &batch, &wanted, config);
        self.networks.critics.take_gradient(&mut self.critics.gradient);
        let mut sound = self.critics.step();
        self.networks.critics.load(&self.critics.parameters);
        let steps: Vec<StepId> = draws.iter().map(|draw| draw.step).collect();
        watched.dropped += self.replay.update(&steps, &critics.errors) as u64;

        let flat = self.contract.options.count == 1;
        let fragments = if flat { config.actor_batch_size } else { config.actor_fragments };
        let fragments = self.replay.pick(fragments, config.actor_batch_size / fragments, &mut draw)?;
        let actor = &self.networks.actor;
        let picked = frame.picked(&self.replay, &fragments, actor, config.responsibility_floor, &mut noise);
        let losses = actor_losses(&self.networks, &picked, alphas, config, &mut self.actor.gradient);
        sound &= self.actor.step();
        self.networks.actor.load(&self.actor.parameters);

        watched.add(&critics, &wanted, &losses);
        let slopes = temperature_gradient(&losses, self.target_entropies());
        self.temperatures.gradient.copy_from_slice(&slopes);
        sound &= self.temperatures.step();

        self.networks.slow_critics.follow(&self.networks.critics, config.tau);
        self.networks.slow_actor.follow(&self.networks.actor, config.tau);
        self.limiter.sampled(draws.len() as u64);
        self.gradient_steps += 1;
        self.skipped += u64::from(!sound);
        Ok(())
    }
}

impl Algorithm for Osac {
    fn snapshot(&self, run: Uuid, life: u32, version: u64) -> Snapshot {
        Snapshot {
            run,
            life,
            version,
            updates: self.updates,
            env_steps: self.env_steps,
            random_warmup: !self.warm && self.env_steps < self.config.warmup_steps,
            contract: Arc::clone(&self.contract),
            normaliser: self.normaliser(),
            parameters: self.actor.parameters.clone().into(),
        }
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn env_steps(&self) -> u64 {
        self.env_steps
    }

    fn pulse(&self) -> Arc<AtomicU64> {
        self.pulse.clone()
    }

    fn learn(&mut self, rows: Vec<Gathered>, version: u64) -> Result<Metrics> {
        if rows.is_empty() {
            return Err(Error::invalid("an update needs at least one step"));
        }
        let mut watched = Watched::default();
        self.take(&rows, &mut watched)?;
        self.updates += 1;
        Ok(watched.metrics(&rows, version, self))
    }

    fn remember(&mut self, rows: &[Gathered]) -> Result<()> {
        self.observe(rows)?;
        rows.iter().try_for_each(|row| self.insert(row))
    }

    fn save(&self) -> Vectors {
        self.pack()
    }

    fn save_replay(&self) -> Option<Vectors> {
        Some(self.replay.save())
    }

    fn restore(&mut self, snapshot: &Snapshot, saved: &Vectors, replay: Option<&Vectors>) -> Result<()> {
        self.unpack(snapshot, saved, replay)
    }

    fn inherit(&mut self, fits: &Inheritance, snapshot: &Snapshot, saved: &Vectors) -> Result<()> {
        self.take_over(fits, snapshot, saved)
    }
}
