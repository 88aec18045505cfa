//! Cloning gives back the policy that recorded.

use super::{config, learner, step, stream};
use crate::config::{Learner, Offline};
use crate::data::{End, Logged};
use crate::learn::Algorithm;
use crate::learn::tests::World;
use crate::policy::tests::{contract, snapshot};
use crate::policy::{Outputs, Policy};
use uuid::Uuid;

/// Steps of a policy in eight environments.
pub(super) fn recorded(policy: &Policy, steps: usize) -> Vec<Logged> {
    let rows = World::new(8).collect(policy, steps);
    rows.into_iter().map(|fragment| Logged { run: Uuid::nil(), stream: stream(), fragment }).collect()
}

/// Mean absolute differences on the recorded states: of the actions' means in standard deviations, of P, of beta.
fn apart(one: &Policy, other: &Policy, logged: &[Logged], options: usize) -> [f64; 3] {
    let observations: Vec<f32> = logged.iter().flat_map(|logged| logged.fragment.observations.clone()).collect();
    let (a, b) = (one.outputs(&observations).unwrap(), other.outputs(&observations).unwrap());
    let beta = |outputs: &Outputs, row: usize, o: usize| 1.0 / (1.0 + (-outputs.termination(row, o)).exp());
    let (mut means, mut over, mut ends) = (0.0, 0.0, 0.0);
    for row in 0..a.len() {
        let (p, q) = (a.log_over_options(row), b.log_over_options(row));
        for (o, (p, q)) in p.iter().zip(&q).enumerate() {
            let std = a.log_std(row, o).iter().map(|log| log.exp());
            let mean = a.mean(row, o).iter().zip(b.mean(row, o)).map(|(a, b)| f64::from((a - b).abs()));
            means += mean.zip(std).map(|(mean, std)| mean / std).sum::<f64>() / 2.0;
            over += (p.exp() - q.exp()).abs();
            ends += (beta(&a, row, o) - beta(&b, row, o)).abs();
        }
    }
    [means, over, ends].map(|sum| sum / (a.len() * options) as f64)
}

/// Nearly deterministic steps drive the spread beyond its least; it must come back when others are seen.
#[test]
fn a_spread_below_its_least_widens_again() {
    let contract = contract(1, &[8]);
    let action = |env: u32| if env.is_multiple_of(2) { [0.7, -0.7] } else { [-0.7, 0.7] };
    let logged: Vec<Logged> =
        (0..64).map(|env| step(env, &[0.0; 3], &action(env), 0.0, &[1.0; 3], End::Terminated)).collect();
    let offline = Offline { gradient_steps: 300, update_steps: 300, lr: 3e-2, ..config().offline };
    let mut learner = learner(&contract, &Learner { offline, ..config() }, &logged, true);
    let layout = contract.layout();
    let place = layout.segments.iter().find(|segment| segment.name == "option.0.log_std").unwrap().range();
    learner.actor.parameters[place.clone()].fill(-6.0);
    learner.network.load(&learner.actor.parameters);
    learner.learn(vec![], 1).unwrap();
    let found = &learner.actor.parameters[place];
    assert!(found.iter().all(|&log_std| -4.5 < log_std), "{found:?}");
}

#[test]
fn a_clone_acts_chooses_and_ends_as_its_model() {
    for options in [1, 2] {
        let contract = contract(options, &[16, 16]);
        let model = Policy::new(&snapshot(&contract, 6, 0.4)).unwrap();
        let logged = recorded(&model, 1000);
        let offline = Offline { gradient_steps: 2000, update_steps: 500, lr: 3e-3, ..config().offline };
        let mut learner = learner(&contract, &Learner { offline, ..config() }, &logged, true);
        let policy = |learner: &super::Offline| Policy::new(&learner.snapshot(Uuid::nil(), 1, 1)).unwrap();
        let before = apart(&model, &policy(&learner), &logged, options);
        for version in 0..4 {
            learner.learn(vec![], version).unwrap();
        }
        let after = apart(&model, &policy(&learner), &logged, options);
        assert!(after[0] < 0.15, "K = {options}: means {before:?} -> {after:?}");
        assert!(options == 1 || after[1] < 0.06 && after[2] < 0.08, "K = {options}: {before:?} -> {after:?}");
        assert!(after[0] < 0.3 * before[0], "K = {options}: {before:?} -> {after:?}");
    }
}
