//! Each formula against arithmetic of its own.

use super::{config, learner, step};
use crate::config::Seed;
use crate::data::{Choice, End, Forced, Logged, Part};
use crate::learn::offline::losses::{ActorLosses, Counts, expectile_loss, targets, weights};
use crate::policy::tests::{contract, snapshot};
use crate::policy::{Heads, Outputs, Policy, floats};
use rand::RngExt as _;
use tch::{Kind, Tensor};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn the_minimum_of_the_loss_is_the_expectile() {
    let sample: [f64; 5] = [-2.0, 0.0, 0.5, 1.0, 4.0];
    // the root of sum |tau - 1[x < v]| (x - v), by bisection
    let expectile = |tau: f64| {
        let slope = |v: f64| sample.iter().map(|x| (if *x < v { 1.0 - tau } else { tau }) * (x - v)).sum::<f64>();
        let (mut low, mut high) = (-2.0, 4.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if 0.0 < slope(middle) { low = middle } else { high = middle }
        }
        low
    };
    // of {0, 1, 2, 3, 10}, solved by hand elsewhere
    for (tau, known) in [(0.7, 4.631_578_947), (0.9, 7.384_615_385), (0.5, 3.2)] {
        let at = Tensor::from(known).set_requires_grad(true);
        expectile_loss(&(Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0, 10.0]) - &at), tau).sum(Kind::Double).backward();
        assert!(f64::try_from(at.grad()).unwrap().abs() < 1e-7, "tau {tau}: {known}");
    }
    // by hand, between 1 and 4: 0.9 (4 - v) = 0.1 ((v + 2) + v + (v - 0.5) + (v - 1)), hence v = 3.55 / 1.3
    assert!((expectile(0.9) - 3.55 / 1.3).abs() < 1e-9);
    for tau in [0.5, 0.7, 0.9] {
        let at = Tensor::from(expectile(tau)).set_requires_grad(true);
        expectile_loss(&(Tensor::from_slice(&sample) - &at), tau).sum(Kind::Double).backward();
        assert!(f64::try_from(at.grad()).unwrap().abs() < 1e-9, "tau {tau}");
        let off = expectile_loss(&(Tensor::from_slice(&sample) - expectile(tau) - 0.1), tau).sum(Kind::Double);
        let least = expectile_loss(&(Tensor::from_slice(&sample) - expectile(tau)), tau).sum(Kind::Double);
        assert!(f64::try_from(off - least).unwrap() > 1e-4);
    }
}

#[test]
fn weights_grow_with_the_advantage_up_to_their_clip() {
    let found = floats(&weights(&Tensor::from_slice(&[-1.0f32, 0.0, 0.5, 10.0, 1e4]), 3.0, 100.0));
    let known = [(-3f32).exp(), 1.0, 1.5f32.exp(), 100.0, 100.0];
    assert!(found.iter().zip(known).all(|(found, known)| (found - known).abs() < 1e-4 * known), "{found:?}");
}

/// Steps of a policy's own making, with everything that options do.
fn recorded(options: usize) -> Vec<Logged> {
    let policy = Policy::new(&snapshot(&contract(options, &[16, 16]), 6, 0.3)).unwrap();
    super::cloning::recorded(&policy, 64)
}

/// A log standard deviation and a termination's logit beyond their bounds have the gradient of the bound where that leads back, and
/// none where it leads on.
#[test]
fn what_left_its_bounds_is_led_back_and_no_further_out() {
    let contract = contract(2, &[8]);
    let learner = learner(&contract, &config(), &recorded(2), true);
    let steps = &learner.dataset.parts[&Part::Train];
    let count = steps.len() as i64;
    // Of the policy's loss by log_std `[1, 2, 2]`, and of the termination's by the logits `[N, 2]`.
    let gradients = |log_std: f64, logit: f64, mean: &Tensor| {
        let leaf = |shape: &[i64], value: f64| Tensor::full(shape, value, (Kind::Float, tch::Device::Cpu));
        let (log_std, logit) = (leaf(&[1, 2, 2], log_std), leaf(&[count, 2], logit));
        let (log_std, logit) = (log_std.set_requires_grad(true), logit.set_requires_grad(true));
        let heads = Heads {
            mean: mean.shallow_clone(),
            termination: logit.shallow_clone(),
            over_options: leaf(&[count, 2], 0.0),
            log_std: log_std.shallow_clone(),
        };
        let ones = steps.reward.ones_like();
        let counts =
            Counts { action: steps.executed.shallow_clone(), option: ones, going_on: steps.executed.zeros_like() };
        let losses = ActorLosses::new(&heads, steps, &counts);
        (losses.policy + losses.termination).backward();
        [floats(&log_std.grad()), floats(&logit.grad())]
    };
    // Actions are told from their means: wide. Actions are their means: narrow.
    let own = steps.proposal.unsqueeze(1).expand([-1, 2, -1], false);
    let far = &own + 1.0;
    let [wide, never] = gradients(-6.0, 8.0, &far);
    assert!(wide.iter().all(|&slope| slope < -1.0) && wide == gradients(-5.0, 0.0, &far)[0], "{wide:?}");
    assert_eq!(gradients(-6.0, 0.0, &own)[0], [0.0; 4], "narrower still");
    assert_eq!(gradients(3.0, 0.0, &own)[0], gradients(2.0, 0.0, &own)[0]);
    assert_eq!(gradients(3.0, 0.0, &(&own + 100.0))[0], [0.0; 4], "wider still");

    let always = &gradients(0.0, -8.0, &own)[1];
    let (ended, running) = (floats(&steps.ended), floats(&steps.running));
    let arrivals: f32 = running.iter().sum();
    let beta = sigmoid(6.0) as f32;
    for (at, &running) in running.iter().enumerate() {
        let [from_above, from_below] = if ended[at / 2] == 0.0 { [beta, 0.0] } else { [0.0, -beta] };
        assert!((never[at] - running * from_above / arrivals).abs() < 1e-6, "{}", never[at]);
        assert!((always[at] - running * from_below / arrivals).abs() < 1e-6, "{}", always[at]);
    }
    assert!(never.iter().any(|&slope| slope != 0.0) && always.iter().any(|&slope| slope != 0.0));
}

/// All losses, step by step in f64, from the networks' outputs as plain numbers.
#[test]
fn every_loss_is_the_formula_written_out() {
    for options in [1, 3] {
        let contract = contract(options, &[16, 16]);
        let logged = recorded(options);
        let config = config();
        let mut learner = learner(&contract, &config, &logged, false);
        // far enough from the start that values differ
        learner.actor.parameters = snapshot(&contract, 8, 0.3).parameters.to_vec();
        learner.network.load(&learner.actor.parameters);
        let critics = learner.critics.as_mut().unwrap();
        let mut rng = Seed::root(5).rng(0);
        critics.learned.parameters.iter_mut().for_each(|float| *float = rng.random_range(-0.5..0.5));
        critics.twin.load(&critics.learned.parameters);
        critics.slow.load(&critics.learned.parameters.iter().map(|float| 0.9 * float).collect::<Vec<_>>());

        let (steps, critics) = (&learner.dataset.parts[&Part::Train], learner.critics.as_ref().unwrap());
        let (count, offline, scale) = (steps.len(), &config.offline, learner.dataset.scale);
        let table = |tensor: &Tensor| -> Vec<Vec<f64>> {
            floats(tensor).chunks(options).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
        };
        let own: Vec<(&Logged, usize)> =
            logged.iter().flat_map(|logged| (0..logged.fragment.steps.len()).map(move |at| (logged, at))).collect();
        assert_eq!(own.len(), count);
        let (here, there) = (table(&learner.network.critic(&steps.input)), table(&learner.network.critic(&steps.next)));
        let outputs = Outputs::new(&learner.network, &steps.input);
        let beyond = Outputs::new(&learner.network, &steps.next);
        let twins = |twin: &crate::learn::twin::Twin| {
            let values = twin.pass(&steps.input, &steps.action).values;
            [table(&values.get(0)), table(&values.get(1))]
        };
        let (fast, slow) = (twins(&critics.twin), twins(&critics.slow));
        let v = |outputs: &Outputs, row: usize, values: &[f64]| -> f64 {
            outputs.log_over_options(row).iter().zip(values).map(|(log, value)| log.exp() * value).sum()
        };
        let share = |acted: bool| f64::from(u8::from(acted)) * 0.5 + 0.5 / options as f64;
        let (mut policy, mut value, mut critic) = (0.0, 0.0, 0.0);
        let (mut chosen, mut choices, mut ending, mut arrivals) = (0.0, 0.0, 0.0, 0.0);
        for (row, (logged, at)) in own.iter().enumerate() {
            let step = &logged.fragment.steps[*at];
            let Choice { option, option_prev, option_terminated, forced, option_age, .. } = step.choice;
            let o = usize::from(option);
            let least = slow[0][row][o].min(slow[1][row][o]);
            let advantage = least - here[row][o];
            value += (if advantage < 0.0 { 1.0 - offline.expectile } else { offline.expectile }) * advantage.powi(2);
            for other in 0..options {
                let advantage = slow[0][row][other].min(slow[1][row][other]) - here[row][other];
                let log_prob = outputs.log_prob_action(row, other, &step.choice.proposal);
                policy -= share(other == o) * (offline.temperature * advantage).exp().min(100.0) * log_prob;
            }
            let middle = v(&outputs, row, &here[row]);
            if option_terminated {
                let weight = (offline.option_temperature * (here[row][o] - middle)).exp().min(20.0);
                chosen -= weight * outputs.log_over_options(row)[o];
                choices += 1.0;
            }
            if forced == Forced::Free {
                let prev = usize::from(option_prev);
                let beta = sigmoid(outputs.termination(row, prev));
                let likelihood = if option_terminated { beta.ln() } else { (1.0 - beta).ln() };
                ending += beta * (here[row][prev] - middle + scale.cost) - likelihood;
                arrivals += 1.0;
            }
            let age = if option_terminated { 1 } else { option_age + 1 };
            for other in 0..options {
                let beta = match age {
                    age if other == o && 6 <= age => 1.0,
                    age if other == o && age < 2 => 0.0,
                    _ => sigmoid(beyond.termination(row, other)),
                };
                let stop = v(&beyond, row, &there[row]) - scale.cost;
                let arrival = (1.0 - beta) * there[row][other] + beta * stop;
                let goes_on = if step.end == End::Terminated { 0.0 } else { 0.95 };
                let wanted = f64::from(step.reward) / scale.reward + goes_on * arrival;
                critic += share(other == o) * fast.iter().map(|twin| (twin[row][other] - wanted).powi(2)).sum::<f64>();
            }
        }
        let known = [
            ("policy_loss", policy / count as f64),
            ("option_loss", chosen / choices),
            ("termination_loss", ending / f64::max(arrivals, 1.0)),
            ("value_loss", value / count as f64),
            ("critic_loss", critic / count as f64),
        ];
        let found = learner.losses(Part::Train).unwrap();
        assert_eq!(found.len(), if options == 1 { 3 } else { 5 });
        for (name, found) in found {
            let known = known.iter().find(|(known, _)| *known == name).unwrap().1;
            assert!(
                (found - known).abs() < 1e-3 * known.abs().max(1.0),
                "K = {options}, {name}: {found}, by hand {known}"
            );
        }
        assert!(options == 1 || 0.0 < arrivals && choices < count as f64);
    }
}

/// With one option the target is that of IQL: r + gamma m V(s').
#[test]
fn one_option_has_the_target_of_iql() {
    let contract = contract(1, &[8]);
    let logged = [
        step(0, &[0.0; 3], &[0.5, -0.5], 2.0, &[1.0; 3], End::None),
        step(1, &[0.0; 3], &[0.5, -0.5], 1.0, &[1.0; 3], End::Terminated),
        step(2, &[1.0; 3], &[0.5, -0.5], 0.0, &[1.0; 3], End::Truncated),
    ];
    let mut config = config();
    config.hs_ppo.normalise_reward = false;
    let learner = learner(&contract, &config, &logged, false);
    let steps = &learner.dataset.parts[&Part::Train];
    let heads = Heads {
        mean: Tensor::zeros([3, 1, 2], (Kind::Float, tch::Device::Cpu)),
        termination: Tensor::from_slice(&[-3.0f32, 0.0, 4.0]).view([3, 1]),
        over_options: Tensor::from_slice(&[1.0f32, 2.0, 3.0]).view([3, 1]),
        log_std: Tensor::zeros([1, 1, 2], (Kind::Float, tch::Device::Cpu)),
    };
    let values = Tensor::from_slice(&[10.0f32, 20.0, 30.0]).view([3, 1]);
    let found = floats(&targets(&heads, &values, steps, learner.dataset.scale.cost));
    assert!(found.iter().zip([2.0 + 9.5, 1.0, 28.5]).all(|(found, known)| (found - known).abs() < 1e-5), "{found:?}");
}
