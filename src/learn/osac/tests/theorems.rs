//! Option soft actor-critic against the exact oracle, temperatures at 0 and a cost for each termination: the values are
//! the fixed point of its targets, and its terminations and choices climb the exact gradient.
//!
//! One-hot states and a hidden layer that hands them on: weights are tables. Values do not hang on the action that a critic
//! is told, so the oracle's two actions are its transitions alone.

use super::{config, critics_layout, normal, off_policy};
use crate::config::Osac as Config;
use crate::contract::Contract;
use crate::learn::osac::actor::{Picked, actor_losses};
use crate::learn::osac::losses::{Drawn, Networks, Temperatures, targets};
use crate::learn::twin::Twin;
use crate::option::tests::all_close;
use crate::option::tests::oracle::{Charge, GAMMA, Logits, OPTIONS, STATES, index, pairs, random, target};
use crate::policy::{Network, floats};
use tch::Tensor;

const COLD: Temperatures = Temperatures { action: 0.0, option: 0.0 };

fn networks(contract: &Contract, logits: &Logits, values: &[f64]) -> (Networks, Vec<f32>) {
    let mut actor = vec![0.0; contract.layout().len()];
    for segment in &contract.layout().segments {
        for (at, float) in actor[segment.range()].iter_mut().enumerate() {
            let (option, state) = (at / STATES, at % STATES);
            let same = f32::from(u8::from(option == state));
            *float = match segment.name.as_str() {
                "actor.0.weight" => same,
                "termination.weight" => logits.termination[option][state] as f32,
                "over_options.weight" => logits.over_options[state][option] as f32,
                _ => continue,
            };
        }
    }
    let layout = critics_layout(contract);
    let inputs = contract.obs_size() + contract.action_size();
    let mut critics = vec![0.0; layout.len()];
    let last = layout.segments[2].offset;
    for twin in 0..2 {
        for state in 0..STATES {
            critics[(twin * STATES + state) * inputs + state] = 1.0;
        }
        for (state, option) in pairs() {
            critics[last + (twin * OPTIONS + option) * STATES + state] = values[index(state, option)] as f32;
        }
    }
    let networks = Networks {
        actor: Network::new(contract, &actor, false).unwrap(),
        slow_actor: Network::new(contract, &actor, false).unwrap(),
        critics: Twin::new(&layout, &critics),
        slow_critics: Twin::new(&layout, &critics),
    };
    (networks, actor)
}

fn one_hot(states: &[usize]) -> Tensor {
    let floats: Vec<f32> =
        states.iter().flat_map(|&state| (0..STATES).map(move |at| if at == state { 1.0 } else { 0.0 })).collect();
    Tensor::from_slice(&floats).view([-1, STATES as i64])
}

fn problems() -> [(Logits, f64); 5] {
    [(target(), 0.0), (target(), 0.05), (random(1), 0.0), (random(2), 0.3), (random(3), 0.1)]
}

/// The configuration in which the share of the values' spread that a termination costs is `eta`.
fn costing(eta: f64, values: &[f64]) -> Config {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let std = (square / (values.len() - 1) as f64).sqrt();
    Config { deliberation_cost: eta / std, termination_temperature: 0.0, load_balance_coef: 0.0, ..config() }
}

#[test]
fn the_oracles_values_are_the_fixed_point_of_the_targets() {
    let contract = off_policy(OPTIONS, &[STATES]);
    for (logits, eta) in problems() {
        let values = logits.solve(Charge::Termination(eta));
        let (networks, _) = networks(&contract, &logits, &values);
        // Every (state, action, next state), and the ends; whichever option acted is of no matter.
        let mut steps = Vec::new();
        for (state, action) in (0..STATES).flat_map(|state| [(state, 0), (state, 1)]) {
            let reached = logits.mdp.next[state][action];
            let ended = 1.0 - reached.iter().sum::<f64>();
            steps.extend((0..STATES).map(|to| (state, action, to, reached[to], GAMMA)));
            steps.push((state, action, 0, ended, 0.0));
        }
        let count = steps.len();
        let states = |of: &dyn Fn(usize) -> usize| one_hot(&(0..count).map(of).collect::<Vec<_>>());
        let noise = normal(&[count, OPTIONS, contract.action_size()], 1);
        let batch = Drawn {
            input: states(&|at| steps[at].0),
            next: states(&|at| steps[at].2),
            action: normal(&[count, contract.action_size()], 3),
            reward: steps.iter().map(|step| logits.mdp.reward[step.0][step.1]).collect(),
            discount: steps.iter().map(|step| step.4).collect(),
            weight: vec![1.0; count],
            executed: (0..count).map(|at| at % OPTIONS).collect(),
            forced: vec![None; count],
            noise: floats(&noise),
        };
        let seen: Vec<f64> =
            steps.iter().flat_map(|step| (0..OPTIONS).map(|option| values[index(step.2, option)])).collect();
        let wanted = targets(&networks, &batch, COLD, &costing(eta, &seen));
        let mut found = vec![0.0; STATES * OPTIONS];
        for (at, &(state, action, _, chance, _)) in steps.iter().enumerate() {
            for option in 0..OPTIONS {
                let weight = chance * logits.policy(option, state)[action];
                found[index(state, option)] += weight * wanted[at * OPTIONS + option];
            }
        }
        all_close(&found, &values, 1e-5);
    }
}

#[test]
fn terminations_and_choices_climb_the_exact_gradient() {
    let contract = off_policy(OPTIONS, &[STATES]);
    for (logits, eta) in problems() {
        let charge = Charge::Termination(eta);
        let values = logits.solve(charge);
        let (networks, actor) = networks(&contract, &logits, &values);
        let arrivals = logits.visits().1;
        let picked = Picked {
            input: one_hot(&[0, 1, 2]),
            responsibility: vec![0.5; STATES * OPTIONS],
            running: arrivals.clone(),
            noise: floats(&normal(&[STATES, OPTIONS, contract.action_size()], 2)),
        };
        let mut gradient = vec![0.0; actor.len()];
        actor_losses(&networks, &picked, COLD, &costing(eta, &values), &mut gradient);
        let layout = contract.layout();
        let of = |name: &str| {
            let segment = layout.segments.iter().find(|segment| segment.name == name).unwrap();
            gradient[segment.range()].iter().map(|&slope| -f64::from(slope) * STATES as f64).collect::<Vec<f64>>()
        };
        let (termination, over, _) = logits.differences(charge);
        all_close(&of("termination.weight"), &termination, 1e-5);
        // The loss knows each state alike; the theorem weighs it by how often options are chosen there.
        let choices = |state: usize| {
            let start = if state == 0 { 1.0 } else { 0.0 };
            let ends = |option| arrivals[index(state, option)] * logits.beta(option, state);
            start + (0..OPTIONS).map(ends).sum::<f64>()
        };
        let found: Vec<f64> = (0..STATES).map(|state| of("over_options.weight")[state] * choices(state)).collect();
        all_close(&found, &over, 1e-5);
    }
}
