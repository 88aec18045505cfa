use super::{World, acting, config};
use crate::config::{HsPpo as Config, Seed};
use crate::data::{End, Final, Fragment, Transition};
use crate::learn::HsPpo;
use crate::policy::tests::contract;
use crate::policy::{Policy, Sampling};
use rand_chacha::ChaCha8Rng;

/// A point that must go to its goal: mean distance over an update's steps falls from about 1 to a few steps' worth.
#[test]
fn a_point_learns_to_reach_with_one_option_and_with_three() {
    for options in [1, 3] {
        let config = Config { lr: 2e-3, minibatch_size: 256, num_learning_epochs: 4, ..config() };
        let mut learner = HsPpo::new(contract(options, &[32, 32]), &config, Seed::root(2)).unwrap();
        let mut world = World::new(16);
        let (mut first, mut last) = (0.0, 0.0);
        for version in 1..=30 {
            let rows = world.collect(&acting(&learner, version), 64);
            last = -world.rewards.iter().sum::<f32>() / world.rewards.len() as f32;
            first = if version == 1 { last } else { first };
            let metrics = learner.update(&rows, version).unwrap();
            assert_eq!(metrics.get("losses/skipped_minibatches"), Some(0.0));
        }
        assert!(0.8 < first && last < 0.4, "K = {options}: mean distance {first} at first, {last} at last");
    }
}

/// Reward 1 for ever, gamma .9: the value is 10 where the time limit of 8 bootstraps, (1 - .9^8) / .1 at the start of
/// an episode that terminates. Through network, optimiser and option level, with two options.
#[test]
fn values_of_a_constant_reward_settle_where_they_must() {
    for (end, want) in [(End::Truncated, 10.0), (End::Terminated, 5.6953279)] {
        let config = Config {
            gamma: 0.9,
            lr: 1e-2,
            normalise_reward: false,
            minibatch_size: 1_000,
            num_learning_epochs: 10,
            max_grad_norm: 100.0,
            ..config()
        };
        let mut learner = HsPpo::new(contract(2, &[16]), &config, Seed::root(2)).unwrap();
        for version in 1..=60 {
            let policy = acting(&learner, version);
            learner.update(&constant(&policy, end, version), version).unwrap();
        }
        let found = acting(&learner, 61).values(&[if end == End::Terminated { -1.0 } else { 0.0 }, 0.5, 0.0]).unwrap();
        for value in found {
            assert!((f64::from(value) - want).abs() < 0.15, "{end:?}: value {value}, want {want}");
        }
    }
}

/// The time is observed only where the episode terminates: what a time limit cuts goes on.
fn constant(policy: &Policy, end: End, version: u64) -> Vec<Fragment> {
    let observe = |t: u32| [if end == End::Terminated { t as f32 / 4.0 - 1.0 } else { 0.0 }, 0.5, 0.0];
    let row = |env: u64| {
        let mut row = Fragment {
            env: env as u32,
            first: 0,
            obs_size: 3,
            steps: Vec::new(),
            observations: Vec::new(),
            finals: Vec::new(),
        };
        for episode in 0..4 {
            let mut running = crate::option::Running::default();
            for t in 0..8 {
                let mut draw: Vec<ChaCha8Rng> = vec![Seed::root(version).child(env).rng(episode * 8 + t)];
                let seen = observe(t as u32);
                let decision = policy.decide(&seen, &[running], &mut draw, Sampling::Stochastic).unwrap().remove(0);
                running = decision.next;
                row.observations.extend_from_slice(&seen);
                row.steps.push(Transition {
                    version,
                    episode,
                    t: t as u32,
                    stamp_secs: 0.0,
                    choice: decision.choice,
                    filtered: false,
                    intervened: false,
                    reward: 1.0,
                    end: if t == 7 { end } else { End::None },
                });
                if t == 7 {
                    let step = row.steps.len() - 1;
                    row.finals.push(Final { step, observation: observe(8).to_vec() });
                }
            }
        }
        row.observations.extend_from_slice(&observe(0));
        row
    };
    (0..4).map(row).collect()
}
