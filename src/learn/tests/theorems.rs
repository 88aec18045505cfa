//! The three gradient theorems of options (actions, terminations, choices) through the whole learner: its estimates, its
//! losses and their closed form give the slope of the exact return, which finite differences of a linear system give.
//!
//! Actions are Gaussian, one float u: of the oracle's two actions the second has probability sigmoid(u). Every step that
//! can happen is one row, weighed by how often it does.

use super::invariants::NOTHING;
use super::tabular::{Step, contract, one_hot, parameters, row};
use super::{acting, closed, config, norm};
use crate::config::{HsPpo as Config, Seed};
use crate::data::Fragment;
use crate::learn::batch::{Batch, COLUMNS, Column, Steps};
use crate::learn::loss::Weights;
use crate::learn::metrics::std;
use crate::learn::{HsPpo, State};
use crate::option::tests::all_close;
use crate::option::tests::oracle::{Charge, GAMMA, Logits, OPTIONS, STATES, index, pairs, random, sigmoid, target};
use crate::policy::Network;
use std::sync::Arc;

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

    fn parameters(&self, values: &[f64]) -> Vec<f32> {
        parameters(&self.logits, values, |name, row, state| match name {
            "option.0.mean.weight" if row == 0 => self.mean[0][state],
            "option.1.mean.weight" if row == 0 => self.mean[1][state],
            "option.0.log_std" => self.log_std[0],
            "option.1.log_std" => self.log_std[1],
            _ => 0.0,
        })
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
            let proposal = [u as f32, 0.0];
            let log_probs = [outputs.log_prob_action(0, option, &proposal), law[option].ln()];
            let reward = mix(exact.mdp.reward[state]);
            let outcomes = reached.into_iter().enumerate().map(|(to, chance)| (Some(to), chance));
            for (led, chance) in outcomes.chain([(None, ended)]).filter(|outcome| 1e-12 < outcome.1) {
                rows.push(row(&[Step { state, running, option, proposal, reward, log_probs }], led));
                weights.push(mass * law[option] * likelihood(z) * chance);
            }
        }
    }
    (rows, weights)
}

#[test]
fn the_learner_climbs_the_exact_gradient_of_all_three_levels() {
    let contract = contract();
    for (logits, eta) in [(target(), 0.0), (target(), 0.05), (random(1), 0.0), (random(2), 0.3), (random(3), 0.1)] {
        let gaussian = Gaussian::new(logits);
        let charge = Charge::Change(eta);
        let parameters = gaussian.parameters(&gaussian.exact().solve(charge));
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
            learner.restore(State { parameters: parameters.clone(), ..learner.state() }).unwrap();
            (learner, config)
        };
        let (rows, weights) = rows(&gaussian, &learner(0.0).0);
        // The cost is set as a share of the spread of what is seen.
        let spread = learner(1.0).0.prepare(&rows, 1).unwrap().scale.cost;
        let (learner, config) = learner(eta / spread);
        let prepared = learner.prepare(&rows, 1).unwrap();
        let raw: Vec<f64> = prepared.estimated.estimates.iter().map(|estimate| estimate.advantage_action).collect();
        let spread = std(&raw) + 1e-8;

        let mut steps = prepared.batch.steps.columns.clone();
        for (columns, weight) in steps.chunks_exact_mut(COLUMNS).zip(&weights) {
            columns[Column::AdvantageAction as usize] *= *weight as f32;
            columns[Column::AdvantageOption as usize] *= *weight as f32;
        }
        let Steps { option, running, proposal, .. } = &*prepared.batch.steps;
        let (option, running, proposal) = (option.clone(), running.clone(), proposal.clone());
        let steps = Arc::new(Steps { option, running, proposal, columns: steps, anchor: None });
        let batch = Batch { input: prepared.batch.input, steps };
        let network = Network::new(&contract, &parameters, false).unwrap();
        let all = weights.len() as f64 * spread;
        let both = Weights { policy: all, option_policy: all, ..NOTHING };
        let (.., gradient) = closed(&network, &batch, &prepared.anchor, &config, &both, 0.0);

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
