//! Learning from recorded steps: implicit Q-learning over options, and behaviour cloning. The networks are those of half-step PPO, whose
//! critic is the value of an option here; the values of actions stay with the learner.

mod critics;
mod dataset;
mod losses;
mod state;
#[cfg(test)]
mod tests;

use super::algorithm::Algorithm;
use super::init;
use super::learned::Learned;
use super::metrics::{Metrics, mean};
use super::optimiser::Rates;
use crate::config::{self, Purpose, Seed};
use crate::contract::{Contract, Group, Inheritance, Snapshot};
use crate::data::{Gathered, Part, Vectors};
use crate::error::{Error, Result};
use crate::policy::{Network, floats};
use critics::Critics;
pub use dataset::Dataset;
use dataset::Steps;
use losses::{ActorLosses, Counts, executed, value, weights};
use rand::RngExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tch::{Kind, Tensor};
use uuid::Uuid;

/// Largest weight of an action (as in the code of IQL), and of a choice.
const MOST: (f64, f64) = (100.0, 20.0);
/// Steps that are looked at together where nothing is learned.
const CHUNK: usize = 4096;
/// Order of the losses of a gradient step; what cloning lacks comes last.
const NAMES: [&str; 5] = ["policy_loss", "option_loss", "termination_loss", "value_loss", "critic_loss"];

/// Implicit Q-learning, or cloning, on a set of recorded steps. One thread of torch's is enough; the caller sets them.
pub struct Offline {
    contract: Arc<Contract>,
    config: config::Learner,
    seed: Seed,
    dataset: Dataset,
    network: Network,
    actor: Learned,
    /// None: cloning.
    critics: Option<Critics>,
    updates: u64,
    /// The draws of a gradient step hang on its number.
    gradient_steps: u64,
    /// Gradient steps whose loss or gradient was not finite.
    skipped: u64,
    pulse: Arc<AtomicU64>,
}

impl Offline {
    /// Initial parameters, drawn below `seed`; `cloning` leaves values out.
    pub fn new(
        contract: Arc<Contract>,
        config: &config::Learner,
        dataset: Dataset,
        cloning: bool,
        seed: Seed,
    ) -> Result<Self> {
        let parameters = init::parameters(&contract, &config.hs_ppo, seed);
        Ok(Self {
            network: Network::new(&contract, &parameters, true)?,
            actor: Learned::new(contract.layout(), parameters, |_| None),
            critics: (!cloning).then(|| Critics::new(&contract, config.offline.lr, seed)),
            config: config.clone(),
            seed,
            dataset,
            updates: 0,
            gradient_steps: 0,
            skipped: 0,
            pulse: Arc::default(),
            contract,
        })
    }

    fn options(&self) -> usize {
        self.contract.options.count
    }

    /// The actor's learning rate: half a cosine over the run.
    fn lr(&self) -> f64 {
        let done = self.gradient_steps as f64 / self.config.offline.gradient_steps as f64;
        self.config.offline.lr * 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos())
    }

    /// Steps of the training, drawn with replacement.
    fn draw(&self, train: &Steps) -> Steps {
        let mut draw = self.seed.of(Purpose::Replay).rng(self.gradient_steps);
        let count = train.len() as i64;
        let rows: Vec<i64> = (0..self.config.offline.batch_size).map(|_| draw.random_range(0..count)).collect();
        train.select(&rows)
    }

    /// Values first, by the slow critics; the actor by these values; the critics by both; the slow ones after them: the order of IQL's
    /// code. Returns the losses.
    fn gradient_step(&mut self, steps: &Steps) -> Vec<f64> {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        let layout = self.contract.layout();
        let config = &self.config.offline;
        let mut sound = true;
        let value_loss = self.critics.as_ref().map(|critics| {
            let loss = critics.value_loss(&self.network, steps, config);
            loss.backward();
            self.network.take_gradient(&mut self.actor.gradient);
            self.actor.rates = Rates::new(&layout, |group| (group == Group::Critic).then_some(config.lr));
            sound &= self.actor.step();
            self.network.load(&self.actor.parameters);
            loss
        });

        let losses = self.actor_losses(steps);
        losses.total(self.options()).backward();
        self.network.take_gradient(&mut self.actor.gradient);
        let acted = floats(&steps.executed.sum_dim_intlist([0i64].as_slice(), false, Kind::Float));
        let (lr, several) = (self.lr(), 1 < self.options());
        self.actor.rates = Rates::new(&layout, |group| match group {
            Group::Critic | Group::Temperature => None,
            Group::Option(option) => (0.0 < acted[option]).then_some(lr),
            Group::Termination | Group::OverOptions => several.then_some(lr),
            Group::Trunk => Some(lr),
        });
        sound &= self.actor.step();
        self.network.load(&self.actor.parameters);

        let cost = self.dataset.scale.cost;
        let critic_loss = self.critics.as_mut().map(|critics| {
            let (loss, pass, slope) = critics.loss(&self.network, steps, config, cost);
            critics.twin.learn(&pass, slope);
            critics.twin.take_gradient(&mut critics.learned.gradient);
            sound &= critics.learned.step();
            critics.twin.load(&critics.learned.parameters);
            critics.slow.follow(&critics.twin, config.tau);
            loss
        });
        self.gradient_steps += 1;
        self.skipped += u64::from(!sound);
        numbers(&losses, value_loss, critic_loss)
    }

    /// How much each step counts, and what follows for the actor.
    fn actor_losses(&self, steps: &Steps) -> ActorLosses {
        let heads = self.network.split(&self.network.actor(&steps.input));
        let config = &self.config.offline;
        let ones = steps.reward.ones_like();
        let counts = match &self.critics {
            None => {
                Counts { action: steps.executed.shallow_clone(), option: ones, going_on: steps.executed.zeros_like() }
            }
            Some(critics) => tch::no_grad(|| {
                let values = self.network.critic(&steps.input);
                let gain = &values - value(&values, &heads.over_options);
                let advantage = critics.least(steps) - &values;
                let share = critics::shares(steps, config);
                Counts {
                    action: share * weights(&advantage, config.temperature, MOST.0),
                    option: weights(&executed(&gain, steps), config.option_temperature, MOST.1),
                    going_on: (gain + self.dataset.scale.cost) * config.termination_weight,
                }
            }),
        };
        ActorLosses::new(&heads, steps, &counts)
    }

    /// The losses of a part as it stands; none where it has no steps.
    pub fn losses(&self, part: Part) -> Option<Vec<(&'static str, f64)>> {
        let steps = self.dataset.parts.get(&part)?;
        let (mut sums, count) = (Vec::new(), steps.len());
        tch::no_grad(|| {
            for first in (0..count).step_by(CHUNK) {
                let rows: Vec<i64> = (first..count.min(first + CHUNK)).map(|row| row as i64).collect();
                let some = steps.select(&rows);
                let config = &self.config.offline;
                let critics = self.critics.as_ref();
                let value = critics.map(|critics| critics.value_loss(&self.network, &some, config));
                let cost = self.dataset.scale.cost;
                let critic = critics.map(|critics| critics.loss(&self.network, &some, config, cost).0);
                let losses = numbers(&self.actor_losses(&some), value, critic);
                sums.resize(losses.len(), 0.0);
                let share = rows.len() as f64 / count as f64;
                sums.iter_mut().zip(&losses).for_each(|(sum, loss)| *sum += share * loss);
            }
        });
        Some(NAMES.into_iter().zip(sums).filter(|(name, _)| self.tells(name)).collect())
    }

    /// Whether a loss says something: one option is neither chosen nor ended.
    fn tells(&self, name: &str) -> bool {
        1 < self.options() || !["option_loss", "termination_loss"].contains(&name)
    }
}

fn numbers(actor: &ActorLosses, value: Option<Tensor>, critic: Option<Tensor>) -> Vec<f64> {
    let mut all = vec![actor.policy.detach(), actor.over_options.detach(), actor.termination.detach()];
    all.extend(value.iter().chain(&critic).map(Tensor::detach));
    floats(&Tensor::stack(&all, 0)).into_iter().map(f64::from).collect()
}

impl Algorithm for Offline {
    fn snapshot(&self, run: Uuid, life: u32, version: u64) -> Snapshot {
        Snapshot {
            run,
            life,
            version,
            updates: self.updates,
            env_steps: self.env_steps(),
            random_warmup: false,
            contract: Arc::clone(&self.contract),
            normaliser: self.dataset.observations.normaliser(self.config.hs_ppo.observation_clip as f32),
            parameters: self.actor.parameters.clone().into(),
        }
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    /// A recorded step counts each time that it is drawn.
    fn env_steps(&self) -> u64 {
        self.gradient_steps * self.config.offline.batch_size as u64
    }

    fn pulse(&self) -> Arc<AtomicU64> {
        self.pulse.clone()
    }

    /// Takes no rows: what is learned from was recorded before.
    fn learn(&mut self, rows: Vec<Gathered>, _version: u64) -> Result<Metrics> {
        if !rows.is_empty() {
            return Err(Error::invalid("learning from bags takes no new steps"));
        }
        let Some(train) = self.dataset.parts.remove(&Part::Train) else {
            return Err(Error::invalid("there is nothing to learn from"));
        };
        let left = self.config.offline.gradient_steps.saturating_sub(self.gradient_steps);
        let mut seen: Vec<Vec<f64>> = Vec::new();
        for _ in 0..left.min(self.config.offline.update_steps) {
            let drawn = self.draw(&train);
            seen.push(self.gradient_step(&drawn));
        }
        self.dataset.parts.insert(Part::Train, train);
        self.updates += 1;
        let mut all = Metrics::default();
        for (index, name) in NAMES.iter().enumerate().filter(|(_, name)| self.tells(name)) {
            if seen.first().is_some_and(|losses| index < losses.len()) {
                all.push(format!("losses/{name}"), mean(seen.iter().map(|losses| losses[index])));
            }
        }
        for (name, loss) in self.losses(Part::Validation).into_iter().flatten() {
            all.push(format!("validation/{name}"), loss);
        }
        // looked at once, when all is learned
        if 0 < left && self.gradient_steps == self.config.offline.gradient_steps {
            for (name, loss) in self.losses(Part::Test).into_iter().flatten() {
                all.push(format!("test/{name}"), loss);
            }
        }
        all.push("losses/gradient_steps", seen.len() as f64);
        all.push("losses/skipped_minibatches", self.skipped as f64);
        all.push("charts/learning_rate", self.lr());
        Ok(all)
    }

    fn save(&self) -> Vectors {
        self.pack()
    }

    fn save_replay(&self) -> Option<Vectors> {
        None
    }

    fn restore(&mut self, snapshot: &Snapshot, saved: &Vectors, _none: Option<&Vectors>) -> Result<()> {
        self.unpack(snapshot, saved)
    }

    fn inherit(&mut self, _fits: &Inheritance, _snapshot: &Snapshot, _saved: &Vectors) -> Result<()> {
        Err(Error::invalid("learning from bags starts anew: leave out learner.init_from (--init-from)"))
    }
}
