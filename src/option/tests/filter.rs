use super::{all_close, close};
use crate::config::Seed;
use crate::option::{Filter, transition};
use rand::RngExt as _;

const K: usize = 3;

/// One step of a made-up policy: beta and P of its state, log likelihoods of its action under each option.
struct Step {
    beta: Vec<f64>,
    over: Vec<f64>,
    log_likelihood: Vec<f64>,
}

fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = Seed::root(seed).rng(0);
    let mut step = || {
        let mut draw = |low: f64, high: f64| -> Vec<f64> { (0..K).map(|_| rng.random_range(low..high)).collect() };
        let (beta, over, log_likelihood) = (draw(0.05, 0.95), draw(0.1, 1.0), draw(-4.0, 1.0));
        let total: f64 = over.iter().sum();
        Step { beta, over: over.iter().map(|over| over / total).collect(), log_likelihood }
    };
    (0..count).map(|_| step()).collect()
}

/// p^(option | step, before), as the process draws it.
fn law(step: &Step, before: Option<usize>) -> Vec<f64> {
    let mut law = vec![0.0; K];
    transition(before.map_or(1.0, |before| step.beta[before]), before, &step.over, &mut law);
    law
}

/// Posterior of the option at the last step by the definition: over all K^L sequences of options.
fn enumerated(steps: &[Step], first: Option<usize>, with_last_action: bool) -> Vec<f64> {
    let mut posterior = [0.0; K];
    for code in 0..K.pow(steps.len() as u32) {
        let option = |t: usize| code / K.pow(t as u32) % K;
        let mut weight = 1.0;
        for (t, step) in steps.iter().enumerate() {
            let before = if t == 0 { first } else { Some(option(t - 1)) };
            weight *= law(step, before)[option(t)];
            if with_last_action || t + 1 < steps.len() {
                weight *= step.log_likelihood[option(t)].exp();
            }
        }
        posterior[option(steps.len() - 1)] += weight;
    }
    let total: f64 = posterior.iter().sum();
    posterior.iter().map(|share| share / total).collect()
}

#[test]
fn the_filter_is_the_posterior_over_all_sequences_of_options() {
    for seed in 0..10 {
        let steps = steps(seed, 5);
        for first in [None, Some(0), Some(2)] {
            let mut filter = Filter::new(K, first.unwrap_or(1));
            for (t, step) in steps.iter().enumerate() {
                let before = filter.arrive(t == 0 && first.is_none(), &step.beta, &step.over);
                all_close(&before, &enumerated(&steps[..=t], first, false), 1e-12);
                filter.act(&before, &step.log_likelihood);
                all_close(filter.after(), &enumerated(&steps[..=t], first, true), 1e-12);
            }
        }
    }
}

/// The common slip: a filter that forgets the actions is another one.
#[test]
fn actions_tell_options_apart() {
    let steps = steps(3, 5);
    let run = |with_actions: bool| {
        let mut filter = Filter::new(K, 0);
        let mut before = Vec::new();
        for (t, step) in steps.iter().enumerate() {
            before = filter.arrive(t == 0, &step.beta, &step.over);
            filter.act(&before, if with_actions { &step.log_likelihood } else { &[0.0; K] });
        }
        before
    };
    let (with, without) = (run(true), run(false));
    assert!(with.iter().zip(&without).any(|(a, b)| (a - b).abs() > 0.02), "{with:?} {without:?}");
}

#[test]
fn likelihoods_beyond_the_range_of_floats_are_no_trouble() {
    let mut filter = Filter::new(2, 0);
    let before = filter.arrive(true, &[0.5, 0.5], &[0.25, 0.75]);
    filter.act(&before, &[-5000.0, -5001.0]);
    all_close(filter.after(), &[0.25 / (0.25 + 0.75 * (-1f64).exp()), 0.75 / (0.25 * 1f64.exp() + 0.75)], 1e-12);
    filter.act(&before, &[f64::NEG_INFINITY; 2]);
    all_close(filter.after(), &before, 0.0);
}

/// Two policies over two options and two actions, three steps in one state: the ratio of the whole trajectory, options
/// given, against that of the actions alone, which the filter gives. Equal means of any return; less variance.
#[test]
fn marginal_ratios_have_the_means_of_joint_ones_and_no_more_variance() {
    const STEPS: usize = 3;
    let pair = |seed: u64| {
        let mut rng = Seed::root(seed).rng(1);
        let mut unit = || rng.random_range(0.1..0.9);
        let (beta, over) = ([unit(), unit()], unit());
        let act = [unit(), unit()];
        (beta, [over, 1.0 - over], act)
    };
    type Law = ([f64; 2], [f64; 2], [f64; 2]);
    let chance = |policy: &Law, option: usize, action: usize| {
        if action == 1 { policy.2[option] } else { 1.0 - policy.2[option] }
    };
    let joint = |policy: &Law, options: &[usize], actions: &[usize]| -> f64 {
        (0..STEPS)
            .map(|t| {
                let before = (0 < t).then(|| options[t - 1]);
                let mut law = [0.0; 2];
                transition(before.map_or(1.0, |before| policy.0[before]), before, &policy.1, &mut law);
                law[options[t]] * chance(policy, options[t], actions[t])
            })
            .product()
    };
    let marginal = |policy: &Law, actions: &[usize]| -> f64 {
        let mut filter = Filter::new(2, 0);
        let mut product = 1.0;
        for (t, &action) in actions.iter().enumerate() {
            let before = filter.arrive(t == 0, &policy.0, &policy.1);
            product *= (0..2).map(|option| before[option] * chance(policy, option, action)).sum::<f64>();
            let logs: Vec<f64> = (0..2).map(|option| chance(policy, option, action).ln()).collect();
            filter.act(&before, &logs);
        }
        product
    };
    let bits = |code: usize| [code & 1, code >> 1 & 1, code >> 2 & 1];
    for seed in 0..20 {
        let (behaviour, target) = (pair(seed), pair(seed + 100));
        let gain = |actions: &[usize; 3]| 1.0 + actions[0] as f64 - 2.0 * actions[1] as f64 + 0.5 * actions[2] as f64;
        let (mut means, mut squares) = ([0.0; 2], [0.0; 2]);
        for (options, actions) in (0..64).map(|code| (bits(code % 8), bits(code / 8))) {
            let mass = joint(&behaviour, &options, &actions);
            let ratios = [
                joint(&target, &options, &actions) / mass,
                marginal(&target, &actions) / marginal(&behaviour, &actions),
            ];
            for (at, ratio) in ratios.into_iter().enumerate() {
                means[at] += mass * ratio * gain(&actions);
                squares[at] += mass * (ratio * gain(&actions)).powi(2);
            }
        }
        close(means[0], means[1], 1e-12);
        assert!(squares[1] <= squares[0] + 1e-12, "seed {seed}: {squares:?}");
    }
}
