//! The trainer: learns from gathered rows, keeps count, records metrics, saves checkpoints. It owns libtorch's part of
//! the learner and lives on one thread.

mod self_check;
#[cfg(test)]
mod tests;

pub use self_check::Alarm;

use super::learner::{Lesson, Work};
use crate::config::{self, Config};
use crate::contract::{Contract, Inheritance, Snapshot};
use crate::data::{End, EpisodeStats, StreamId, Table};
use crate::error::{Error, Result};
use crate::learn::{Algorithm, algorithm};
use crate::node::{Activity, Stopwatch, Times};
use crate::replay::spoiled;
use crate::report::{Clock, Recorder, names};
use crate::run::{self, Checkpoint, Held, Journal, Mark, RunDir, Which};
use self_check::SelfCheck;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use uuid::Uuid;

/// Episodes behind the training scores.
const RECENT: usize = 100;

/// What the scores need of an episode.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outcome {
    episode_return: f32,
    length: u32,
    success: bool,
    success_strict: bool,
}

/// What the trainer did.
#[derive(Debug, Default)]
pub struct Done {
    /// A new version to publish.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The streams of a checkpoint that is on disk.
    pub durable: Option<Table>,
}

/// Learns; see the module.
pub struct Trainer {
    config: Config,
    algorithm: Box<dyn Algorithm>,
    run: Uuid,
    life: u32,
    version: u64,
    /// Time trained in earlier lives [s].
    trained_secs: f64,
    started: Option<Instant>,
    recent: VecDeque<Outcome>,
    table: Table,
    folder: Option<(RunDir, Recorder)>,
    /// Its folder is its own.
    _held: Option<Held>,
    saved_updates: Option<u64>,
    /// What a serial loop wants to find again beside the learner ...
    companion: Option<Value>,
    /// ... and found in the checkpoint that this life goes on from.
    accompanied: Option<Value>,
    times: Times,
    watch: Stopwatch,
    journal: Option<Journal>,
    check: SelfCheck,
}

impl Trainer {
    /// Opens the run folder of the configuration (makes it where it is missing), counts a life, and goes on from its
    /// newest checkpoint. Returns the streams of that checkpoint too.
    pub fn open(config: &Config) -> Result<(Self, Table)> {
        Self::open_with(config, algorithm(config, Arc::new(config.contract()?))?)
    }

    /// The same for an algorithm at its start, of this configuration.
    pub fn open_with(config: &Config, algorithm: Box<dyn Algorithm>) -> Result<(Self, Table)> {
        let folder = open_folder(config)?;
        let held = folder.hold()?;
        let life = folder.start_life()?;
        let contract = config.contract()?;
        let newest = folder.checkpoint(Which::Newest)?;
        let checkpoint = newest.as_deref().map(|path| load(path, &contract, config)).transpose()?;
        let told = (!config.learner.run.is_empty()).then(|| Uuid::parse_str(&config.learner.run).ok()).flatten();
        let mut trainer = Self::with(config, algorithm, told.unwrap_or_else(Uuid::new_v4), life);
        match checkpoint {
            Some(checkpoint) => trainer.resume(checkpoint)?,
            None if config.learner.init_from.is_empty() => {}
            None => trainer.inherit(Path::new(&config.learner.init_from))?,
        }
        let journal = Journal::open(folder.path())?;
        trainer.table.presume(
            journal
                .marks()
                .into_iter()
                .map(|Mark { rollout, incarnation, position }| (StreamId { rollout, incarnation }, position)),
        );
        trainer.journal = Some(journal);
        let recorder = Recorder::open(folder.path(), life, trainer.env_steps())?;
        (trainer.folder, trainer._held) = (Some((folder, recorder)), Some(held));
        let table = trainer.table.clone();
        Ok((trainer, table))
    }

    /// Without a folder: nothing is recorded and nothing saved.
    pub fn new(config: &Config, contract: Arc<Contract>, run: Uuid, life: u32) -> Result<Self> {
        Ok(Self::with(config, algorithm(config, contract)?, run, life))
    }

    fn with(config: &Config, algorithm: Box<dyn Algorithm>, run: Uuid, life: u32) -> Self {
        crate::policy::set_threads(config.learner.torch_threads);
        let times = Times::default();
        Self {
            algorithm,
            config: config.clone(),
            run,
            life,
            version: 1,
            trained_secs: 0.0,
            started: None,
            recent: VecDeque::new(),
            table: Table::default(),
            folder: None,
            _held: None,
            saved_updates: None,
            companion: None,
            accompanied: None,
            watch: Stopwatch::new(&times),
            times,
            journal: None,
            check: SelfCheck::default(),
        }
    }

    /// Run and life.
    pub fn identity(&self) -> (Uuid, u32) {
        (self.run, self.life)
    }

    /// Where its time goes, from the first update on.
    pub fn times(&self) -> Times {
        self.times.clone()
    }

    /// Says so where a rollout records other log-probabilities than its version gives.
    pub fn alarm(&self) -> Alarm {
        self.check.alarm()
    }

    /// Moves on while an update or a save is under way.
    pub fn pulse(&self) -> Arc<AtomicU64> {
        self.algorithm.pulse()
    }

    /// Where the front writes how far it got in each stream; taken once.
    pub fn journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Asks the run folder for the newest life; `None` without a folder, or if it cannot be read.
    pub fn newest_life(&self) -> impl Fn() -> Option<u32> + use<> {
        let folder = self.folder.as_ref().map(|(folder, _)| folder.clone());
        move || folder.as_ref().and_then(|folder| folder.life().ok())
    }

    /// Updates made.
    pub fn updates(&self) -> u64 {
        self.algorithm.updates()
    }

    /// Transitions learned from.
    pub fn env_steps(&self) -> u64 {
        self.algorithm.env_steps()
    }

    /// Whether the next update ends with a checkpoint.
    pub fn saves_next(&self) -> bool {
        self.folder.is_some() && (self.algorithm.updates() + 1).is_multiple_of(self.config.learner.save_interval)
    }

    /// What the next checkpoint holds beside the learner.
    pub fn accompany(&mut self, companion: Value) {
        self.companion = Some(companion);
    }

    /// What the checkpoint that this life goes on from held beside the learner; taken once.
    pub fn companion(&mut self) -> Option<Value> {
        self.accompanied.take()
    }

    /// The present parameters under the present version.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(self.algorithm.snapshot(self.run, self.life, self.version))
    }

    /// Does what it is asked, and gives the next version where there is one.
    pub fn work(&mut self, work: Work) -> Result<Done> {
        let mut done = Done::default();
        match work {
            Work::Update(lesson) => {
                self.watch.start();
                self.watch.turn_to(Activity::Learning);
                self.learn(lesson)?;
                self.version += 1;
                if self.algorithm.updates().is_multiple_of(self.config.learner.save_interval) {
                    done = self.save()?;
                }
                self.watch.turn_to(Activity::Waiting);
            }
            Work::Republish => self.version += 1,
            Work::Remember(lesson) => {
                self.algorithm.remember(&lesson.rows)?;
                self.table = lesson.table;
                self.remember(&lesson.episodes);
                // The checkpoint of this update knows less.
                self.saved_updates = None;
                return Ok(done);
            }
        }
        done.snapshot = Some(self.snapshot());
        Ok(done)
    }

    /// Saves a checkpoint, unless the newest one is of the same update.
    pub fn save(&mut self) -> Result<Done> {
        let Some((folder, _)) = &self.folder else { return Ok(Done::default()) };
        if self.saved_updates == Some(self.algorithm.updates()) {
            return Ok(Done::default());
        }
        let checkpoint = Checkpoint {
            snapshot: (*self.snapshot()).clone(),
            config: self.config.clone(),
            score: self.score(),
            learner: json!({
                "streams": self.table,
                "trained_secs": self.trained(),
                "companion": self.companion.take(),
                "recent": self.recent,
            }),
            state: self.algorithm.save(),
            replay: self.algorithm.save_replay(),
        };
        let pulse = self.algorithm.pulse();
        let written = || {
            pulse.fetch_add(1, Ordering::Relaxed);
        };
        run::save(folder, &checkpoint, self.config.learner.keep, &written)?;
        self.saved_updates = Some(self.algorithm.updates());
        Ok(Done { snapshot: None, durable: Some(self.table.clone()) })
    }

    fn learn(&mut self, lesson: Lesson) -> Result<()> {
        let Lesson { rows, episodes, table, totals } = lesson;
        self.started.get_or_insert_with(Instant::now);
        let begun = Instant::now();
        let newest = self.algorithm.snapshot(self.run, self.life, self.version);
        let disagreement = self.check.look(&rows, newest);
        let mut metrics = self.algorithm.learn(rows, self.version)?;
        self.watch.turn_to(Activity::Saving);
        self.table = table;
        self.remember(&episodes);
        metrics.push("time/learn_secs", begun.elapsed().as_secs_f64());
        if let Some(largest) = disagreement {
            metrics.push(names::LOG_PROB_ERROR, largest);
        }
        for (name, total) in totals {
            metrics.push(name, total as f64);
        }
        for (activity, share) in self.times.shares() {
            metrics.push(format!("time/{}_share", activity.name()), share);
        }
        let recent = |value: &dyn Fn(&Outcome) -> f64| {
            let valid: Vec<f64> = self.recent.iter().map(value).collect();
            crate::report::stats::mean(&valid).unwrap_or(f64::NAN)
        };
        metrics.push(names::RETURN, recent(&|stats| f64::from(stats.episode_return)));
        let returns: Vec<f64> = self.recent.iter().map(|stats| f64::from(stats.episode_return)).collect();
        metrics.push(names::RETURN_STD, crate::report::stats::std(&returns).unwrap_or(f64::NAN));
        metrics.push(names::LENGTH, recent(&|stats| f64::from(stats.length)));
        metrics.push(names::SUCCESS, recent(&|stats| f64::from(u8::from(stats.success))));
        metrics.push(names::SUCCESS_STRICT, recent(&|stats| f64::from(u8::from(stats.success_strict))));
        let clock = Clock {
            updates: self.algorithm.updates(),
            env_steps: self.algorithm.env_steps(),
            wall_secs: self.trained(),
        };
        metrics.push(names::STEPS_PER_SEC, clock.env_steps as f64 / clock.wall_secs.max(1e-9));
        match &mut self.folder {
            Some((_, recorder)) => recorder.record(clock, &metrics.iter().collect::<Vec<_>>()),
            None => Ok(()),
        }
    }

    fn remember(&mut self, episodes: &[EpisodeStats]) {
        let whole = episodes.iter().filter(|stats| stats.end != End::Aborted);
        self.recent.extend(whole.map(|stats| Outcome {
            episode_return: stats.episode_return,
            length: stats.first_success_step,
            success: stats.success,
            success_strict: stats.success_strict,
        }));
        let surplus = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..surplus);
    }

    /// Mean of both successes over the last episodes, once there are enough of them.
    fn score(&self) -> Option<f64> {
        let points = |stats: &Outcome| f64::from(u8::from(stats.success) + u8::from(stats.success_strict)) / 2.0;
        (self.recent.len() == RECENT).then(|| self.recent.iter().map(points).sum::<f64>() / RECENT as f64)
    }

    fn trained(&self) -> f64 {
        self.trained_secs + self.started.map_or(0.0, |started| started.elapsed().as_secs_f64())
    }

    /// Starts with what fits of another run's checkpoint.
    fn inherit(&mut self, path: &Path) -> Result<()> {
        let Checkpoint { snapshot, state, config, .. } = run::load(&RunDir::resolve(path, Which::Newest)?, None)?;
        let mut inheritance = Inheritance::new(&snapshot.contract, &self.snapshot().contract);
        let scales = |config: &Config| config.learner.hs_ppo.normalise_reward;
        if inheritance.critic() && scales(&config) != scales(&self.config) {
            tracing::warn!("one of both runs normalises rewards, so that no value fits: the critic starts as drawn");
            inheritance.leave_critic();
        }
        self.algorithm.inherit(&inheritance, &snapshot, &state)
    }

    fn resume(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let Checkpoint { snapshot, learner, state, replay, .. } = checkpoint;
        self.algorithm.restore(&snapshot, &state, replay.as_ref())?;
        self.run = snapshot.run;
        self.version = snapshot.version;
        // A former life may have gone on from here by as many versions as lie between two checkpoints.
        self.check = std::mem::take(&mut self.check).since(self.version + self.config.learner.save_interval);
        self.saved_updates = Some(self.algorithm.updates());
        self.accompanied = Some(learner["companion"].clone()).filter(|companion| !companion.is_null());
        self.trained_secs = learner["trained_secs"].as_f64().unwrap_or(0.0);
        let unreadable = |what: &str, error| Error::invalid(format!("the checkpoint's {what} cannot be read: {error}"));
        self.table =
            serde_json::from_value(learner["streams"].clone()).map_err(|error| unreadable("streams", error))?;
        // Checkpoints of before have none.
        if let Some(recent) = learner.get("recent") {
            self.recent = serde_json::from_value(recent.clone()).map_err(|error| unreadable("last episodes", error))?;
        }
        tracing::info!("goes on from update {} at {} steps", snapshot.updates, snapshot.env_steps);
        Ok(())
    }
}

/// A checkpoint of our algorithm and contract with its replay, unless that is not wanted.
fn load(path: &Path, contract: &Contract, config: &Config) -> Result<Checkpoint> {
    let mut checkpoint = run::load(path, None)?;
    let (theirs, ours) = (checkpoint.config.algo, config.algo);
    if !ours.continues(theirs) {
        let anew = if ours.offline() { "" } else { " that starts with its parameters (--init-from)" };
        let (theirs, ours, path) = (theirs.name(), ours.name(), path.display());
        return Err(Error::invalid(format!(
            "the checkpoint {path} is of algo = {theirs}, this configuration of algo = {ours}: go on with {theirs}, or make a \
             new run{anew}"
        )));
    }
    run::require_contract(path, contract)?;
    if !config.learner.without_replay {
        checkpoint.replay = run::load_replay(path).map_err(|error| spoiled(&error))?;
    }
    Ok(checkpoint)
}

fn open_folder(config: &Config) -> Result<RunDir> {
    let path = Path::new(&config.learner.run_dir);
    if config.learner.run_dir.is_empty() {
        let algo = config.algo.name();
        let now = std::time::SystemTime::now();
        return RunDir::create(Path::new("runs"), &config.task, algo, config.seed, now, &config::to_yaml(config)?);
    }
    if path.exists() { RunDir::open(path) } else { RunDir::create_at(path, &config::to_yaml(config)?) }
}
