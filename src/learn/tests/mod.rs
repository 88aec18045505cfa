//! Truth tests of the learner, on rows that its own policy collected in a small world.

mod adam;
mod autograd;
mod invariants;
mod lag;
mod learning;
mod losses;
mod ppo;
mod statistics;
mod tabular;
mod targets;
mod theorems;
mod updates;

use super::HsPpo;
use super::batch::{Anchor, Batch};
use super::loss::{Losses, Weights, losses, value_loss};
use crate::config::{self, Seed};
use crate::contract::{Contract, Group};
use crate::data::{End, Final, Fragment, Transition};
use crate::option::Running;
use crate::policy::tests::{contract, snapshot};
use crate::policy::{Network, Outputs, Policy, Sampling, floats};
use rand::RngExt as _;
use std::sync::Arc;
use uuid::Uuid;

const SECRET: u64 = 21;

/// A point in the plane, told where it is and where it should be along x: observed (x, y, goal).
#[derive(Clone)]
struct Point {
    at: [f32; 2],
    goal: f32,
    t: u32,
    episode: u64,
    running: Running,
}

impl Point {
    fn new(env: u64, episode: u64) -> Self {
        let mut rng = Seed::root(SECRET).child(env).rng(episode);
        let mut draw = || 2.0 * rng.random::<f32>() - 1.0;
        Self { at: [draw(), draw()], goal: draw(), t: 0, episode, running: Running::default() }
    }

    fn observe(&self) -> [f32; 3] {
        [self.at[0], self.at[1], self.goal]
    }

    fn error(&self) -> f32 {
        (self.at[0] - self.goal).hypot(self.at[1])
    }
}

/// Episodes of 20 steps, truncated; an episode that leaves the box of ±1.5 terminates.
pub(in crate::learn) struct World {
    points: Vec<Point>,
    pub(in crate::learn) rewards: Vec<f32>,
    ticks: u64,
}

impl World {
    pub(in crate::learn) fn new(envs: usize) -> Self {
        Self { points: (0..envs as u64).map(|env| Point::new(env, 0)).collect(), rewards: Vec::new(), ticks: 0 }
    }

    /// One row an environment.
    pub(in crate::learn) fn collect(&mut self, policy: &Policy, steps: usize) -> Vec<Fragment> {
        let envs = self.points.len();
        let mut rows: Vec<Fragment> = (0..envs)
            .map(|env| Fragment {
                env: env as u32,
                first: self.ticks,
                obs_size: 3,
                steps: Vec::new(),
                observations: Vec::new(),
                finals: Vec::new(),
            })
            .collect();
        self.rewards.clear();
        for step in 0..steps {
            let observations: Vec<f32> = self.points.iter().flat_map(Point::observe).collect();
            let running: Vec<Running> = self.points.iter().map(|point| point.running).collect();
            let mut draws: Vec<_> =
                (0..envs).map(|env| Seed::root(SECRET + 1).child(env as u64).rng(self.ticks)).collect();
            let decisions = policy.decide(&observations, &running, &mut draws, Sampling::Stochastic).unwrap();
            self.ticks += 1;
            for (env, decision) in decisions.into_iter().enumerate() {
                let point = &mut self.points[env];
                rows[env].observations.extend_from_slice(&point.observe());
                point.at[0] += 0.3 * decision.choice.action[0];
                point.at[1] += 0.3 * decision.choice.action[1];
                let reward = -point.error();
                let out = point.at.iter().any(|x| x.abs() > 1.5);
                let end = match point.t {
                    _ if out => End::Terminated,
                    19 => End::Truncated,
                    _ => End::None,
                };
                self.rewards.push(reward);
                rows[env].steps.push(Transition {
                    version: policy.version(),
                    episode: point.episode,
                    t: point.t,
                    stamp_secs: 0.0,
                    choice: decision.choice,
                    filtered: false,
                    intervened: false,
                    reward: if out { -10.0 } else { reward },
                    end,
                });
                point.t += 1;
                point.running = decision.next;
                if end != End::None {
                    rows[env].finals.push(Final { step, observation: point.observe().to_vec() });
                    *point = Point::new(env as u64, point.episode + 1);
                }
            }
        }
        for (row, point) in rows.iter_mut().zip(&self.points) {
            row.observations.extend_from_slice(&point.observe());
        }
        rows
    }
}

fn config() -> config::HsPpo {
    config::HsPpo {
        minibatch_size: 128,
        num_learning_epochs: 3,
        min_option_steps: 8,
        log_std_init: -0.5,
        lr_anneal_steps: 0,
        load_balance_coef: 0.01,
        deliberation_cost: 0.0,
        desired_kl: 0.0,
        ..config::HsPpo::default()
    }
}

/// A learner whose parameters are far from their start: random, so that every head says something.
fn learner(contract: &Arc<Contract>, config: &config::HsPpo, scale: f32) -> HsPpo {
    let mut learner = HsPpo::new(Arc::clone(contract), config, Seed::root(4)).unwrap();
    let mut state = learner.state();
    state.parameters = snapshot(contract, 6, scale).parameters.to_vec();
    learner.restore(state).unwrap();
    learner
}

fn acting(learner: &HsPpo, version: u64) -> Policy {
    Policy::new(&learner.snapshot(Uuid::nil(), 1, version)).unwrap()
}

/// Rows of a learner's own policy, and the learner.
fn fresh(options: usize, config: &config::HsPpo) -> (HsPpo, Vec<Fragment>) {
    let learner = learner(&contract(options, &[16, 16]), config, 0.3);
    let rows = World::new(8).collect(&acting(&learner, 1), 64);
    (learner, rows)
}

/// The closed form on a whole batch: all losses, the critic's, and the gradient of their sum.
fn closed(
    network: &Network,
    batch: &Batch,
    anchor: &Anchor,
    config: &config::HsPpo,
    weights: &Weights,
    value: f64,
) -> (Losses, f64, Vec<f32>) {
    let all = batch.select(&(0..batch.len()).collect::<Vec<_>>());
    let mut gradient = vec![0.0; network.parameters().len()];
    let kept = network.forward(&all.input);
    let outputs = Outputs::of(network, kept.output());
    let (losses, slopes) = losses(&outputs, &network.log_std().unwrap(), &all, anchor, config, weights);
    network.backward(&kept, &slopes.heads, &slopes.log_std, &mut gradient);
    let critic = network.share_critic().unwrap();
    let kept = critic.forward(&all.input);
    let (loss, slopes) = value_loss(&floats(kept.output()), &all, value);
    critic.backward(&kept, &slopes, &mut gradient);
    (losses, loss, gradient)
}

/// Euclidean norm of a flat vector's groups.
fn norm(contract: &Contract, floats: &[f32], holds: impl Fn(Group) -> bool) -> f32 {
    let layout = contract.layout();
    let segments = layout.segments.iter().filter(|segment| holds(segment.group));
    segments.flat_map(|segment| &floats[segment.range()]).map(|x| x * x).sum::<f32>().sqrt()
}
