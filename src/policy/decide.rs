//! From observations to options and actions.

use super::alone::Alone;
use super::network::{Network, floats};
use super::outputs::Outputs;
use crate::contract::{Contract, Normaliser, Snapshot};
use crate::data::{Choice, Forced, NO_OPTION};
use crate::defect::defect;
use crate::error::{Error, Result};
use crate::option::{Arrival, Running, TERMINATION_LOGIT_MAX, log_sigmoid, log_sum_exp};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use std::sync::Arc;

/// How the action is taken from its distribution. Options and terminations are always sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Sampled.
    Stochastic,
    /// The mean.
    MeanAction,
}

/// One environment's decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is recorded of it. `forced` reads [`Forced::Init`] wherever nothing was running; who took the running option
    /// away (safety, an operator) records [`Forced::Preempted`] in its place.
    pub choice: Choice,
    /// P(. | s), K floats.
    pub over_options: Vec<f32>,
    /// What runs on the next arrival.
    pub next: Running,
}

/// A snapshot that acts. `Send`, not `Sync`: each thread builds its own. The caller sets torch's threads.
pub struct Policy {
    contract: Arc<Contract>,
    normaliser: Normaliser,
    version: u64,
    /// Actions are drawn at random (off-policy warm-up).
    random: bool,
    network: Network,
    actor_alone: Alone,
    critic_alone: Option<Alone>,
}

impl Policy {
    /// Builds the networks; refuses a snapshot that fails its check or whose outputs on a zero observation are not
    /// finite.
    pub fn new(snapshot: &Snapshot) -> Result<Self> {
        snapshot.check()?;
        let options = snapshot.contract.options.count;
        if !(1..=usize::from(NO_OPTION)).contains(&options) {
            return Err(Error::invalid(format!("a policy has 1 to {NO_OPTION} options, not {options}")));
        }
        let network = Network::new(&snapshot.contract, &snapshot.parameters, false)?;
        let policy = Self {
            contract: Arc::clone(&snapshot.contract),
            normaliser: snapshot.normaliser.clone(),
            version: snapshot.version,
            random: snapshot.random_warmup,
            actor_alone: network.actor_alone(&snapshot.parameters),
            critic_alone: network.critic_alone(&snapshot.parameters),
            network,
        };
        let zero = vec![0.0; snapshot.contract.obs_size()];
        policy.outputs(&zero)?;
        policy.values(&zero)?;
        Ok(policy)
    }

    /// The contract that it acts under.
    pub fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// The snapshot's version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Decides for N environments in one forward pass. `observations` is N x D, raw, row-major; `running` is what runs
    /// on arrival. Each environment draws from its own generator, keyed by seed, environment and tick
    /// (`seed.child(env).rng(tick)`), so its draws depend on no other environment. Refuses sizes that disagree, an
    /// observation that is not finite and outputs that are not, by environment.
    pub fn decide(
        &self,
        observations: &[f32],
        running: &[Running],
        draws: &mut [ChaCha8Rng],
        sampling: Sampling,
    ) -> Result<Vec<Decision>> {
        let outputs = self.outputs(observations)?;
        let rows = observations.len() / self.contract.obs_size();
        if running.len() != rows || draws.len() != rows {
            return Err(Error::invalid(format!(
                "{rows} observations need as many running options and generators, not {} and {}",
                running.len(),
                draws.len()
            )));
        }
        let rows = running.iter().zip(draws).enumerate();
        rows.map(|(env, (running, draw))| self.choose(&outputs, env, *running, draw, sampling)).collect()
    }

    /// Q(s, .) of N raw observations, N x K.
    pub fn values(&self, observations: &[f32]) -> Result<Vec<f32>> {
        let input = self.normalised(observations)?;
        let values = match &self.critic_alone {
            Some(critic) if input.len() == self.contract.obs_size() => critic.forward(&input),
            _ => tch::no_grad(|| floats(&self.network.critic(&self.network.input(&input)))),
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => Err(self.not_finite("critic", at / self.network.options())),
        }
    }

    fn normalised(&self, observations: &[f32]) -> Result<Vec<f32>> {
        let size = self.contract.obs_size();
        if !observations.len().is_multiple_of(size) {
            let len = observations.len();
            return Err(Error::invalid(format!("an observation has {size} floats; {len} are no multiple")));
        }
        if let Some(at) = observations.iter().position(|float| !float.is_finite()) {
            let (env, float, value) = (at / size, at % size, observations[at]);
            return Err(Error::invalid(format!("float {float} of environment {env}'s observation is {value}")));
        }
        let mut normalised = observations.to_vec();
        self.normaliser.apply(&mut normalised);
        Ok(normalised)
    }

    /// The actor's outputs for N raw observations, checked as in [`Self::decide`].
    pub fn outputs(&self, observations: &[f32]) -> Result<Outputs> {
        let input = self.normalised(observations)?;
        let outputs = if input.len() == self.contract.obs_size() {
            let heads = self.actor_alone.forward(&input);
            let width = heads.len();
            Outputs::read(&self.network, heads, width)
        } else {
            Outputs::new(&self.network, &self.network.input(&input))
        };
        match (0..observations.len() / self.contract.obs_size()).find(|&env| !outputs.finite(env)) {
            None => Ok(outputs),
            Some(env) => Err(self.not_finite("actor", env)),
        }
    }

    fn not_finite(&self, which: &str, env: usize) -> Error {
        let version = self.version;
        Error::invalid(format!("the {which} of version {version} is not finite in environment {env}"))
    }

    /// b ~ Bernoulli(beta), then o ~ P where b: together they have the law of p^. Every decision draws the same way,
    /// forced or not: one uniform number for b, one for o, A normal ones (uniform ones in a random warm-up).
    fn choose(
        &self,
        outputs: &Outputs,
        env: usize,
        running: Running,
        draw: &mut ChaCha8Rng,
        sampling: Sampling,
    ) -> Result<Decision> {
        let options = self.contract.options.count;
        if let Some(option) = running.option.filter(|&option| options <= usize::from(option)) {
            return Err(Error::invalid(format!(
                "environment {env} runs option {option}; the options are 0 to {}",
                options - 1
            )));
        }
        let logit = running.option.map_or(0.0, |option| outputs.termination(env, usize::from(option)));
        let arrival = Arrival::new(logit, running, &self.contract.options);
        let log_over = outputs.log_over_options(env);

        let (stop, pick): (f64, f64) = (draw.random(), draw.random());
        let (option, terminated) = match arrival.running {
            Some(option) if arrival.beta() <= stop => (option, false),
            None if defect("starts_in_option_0") => (0, true),
            _ => (sample(&log_over, pick), true),
        };
        let random = self.random && sampling == Sampling::Stochastic;
        let proposal: Vec<f32> = outputs
            .mean(env, option)
            .iter()
            .zip(outputs.log_std(env, option))
            .map(|(&mean, log_std)| match sampling {
                Sampling::MeanAction => mean,
                Sampling::Stochastic if random => anywhere(draw),
                Sampling::Stochastic => {
                    let normal: f64 = draw.sample(StandardNormal);
                    (f64::from(mean) + log_std.exp() * normal) as f32
                }
            })
            .collect();
        let density = |option: usize| {
            if random { log_density_anywhere(&proposal) } else { outputs.log_prob_action(env, option, &proposal) }
        };

        let mixture: Vec<f64> = (0..options).map(|o| arrival.log_transition(o, &log_over) + density(o)).collect();
        let log_prob_termination = match arrival.forced {
            Forced::Free if terminated => arrival.log_stop,
            Forced::Free => arrival.log_continue,
            _ => 0.0,
        };
        let termination_prob = match arrival.running {
            None => 1.0,
            Some(_) => log_sigmoid(logit.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX)).exp(),
        };
        let option_name = option as u8;
        let choice = Choice {
            option_prev: running.option.unwrap_or(NO_OPTION),
            option: option_name,
            option_terminated: terminated,
            forced: arrival.forced,
            option_age: if running.option.is_some() { running.age } else { 0 },
            action: proposal.iter().map(|proposal| proposal.tanh()).collect(),
            log_prob_action: density(option) as f32,
            log_prob_option: arrival.log_transition(option, &log_over) as f32,
            log_prob_termination: log_prob_termination as f32,
            log_prob_mixture: log_sum_exp(&mixture) as f32,
            termination_prob: termination_prob as f32,
            proposal,
        };
        Ok(Decision {
            choice,
            over_options: log_over.iter().map(|log| log.exp() as f32).collect(),
            next: running.next(option_name, terminated),
        })
    }
}

/// A proposal whose action is uniform over the floats within (-1, 1).
fn anywhere(draw: &mut ChaCha8Rng) -> f32 {
    const EDGE: f64 = 1.0 - 1e-6;
    let action: f64 = draw.random_range(-EDGE..EDGE);
    action.atanh() as f32
}

/// log density of such a proposal: each float's is (1 - tanh²) / 2.
pub(super) fn log_density_anywhere(proposal: &[f32]) -> f64 {
    let log_cosh = |u: f64| u.abs() + (-2.0 * u.abs()).exp().ln_1p() - std::f64::consts::LN_2;
    proposal.iter().map(|&u| -2.0 * log_cosh(f64::from(u)) - std::f64::consts::LN_2).sum()
}

/// Inverts the cumulative distribution at `pick` in [0, 1).
fn sample(log_over_options: &[f64], pick: f64) -> usize {
    let mut left = pick;
    for (option, log) in log_over_options.iter().enumerate() {
        left -= log.exp();
        if left < 0.0 {
            return option;
        }
    }
    log_over_options.len() - 1
}
