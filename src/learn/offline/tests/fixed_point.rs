//! On a small MDP the values come to the fixed point of IQL, solved by itself.

use super::{config, learner, step};
use crate::config::{Learner, Offline as Config};
use crate::contract::{Contract, Field};
use crate::data::{End, Logged};
use crate::learn::Algorithm;
use crate::option::tests::oracle::{M3, STATES};
use crate::policy::tests::contract;
use crate::policy::{Policy, floats};
use std::array::from_fn;
use std::sync::Arc;
use tch::{Kind, Tensor};
use uuid::Uuid;

const ACTIONS: [[f32; 2]; 2] = [[-0.5, 0.0], [0.5, 0.0]];

fn observe(state: usize) -> [f32; STATES] {
    from_fn(|at| if at == state { 1.0 } else { 0.0 })
}

/// Each state, each action, ten times what may follow, as often as its probability says.
fn every_step() -> Vec<Logged> {
    let mut all = Vec::new();
    for state in 0..STATES {
        for (action, taken) in ACTIONS.iter().enumerate() {
            let reward = M3.reward[state][action] as f32;
            let mut add = |count: usize, next: [f32; STATES], end| {
                for _ in 0..count {
                    all.push(step(all.len() as u32, &observe(state), taken, reward, &next, end));
                }
            };
            let counts = M3.next[state][action].map(|share| (10.0 * share).round() as usize);
            (0..STATES).for_each(|next| add(counts[next], observe(next), End::None));
            add(10 - counts.iter().sum::<usize>(), observe(0), End::Terminated);
        }
    }
    all
}

/// V of eq. 5 with Q = r + gamma E V(s'), by iteration; both actions are as frequent.
fn fixed_point(tau: f64, gamma: f64, scale: f64) -> ([f64; STATES], [[f64; 2]; STATES]) {
    let mut values = [0.0; STATES];
    let mut actions = [[0.0; 2]; STATES];
    for _ in 0..2000 {
        actions = from_fn(|state| {
            from_fn(|action| {
                let beyond: f64 = M3.next[state][action].iter().zip(values).map(|(share, value)| share * value).sum();
                M3.reward[state][action] / scale + gamma * beyond
            })
        });
        // of two values that weigh alike, the expectile is tau of the greater and 1 - tau of the lesser
        values = actions.map(|[a, b]| tau * a.max(b) + (1.0 - tau) * a.min(b));
    }
    (values, actions)
}

fn three_states() -> Arc<Contract> {
    let observation = vec![Field { name: "state".into(), len: STATES }];
    Arc::new(Contract { observation, ..(*contract(1, &[32, 32])).clone() })
}

#[test]
fn values_come_to_the_fixed_point_and_the_policy_to_its_weights() {
    for tau in [0.5, 0.8] {
        let offline = Config {
            expectile: tau,
            gradient_steps: 4000,
            update_steps: 1000,
            lr: 2e-3,
            tau: 0.02,
            temperature: 1.0,
            ..config().offline
        };
        let mut config = Learner { offline, ..config() };
        config.hs_ppo.gamma = 0.9;
        let contract = three_states();
        let mut learner = learner(&contract, &config, &every_step(), false);
        for version in 0..4 {
            learner.learn(vec![], version).unwrap();
        }
        let (values, actions) = fixed_point(tau, 0.9, learner.dataset.scale.reward);
        let snapshot = learner.snapshot(Uuid::nil(), 1, 1);
        let policy = Policy::new(&snapshot).unwrap();
        let outputs = policy.outputs(&(0..STATES).flat_map(observe).collect::<Vec<_>>()).unwrap();
        for (state, (value, actions)) in values.iter().zip(&actions).enumerate() {
            let found = f64::from(policy.values(&observe(state)).unwrap()[0]);
            assert!((found - value).abs() < 0.05 * value.abs().max(1.0), "tau {tau}: V({state}) {found}, {values:?}");
            let mut input = observe(state);
            snapshot.normaliser.apply(&mut input);
            let input = Tensor::from_slice(&input).view([1, -1]);
            let critics = learner.critics.as_ref().unwrap();
            for (action, wanted) in ACTIONS.iter().zip(actions) {
                let pass = critics.slow.pass(&input, &Tensor::from_slice(action).view([1, -1]));
                let found = f64::from(floats(&pass.values.amin([0i64].as_slice(), false).to_kind(Kind::Float))[0]);
                assert!(
                    (found - wanted).abs() < 0.05 * wanted.abs().max(1.0),
                    "tau {tau}: Q({state}) {found}, {wanted}"
                );
            }
            // the weighted likelihood is highest at the weighted mean of what was done
            let weight = actions.map(|of_action| (of_action - value).exp());
            let mean: f64 =
                ACTIONS.iter().zip(weight).map(|(action, weight)| f64::from(action[0].atanh()) * weight).sum();
            let mean = mean / weight.iter().sum::<f64>();
            let found = f64::from(outputs.mean(state, 0)[0]);
            assert!((found - mean).abs() < 0.06, "tau {tau}: the mean in {state} is {found}, not {mean}");
        }
    }
}
