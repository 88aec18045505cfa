//! An exact oracle: dynamic programming on a small option MDP, and gradients by theorem and by finite differences.

use super::{all_close, close};
use crate::config::Seed;
use crate::option::{arrival_value, transition};
use nalgebra::{DMatrix, DVector};
use rand::RngExt as _;
use std::array::from_fn;

pub(crate) const STATES: usize = 3;
pub(crate) const OPTIONS: usize = 2;
pub(crate) const GAMMA: f64 = 0.9;

/// A small MDP; the first state is the start.
#[derive(Clone, Copy)]
pub(crate) struct Mdp {
    /// `[state][action][next state]`; what is missing to 1 ends the episode.
    pub(crate) next: [[[f64; STATES]; 2]; STATES],
    /// `[state][action]`.
    pub(crate) reward: [[f64; 2]; STATES],
}

/// The one whose numbers are known from elsewhere.
pub(crate) const M3: Mdp = Mdp {
    next: [[[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]], [[0.1, 0.0, 0.9], [0.6, 0.4, 0.0]], [[0.7, 0.0, 0.0], [0.0, 0.5, 0.5]]],
    reward: [[1.0, 0.0], [-0.5, 2.0], [5.0, 0.25]],
};

/// Which event pays the deliberation cost.
#[derive(Clone, Copy)]
pub(crate) enum Charge {
    /// Every termination (option-critic with deliberation cost).
    Termination(f64),
    /// Every real change of option (HS-PPO).
    Change(f64),
}

/// An MDP, and the logits of an option policy on it.
#[derive(Clone)]
pub(crate) struct Logits {
    pub(crate) mdp: Mdp,
    /// `[option][state][action]`.
    pub(crate) actions: [[[f64; 2]; STATES]; OPTIONS],
    /// `[option][state]`.
    pub(crate) termination: [[f64; STATES]; OPTIONS],
    /// `[state][option]`.
    pub(crate) over_options: [[f64; OPTIONS]; STATES],
}

pub(crate) fn target() -> Logits {
    Logits {
        mdp: M3,
        actions: [[[0.2, -0.1], [0.5, 0.0], [-0.3, 0.4]], [[-0.6, 0.3], [0.1, 0.2], [0.7, -0.2]]],
        termination: [[-1.0, 0.0, 0.5], [0.3, -0.7, -1.2]],
        over_options: [[0.1, -0.2], [0.0, 0.4], [-0.5, 0.2]],
    }
}

/// A random MDP with a random policy.
pub(crate) fn random(seed: u64) -> Logits {
    let mut rng = Seed::root(seed).rng(0);
    let mut draw = |low: f64, high: f64| rng.random_range(low..high);
    let mut row = || {
        let shares: [f64; STATES + 1] = from_fn(|_| draw(0.0, 1.0));
        let total: f64 = shares.iter().sum();
        from_fn(|to| shares[to] / total)
    };
    let next = from_fn(|_| from_fn(|_| row()));
    Logits {
        mdp: Mdp { next, reward: from_fn(|_| from_fn(|_| draw(-3.0, 3.0))) },
        actions: from_fn(|_| from_fn(|_| from_fn(|_| draw(-1.0, 1.0)))),
        termination: from_fn(|_| from_fn(|_| draw(-2.0, 2.0))),
        over_options: from_fn(|_| from_fn(|_| draw(-1.0, 1.0))),
    }
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softmax(logits: [f64; 2]) -> [f64; 2] {
    let first = sigmoid(logits[0] - logits[1]);
    [first, 1.0 - first]
}

pub(crate) fn index(state: usize, option: usize) -> usize {
    state * OPTIONS + option
}

impl Logits {
    pub(crate) fn policy(&self, option: usize, state: usize) -> [f64; 2] {
        softmax(self.actions[option][state])
    }

    pub(crate) fn beta(&self, option: usize, state: usize) -> f64 {
        sigmoid(self.termination[option][state])
    }

    pub(crate) fn over(&self, state: usize) -> [f64; OPTIONS] {
        softmax(self.over_options[state])
    }

    pub(crate) fn transition(&self, state: usize, running: Option<usize>) -> [f64; OPTIONS] {
        let mut out = [0.0; OPTIONS];
        let beta = running.map_or(1.0, |option| self.beta(option, state));
        transition(beta, running, &self.over(state), &mut out);
        out
    }

    /// Cost that an arrival pays on average.
    fn cost(&self, state: usize, running: usize, charge: Charge) -> f64 {
        match charge {
            Charge::Termination(eta) => eta * self.beta(running, state),
            Charge::Change(eta) => eta * self.transition(state, Some(running))[1 - running],
        }
    }

    /// Q(s, o), by the linear system.
    pub(crate) fn solve(&self, charge: Charge) -> Vec<f64> {
        let size = STATES * OPTIONS;
        let mut matrix = DMatrix::<f64>::identity(size, size);
        let mut right = DVector::<f64>::zeros(size);
        for (state, option) in pairs() {
            for (action, chosen) in self.policy(option, state).into_iter().enumerate() {
                right[index(state, option)] += chosen * self.mdp.reward[state][action];
                for (next, reached) in self.mdp.next[state][action].into_iter().enumerate() {
                    let weight = chosen * GAMMA * reached;
                    right[index(state, option)] -= weight * self.cost(next, option, charge);
                    for (then, share) in self.transition(next, Some(option)).into_iter().enumerate() {
                        matrix[(index(state, option), index(next, then))] -= weight * share;
                    }
                }
            }
        }
        matrix.lu().solve(&right).unwrap().as_slice().to_vec()
    }

    pub(crate) fn start_value(&self, charge: Charge) -> f64 {
        let values = self.solve(charge);
        self.over(0).iter().zip(&values[..OPTIONS]).map(|(share, value)| share * value).sum()
    }

    /// mu(s, o): discounted visits, and arr(s', o): discounted arrivals with o running.
    pub(crate) fn visits(&self) -> (Vec<f64>, Vec<f64>) {
        let mut now = vec![0.0; STATES * OPTIONS];
        now[..OPTIONS].copy_from_slice(&self.over(0));
        let (mut visits, mut arrivals) = (now.clone(), vec![0.0; STATES * OPTIONS]);
        for _ in 0..800 {
            let mut next = vec![0.0; STATES * OPTIONS];
            for (state, option) in pairs() {
                for (action, chosen) in self.policy(option, state).into_iter().enumerate() {
                    for (to, reached) in self.mdp.next[state][action].into_iter().enumerate() {
                        let mass = GAMMA * now[index(state, option)] * chosen * reached;
                        arrivals[index(to, option)] += mass;
                        for (then, share) in self.transition(to, Some(option)).into_iter().enumerate() {
                            next[index(to, then)] += mass * share;
                        }
                    }
                }
            }
            for (total, step) in visits.iter_mut().zip(&next) {
                *total += step;
            }
            now = next;
        }
        (visits, arrivals)
    }

    /// dJ of termination logits `[o][s]`, over-options logits of option 0 `[s]`, action logits of action 0 `[o][s]`,
    /// by the gradient theorems; the option level is the score of p^ times Q - cost - U.
    fn gradient(&self, charge: Charge) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let values = self.solve(charge);
        let (visits, arrivals) = self.visits();
        let mut termination = vec![0.0; OPTIONS * STATES];
        let mut over = vec![0.0; STATES];
        let mut actions = vec![0.0; OPTIONS * STATES];
        let shares0 = self.over(0);
        over[0] += shares0[0] * shares0[1] * (values[0] - values[1]);
        for (state, option) in pairs() {
            let here = &values[index(state, 0)..index(state, OPTIONS)];
            let (beta, shares) = (self.beta(option, state), self.over(state));
            let other = 1 - option;
            let d_over = beta * shares[0] * shares[1] * (here[0] - here[1]);
            let gain = shares[other] * (here[other] - here[option]);
            let (d_beta, d_over) = match charge {
                Charge::Termination(eta) => (gain - eta, d_over),
                Charge::Change(eta) => {
                    let sign = if option == 0 { 1.0 } else { -1.0 };
                    (gain - eta * shares[other], d_over + sign * beta * shares[0] * shares[1] * eta)
                }
            };
            let arrival = arrivals[index(state, option)];
            termination[option * STATES + state] += arrival * beta * (1.0 - beta) * d_beta;
            over[state] += arrival * d_over;

            let policy = self.policy(option, state);
            let worth: Vec<f64> = (0..2)
                .map(|action| {
                    let ahead = |(to, reached): (usize, &f64)| {
                        let then = self.transition(to, Some(option));
                        let expected: f64 =
                            then.iter().zip(&values[index(to, 0)..]).map(|(share, value)| share * value).sum();
                        reached * (expected - self.cost(to, option, charge))
                    };
                    self.mdp.reward[state][action]
                        + GAMMA * self.mdp.next[state][action].iter().enumerate().map(ahead).sum::<f64>()
                })
                .collect();
            actions[option * STATES + state] +=
                visits[index(state, option)] * policy[0] * policy[1] * (worth[0] - worth[1]);
        }
        (termination, over, actions)
    }

    pub(crate) fn differences(&self, charge: Charge) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let central = |change: &dyn Fn(&mut Self, f64)| {
            let side = |step: f64| {
                let mut moved = self.clone();
                change(&mut moved, step);
                moved.start_value(charge)
            };
            (side(1e-5) - side(-1e-5)) / 2e-5
        };
        let cells: Vec<(usize, usize)> = (0..OPTIONS).flat_map(|o| (0..STATES).map(move |s| (o, s))).collect();
        (
            cells.iter().map(|&(o, s)| central(&|logits, step| logits.termination[o][s] += step)).collect(),
            (0..STATES).map(|s| central(&|logits, step| logits.over_options[s][0] += step)).collect(),
            cells.iter().map(|&(o, s)| central(&|logits, step| logits.actions[o][s][0] += step)).collect(),
        )
    }

    /// U(s, o-) for both running options, by the crate's own functions.
    pub(crate) fn arrival_values(&self, values: &[f64], eta: f64) -> Vec<f64> {
        (0..OPTIONS)
            .flat_map(|running| (0..STATES).map(move |state| (running, state)))
            .map(|(running, state)| {
                let law = self.transition(state, Some(running));
                arrival_value(&law, &values[index(state, 0)..index(state, OPTIONS)], Some(running), eta)
            })
            .collect()
    }
}

pub(crate) fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..STATES).flat_map(|state| (0..OPTIONS).map(move |option| (state, option)))
}

#[test]
fn values_and_visits_without_cost() {
    let logits = target();
    let free = Charge::Termination(0.0);
    let values = logits.solve(free);
    all_close(&values, &[8.838302937, 9.027178843, 8.836645327, 9.382538768, 9.286858282, 10.166960293], 1e-9);
    let over: Vec<f64> = (0..STATES)
        .map(|state| arrival_value(&logits.transition(state, None), &values[index(state, 0)..], None, 0.7))
        .collect();
    all_close(&over, &[8.918680492, 9.163464994, 9.874931684], 1e-9);
    close(logits.start_value(free), 8.91868049205933, 1e-12);
    all_close(
        &logits.arrival_values(&values, 0.0),
        &[8.859919791, 9.000055161, 9.652910058, 8.964852777, 9.309847411, 10.099362908],
        1e-9,
    );
    all_close(&logits.visits().0, &[1.58260892, 1.24738241, 0.67056351, 0.83179637, 0.69050977, 1.4928656], 1e-8);
}

#[test]
fn gradients_without_cost_match_the_theorem_and_finite_differences() {
    let (termination, over, actions) = target().gradient(Charge::Termination(0.0));
    all_close(&termination, &[0.01150035, 0.06774125, 0.14243275, -0.02923581, -0.0327014, -0.05988533], 1e-8);
    all_close(&over, &[-0.0844447, -0.08367084, -0.17724785], 1e-8);
    all_close(&actions, &[0.1806288, -0.30069197, 0.29668493, 0.07082636, -0.35371909, 0.51040097], 1e-8);
    let (d_termination, d_over, d_actions) = target().differences(Charge::Termination(0.0));
    all_close(&termination, &d_termination, 1e-8);
    all_close(&over, &d_over, 1e-8);
    all_close(&actions, &d_actions, 1e-8);
}

#[test]
fn the_theorems_hold_on_random_problems() {
    for seed in 0..20 {
        for charge in [Charge::Termination(0.0), Charge::Termination(0.3), Charge::Change(0.3)] {
            let (termination, over, actions) = random(seed).gradient(charge);
            let (d_termination, d_over, d_actions) = random(seed).differences(charge);
            all_close(&termination, &d_termination, 1e-7);
            all_close(&over, &d_over, 1e-7);
            all_close(&actions, &d_actions, 1e-7);
        }
    }
}

#[test]
fn a_cost_for_each_termination_matches_its_oracle() {
    let charge = Charge::Termination(0.05);
    close(target().start_value(charge), 8.799920101613644, 1e-12);
    let (termination, over, actions) = target().gradient(charge);
    all_close(&termination, &[0.00550975, 0.05887798, 0.13341961, -0.04566618, -0.04088928, -0.07144077], 1e-8);
    let (d_termination, d_over, d_actions) = target().differences(charge);
    all_close(&termination, &d_termination, 1e-8);
    all_close(&over, &d_over, 1e-8);
    all_close(&actions, &d_actions, 1e-8);
}

#[test]
fn a_cost_for_each_change_is_what_the_half_step_score_climbs() {
    let charge = Charge::Change(0.05);
    close(target().start_value(charge), 8.853577792777479, 1e-12);
    let (termination, over, actions) = target().gradient(charge);
    let (d_termination, d_over, d_actions) = target().differences(charge);
    all_close(&termination, &d_termination, 1e-8);
    all_close(&over, &d_over, 1e-8);
    all_close(&actions, &d_actions, 1e-8);
    all_close(&score(&target(), 0.05), &d_termination, 1e-8);
}

/// dJ of the termination logits as HS-PPO sees it: the score of log p^ times Q - cost - U, from the crate's functions.
fn score(logits: &Logits, eta: f64) -> Vec<f64> {
    let values = logits.solve(Charge::Change(eta));
    let arrivals = logits.visits().1;
    let worth = logits.arrival_values(&values, eta);
    let mut gradient = vec![0.0; OPTIONS * STATES];
    for (state, running) in pairs() {
        let (beta, shares) = (logits.beta(running, state), logits.over(state));
        for option in 0..OPTIONS {
            let (cost, d_law) = if option == running {
                (0.0, beta * (1.0 - beta) * (shares[option] - 1.0))
            } else {
                (eta, beta * (1.0 - beta) * shares[option])
            };
            let advantage = values[index(state, option)] - cost - worth[running * STATES + state];
            gradient[running * STATES + state] += arrivals[index(state, running)] * d_law * advantage;
        }
    }
    gradient
}
