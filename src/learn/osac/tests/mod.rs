mod gradients;
mod invariants;
mod learning;
mod sac;
mod temperatures;
mod theorems;
mod values;

use super::Osac;
use super::actor::Picked;
use super::losses::{Drawn, Networks, Temperatures};
use crate::config::{self, Prioritisation, Seed};
use crate::contract::{Architecture, Contract, Layout, Network as Sizes};
use crate::learn::twin::Twin;
use crate::learn::uniform;
use crate::policy::tests::{OBS, contract, snapshot};
use crate::policy::{Network, floats};
use crate::replay::Limiter;
use rand::RngExt as _;
use rand_distr::StandardNormal;
use std::sync::Arc;
use tch::Tensor;

const ALPHAS: Temperatures = Temperatures { action: 0.2, option: 0.3 };

/// The small contract of the policy's tests, off-policy.
fn off_policy(options: usize, hidden: &[usize]) -> Arc<Contract> {
    let network = Sizes { architecture: Architecture::OffPolicy, hidden: hidden.to_vec() };
    Arc::new(Contract { network, ..(*contract(options, hidden)).clone() })
}

fn config() -> config::Osac {
    config::Osac {
        batch_size: 64,
        actor_batch_size: 64,
        slack_steps: 64,
        warmup_steps: 64,
        capacity: 20_000,
        actor_fragments: 16,
        prioritisation: Prioritisation::Uniform,
        ..config::Osac::default()
    }
}

fn learner(contract: &Arc<Contract>, config: &config::Osac) -> Osac {
    let per_insert = config.update_to_data * config.batch_size as f64;
    let limiter = Limiter::new(per_insert, config.warmup_steps, config.slack_steps, 1, config.batch_size as u64);
    Osac::new(Arc::clone(contract), config, limiter.unwrap(), Seed::root(3)).unwrap()
}

fn critics_layout(contract: &Contract) -> Layout {
    let inputs = contract.obs_size() + contract.action_size();
    Layout::twin_critics(inputs, &contract.network.hidden, contract.options.count)
}

/// Flat parameters of all four networks, far from their start; the slow ones differ from the learned ones.
#[derive(Clone)]
struct Parameters {
    actor: Vec<f32>,
    slow_actor: Vec<f32>,
    critics: Vec<f32>,
    slow_critics: Vec<f32>,
}

impl Parameters {
    fn new(contract: &Arc<Contract>) -> Self {
        let actor = |seed| snapshot(contract, seed, 0.4).parameters.to_vec();
        let critics = |seed| uniform::parameters(&critics_layout(contract), 0, 0.0, Seed::root(seed));
        Self { actor: actor(1), slow_actor: actor(2), critics: critics(3), slow_critics: critics(4) }
    }

    fn networks(&self, contract: &Contract) -> Networks {
        let layout = critics_layout(contract);
        Networks {
            actor: Network::new(contract, &self.actor, false).unwrap(),
            slow_actor: Network::new(contract, &self.slow_actor, false).unwrap(),
            critics: Twin::new(&layout, &self.critics),
            slow_critics: Twin::new(&layout, &self.slow_critics),
        }
    }
}

/// Normal draws of a shape.
fn normal(shape: &[usize], seed: u64) -> Tensor {
    let mut rng = Seed::root(seed).rng(0);
    let floats: Vec<f32> = (0..shape.iter().product()).map(|_| rng.sample(StandardNormal)).collect();
    let shape: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
    Tensor::from_slice(&floats).view(&shape[..])
}

fn doubles(tensor: &Tensor) -> Vec<f64> {
    floats(tensor).into_iter().map(f64::from).collect()
}

const ROWS: usize = 7;

/// Made-up steps for the critics: the last one ended its episode; in row 1 the acting option must end, in row 2 it must
/// not.
fn drawn(contract: &Contract) -> Drawn {
    let (options, action) = (contract.options.count, contract.action_size());
    let mut discount = vec![0.95; ROWS];
    discount[ROWS - 1] = 0.0;
    let mut forced = vec![None; ROWS];
    (forced[1], forced[2]) = (Some(1.0), Some(0.0));
    Drawn {
        input: normal(&[ROWS, OBS], 10),
        next: normal(&[ROWS, OBS], 11),
        action: normal(&[ROWS, action], 12).tanh(),
        reward: doubles(&normal(&[ROWS], 13)),
        discount,
        weight: doubles(&normal(&[ROWS], 14).abs()),
        executed: (0..ROWS).map(|row| row % options).collect(),
        forced,
        noise: floats(&normal(&[ROWS, options, action], 15)),
    }
}

/// Made-up steps for the actor; in row 0 the termination is masked.
fn picked(contract: &Contract) -> Picked {
    let options = contract.options.count;
    let shares = |seed| doubles(&normal(&[ROWS, options], seed).softmax(1, tch::Kind::Float));
    let mut running = shares(22);
    running[..options].fill(0.0);
    Picked {
        input: normal(&[ROWS, OBS], 20),
        responsibility: shares(21),
        running,
        noise: floats(&normal(&[ROWS, options, contract.action_size()], 23)),
    }
}
