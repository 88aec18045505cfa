use super::{all_close, close};
use crate::option::{Estimate, HalfStep, Traces, half_step};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const STEP: HalfStep = HalfStep {
    reward: 0.0,
    cost: 0.0,
    discount: 0.9,
    arrival_value: 0.0,
    value: 0.0,
    bootstrap: None,
    log_rho_option: 0.0,
    log_rho_action: 0.0,
};
const PLAIN: Traces = Traces { lam_action: 1.0, lam_option: 1.0, rho_clip: 1.0 };

fn random_row(rng: &mut ChaCha8Rng, steps: usize) -> Vec<HalfStep> {
    let mut draw = |scale: f64| scale * (2.0 * rng.random::<f64>() - 1.0);
    let mut row: Vec<HalfStep> = (0..steps)
        .map(|_| HalfStep {
            reward: draw(2.0),
            cost: draw(0.5).max(0.0),
            discount: 0.8 + draw(0.2),
            arrival_value: draw(3.0),
            value: draw(3.0),
            bootstrap: None,
            log_rho_option: draw(2.5),
            log_rho_action: draw(2.5),
        })
        .collect();
    row[steps - 1].bootstrap = Some(draw(3.0));
    row
}

/// One ordinary MDP of half-steps: rewards, discounts, values and the value after each, ratios, trace decays.
struct Chain {
    reward: Vec<f64>,
    discount: Vec<f64>,
    value: Vec<f64>,
    rho: Vec<f64>,
    lambda: Vec<f64>,
    last: f64,
}

impl Chain {
    fn of(row: &[HalfStep], traces: &Traces) -> Self {
        let both = |even: &dyn Fn(&HalfStep) -> f64, odd: &dyn Fn(&HalfStep) -> f64| {
            row.iter().flat_map(|step| [even(step), odd(step)]).collect::<Vec<_>>()
        };
        Self {
            reward: both(&|step| -step.cost, &|step| step.reward),
            discount: both(&|_| 1.0, &|step| step.discount),
            value: both(&|step| step.arrival_value, &|step| step.value),
            rho: both(&|step| step.log_rho_option.exp(), &|step| step.log_rho_action.exp()),
            lambda: both(&|_| traces.lam_option, &|_| traces.lam_action),
            last: row.last().unwrap().bootstrap.unwrap(),
        }
    }

    /// The O(T^2) definition of V-trace targets (as in deepmind/scalable_agent's vtrace_test.py).
    fn targets(&self, rho_clip: f64) -> Vec<f64> {
        let length = self.value.len();
        let next = |x: usize| if x + 1 < length { self.value[x + 1] } else { self.last };
        (0..length)
            .map(|from| {
                let mut target = self.value[from];
                for x in from..length {
                    let mut weight = 1.0;
                    for earlier in from..x {
                        weight *= self.discount[earlier] * self.lambda[earlier] * self.rho[earlier].min(rho_clip);
                    }
                    let error = self.reward[x] + self.discount[x] * next(x) - self.value[x];
                    target += weight * self.rho[x].min(rho_clip) * error;
                }
                target
            })
            .collect()
    }
}

fn interleave(estimates: &[Estimate], pick: impl Fn(&Estimate) -> [f64; 2]) -> Vec<f64> {
    estimates.iter().flat_map(pick).collect()
}

#[test]
fn targets_are_those_of_the_definition() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..50 {
        let row = random_row(&mut rng, 5);
        for rho_clip in [1.0, 3.7, f64::INFINITY] {
            let traces = Traces { lam_action: 0.8, lam_option: 0.6, rho_clip };
            let found = half_step(&row, &traces).unwrap();
            let want = Chain::of(&row, &traces).targets(rho_clip);
            all_close(&interleave(&found, |e| [e.arrival_target, e.target]), &want, 1e-9 * (1.0 + max(&want)));
        }
    }
}

fn max(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, value| value.abs().max(max))
}

#[test]
fn the_half_step_fixture() {
    let mut row: Vec<HalfStep> = [(1.0, 0.2, 0.3, 0.1, -0.2), (-0.5, 0.4, 0.1, -0.3, 0.4), (2.0, -0.1, 0.5, 0.2, 0.05)]
        .map(|(reward, arrival_value, value, log_rho_option, log_rho_action)| HalfStep {
            reward,
            arrival_value,
            value,
            log_rho_option,
            log_rho_action,
            ..STEP
        })
        .to_vec();
    row[2].bootstrap = Some(0.6);
    let found = half_step(&row, &PLAIN).unwrap();
    all_close(
        &interleave(&found, |e| [e.arrival_target, e.target]),
        &[1.92444094, 1.92444094, 1.42677405, 1.786, 2.54, 2.54],
        1e-8,
    );
    all_close(
        &interleave(&found, |e| [e.rho_option * e.advantage_option, e.rho_action * e.advantage_action]),
        &[1.72444094, 1.62444094, 1.02677405, 1.686, 2.64, 2.04],
        1e-8,
    );
}

/// A row whose option level says nothing: Q = U and ratio 1, so that it is an ordinary V-trace over t.
fn flat(reward: &[f64], discount: &[f64], value: &[f64], log_rho: &[f64], last: f64) -> Vec<HalfStep> {
    let mut row: Vec<HalfStep> = (0..reward.len())
        .map(|t| HalfStep {
            reward: reward[t],
            discount: discount[t],
            arrival_value: value[t],
            value: value[t],
            log_rho_action: log_rho[t],
            ..STEP
        })
        .collect();
    row.last_mut().unwrap().bootstrap = Some(last);
    row
}

/// rlax/_src/vtrace_test.py: categorical policies, both batch rows, clip 1, lambda 1.
#[test]
fn the_published_vtrace_vectors() {
    let log_prob = |logits: [f64; 2], action: usize| -(logits[1 - action] - logits[action]).exp().ln_1p();
    let cases = [
        (
            [[8.9, 0.7], [5.0, 1.0], [0.6, 0.1], [-0.9, -0.1]],
            [[0.4, 0.5], [9.2, 8.8], [0.7, 4.4], [7.9, 1.4]],
            [0, 1, 0, 0],
            [-1.3, -1.3, 2.3, 42.0],
            [0.0, 0.89, 0.85, 0.99],
            [2.1, 1.1, -3.1, 0.0],
            8.4,
            [-1.6155143, -3.4973226, 1.8670533, 50.316002],
        ),
        (
            [[0.3, -5.0], [1.0, -8.0], [0.3, 1.7], [4.7, 3.3]],
            [[1.0, 0.9], [1.0, -1.0], [-4.3, 8.7], [0.8, 0.3]],
            [1, 0, 0, 1],
            [1.3, 5.3, -3.3, -5.0],
            [0.88, 1.0, 0.83, 0.95],
            [3.1, 0.1, -1.1, 7.4],
            -1.2,
            [1.4662437, 3.6116405, -8.3327293e-5, -13.54],
        ),
    ];
    for (behaviour, target, actions, reward, discount, value, last, want) in cases {
        let log_rho: Vec<f64> =
            (0..4).map(|t| log_prob(target[t], actions[t]) - log_prob(behaviour[t], actions[t])).collect();
        let found = half_step(&flat(&reward, &discount, &value, &log_rho, last), &PLAIN).unwrap();
        for (t, estimate) in found.iter().enumerate() {
            close(estimate.target - value[t], want[t], 1e-3 * want[t].abs());
            close(estimate.rho_action * estimate.advantage_action, want[t], 1e-3 * want[t].abs());
        }
    }
}

/// On-policy and with traces that do not decay, a target is the discounted sum of what follows (rlax has it so).
#[test]
fn targets_of_fresh_data_are_returns() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let row = on_policy_row(&mut rng);
    let found = half_step(&row, &PLAIN).unwrap();
    let mut sum = row.last().unwrap().bootstrap.unwrap();
    for (step, estimate) in row.iter().zip(&found).rev() {
        sum = step.reward + step.discount * sum;
        close(estimate.target, sum, 1e-12);
        close(estimate.arrival_target, sum, 1e-12);
    }
}

/// SB3 tests/test_gae.py: an episode of 64 steps, reward 1 at its end, gamma .99, lambda .9.
#[test]
fn gae_closed_forms() {
    let (gamma, lambda) = (0.99, 0.9);
    for constant in [0.0, 1.0] {
        let mut reward = [0.0; 64];
        reward[63] = 1.0;
        let mut discount = [gamma; 64];
        discount[63] = 0.0;
        let row = flat(&reward, &discount, &[constant; 64], &[0.0; 64], 0.0);
        let found = half_step(&row, &Traces { lam_action: lambda, ..PLAIN }).unwrap();
        for (t, estimate) in found.iter().enumerate() {
            let left = (gamma * lambda).powi(63 - t as i32);
            let want = if constant == 0.0 { left } else { (gamma - 1.0) * (1.0 - left) / (1.0 - gamma * lambda) };
            close(estimate.advantage_action, want, 1e-12);
        }
        close(found[0].advantage_action, if constant == 0.0 { 6.954971e-4 } else { -0.0916793122 }, 1e-9);
        close(
            found[if constant == 0.0 { 60 } else { 63 }].advantage_action,
            if constant == 0.0 { 0.707347971 } else { 0.0 },
            1e-9,
        );
    }
}

/// rlax/_src/multistep_test.py: lambda returns. The value of the first state must not matter.
#[test]
fn lambda_returns() {
    let reward = [1.0, 0.0, -1.0, 0.0, 1.0];
    let discount = [0.5, 0.9, 1.0, 0.5, 0.8];
    for first in [0.0, 11.0] {
        let value = [first, 3.0, 1.0, 5.0, -5.0];
        let row = flat(&reward, &discount, &value, &[0.0; 5], 3.0);
        let found = half_step(&row, &Traces { lam_action: 0.75, ..PLAIN }).unwrap();
        let targets: Vec<f64> = found.iter().map(|estimate| estimate.target).collect();
        all_close(&targets, &[1.6460547, 0.72281253, 0.7375001, 0.6500001, 3.4], 1e-6);
    }
}

fn on_policy_row(rng: &mut ChaCha8Rng) -> Vec<HalfStep> {
    let mut row = random_row(rng, 9);
    for step in &mut row {
        (step.log_rho_option, step.log_rho_action, step.cost) = (0.0, 0.0, 0.0);
    }
    row
}

/// lam_option = 1, lam_action = l is DAC's high-level GAE: deltas r + g U' - U.
#[test]
fn high_level_advantages_are_dacs() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..20 {
        let row = on_policy_row(&mut rng);
        let found = half_step(&row, &Traces { lam_action: 0.7, lam_option: 1.0, rho_clip: 1.0 }).unwrap();
        let mut carried = 0.0;
        for t in (0..row.len()).rev() {
            let next = row.get(t + 1).map_or_else(|| row[t].bootstrap.unwrap(), |step| step.arrival_value);
            let delta = row[t].reward + row[t].discount * next - row[t].arrival_value;
            carried = delta + row[t].discount * 0.7 * carried;
            close(found[t].advantage_option, carried, 1e-12);
        }
    }
}

/// lam_option = l, lam_action = 1 is DAC's low-level GAE: deltas r + g Q(s', o') - Q(s, o).
#[test]
fn low_level_advantages_are_dacs() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for _ in 0..20 {
        let row = on_policy_row(&mut rng);
        let found = half_step(&row, &Traces { lam_action: 1.0, lam_option: 0.7, rho_clip: 1.0 }).unwrap();
        let mut carried = 0.0;
        for t in (0..row.len()).rev() {
            let next = row.get(t + 1).map_or_else(|| row[t].bootstrap.unwrap(), |step| step.value);
            let delta = row[t].reward + row[t].discount * next - row[t].value;
            carried = delta + row[t].discount * 0.7 * carried;
            close(found[t].advantage_action, carried, 1e-12);
        }
    }
}

#[test]
fn no_trace_crosses_a_cut() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut row = random_row(&mut rng, 6);
    for (discount, bootstrap) in [(0.0, 0.0), (0.9, 1.5)] {
        (row[2].discount, row[2].bootstrap) = (discount, Some(bootstrap));
        let alone = half_step(&row[..3], &PLAIN).unwrap();
        assert_eq!(half_step(&row, &PLAIN).unwrap()[..3], alone[..]);
    }
}

#[test]
fn a_row_without_its_last_value_is_refused() {
    assert!(half_step(&[STEP, STEP], &PLAIN).unwrap_err().to_string().contains("step 1"));
    assert_eq!(half_step(&[], &PLAIN).unwrap(), []);
}

/// SB3 test_infinite_horizon: reward 1 for ever, time limit 8, gamma .98: 50 only where truncation bootstraps.
#[test]
fn truncation_bootstraps_and_termination_does_not() {
    let settle = |terminated: bool| {
        let mut value = [0.0; 9];
        for _ in 0..3000 {
            let mut row = flat(&[1.0; 8], &[0.98; 8], &value[..8], &[0.0; 8], value[8]);
            if terminated {
                (row[7].discount, row[7].bootstrap) = (0.0, Some(0.0));
            }
            let found = half_step(&row, &Traces { lam_action: 0.9, ..PLAIN }).unwrap();
            for (value, estimate) in value.iter_mut().zip(found) {
                *value = estimate.target;
            }
            value[8] = value[0];
        }
        value[0]
    };
    close(settle(false), 50.0, 1e-6);
    close(settle(true), (1.0 - 0.98f64.powi(8)) / 0.02, 1e-9);
}

/// One state, two equal options, reward 1, time limit 8: the closed forms of a cost for each termination,
/// (1 - g beta eta) / (1 - g), and for each change, (1 - g beta eta / 2) / (1 - g). The mean cost stands for the sampled
/// one (targets are linear in it); the first choice of an episode pays nothing.
#[test]
fn costs_reach_the_value_through_truncation() {
    let (gamma, beta, eta) = (0.98, 0.3, 0.5);
    for (probability, want) in [(beta, 42.65), (beta / 2.0, (1.0 - gamma * beta * eta / 2.0) / (1.0 - gamma))] {
        let mut value = 0.0;
        for _ in 0..400 {
            let arrival = value - probability * eta;
            let row: Vec<HalfStep> = (0..8)
                .map(|t| HalfStep {
                    reward: 1.0,
                    discount: gamma,
                    cost: if t == 0 { 0.0 } else { probability * eta },
                    arrival_value: if t == 0 { value } else { arrival },
                    value,
                    bootstrap: (t == 7).then_some(arrival),
                    ..STEP
                })
                .collect();
            value = half_step(&row, &PLAIN).unwrap()[0].target;
        }
        close(value, want, 1e-6);
    }
}
