//! The serial mode: the same state machines in one loop on one thread. No ROS; same seed, same bytes.

use super::watch::Watch;
use crate::config::{Config, Purpose, Seed};
use crate::contract::Snapshot;
use crate::data::{Follow, Hold, Outbox, StreamId};
use crate::error::Result;
use crate::node::learner::Learner;
use crate::node::rollout::{Agent, Rollout};
use crate::node::trainer::Trainer;
use crate::policy::Sampling;
use crate::sim::{Arms, Lockstep};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One rollout, its simulator and the learner.
pub struct Serial {
    lockstep: Lockstep,
    agent: Agent,
    learner: Learner,
    trainer: Trainer,
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
        let arms = Arms::new(num_envs, config.robot, &config.sim, period_secs, task.cube())?;
        let stream = StreamId { rollout: "serial".into(), incarnation: 0 };
        let seed = Seed::root(config.seed).of(Purpose::Episodes);
        let rollout = Rollout::new(contract, num_envs, stream.clone(), seed, Sampling::Stochastic)?;
        let follow = Follow::new(stream.clone(), num_envs, None);
        let outbox = Outbox::new(stream, config.rollout.window, Hold::Consumed);
        Ok(Self {
            lockstep: Lockstep::new(arms, 0),
            agent: Agent::new(rollout, follow, outbox, config.rollout.fragment_steps),
            learner,
            trainer,
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
        self.learner.rollout_status(self.agent.status(), self.now)?;
        let due = self.learner.due(self.now);
        due.acks.iter().for_each(|ack| self.agent.ack(ack));
        let updated = due.work.is_some();
        if let Some(work) = due.work {
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

    /// Saves a checkpoint.
    pub fn save(&mut self) -> Result<()> {
        self.trainer.save().map(drop)
    }

    fn take(&mut self, snapshot: &Arc<Snapshot>) {
        self.learner.published(snapshot, snapshot.hash());
        self.agent.weights(snapshot, self.now);
    }
}

/// Trains in one loop until the budget is spent.
pub fn train(config: &Config) -> Result<()> {
    let (trainer, table) = Trainer::open(config)?;
    let (run, life) = trainer.identity();
    let settings = crate::config::Learner { min_rollouts: 1, ..config.learner.clone() };
    let learner = Learner::new(run, life, Arc::new(config.contract()?), &settings, table);
    let mut serial = Serial::new(config, trainer, learner)?;
    let mut watch = Watch::new(Path::new(&config.learner.run_dir), config.option_count(), "");
    serial.publish();
    let start = Instant::now();
    let spent = |steps: u64| {
        let minutes = 0.0 < config.train.minutes && config.train.minutes * 60.0 <= start.elapsed().as_secs_f64();
        minutes || (0 < config.train.env_steps && config.train.env_steps <= steps)
    };
    while !spent(serial.env_steps()) {
        if serial.tick()? {
            watch.show()?;
        }
    }
    serial.save()?;
    watch.finish();
    Ok(())
}
