//! PPO and SAC (one option) on a task from outside this project: Gymnasium's `Pendulum-v1`, its dynamics written here and
//! checked against trajectories that Gymnasium recorded. Hyper-parameters are those of RL Baselines3 Zoo where it tuned them,
//! but for PPO's discount (there 0.9) and 16 environments at a rate that falls: its noise that lasts over steps is not ours.
//!
//! `cargo run --release --no-default-features --features torch --example pendulum -- [ppo|sac] [seeds]`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use handoff::config::{Algo, Config, Prioritisation, Purpose, Seed};
use handoff::contract::{ActionMeaning, Architecture, Contract, Field, Network, Options};
use handoff::data::{End, Final, Fragment, Gathered, StreamId, Transition};
use handoff::error::Result;
use handoff::learn::algorithm;
use handoff::option::Running;
use handoff::policy::{Policy, Sampling, set_threads};
use handoff::robot::Robot;
use rand::RngExt as _;
use std::f64::consts::PI;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Control ticks of an episode, after which it is truncated.
const EPISODE: u32 = 200;
/// Largest torque [Nm].
const TORQUE: f32 = 2.0;
/// Largest speed [rad/s].
const SPEED: f64 = 8.0;
const TICK_SECS: f64 = 0.05;
const GRAVITY: f64 = 10.0;
const EVALUATED: usize = 100;
const SEEDS: u64 = 5;
/// What a learner must reach: mean return of the evaluated episodes.
const SOLVED: f64 = -200.0;

/// A rod of 1 m and 1 kg on a motor; 0 is upright (`gymnasium/envs/classic_control/pendulum.py`).
#[derive(Clone, Copy, Debug)]
struct Pendulum {
    /// [rad], not wrapped.
    angle: f64,
    /// [rad/s].
    speed: f64,
}

impl Pendulum {
    fn start(rng: &mut impl rand::Rng) -> Self {
        Self { angle: rng.random_range(-PI..PI), speed: rng.random_range(-1.0..1.0) }
    }

    fn observe(&self) -> [f32; 3] {
        [self.angle.cos() as f32, self.angle.sin() as f32, self.speed as f32]
    }

    /// One tick at a torque [Nm]; returns the reward.
    fn step(&mut self, torque: f32) -> f64 {
        let torque = torque.clamp(-TORQUE, TORQUE);
        let upright = (self.angle + PI).rem_euclid(2.0 * PI) - PI;
        let cost = upright.powi(2) + 0.1 * self.speed.powi(2) + f64::from(0.001 * (torque * torque));
        let speed = self.speed + (1.5 * GRAVITY * self.angle.sin() + f64::from(3.0 * torque)) * TICK_SECS;
        self.speed = speed.clamp(-SPEED, SPEED);
        self.angle += self.speed * TICK_SECS;
        -cost
    }
}

/// One environment: its pendulum, and where it stands in its episode.
struct Env {
    pendulum: Pendulum,
    seed: Seed,
    episode: u64,
    t: u32,
    running: Running,
    /// Decisions so far: the key of the next draw.
    decisions: u64,
}

impl Env {
    fn new(seed: Seed) -> Self {
        let pendulum = Pendulum::start(&mut seed.of(Purpose::Episodes).rng(0));
        Self { pendulum, seed, episode: 0, t: 0, running: Running::default(), decisions: 0 }
    }

    fn next_episode(&mut self) {
        self.episode += 1;
        self.pendulum = Pendulum::start(&mut self.seed.of(Purpose::Episodes).rng(self.episode));
        (self.t, self.running) = (0, Running::default());
    }
}

/// All environments decide in one forward pass; `taken` gets each environment's step.
fn tick(
    envs: &mut [Env],
    policy: &Policy,
    sampling: Sampling,
    mut taken: impl FnMut(usize, &mut Env, Transition),
) -> Result<()> {
    let observations: Vec<f32> = envs.iter().flat_map(|env| env.pendulum.observe()).collect();
    let running: Vec<Running> = envs.iter().map(|env| env.running).collect();
    let mut draws: Vec<_> = envs.iter().map(|env| env.seed.of(Purpose::Decisions).rng(env.decisions)).collect();
    let decisions = policy.decide(&observations, &running, &mut draws, sampling)?;
    for (at, (env, decision)) in envs.iter_mut().zip(decisions).enumerate() {
        let reward = env.pendulum.step(TORQUE * decision.choice.action[0]);
        let t = env.t;
        (env.t, env.decisions, env.running) = (t + 1, env.decisions + 1, decision.next);
        let step = Transition {
            version: policy.version(),
            episode: env.episode,
            t,
            stamp_secs: f64::from(t) * TICK_SECS,
            choice: decision.choice,
            filtered: false,
            intervened: false,
            reward: reward as f32,
            end: if env.t == EPISODE { End::Truncated } else { End::None },
        };
        taken(at, env, step);
    }
    Ok(())
}

/// One row an environment.
fn collect(envs: &mut [Env], policy: &Policy, steps: usize) -> Result<Vec<Gathered>> {
    let stream = StreamId { rollout: "pendulum".into(), incarnation: 1 };
    let mut rows: Vec<Fragment> = (0..)
        .zip(&*envs)
        .map(|(at, env)| Fragment {
            env: at,
            first: env.decisions,
            obs_size: 3,
            steps: Vec::with_capacity(steps),
            observations: env.pendulum.observe().to_vec(),
            finals: Vec::new(),
        })
        .collect();
    for at in 0..steps {
        tick(envs, policy, Sampling::Stochastic, |env_at, env, step| {
            let row = &mut rows[env_at];
            if step.end != End::None {
                row.finals.push(Final { step: at, observation: env.pendulum.observe().to_vec() });
                env.next_episode();
            }
            row.observations.extend(env.pendulum.observe());
            row.steps.push(step);
        })?;
    }
    Ok(rows.into_iter().map(|fragment| Gathered { stream: stream.clone(), seq: 0, fragment }).collect())
}

/// Mean return of the policy's mean actions over episodes that are the same for all.
fn evaluate(policy: &Policy) -> Result<f64> {
    let seed = Seed::root(0).of(Purpose::Evaluation);
    let mut envs: Vec<Env> = (0..EVALUATED).map(|env| Env::new(seed.child(env as u64))).collect();
    let mut sum = 0.0;
    for _ in 0..EPISODE {
        tick(&mut envs, policy, Sampling::MeanAction, |_, _, step| sum += f64::from(step.reward))?;
    }
    Ok(sum / EVALUATED as f64)
}

/// What is trained, and for how long.
struct Plan {
    config: Config,
    envs: usize,
    /// Steps of a row.
    steps: usize,
    env_steps: u64,
}

fn ppo() -> Plan {
    let mut config = Config { algo: Algo::Ppo, hidden: vec![64, 64], ..Config::of(Algo::Ppo) };
    let ppo = &mut config.learner.hs_ppo;
    (ppo.gamma, ppo.lam, ppo.lr) = (0.95, 0.95, 1e-3);
    (ppo.num_learning_epochs, ppo.minibatch_size) = (10, 64);
    (ppo.lr_anneal_steps, ppo.lr_final, ppo.log_std_init) = (100_000, 0.1, 0.0);
    Plan { config, envs: 16, steps: 128, env_steps: 100_000 }
}

fn sac() -> Plan {
    let mut config = Config { algo: Algo::Sac, hidden: vec![256, 256], ..Config::of(Algo::Sac) };
    let sac = &mut config.learner.osac;
    (sac.gamma, sac.lr, sac.batch_size, sac.update_to_data) = (0.99, 1e-3, 256, 1.0);
    (sac.prioritisation, sac.huber_delta) = (Prioritisation::Uniform, 0.0);
    (sac.warmup_steps, sac.capacity) = (100, 50_000);
    Plan { config, envs: 1, steps: 1, env_steps: 20_000 }
}

fn contract(config: &Config) -> Contract {
    let architecture = if config.algo.off_policy() { Architecture::OffPolicy } else { Architecture::OnPolicy };
    let field = |name: &str| Field { name: name.into(), len: 1 };
    Contract {
        robot: Robot::Panda,
        joints: vec!["motor".into()],
        task: "pendulum".into(),
        observation: ["cosine", "sine", "speed_rad_per_sec"].map(field).to_vec(),
        action: ActionMeaning::JointDelta { scale_rad: 1.0 },
        control_period_secs: TICK_SECS,
        options: Options { count: config.option_count(), min_steps: 1, max_steps: EPISODE },
        network: Network { architecture, hidden: config.hidden.clone() },
        told: handoff::contract::Told::default(),
    }
}

/// Trains from a seed, and evaluates what came of it.
fn train(plan: &Plan, seed: u64) -> Result<f64> {
    let config = Config { seed, ..plan.config.clone() };
    let mut learner = algorithm(&config, Arc::new(contract(&config)))?;
    let below = Seed::root(seed);
    let mut envs: Vec<Env> = (0..plan.envs).map(|env| Env::new(below.child(env as u64))).collect();
    let mut version = 1;
    let mut policy = Policy::new(&learner.snapshot(Uuid::nil(), 1, version))?;
    while learner.env_steps() < plan.env_steps {
        let rows = collect(&mut envs, &policy, plan.steps)?;
        learner.learn(rows, version)?;
        version += 1;
        policy = Policy::new(&learner.snapshot(Uuid::nil(), 1, version))?;
    }
    evaluate(&policy)
}

fn main() -> Result<()> {
    set_threads(1);
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next();
    let seeds = arguments.next().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    println!("mean return over {EVALUATED} episodes of mean actions; solved from {SOLVED} on");
    for (name, plan) in [("ppo", ppo()), ("sac", sac())] {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let mut solved = 0;
        for seed in 1..=seeds {
            let begun = Instant::now();
            let found = train(&plan, seed)?;
            solved += u64::from(SOLVED <= found);
            println!(
                "{name}, {} steps, seed {seed}: {found:7.1} ({:.0} s)",
                plan.env_steps,
                begun.elapsed().as_secs_f64()
            );
        }
        println!("{name}: {solved} of {seeds} solved");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Recorded {
        trajectories: Vec<Trajectory>,
    }

    #[derive(serde::Deserialize)]
    struct Trajectory {
        start: [f64; 2],
        /// Torque, reward, cosine, sine, speed.
        steps: Vec<[f64; 5]>,
    }

    /// tests/fixtures/pendulum.py recorded them.
    #[test]
    fn the_pendulum_is_gymnasiums_step_for_step() {
        let recorded: Recorded = serde_json::from_str(include_str!("../tests/fixtures/pendulum.json")).unwrap();
        assert_eq!(recorded.trajectories.len(), 3);
        for Trajectory { start: [angle, speed], steps } in recorded.trajectories {
            assert_eq!(steps.len(), EPISODE as usize);
            let mut pendulum = Pendulum { angle, speed };
            for (t, [torque, reward, observation @ ..]) in steps.into_iter().enumerate() {
                let found = pendulum.step(torque as f32);
                assert!((found - reward).abs() < 1e-6, "step {t}: reward {found}, Gymnasium {reward}");
                for (found, want) in pendulum.observe().into_iter().zip(observation) {
                    assert!((f64::from(found) - want).abs() < 1e-6, "step {t}: observed {found}, Gymnasium {want}");
                }
            }
        }
    }
}
