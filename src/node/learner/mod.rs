//! The learner's front: admits batches, gathers an update, coordinates phases, keeps the counts. Never delayed by
//! learning, which is the [`crate::node::trainer`]'s. No clock, no network.

mod shell;
#[cfg(test)]
mod tests;

pub use shell::{Inputs, Outputs, run};

use crate::config::{Learner as Settings, UpdateMode};
use crate::contract::{Architecture, Contract, Hash, Snapshot};
use crate::data::{
    Accept, Ack, Admission, Batch, Coordinator, EpisodeStats, Gather, Gathered, LearnerStatus, PhaseEvent,
    RolloutStatus, Table, Verdict, join,
};
use crate::error::Result;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What the trainer is asked to do.
#[derive(Debug)]
pub enum Work {
    /// Learn from these rows.
    Update(Lesson),
    /// A phase ended without members: the same parameters as the next version.
    Republish,
}

/// The material of one update.
#[derive(Debug)]
pub struct Lesson {
    /// Sorted and joined.
    pub rows: Vec<Gathered>,
    /// Episodes that ended since the last update.
    pub episodes: Vec<EpisodeStats>,
    /// The streams, for the checkpoint.
    pub table: Table,
    /// Transitions of all streams: admitted, lost, refused, dropped unlearned.
    pub totals: [(&'static str, u64); 4],
}

/// What is to be sent and done now.
#[derive(Debug, Default)]
pub struct Due {
    /// Acknowledgements to send.
    pub acks: Vec<Ack>,
    /// The status changed in a way that rollouts wait for.
    pub announce: bool,
    /// Work for the trainer.
    pub work: Option<Work>,
}

/// The front of the learner.
pub struct Learner {
    run: Uuid,
    life: u32,
    mode: UpdateMode,
    /// What is in time where nobody waits: replay keeps any age.
    in_time: Accept,
    admission: Admission,
    gather: Gather,
    coordinator: Coordinator,
    newest: (u64, Hash),
    /// The trainer is at work.
    busy: bool,
    /// A phase is complete and waits for the trainer, or ended without members.
    pending: Option<PhaseEvent>,
    paused: bool,
    updates: u64,
    env_steps: u64,
    episodes: Vec<EpisodeStats>,
    started: bool,
}

impl Learner {
    /// Goes on from `table`, the streams of the checkpoint that the trainer went on from.
    pub fn new(run: Uuid, life: u32, contract: Arc<Contract>, settings: &Settings, table: Table) -> Self {
        let (in_time, max_lag) = match contract.network.architecture {
            Architecture::OnPolicy => (Accept::Life, settings.max_lag),
            Architecture::OffPolicy => (Accept::Run, u64::MAX),
        };
        Self {
            run,
            life,
            mode: settings.update_mode,
            in_time,
            admission: Admission::restore(table, run, life, contract),
            gather: Gather::new(settings.update_mode, settings.batch_steps as u64, max_lag),
            coordinator: Coordinator::new(run, life, settings.num_steps_per_env as u64, settings.min_rollouts),
            newest: (0, Hash::default()),
            busy: false,
            pending: None,
            paused: false,
            updates: 0,
            env_steps: 0,
            episodes: Vec::new(),
            started: false,
        }
    }

    /// A snapshot was published; the trainer is idle again.
    pub fn published(&mut self, snapshot: &Snapshot, hash: Hash) {
        self.newest = (snapshot.version, hash);
        (self.updates, self.env_steps) = (snapshot.updates, snapshot.env_steps);
        self.busy = false;
        self.coordinator.published(snapshot.version);
    }

    /// A checkpoint with this table is on disk.
    pub fn durable(&mut self, table: &Table) {
        self.admission.durable(table);
    }

    /// Rollouts hold, or go on.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.coordinator.pause(paused);
    }

    /// Whether a transition was admitted yet.
    pub fn started(&self) -> bool {
        self.started
    }

    /// A batch came.
    pub fn batch(&mut self, batch: Batch, now: Duration) {
        let accept = match self.mode {
            UpdateMode::Sync => self.coordinator.accept(&batch.stream),
            UpdateMode::Async => self.in_time,
        };
        let name = format!("batch {} of {}", batch.seq, batch.stream);
        match self.admission.receive(batch, now, accept) {
            Verdict::Admitted(batch) => {
                self.started = true;
                self.coordinator.admitted(&batch);
                self.episodes.extend_from_slice(&batch.episodes);
                self.gather.put(batch);
                self.consume();
            }
            Verdict::Refused(refusal) => tracing::warn!("{name} was refused: {refusal}"),
            Verdict::Ignored(sentence) => tracing::debug!("{name} was ignored: {sentence}"),
            Verdict::Duplicate => {}
        }
    }

    /// A rollout's status came. Fails if a newer learner of this run is about: this one must stop.
    pub fn rollout_status(&mut self, status: RolloutStatus, now: Duration) -> Result<()> {
        if let Some(run) = status.run {
            self.admission.require_newest(run, status.life)?;
            if run != self.run {
                return Ok(());
            }
        }
        self.admission.heard(&status.stream, now);
        self.coordinator.status(status);
        Ok(())
    }

    /// Moves time on. Call it after each message, and at 5 Hz.
    pub fn due(&mut self, now: Duration) -> Due {
        let mut due = Due::default();
        if self.mode == UpdateMode::Sync {
            for event in self.coordinator.tick(now) {
                due.announce = true;
                match &event {
                    PhaseEvent::Opened { short, .. } => {
                        if let Some(sentence) = short {
                            tracing::warn!("{sentence}");
                        }
                    }
                    PhaseEvent::Out { stream, sentence, .. } => {
                        tracing::warn!("{sentence}");
                        self.gather.drop_stream(stream);
                    }
                    PhaseEvent::Complete { .. } | PhaseEvent::Empty { .. } => self.pending = Some(event),
                }
            }
        }
        if !self.busy && self.newest.0 != 0 {
            due.work = self.work();
            self.busy = due.work.is_some();
            due.announce |= self.busy;
        }
        due.acks = self.admission.acks_due(now);
        due
    }

    /// What it tells rollouts and people.
    pub fn status(&self) -> LearnerStatus {
        let totals = self.admission.totals();
        let gathered = self.gather.counters();
        let phase = self.coordinator.phase();
        LearnerStatus {
            run: self.run,
            life: self.life,
            version: self.newest.0,
            hash: self.newest.1,
            update_mode: self.mode,
            phase,
            quota: self.coordinator.quota(),
            members: self.coordinator.members(),
            paused: self.paused,
            activity: match (self.busy, self.gather.stored()) {
                (true, _) => "learning",
                (false, 0) => "waiting",
                (false, _) => "gathering",
            }
            .into(),
            updates: self.updates,
            env_steps: self.env_steps,
            admitted: totals.admitted,
            lost: totals.lost,
            refused: totals.refused.total(),
            dropped: gathered.dropped_lag + gathered.dropped_out,
            queue_batches: self.gather.waiting() as u32,
            gathered_steps: self.gather.stored().min(u64::from(u32::MAX)) as u32,
        }
    }

    fn work(&mut self) -> Option<Work> {
        match (self.mode, self.pending.take()) {
            (UpdateMode::Sync, None) => None,
            (_, Some(PhaseEvent::Empty { .. })) => Some(Work::Republish),
            _ => {
                let rows = self.gather.take(self.newest.0);
                self.consume();
                let rows = rows?;
                let totals = self.admission.totals();
                let gathered = self.gather.counters();
                Some(Work::Update(Lesson {
                    rows: join(rows),
                    episodes: std::mem::take(&mut self.episodes),
                    table: self.admission.table(),
                    totals: [
                        ("stream/admitted", totals.admitted),
                        ("stream/lost", totals.lost),
                        ("stream/refused", totals.refused.total()),
                        ("stream/dropped", gathered.dropped_lag + gathered.dropped_out),
                    ],
                }))
            }
        }
    }

    fn consume(&mut self) {
        for (stream, seq) in self.gather.moved() {
            self.admission.consumed(&stream, seq);
        }
    }
}
