//! `handoff bench learner`: gradient steps a second of off-policy learning on made-up steps. Learners take turns, so that
//! what else the machine does meets all of them, and count their time on the processor.

use super::peer;
use crate::app::{cli, commands};
use crate::config::{Algo, Config, Purpose, Seed};
use crate::contract::Contract;
use crate::data::{Choice, End, Forced, Fragment, Gathered, NO_OPTION, StreamId, Transition};
use crate::error::{Error, Result};
use crate::learn::{Algorithm, algorithm};
use crate::report;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Widths of the hidden layers, and rows of a gradient step: Stable-Baselines3's.
const HIDDEN: [usize; 2] = [256, 256];
const BATCH: usize = 256;
/// Steps in replay before the first gradient step.
const REMEMBERED: u64 = 10_000;
/// Turns of each learner; the first is not counted.
const TURNS: u64 = 6;
/// Steps of a made-up fragment: an episode.
const FRAGMENT: usize = 50;

/// One learner's speed.
#[derive(Debug, Serialize)]
struct Speed {
    name: String,
    /// Gradient steps a second on the processor; the median turn.
    steps_per_sec: f64,
}

/// `handoff bench learner`.
pub(in crate::app) fn learner(arguments: &cli::BenchLearner) -> Result<()> {
    report::logs::start("bench", None, None)?;
    let turn = arguments.steps / (TURNS - 1);
    if turn == 0 {
        let least = TURNS - 1;
        return Err(Error::invalid(format!("--steps {} measures nothing: give at least {least}", arguments.steps)));
    }
    crate::policy::set_threads(1);
    let mut learners = [Own::new("handoff sac", Algo::Sac)?, Own::new("handoff osac, 4 options", Algo::Osac)?];
    let mut peer = match arguments.peers {
        false => None,
        true => Some(peer::Program::find()?.learner(&serde_json::json!({
            "seed": 1, "steps": REMEMBERED, "batch": BATCH, "hidden": HIDDEN,
            "obs": learners[0].contract.obs_size(), "action": learners[0].contract.action_size(),
        }))?),
    };
    let mut turns = vec![Vec::new(); learners.len() + 1];
    for _ in 0..TURNS {
        for (learner, rates) in learners.iter_mut().zip(&mut turns) {
            rates.push(learner.rate(turn)?);
        }
        if let (Some(peer), Some(rates)) = (&mut peer, turns.last_mut()) {
            rates.push(turn as f64 / peer.learn(turn)?);
        }
    }
    let names = learners.iter().map(|own| own.name.to_owned()).chain(peer.map(|peer| peer.name.clone()));
    let median = |mut rates: Vec<f64>| {
        rates.remove(0);
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let speeds: Vec<Speed> =
        names.zip(turns).map(|(name, rates)| Speed { name, steps_per_sec: median(rates) }).collect();
    let json = serde_json::to_string(&speeds)
        .map_err(|error| Error::invalid(format!("the report cannot be written as JSON: {error}")))?;
    commands::print(&if arguments.json { json } else { text(&speeds) })
}

/// Learns on a thread of its own until told to stop: something that fills a core.
pub(super) fn until(stop: Arc<AtomicBool>) -> Result<JoinHandle<Result<()>>> {
    let learn = move || {
        let mut own = Own::new("load", Algo::Sac)?;
        while !stop.load(Ordering::Relaxed) {
            own.learn(FRAGMENT as u64)?;
        }
        Ok(())
    };
    std::thread::Builder::new()
        .name("learner".into())
        .spawn(learn)
        .map_err(|error| Error::invalid(format!("no thread for a learner: {error}")))
}

fn text(speeds: &[Speed]) -> String {
    let mut lines = vec![format!("gradient steps/s on one core: networks {HIDDEN:?}, {BATCH} rows, twin critics")];
    let first = speeds[0].steps_per_sec;
    lines.extend(speeds.iter().map(|Speed { name, steps_per_sec: rate }| {
        let ratio = first / rate;
        format!("{rate:>7.1}  {name} ({ratio:.2} times as fast: {})", speeds[0].name)
    }));
    lines.join("\n")
}

/// One of our learners, and what feeds it.
struct Own {
    name: &'static str,
    contract: Arc<Contract>,
    algorithm: Box<dyn Algorithm>,
    rng: ChaCha8Rng,
}

impl Own {
    fn new(name: &'static str, algo: Algo) -> Result<Self> {
        let mut config = Config { hidden: HIDDEN.to_vec(), ..Config::of(algo) };
        config.learner.osac.batch_size = BATCH;
        config.learner.osac.actor_batch_size = BATCH;
        config.learner.osac.warmup_steps = REMEMBERED;
        config.learner.osac.update_to_data = 1.0;
        config.learner.osac.slack_steps = 32;
        config.validate()?;
        let contract = Arc::new(config.contract()?);
        let algorithm = algorithm(&config, contract.clone())?;
        let mut own = Self { name, contract, algorithm, rng: Seed::root(1).of(Purpose::Episodes).rng(0) };
        own.learn(REMEMBERED)?;
        Ok(own)
    }

    /// Gradient steps a second, of `steps` new steps, each of which earns one.
    fn rate(&mut self, steps: u64) -> Result<f64> {
        let pulse = self.algorithm.pulse();
        let before = pulse.load(Ordering::Relaxed);
        let secs = self.learn(steps)?;
        Ok((pulse.load(Ordering::Relaxed) - before) as f64 / secs)
    }

    /// Takes made-up steps in; returns the seconds on the processor that it took.
    fn learn(&mut self, steps: u64) -> Result<f64> {
        let mut left = steps as usize;
        let mut rows = Vec::new();
        while 0 < left {
            let length = left.min(FRAGMENT);
            let stream = StreamId { rollout: self.name.into(), incarnation: 1 };
            rows.push(Gathered { stream, seq: 0, fragment: fragment(&self.contract, length, &mut self.rng) });
            left -= length;
        }
        let begun = processor_secs();
        self.algorithm.learn(rows, 1)?;
        Ok(processor_secs() - begun)
    }
}

/// A whole episode of noise; options change at every tenth step.
fn fragment(contract: &Contract, steps: usize, rng: &mut ChaCha8Rng) -> Fragment {
    let mut normal = |count: usize| -> Vec<f32> { (0..count).map(|_| rng.sample(StandardNormal)).collect() };
    let obs_size = contract.obs_size();
    let option = |t: usize| (t / 10 % contract.options.count) as u8;
    let transition = |t: usize| {
        let proposal = normal(contract.action_size());
        let starts = t == 0;
        Transition {
            version: 1,
            episode: 0,
            t: t as u32,
            stamp_secs: t as f64 * contract.control_period_secs,
            choice: Choice {
                option_prev: if starts { NO_OPTION } else { option(t - 1) },
                option: option(t),
                option_terminated: t.is_multiple_of(10),
                forced: if starts { Forced::Init } else { Forced::Free },
                option_age: if starts { 0 } else { (t as u32 - 1) % 10 + 1 },
                action: proposal.iter().map(|float| float.tanh()).collect(),
                proposal,
                log_prob_action: 0.0,
                log_prob_option: 0.0,
                log_prob_termination: 0.0,
                log_prob_mixture: 0.0,
                termination_prob: 0.1,
            },
            filtered: false,
            intervened: false,
            reward: normal(1)[0],
            end: End::None,
        }
    };
    let steps: Vec<Transition> = (0..steps).map(transition).collect();
    let observations = normal((steps.len() + 1) * obs_size);
    Fragment { env: 0, first: 0, obs_size, steps, observations, finals: Vec::new() }
}

/// What this thread has spent on a processor [s].
fn processor_secs() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}
