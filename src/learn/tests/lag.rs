//! Another policy over options behaved, with other terminations (T2 of the option level): the learner's targets settle at
//! the values of its own policy, and elsewhere where the options' ratios are left out.

use super::{acting, config};
use crate::config::{HsPpo as Config, Seed};
use crate::contract::{Contract, Options};
use crate::data::{End, Final, Forced, Fragment, NO_OPTION, Transition};
use crate::learn::{HsPpo, State};
use crate::option::tests::all_close;
use crate::option::tests::off_policy::{Path, behaviour, paths, settle};
use crate::option::tests::oracle::{Charge, GAMMA, Logits, M3, OPTIONS, STATES, index, pairs, target};
use crate::policy::tests::contract;
use std::sync::Arc;

fn one_hot(state: usize) -> [f32; STATES] {
    std::array::from_fn(|at| if at == state { 1.0 } else { 0.0 })
}

/// One-hot states and no hidden layer: weights are tables. The two actions are proposals of -1 and 1.
fn parameters(contract: &Contract, logits: &Logits, values: &[f64]) -> Vec<f32> {
    let mut parameters = vec![0.0; contract.layout().len()];
    for segment in &contract.layout().segments {
        for (at, float) in parameters[segment.range()].iter_mut().enumerate() {
            let (option, state) = (at / STATES, at % STATES);
            *float = match segment.name.as_str() {
                "termination.weight" => logits.termination[option][state] as f32,
                "over_options.weight" => logits.over_options[state][option] as f32,
                "critic.value.weight" => values[index(state, option)] as f32,
                _ => continue,
            };
        }
    }
    parameters
}

/// A path as the behaviour recorded it. Its actions' densities stand to the learner's as their chances do.
fn recorded(path: &Path, learner: &HsPpo, target: &Logits, behaviour: &Logits) -> Fragment {
    let policy = acting(learner, 1);
    let mut running = None;
    let step = |(t, &(state, option, action)): (usize, &(usize, usize, usize))| {
        let proposal = vec![2.0 * action as f32 - 1.0, 0.0];
        let outputs = policy.outputs(&one_hot(state)).unwrap();
        let ratio = target.policy(option, state)[action] / behaviour.policy(option, state)[action];
        let prev = running.replace(option);
        Transition {
            version: 1,
            episode: 0,
            t: t as u32,
            stamp_secs: 0.0,
            option_prev: prev.map_or(NO_OPTION, |prev| prev as u8),
            option: option as u8,
            option_terminated: prev != Some(option),
            forced: if prev.is_none() { Forced::Init } else { Forced::Free },
            option_age: u32::from(prev.is_some()),
            action: proposal.iter().map(|u: &f32| u.tanh()).collect(),
            filtered: false,
            intervened: false,
            reward: M3.reward[state][action] as f32,
            end: if t + 1 == path.steps.len() && path.end.is_none() { End::Terminated } else { End::None },
            log_prob_action: (outputs.log_prob_action(0, option, &proposal) - ratio.ln()) as f32,
            log_prob_option: behaviour.transition(state, prev)[option].ln() as f32,
            log_prob_termination: 0.0,
            log_prob_mixture: 0.0,
            termination_prob: 0.5,
            proposal,
        }
    };
    let steps: Vec<Transition> = path.steps.iter().enumerate().map(step).collect();
    let last = one_hot(path.end.unwrap_or(0)).to_vec();
    Fragment {
        env: 0,
        first: 0,
        obs_size: STATES,
        observations: path.steps.iter().flat_map(|step| one_hot(step.0)).chain(last.clone()).collect(),
        finals: match path.end {
            None => vec![Final { step: steps.len() - 1, observation: last }],
            Some(_) => Vec::new(),
        },
        steps,
    }
}

/// Where the learner's targets settle, learned from again and again.
fn learned(behaviour: &Logits, config: &Config) -> Vec<f64> {
    let options = Options { count: OPTIONS, min_steps: 1, max_steps: 1000 };
    let contract = Arc::new(Contract { options, ..(*contract(OPTIONS, &[])).clone() });
    let target = target();
    let mut learner = HsPpo::new(Arc::clone(&contract), config, Seed::root(1)).unwrap();
    let mut rows = Vec::new();
    let mut weights = Vec::new();
    for (state, option) in pairs() {
        for path in paths(behaviour, state, option) {
            rows.push(recorded(&path, &learner, &target, behaviour));
            weights.push((index(state, option), path.probability));
        }
    }
    let mut values = vec![0.0; STATES * OPTIONS];
    for _ in 0..50 {
        let parameters = parameters(&contract, &target, &values);
        learner.restore(State { parameters, ..learner.state() }).unwrap();
        let prepared = learner.prepare(&rows, 1).unwrap();
        values.fill(0.0);
        let mut first = 0;
        for (row, (pair, probability)) in rows.iter().zip(&weights) {
            values[*pair] += probability * prepared.estimated.estimates[first].target;
            first += row.steps.len();
        }
    }
    values
}

fn uncut() -> Config {
    Config {
        gamma: GAMMA,
        lam: 1.0,
        lam_option: 1.0,
        rho_clip: 1e6,
        normalise_reward: false,
        min_option_steps: 0,
        ..config()
    }
}

#[test]
fn lagging_options_are_corrected_and_without_their_ratios_values_go_astray() {
    let want = target().solve(Charge::Change(0.0));
    all_close(&learned(&behaviour(), &uncut()), &want, 1e-4);
    let without = learned(&behaviour(), &Config { option_ratios: false, ..uncut() });
    all_close(&without, &settle(&behaviour(), &target(), &target(), false), 1e-4);
    let astray = without.iter().zip(&want).map(|(found, want)| (found / want - 1.0).abs()).fold(0.0, f64::max);
    assert!(0.02 < astray, "{without:?} is within 2 % of {want:?}");
}

#[test]
fn lagging_actions_are_corrected_and_without_their_ratios_values_go_astray() {
    let mut other = target();
    other.actions = [[[1.0, 0.0], [-0.4, 0.3], [0.0, 0.2]], [[0.5, 0.1], [0.9, -0.3], [-0.6, 0.4]]];
    let want = target().solve(Charge::Change(0.0));
    all_close(&learned(&other, &uncut()), &want, 1e-4);
    let without = learned(&other, &Config { action_ratios: false, ..uncut() });
    let behaviours = other.solve(Charge::Change(0.0));
    all_close(&without, &behaviours, 1e-4);
    let astray = behaviours.iter().zip(&want).map(|(found, want)| (found / want - 1.0).abs()).fold(0.0, f64::max);
    assert!(0.02 < astray, "{behaviours:?} is within 2 % of {want:?}");
}
