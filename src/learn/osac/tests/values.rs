//! The option level in plain numbers: expected arrivals, responsibilities, terminations.

use super::{ALPHAS, Parameters, ROWS, config, drawn, off_policy, picked};
use crate::config::{Osac as Config, Seed};
use crate::contract::Normaliser;
use crate::data::{Choice, End, Final, Forced, Fragment, NO_OPTION, Transition};
use crate::learn::osac::actor::actor_losses;
use crate::learn::osac::gather::Frame;
use crate::learn::osac::imagine::{Imagined, imagine};
use crate::learn::osac::losses::targets;
use crate::learn::twin::Twin;
use crate::option::{log_softmax, transition};
use crate::policy::{Network, Outputs, floats};
use crate::replay::{Priority, Replay, Shape};
use tch::Tensor;

const K: usize = 3;

fn rows(numbers: &[f64]) -> Vec<Vec<f64>> {
    numbers.chunks(K).map(<[f64]>::to_vec).collect()
}

fn std(values: &[Vec<f64>]) -> f64 {
    let all: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    (all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (all.len() - 1) as f64).sqrt()
}

/// Qs(s, o) of imagined actions, one critic's value at a time.
fn soft(critics: &Twin, input: &Tensor, imagined: &Imagined) -> Vec<Vec<f64>> {
    let log_prob = rows(&imagined.log_prob);
    let of_option = |option: usize| {
        let actions = Tensor::from_slice(&imagined.action).view([ROWS as i64, K as i64, -1]);
        let values = critics.pass(input, &actions.select(1, option as i64)).values.select(2, option as i64);
        floats(&values).iter().map(|&value| f64::from(value)).collect::<Vec<f64>>()
    };
    let values: Vec<Vec<f64>> = (0..K).map(of_option).collect();
    (0..ROWS)
        .map(|row| {
            let of = |option: usize| {
                values[option][row].min(values[option][ROWS + row]) - ALPHAS.action * log_prob[row][option]
            };
            (0..K).map(of).collect()
        })
        .collect()
}

/// V of soft values and P in logs.
fn value(soft: &[f64], log_over: &[f64]) -> f64 {
    soft.iter().zip(log_over).map(|(soft, log)| log.exp() * soft).sum()
}

fn near(found: f64, want: f64, what: &str) {
    assert!((found - want).abs() < 2e-5 * want.abs().max(1.0), "{what}: {found} is not {want}");
}

/// Far out, where 1 - tanh² is 0 in floats: at u = 12 its log is -22.6137056.
#[test]
fn densities_of_imagined_actions_know_the_jacobian_far_out() {
    let contract = off_policy(1, &[4]);
    let layout = contract.layout();
    for (u, log_std, want) in [(12.0, 0.0, 22.6137056 - 0.9189385), (0.8, -0.5, 0.5 - 0.9189385 + 0.5815071)] {
        let mut parameters = vec![0.0; layout.len()];
        for (name, value) in [("option.0.mean.bias", u), ("option.0.log_std.bias", log_std)] {
            let segment = layout.segments.iter().find(|segment| segment.name == name).unwrap();
            parameters[segment.range()].fill(value);
        }
        let actor = Network::new(&contract, &parameters, false).unwrap();
        let outputs = Outputs::new(&actor, &Tensor::zeros([1, 3], (tch::Kind::Float, tch::Device::Cpu)));
        let joints = contract.action_size();
        let found = imagine(&outputs, &vec![0.0; joints]);
        near(found.log_prob[0], want * joints as f64, "log density");
        near(found.action[0].into(), f64::from(u).tanh(), "action");
    }
}

#[test]
fn targets_are_expected_arrivals_of_every_option() {
    let contract = off_policy(K, &[16, 8]);
    let networks = Parameters::new(&contract).networks(&contract);
    let batch = drawn(&contract);
    let config = Config { deliberation_cost: 0.1, ..config() };
    let found = rows(&targets(&networks, &batch, ALPHAS, &config));
    let next = Outputs::new(&networks.actor, &batch.next);
    let soft = soft(&networks.slow_critics, &batch.next, &imagine(&next, &batch.noise));
    let slow = Outputs::new(&networks.slow_actor, &batch.next);
    let eta = 0.1 * std(&soft);
    for row in 0..ROWS {
        let stop = value(&soft[row], &slow.log_over_options(row)) - eta;
        for option in 0..K {
            let beta = match (row, option) {
                (1, 1) => 1.0,
                (2, 2) => 0.0,
                _ => 1.0 / (1.0 + (-slow.termination(row, option)).exp()),
            };
            let arrival = (1.0 - beta) * soft[row][option] + beta * stop;
            let want = batch.reward[row] + batch.discount[row] * arrival;
            near(found[row][option], want, &format!("row {row}, option {option}"));
        }
    }
    assert_eq!(found[ROWS - 1], vec![batch.reward[ROWS - 1]; K], "nothing lies beyond a termination");
}

#[test]
fn the_option_level_has_its_losses_and_the_termination_its_gradient() {
    let contract = off_policy(K, &[16, 8]);
    let parameters = Parameters::new(&contract);
    let networks = parameters.networks(&contract);
    let picked = picked(&contract);
    let config = Config { deliberation_cost: 0.1, termination_temperature: 0.3, load_balance_coef: 0.2, ..config() };
    let outputs = Outputs::new(&networks.actor, &picked.input);
    let imagined = imagine(&outputs, &picked.noise);
    let here = soft(&networks.critics, &picked.input, &imagined);
    let slow = soft(&networks.slow_critics, &picked.input, &imagined);
    let (responsibility, running) = (rows(&picked.responsibility), rows(&picked.running));
    let (eta, temperature) = (0.1 * std(&slow), 0.3 * std(&slow));

    let (mut policy, mut over_options, mut termination, mut bias) = (0.0, 0.0, 0.0, [0.0; K]);
    let mut law = [0.0; K];
    for row in 0..ROWS {
        let log_over = outputs.log_over_options(row);
        let stop = value(&slow[row], &log_over) - eta;
        for option in 0..K {
            law[option] += log_over[option].exp() / ROWS as f64;
            policy -= responsibility[row][option] * here[row][option];
            over_options += log_over[option].exp() * (ALPHAS.option * log_over[option] - slow[row][option]);
            let logit = outputs.termination(row, option);
            let beta = 1.0 / (1.0 + (-logit).exp());
            let entropy = -beta * beta.ln() - (1.0 - beta) * (1.0 - beta).ln();
            let advantage = slow[row][option] - stop;
            termination += running[row][option] * (beta * advantage - temperature * entropy);
            // Zero where beta = sigmoid(-(Qs - V + eta) / t).
            bias[option] += running[row][option] * beta * (1.0 - beta) * (advantage + temperature * logit);
        }
    }
    let balance: f64 = law.iter().map(|law| law * (law * K as f64).ln()).sum();
    let mut gradient = vec![0.0; parameters.actor.len()];
    let losses = actor_losses(&networks, &picked, ALPHAS, &config, &mut gradient);
    let options = losses.options.unwrap();
    let count = ROWS as f64;
    near(losses.policy, policy / count, "policy");
    for option in 0..K {
        let mass: f64 = responsibility.iter().map(|row| row[option]).sum();
        let logs = rows(&imagined.log_prob);
        let entropy: f64 = responsibility.iter().zip(&logs).map(|(h, log)| -h[option] * log[option]).sum();
        near(losses.entropies[option], entropy / mass, "entropy of an option's actions");
    }
    near(options.over_options, over_options / count + 0.2 * std(&slow) * balance, "over options");
    near(options.termination, termination / count, "termination");
    let layout = contract.layout();
    let segment = layout.segments.iter().find(|segment| segment.name == "termination.bias").unwrap();
    for (found, want) in gradient[segment.range()].iter().zip(bias) {
        near(f64::from(*found), want / count, "gradient of a termination bias");
    }
}

/// Beyond its bounds a log standard deviation moves back, never further out.
#[test]
fn a_log_standard_deviation_beyond_its_bounds_is_led_back() {
    let contract = off_policy(K, &[8]);
    let layout = contract.layout();
    let mut parameters = Parameters::new(&contract);
    let heads = |part: &str| {
        let names = (0..K).map(|option| format!("option.{option}.log_std.{part}")).collect::<Vec<_>>();
        let named = layout.segments.iter().filter(move |segment| names.contains(&segment.name));
        named.flat_map(|segment| segment.range()).collect::<Vec<usize>>()
    };
    heads("weight").into_iter().for_each(|at| parameters.actor[at] = 0.0);
    let mut slopes = |log_std: f32| {
        heads("bias").into_iter().for_each(|at| parameters.actor[at] = log_std);
        let mut gradient = vec![0.0; parameters.actor.len()];
        actor_losses(&parameters.networks(&contract), &picked(&contract), ALPHAS, &config(), &mut gradient);
        heads("bias").into_iter().map(|at| gradient[at]).collect::<Vec<f32>>()
    };
    // Hardly any noise: its entropy counts alone, at the rate of the temperature. Too much of it: what leads on is left out.
    let (narrow, wide) = (slopes(-6.0), slopes(3.0));
    assert_eq!(narrow, slopes(-5.0));
    assert!(narrow.iter().all(|&slope| slope < 0.0), "{narrow:?}");
    assert!(wide.iter().all(|&slope| 0.0 <= slope) && wide.iter().any(|&slope| 0.0 < slope), "{wide:?}");
}

/// A fragment of made-up steps: `(option_prev, option, forced, end)`.
pub(super) fn fragment(steps: &[(u8, u8, Forced, End)], terminated: &[bool]) -> Fragment {
    let float = |at: usize, salt: usize| ((at * 7 + salt * 3) as f32 * 0.61).sin();
    Fragment {
        env: 0,
        first: 0,
        obs_size: 3,
        steps: steps
            .iter()
            .enumerate()
            .map(|(at, &(option_prev, option, forced, end))| Transition {
                version: 1,
                episode: 0,
                t: at as u32,
                stamp_secs: 0.0,
                choice: Choice {
                    option_prev,
                    option,
                    option_terminated: terminated[at],
                    forced,
                    option_age: at as u32,
                    proposal: vec![float(at, 4), float(at, 5)],
                    action: vec![float(at, 4).tanh(), float(at, 5).tanh()],
                    log_prob_action: 0.0,
                    log_prob_option: 0.0,
                    log_prob_termination: 0.0,
                    log_prob_mixture: 0.0,
                    termination_prob: 0.5,
                },
                filtered: false,
                intervened: false,
                reward: at as f32,
                end,
            })
            .collect(),
        observations: (0..=steps.len()).flat_map(|at| [float(at, 0), float(at, 1), float(at, 2)]).collect(),
        finals: steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.3 != End::None)
            .map(|(step, _)| Final { step, observation: vec![9.0, 9.0, step as f32] })
            .collect(),
    }
}

fn replay_of(fragment: &Fragment) -> Replay {
    let shape = Shape { obs: 3, action: 2, options: K, fragment: 8 };
    let mut replay = Replay::new(shape, 64, Priority::Uniform).unwrap();
    replay.insert(fragment).unwrap();
    replay
}

/// The option that acted is a label of the past; who is responsible is asked of the actor as it is: the filter along the
/// fragment equals the sum over all sequences of options.
#[test]
fn responsibilities_are_the_posterior_under_the_present_actor() {
    use End::None as On;
    let contract = off_policy(K, &[8]);
    let parameters = Parameters::new(&contract);
    let actor = Network::new(&contract, &parameters.actor, false).unwrap();
    let normaliser = Normaliser { mean: vec![0.1; 3], std: vec![0.7; 3], clip: 10.0, count: 5.0 };
    let frame = Frame { contract: &contract, normaliser: &normaliser };
    // A fragment from the middle of an episode, and one from its start.
    for (first, forced) in [(2, Forced::Free), (NO_OPTION, Forced::Init)] {
        let steps = [
            (first, 1, forced, On),
            (1, 1, Forced::MinSteps, On),
            (1, 0, Forced::Free, On),
            (0, 2, Forced::Free, End::Truncated),
        ];
        let fragment = fragment(&steps, &[forced == Forced::Init, false, true, true]);
        let replay = replay_of(&fragment);
        let mut picked = replay.pick(1, 1, &mut Seed::root(1).rng(0)).unwrap();
        picked[0].steps = vec![3];
        let beliefs = &frame.beliefs(&replay, &picked, &actor)[0];

        let mut seen = fragment.observations.clone();
        normaliser.apply(&mut seen);
        let outputs = Outputs::new(&actor, &actor.input(&seen));
        let law = |t: usize, before: Option<usize>| {
            let mut logits = outputs.log_over_options(t);
            log_softmax(&mut logits);
            let over: Vec<f64> = logits.iter().map(|log| log.exp()).collect();
            let beta = before.map_or(1.0, |before| 1.0 / (1.0 + (-outputs.termination(t, before)).exp()));
            let mut law = vec![0.0; K];
            transition(beta, before, &over, &mut law);
            law
        };
        for last in 0..4 {
            let (mut acting, mut running) = (vec![0.0; K], vec![0.0; K]);
            for code in 0..K.pow(last as u32 + 1) {
                let option = |t: usize| code / K.pow(t as u32) % K;
                let mut weight = 1.0;
                for t in 0..=last {
                    let known = (first != NO_OPTION).then_some(usize::from(first));
                    weight *= law(t, if t == 0 { known } else { Some(option(t - 1)) })[option(t)];
                    if t < last {
                        weight *= outputs.log_prob_action(t, option(t), &fragment.steps[t].choice.proposal).exp();
                    }
                }
                acting[option(last)] += weight;
                if 0 < last {
                    running[option(last - 1)] += weight;
                }
            }
            let total: f64 = acting.iter().sum();
            let free = fragment.steps[last].choice.forced == Forced::Free;
            if last == 0 && free {
                running[usize::from(first)] = total;
            }
            for option in 0..K {
                near(beliefs[last].acting[option], acting[option] / total, "h");
                near(beliefs[last].running[option], if free { running[option] / total } else { 0.0 }, "g");
            }
        }
        let mixed = frame.picked(&replay, &picked, &actor, 0.1, &mut Seed::root(1).rng(0));
        for (found, share) in mixed.responsibility.iter().zip(&beliefs[3].acting) {
            near(*found, 0.9 * share + 0.1 / 3.0, "with the floor");
        }
    }
}

#[test]
fn ends_ages_and_last_observations_reach_the_critics() {
    let contract = off_policy(K, &[8]);
    assert_eq!((contract.options.min_steps, contract.options.max_steps), (2, 6));
    let normaliser = Normaliser::identity(3, 10.0);
    let frame = Frame { contract: &contract, normaliser: &normaliser };
    let steps = [
        (NO_OPTION, 1, Forced::Init, End::None),
        (1, 1, Forced::MinSteps, End::None),
        (1, 1, Forced::Free, End::None),
        (1, 2, Forced::Free, End::Truncated),
        (NO_OPTION, 0, Forced::Init, End::None),
        (0, 0, Forced::Free, End::Terminated),
    ];
    // Step 2 chooses option 1 again: its age starts anew. Step 5 has run 5 steps on arrival, so 6 on the next.
    let fragment = fragment(&steps, &[true, false, true, true, true, false]);
    let replay = replay_of(&fragment);
    let mut draws = replay.draw(6, 0.0, &mut Seed::root(1).rng(0)).unwrap();
    draws.sort_by_key(|draw| draw.step);
    let drawn = frame.drawn(&replay, &draws, vec![1.0; 6], 0.9, &mut Seed::root(1).rng(0));
    assert_eq!(drawn.reward, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "six strata, one a step");
    assert_eq!(drawn.discount, [0.9, 0.9, 0.9, 0.9, 0.9, 0.0]);
    let last = floats(&drawn.next.select(1, 2));
    for (found, want) in last[3..].iter().zip([3.0, fragment.observation(5)[2], 5.0]) {
        near(f64::from(*found), f64::from(want), "where a step led");
    }
    assert_eq!(drawn.forced, [Some(0.0), None, Some(0.0), Some(0.0), Some(0.0), Some(1.0)]);
    assert_eq!(drawn.executed, [1, 1, 1, 2, 0, 0]);
}
