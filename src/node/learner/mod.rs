//! The learner's front: admits batches, gathers an update, coordinates phases, keeps the counts. Never delayed by
//! learning, which is the [`crate::node::trainer`]'s. No clock, no network.

mod say;
mod shell;
#[cfg(test)]
mod tests;

pub use shell::{Inputs, LOOKS, Outputs, SAVES, run};

use crate::config::{Learner as Settings, UpdateMode};
use crate::contract::{Architecture, Contract, Hash, Snapshot};
use crate::data::audit::{Note, Trail, spans};
use crate::data::{
    Accept, Ack, Admission, Batch, Coordinator, EpisodeStats, Gather, Gathered, LearnerStatus, PhaseEvent,
    RolloutStatus, StreamId, Table, Verdict, join,
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
    /// Keep these rows without learning from them: nothing comes after them but the last checkpoint.
    Remember(Lesson),
}

/// The material of one update; nothing of it where what is learned from was recorded before.
#[derive(Debug, Default)]
pub struct Lesson {
    /// Sorted and joined.
    pub rows: Vec<Gathered>,
    /// Episodes that ended since the last update.
    pub episodes: Vec<EpisodeStats>,
    /// The streams, for the checkpoint.
    pub table: Table,
    /// Transitions of all streams: admitted, lost, refused, dropped unlearned.
    pub totals: Vec<(&'static str, u64)>,
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
    /// How far the learner got in the streams that went on [transitions]; to be on disk before the acknowledgements go out.
    pub marks: Vec<(StreamId, u64)>,
    /// What the audit notes; to be on disk before the acknowledgements go out, too.
    pub notes: Vec<Note>,
}

/// What hearing another learner, or of one, means.
#[derive(Debug, PartialEq, Eq)]
pub enum Rival {
    /// Nothing.
    None,
    /// Somebody says that this run has a learner of this later life: this one must stop if the run folder says so, too.
    Later(u32),
    /// Another run's learner is at work on the same topics, and this one has done nothing yet: it must stop.
    Elder(String),
    /// Another run's learner is on the same topics; to be told.
    Younger(String),
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
    trail: Trail,
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
            trail: Trail::default(),
        }
    }

    /// A snapshot was published; the trainer is idle again.
    pub fn published(&mut self, snapshot: &Snapshot, hash: Hash) {
        self.newest = (snapshot.version, hash);
        (self.updates, self.env_steps) = (snapshot.updates, snapshot.env_steps);
        self.busy = false;
        self.coordinator.published(snapshot.version);
        self.admission.published(snapshot.version);
    }

    /// A checkpoint with this table is on disk.
    pub fn durable(&mut self, table: &Table) {
        self.admission.durable(table);
    }

    /// From now on the fate of every transition is noted, see [`Due::notes`].
    pub fn audit(&mut self) {
        self.trail.start();
        self.admission.audit();
    }

    /// A learner's status was heard, perhaps its own.
    pub fn learner_status(&self, status: &LearnerStatus) -> Rival {
        if status.run == self.run {
            return if self.life < status.life { Rival::Later(status.life) } else { Rival::None };
        }
        let sentence = format!(
            "run {} has a learner on these topics, too; give each training its own rollout.learner_ns or ROS domain",
            status.run
        );
        let elder = 0 < status.admitted || status.run < self.run;
        if elder && !self.started { Rival::Elder(sentence) } else { Rival::Younger(sentence) }
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
            Verdict::Suspect(refusal) => {
                tracing::warn!("{name} does not fit; it is refused if its rollout sends it again: {refusal}");
            }
            Verdict::Refused(refusal) => tracing::warn!("{name} was refused: {refusal}"),
            Verdict::Ignored(sentence) => tracing::debug!("{name} was ignored: {sentence}"),
            Verdict::Duplicate => {}
        }
    }

    /// A rollout's status came.
    pub fn rollout_status(&mut self, status: RolloutStatus, now: Duration) -> Rival {
        if status.run.is_some_and(|run| run != self.run) {
            return Rival::None;
        }
        if status.run.is_some() && self.life < status.life {
            return Rival::Later(status.life);
        }
        self.admission.heard(&status.stream, status.in_flight, now);
        self.coordinator.status(status);
        Rival::None
    }

    /// The run folder has the last word on lives: anybody can send a message. Fails if it knows of this later life.
    pub fn overtaken(&self, later: u32, on_disk: Option<u32>) -> Result<()> {
        match on_disk {
            Some(newest) if newest < later => Ok(()),
            _ => self.admission.require_newest(self.run, later),
        }
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
        due.marks = self.admission.marks();
        due.notes = self.notes();
        due
    }

    fn work(&mut self) -> Option<Work> {
        match (self.mode, self.pending.take()) {
            (UpdateMode::Sync, None) => None,
            (_, Some(PhaseEvent::Empty { .. })) => Some(Work::Republish),
            _ => {
                let rows = self.gather.take(self.newest.0);
                self.consume();
                let rows = rows?;
                if rows.is_empty() {
                    // Nothing of the phase is left: there is nothing to learn from, and the next one needs a version.
                    return Some(Work::Republish);
                }
                Some(Work::Update(self.lesson(rows)))
            }
        }
    }

    /// Work of a learner that remembers and is about to stop: what was admitted and waits unlearned, lest it be lost.
    pub fn leave(&mut self) -> Option<Work> {
        if self.in_time != Accept::Run {
            return None;
        }
        let rows = self.gather.drain();
        self.consume();
        (!rows.is_empty()).then(|| Work::Remember(self.lesson(rows)))
    }

    fn lesson(&mut self, rows: Vec<Gathered>) -> Lesson {
        for Gathered { stream, fragment, .. } in &rows {
            let (stream, rows) = (stream.clone(), || spans([fragment]));
            self.trail.note(|| Note::Learned { stream, rows: rows() });
        }
        let totals = self.admission.totals();
        let gathered = self.gather.counters();
        Lesson {
            rows: join(rows),
            episodes: std::mem::take(&mut self.episodes),
            table: self.admission.table(),
            totals: vec![
                ("stream/admitted", totals.admitted),
                ("stream/lost", totals.lost),
                ("stream/refused", totals.refused.total()),
                ("stream/dropped", gathered.dropped_lag + gathered.dropped_out),
            ],
        }
    }

    fn notes(&mut self) -> Vec<Note> {
        let mut notes = self.admission.notes();
        notes.extend(self.trail.take());
        notes
    }

    fn consume(&mut self) {
        for (stream, seq) in self.gather.moved() {
            self.admission.consumed(&stream, seq);
        }
        for (stream, seq) in self.gather.left() {
            self.admission.learned(&stream, seq);
        }
    }
}
