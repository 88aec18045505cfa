//! The three gradient theorems of options (actions, terminations, choices) through the whole learner: its estimates, its
//! losses and autograd give the slope of the exact return, which finite differences of a linear system give.
//!
//! Actions are Gaussian, one float u: of the oracle's two actions the second has probability sigmoid(u). Every step that
//! can happen is one row, weighed by how often it does.

use super::{acting, config, norm, together};
use crate::config::{HsPpo as Config, Seed};
use crate::contract::{Contract, Options};
use crate::data::{End, Final, Forced, Fragment, NO_OPTION, Transition};
use crate::learn::HsPpo;
use crate::learn::batch::{COLUMNS, Column};
use crate::option::tests::all_close;
use crate::option::tests::oracle::{Charge, GAMMA, Logits, OPTIONS, STATES, index, pairs, random, sigmoid, target};
use crate::policy::Network;
use crate::policy::tests::contract;
use std::sync::Arc;
use tch::Tensor;

/// Of standard normal draws: evenly spaced, which is exact to rounding for what is smooth.
const NODES: [f64; 29] = {
    let mut nodes = [0.0; 29];
    let mut at = 0;
    while at < 29 {
        nodes[at] = 0.5 * at as f64 - 7.0;
        at += 1;
    }
    nodes
};

fn likelihood(z: f64) -> f64 {
    0.5 * (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// A Gaussian policy on the oracle's problem.
#[derive(Clone)]
struct Gaussian {
    logits: Logits,
    /// `[option][state]`.
    mean: [[f64; STATES]; OPTIONS],
    log_std: [f64; OPTIONS],
}

impl Gaussian {
    fn new(logits: Logits) -> Self {
        let mean = std::array::from_fn(|o| std::array::from_fn(|s| logits.actions[o][s][1] - logits.actions[o][s][0]));
        Self { logits, mean, log_std: [-0.4, 0.1] }
    }

    /// The oracle's own policy with the same chances.
    fn exact(&self) -> Logits {
        let mut logits = self.logits.clone();
        for (state, option) in pairs() {
            let of = |z: &f64| likelihood(*z) * sigmoid(self.mean[option][state] + self.log_std[option].exp() * z);
            let second: f64 = NODES.iter().map(of).sum();
            logits.actions[option][state] = [0.0, (second / (1.0 - second)).ln()];
        }
        logits
    }

    /// One-hot states and no hidden layer: weights are tables.
    fn parameters(&self, contract: &Contract, values: &[f64]) -> Vec<f32> {
        let mut parameters = vec![0.0; contract.layout().len()];
        for segment in &contract.layout().segments {
            for (at, float) in parameters[segment.range()].iter_mut().enumerate() {
                let (row, state) = (at / STATES, at % STATES);
                *float = match segment.name.as_str() {
                    "termination.weight" => self.logits.termination[row][state] as f32,
                    "over_options.weight" => self.logits.over_options[state][row] as f32,
                    "critic.value.weight" => values[index(state, row)] as f32,
                    "option.0.mean.weight" if row == 0 => self.mean[0][state] as f32,
                    "option.1.mean.weight" if row == 0 => self.mean[1][state] as f32,
                    "option.0.log_std" => self.log_std[0] as f32,
                    "option.1.log_std" => self.log_std[1] as f32,
                    _ => continue,
                };
            }
        }
        parameters
    }

    fn difference(&self, charge: Charge, change: impl Fn(&mut Self, f64)) -> f64 {
        let side = |step: f64| {
            let mut moved = self.clone();
            change(&mut moved, step);
            moved.exact().start_value(charge)
        };
        (side(1e-5) - side(-1e-5)) / 2e-5
    }
}

fn one_hot(state: usize) -> [f32; STATES] {
    std::array::from_fn(|at| if at == state { 1.0 } else { 0.0 })
}

/// Every step that can happen, and how often it does, discounted.
fn rows(gaussian: &Gaussian, learner: &HsPpo) -> (Vec<Fragment>, Vec<f64>) {
    let exact = gaussian.exact();
    let arrivals = exact.visits().1;
    let policy = acting(learner, 1);
    let (mut rows, mut weights) = (Vec::new(), Vec::new());
    let starts = [(0, None, 1.0)].into_iter();
    let later = pairs().map(|(state, running)| (state, Some(running), arrivals[index(state, running)]));
    for (state, running, mass) in starts.chain(later) {
        let law = exact.transition(state, running);
        let outputs = policy.outputs(&one_hot(state)).unwrap();
        for (option, z) in (0..OPTIONS).flat_map(|option| NODES.map(|z| (option, z))) {
            let u = gaussian.mean[option][state] + gaussian.log_std[option].exp() * z;
            let mix = |of: [f64; 2]| of[0] + sigmoid(u) * (of[1] - of[0]);
            let reached: [f64; STATES] =
                std::array::from_fn(|to| mix([0, 1].map(|action| exact.mdp.next[state][action][to])));
            let ended = 1.0 - reached.iter().sum::<f64>();
            let proposal = vec![u as f32, 0.0];
            let outcomes = reached.into_iter().enumerate().map(|(to, chance)| (to, chance, End::None));
            for (to, chance, end) in outcomes.chain([(0, ended, End::Terminated)]).filter(|outcome| 1e-12 < outcome.1) {
                rows.push(Fragment {
                    env: 0,
                    first: 0,
                    obs_size: STATES,
                    steps: vec![Transition {
                        version: 1,
                        episode: 0,
                        t: 0,
                        stamp_secs: 0.0,
                        option_prev: running.map_or(NO_OPTION, |running| running as u8),
                        option: option as u8,
                        option_terminated: running != Some(option),
                        forced: if running.is_none() { Forced::Init } else { Forced::Free },
                        option_age: u32::from(running.is_some()),
                        action: proposal.iter().map(|u| u.tanh()).collect(),
                        filtered: false,
                        intervened: false,
                        reward: mix(exact.mdp.reward[state]) as f32,
                        end,
                        log_prob_action: outputs.log_prob_action(0, option, &proposal) as f32,
                        log_prob_option: law[option].ln() as f32,
                        log_prob_termination: 0.0,
                        log_prob_mixture: 0.0,
                        termination_prob: 0.5,
                        proposal: proposal.clone(),
                    }],
                    observations: [one_hot(state), one_hot(to)].concat(),
                    finals: match end {
                        End::None => Vec::new(),
                        _ => vec![Final { step: 0, observation: one_hot(to).to_vec() }],
                    },
                });
                weights.push(mass * law[option] * likelihood(z) * chance);
            }
        }
    }
    (rows, weights)
}

#[test]
fn the_learner_climbs_the_exact_gradient_of_all_three_levels() {
    let options = Options { count: OPTIONS, min_steps: 1, max_steps: 1000 };
    let contract = Arc::new(Contract { options, ..(*contract(OPTIONS, &[])).clone() });
    for (logits, eta) in [(target(), 0.0), (target(), 0.05), (random(1), 0.0), (random(2), 0.3), (random(3), 0.1)] {
        let gaussian = Gaussian::new(logits);
        let charge = Charge::Change(eta);
        let parameters = gaussian.parameters(&contract, &gaussian.exact().solve(charge));
        let learner = |cost: f64| {
            let config = Config {
                gamma: GAMMA,
                lam: 0.0,
                lam_option: 0.0,
                deliberation_cost: cost,
                normalise_reward: false,
                option_weights: false,
                min_option_steps: 0,
                ..config()
            };
            let mut learner = HsPpo::new(Arc::clone(&contract), &config, Seed::root(1)).unwrap();
            learner.restore(crate::learn::State { parameters: parameters.clone(), ..learner.state() }).unwrap();
            (learner, config)
        };
        let (rows, weights) = rows(&gaussian, &learner(0.0).0);
        // The cost is set as a share of the spread of what is seen.
        let spread = learner(1.0).0.prepare(&rows, 1).unwrap().scale.cost;
        let (learner, config) = learner(eta / spread);
        let prepared = learner.prepare(&rows, 1).unwrap();
        let raw: Vec<f64> = prepared.estimated.estimates.iter().map(|estimate| estimate.advantage_action).collect();
        let spread = crate::learn::metrics::std(&raw) + 1e-8;

        let mut batch = prepared.batch;
        let scaled =
            |column: usize| [Column::AdvantageAction as usize, Column::AdvantageOption as usize].contains(&column);
        let factors: Vec<f32> = weights
            .iter()
            .flat_map(|weight| (0..COLUMNS).map(move |column| if scaled(column) { *weight as f32 } else { 1.0 }))
            .collect();
        batch.columns = batch.columns * Tensor::from_slice(&factors).view([-1, COLUMNS as i64]);
        let mut network = Network::new(&contract, &parameters, true).unwrap();
        let losses = together(&network, &batch, &prepared.anchor, &config);
        ((losses.policy + losses.options.unwrap().policy) * (weights.len() as f64 * spread)).backward();
        let mut gradient = vec![0.0; parameters.len()];
        network.take_gradient(&mut gradient);

        let layout = contract.layout();
        let of = |name: &str, count: usize| -> Vec<f64> {
            let segment = layout.segments.iter().find(|segment| segment.name == name).unwrap();
            gradient[segment.range()][..count].iter().map(|&slope| -f64::from(slope)).collect()
        };
        let size = 1.0 + f64::from(norm(&contract, &gradient, |_| true));
        for option in 0..OPTIONS {
            let states = |change: &dyn Fn(&mut Gaussian, usize, f64)| -> Vec<f64> {
                let of = |state| gaussian.difference(charge, |moved, step| change(moved, state, step));
                (0..STATES).map(of).collect()
            };
            let mean = states(&|moved, state, step| moved.mean[option][state] += step);
            all_close(&of(&format!("option.{option}.mean.weight"), STATES), &mean, 1e-5 * size);
            let log_std = gaussian.difference(charge, |moved, step| moved.log_std[option] += step);
            all_close(&of(&format!("option.{option}.log_std"), 1), &[log_std], 2e-5 * size);
            let ends = states(&|moved, state, step| moved.logits.termination[option][state] += step);
            all_close(&of("termination.weight", OPTIONS * STATES)[option * STATES..][..STATES], &ends, 1e-5 * size);
            let over = states(&|moved, state, step| moved.logits.over_options[state][option] += step);
            all_close(&of("over_options.weight", OPTIONS * STATES)[option * STATES..][..STATES], &over, 1e-5 * size);
        }
    }
}
