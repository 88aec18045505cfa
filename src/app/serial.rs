//! The serial mode: the same state machines in one loop on one thread. No ROS; same seed, same bytes.

use super::watch::Watch;
use crate::config::{Config, Purpose, Seed, UpdateMode};
use crate::contract::Snapshot;
use crate::data::{Follow, Hold, Outbox, StreamId};
use crate::error::{Error, Result};
use crate::node::learner::Learner;
use crate::node::rollout::{Agent, EpisodeState, Rollout};
use crate::node::trainer::Trainer;
use crate::policy::Sampling;
use crate::sim::{Arms, EnvState, Lockstep};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Both sides of the environments between two updates; everything else of the loop is the learner's or empty then.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    simulators: Vec<EnvState>,
    episodes: Vec<EpisodeState>,
}

/// One rollout, its simulator and the learner.
pub struct Serial {
    lockstep: Lockstep,
    agent: Agent,
    learner: Learner,
    trainer: Trainer,
    /// Versions by which the acting one is behind, at most.
    lag: u64,
    /// The versions that do not act yet, the acting one first.
    behind: VecDeque<Arc<Snapshot>>,
    /// Simulated time, which the protocol's time-outs go by.
    now: Duration,
    period: Duration,
}

impl Serial {
    /// All environments in one rollout. `trainer` and `learner` are of one run and life.
    pub fn new(config: &Config, trainer: Trainer, learner: Learner) -> Result<Self> {
        let contract = Arc::new(config.contract()?);
        let period_secs = contract.control_period_secs;
        let num_envs = config.train.envs;
        let task = crate::task::find(&config.task)?;
        let arms = Arms::new(num_envs, config.robot, &config.sim, period_secs, task.cube())?.led(config.lead())?;
        // Numbering starts again in each life, hence another stream.
        let incarnation = u64::from(trainer.identity().1);
        let stream = StreamId { rollout: "serial".into(), incarnation };
        let seed = Seed::root(config.seed).of(Purpose::Episodes);
        let rollout =
            Rollout::new(contract, num_envs, stream.clone(), seed, Sampling::Stochastic)?.leashed(config.leash_rad());
        let follow = Follow::new(stream.clone(), num_envs, None);
        let outbox = Outbox::new(stream, config.rollout.window, Hold::Consumed);
        Ok(Self {
            lockstep: Lockstep::new(arms, 0),
            agent: Agent::new(rollout, follow, outbox, config.rollout.fragment_steps),
            learner,
            trainer,
            lag: config.train.forced_lag,
            behind: VecDeque::new(),
            now: Duration::ZERO,
            period: Duration::from_secs_f64(period_secs),
        })
    }

    /// Publishes the present parameters.
    pub fn publish(&mut self) {
        let snapshot = self.trainer.snapshot();
        self.take(&snapshot);
    }

    /// One control tick, and an update if one is due. Returns whether there was one.
    pub fn tick(&mut self) -> Result<bool> {
        let commands = self.agent.states(&self.lockstep.states())?;
        self.lockstep.command(self.now.as_secs_f64(), &commands);
        self.now += self.period;
        for batch in self.agent.due(self.now) {
            self.learner.batch(batch, self.now);
        }
        self.learner.rollout_status(self.agent.status(), self.now);
        let due = self.learner.due(self.now);
        due.acks.iter().for_each(|ack| self.agent.ack(ack));
        let updated = due.work.is_some();
        if let Some(work) = due.work {
            // where data lags an update may come in the middle of a fragment; such a run is not gone on from
            if self.trainer.saves_next() && self.lag == 0 {
                let state = self.state()?;
                self.trainer.accompany(state);
            }
            let done = self.trainer.work(work)?;
            done.durable.iter().for_each(|table| self.learner.durable(table));
            if let Some(snapshot) = &done.snapshot {
                self.take(snapshot);
            }
        }
        self.agent.learner_status(&self.learner.status(), self.now);
        Ok(updated)
    }

    /// The newest version.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.trainer.snapshot()
    }

    /// Transitions learned from.
    pub fn env_steps(&self) -> u64 {
        self.trainer.env_steps()
    }

    /// Saves a checkpoint; between two updates it can be gone on from exactly.
    pub fn save(&mut self) -> Result<()> {
        if let Ok(state) = self.state() {
            self.trainer.accompany(state);
        }
        self.trainer.save().map(drop)
    }

    /// Goes on where the trainer's checkpoint was saved. Refuses one that was saved by nodes or in the middle of an update.
    pub fn resume(&mut self) -> Result<()> {
        if self.trainer.updates() == 0 {
            return Ok(());
        }
        let state = self.trainer.companion().ok_or_else(|| {
            Error::invalid(
                "the checkpoint holds no simulators: it was not saved in serial mode; resume it without --serial",
            )
        })?;
        let state: State = serde_json::from_value(state)
            .map_err(|error| Error::invalid(format!("the checkpoint's simulators cannot be read: {error}")))?;
        self.lockstep.set_state(&state.simulators)?;
        self.agent.restore(state.episodes)
    }

    fn state(&self) -> Result<serde_json::Value> {
        let state = State { simulators: self.lockstep.state()?, episodes: self.agent.state()? };
        serde_json::to_value(state)
            .map_err(|error| Error::invalid(format!("the simulators cannot be written as JSON: {error}")))
    }

    fn take(&mut self, snapshot: &Arc<Snapshot>) {
        self.learner.published(snapshot, snapshot.hash());
        self.behind.push_back(Arc::clone(snapshot));
        while self.behind.front().is_some_and(|acting| acting.version + self.lag < snapshot.version) {
            self.behind.pop_front();
        }
        if let Some(acting) = self.behind.front() {
            self.agent.weights(acting, self.now);
        }
    }
}

/// Trains in one loop until the budget is spent.
pub fn train(config: &Config) -> Result<()> {
    let (trainer, table) = Trainer::open(config)?;
    let (run, life) = trainer.identity();
    let mut settings = crate::config::Learner { min_rollouts: 1, ..config.learner.clone() };
    if 0 < config.train.forced_lag {
        if trainer.updates() != 0 {
            return Err(Error::invalid("a run with train.forced_lag is for comparison: it cannot be resumed"));
        }
        settings.update_mode = UpdateMode::Async; // a phase takes no lag
        settings.batch_steps = settings.num_steps_per_env * config.train.envs;
    }
    let learner = Learner::new(run, life, Arc::new(config.contract()?), &settings, table);
    let mut serial = Serial::new(config, trainer, learner)?;
    let mut watch = Watch::new(Path::new(&config.learner.run_dir), config.option_count(), "");
    serial.resume()?;
    serial.publish();
    let start = Instant::now();
    let spent = |steps: u64| {
        let minutes = 0.0 < config.train.minutes && config.train.minutes * 60.0 <= start.elapsed().as_secs_f64();
        minutes || (0 < config.train.env_steps && config.train.env_steps <= steps)
    };
    // The budget is looked at after an update only: there the run can be gone on from exactly.
    while !(serial.tick()? && spent(serial.env_steps())) {
        watch.show()?;
    }
    serial.save()?;
    watch.finish();
    Ok(())
}
