//! The learner's side of all streams: one verdict for each batch, acknowledged until the rollout knows it.

use super::audit::{Note, Trail, spans};
use super::check::{check, header};
use super::ledger::{Entry, Ledger};
use super::suspects::AllSuspects;
use super::{Ack, Batch, Refusal, Refused, StreamId};
use crate::contract::{Contract, Hash};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Acks repeat at 5 Hz ...
const ACK_PERIOD: Duration = Duration::from_millis(200);
/// ... to streams that were heard within this time.
const ACK_FOR: Duration = Duration::from_secs(10);

/// Which batches are in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Synchronous: of this life, and of this phase, whose version is the newest. 0 accepts none.
    Phase(u64),
    /// Asynchronous, on-policy: of this life.
    Life,
    /// Replay: of any life of the run.
    Run,
}

/// What becomes of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// To be moved into an update or replay; tell [`Admission::consumed`] when it is.
    Admitted(Batch),
    /// Never to be learned from; counted, acknowledged, and out of the way.
    Refused(Refusal),
    /// It fails its check, and need not be its stream's: the number stays free for another content. The same content
    /// again, as a rollout resends it, is refused.
    Suspect(Refusal),
    /// It has its verdict already.
    Duplicate,
    /// Neither admitted nor acknowledged, with the reason in a sentence: another run, a greater life of this one
    /// (see [`Admission::require_newest`]), or too far ahead of its stream.
    Ignored(String),
}

/// Transitions of all streams, all lives in the table included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionTotals {
    /// Admitted.
    pub admitted: u64,
    /// Recorded, and never to come.
    pub lost: u64,
    /// Refused, by reason.
    pub refused: Refused,
    /// Batches that came again.
    pub duplicates: u64,
    /// Batches ignored.
    pub ignored: u64,
    /// Batches that failed their check and have no verdict: their sender did not stand by them, or has yet to.
    pub suspect: u64,
}

/// The streams as a checkpoint keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    streams: Vec<(StreamId, Ledger)>,
}

impl Table {
    /// A former life got this far in these streams (transitions). What it admitted after the checkpoint is lost: by
    /// [`Admission::totals`] at once, and it stays so unless it comes again.
    pub fn presume(&mut self, marks: impl IntoIterator<Item = (StreamId, u64)>) {
        for (stream, position) in marks {
            match self.streams.iter_mut().find(|(known, _)| *known == stream) {
                Some((_, ledger)) => ledger.presume(position),
                None => {
                    let mut ledger = Ledger::new(0, true);
                    ledger.presume(position);
                    self.streams.push((stream, ledger));
                }
            }
        }
    }
}

struct Stream {
    ledger: Ledger,
    /// The same, but what waits in the store of an update counts as not consumed: what a checkpoint may know.
    learned: Ledger,
    heard: Option<Duration>,
    acked: Option<Duration>,
    dirty: bool,
    /// The position that [`Admission::marks`] told last.
    marked: Option<u64>,
}

impl Stream {
    fn new(ledger: Ledger) -> Self {
        Self { learned: ledger.clone(), ledger, heard: None, acked: None, dirty: false, marked: None }
    }

    fn both(&mut self) -> [&mut Ledger; 2] {
        [&mut self.ledger, &mut self.learned]
    }
}

/// The learner's side.
pub struct Admission {
    run: Uuid,
    life: u32,
    contract: Arc<Contract>,
    contract_hash: Hash,
    streams: BTreeMap<StreamId, Stream>,
    duplicates: u64,
    ignored: u64,
    suspects: AllSuspects,
    suspect: u64,
    /// The newest version of this life; until one is told there is no bound.
    newest: Option<u64>,
    trail: Trail,
}

impl Admission {
    /// A learner that knows no stream. `life` counts from 1; above 1 the run is resumed.
    pub fn new(run: Uuid, life: u32, contract: Arc<Contract>) -> Self {
        Self::restore(Table::default(), run, life, contract)
    }

    /// A learner that takes up where a checkpoint's table stops.
    pub fn restore(table: Table, run: Uuid, life: u32, contract: Arc<Contract>) -> Self {
        let known = |ledger: Ledger| Stream::new(ledger.restored());
        let streams = table.streams.into_iter().map(|(stream, ledger)| (stream, known(ledger))).collect();
        let contract_hash = contract.hash();
        Self {
            run,
            life,
            contract,
            contract_hash,
            streams,
            duplicates: 0,
            ignored: 0,
            suspects: AllSuspects::default(),
            suspect: 0,
            newest: None,
            trail: Trail::default(),
        }
    }

    /// From now on verdicts are noted, see [`Self::notes`].
    pub fn audit(&mut self) {
        self.trail.start();
        let (life, streams) = (self.life, &self.streams);
        self.trail.note(|| Note::Begun {
            life,
            streams: streams.iter().map(|(stream, state)| state.ledger.taken(stream)).collect(),
        });
    }

    /// What was noted since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        self.trail.take()
    }

    /// How far the learner got in each stream that went on since the last call [transitions]. On disk before the acks go
    /// out, they tell the next life what this one had if it is killed: [`Table::presume`].
    pub fn marks(&mut self) -> Vec<(StreamId, u64)> {
        let mut marks = Vec::new();
        for (stream, state) in &mut self.streams {
            let position = state.ledger.mark();
            if state.marked != position {
                state.marked = position;
                marks.extend(position.map(|position| (stream.clone(), position)));
            }
        }
        marks
    }

    /// Weights of this version went out: nobody can have acted with a newer one.
    pub fn published(&mut self, version: u64) {
        self.newest = Some(version);
    }

    /// The table for a checkpoint that holds what was learned up to now.
    pub fn table(&self) -> Table {
        let settled = |(stream, state): (&StreamId, &Stream)| (stream.clone(), state.learned.settled());
        Table { streams: self.streams.iter().map(settled).collect() }
    }

    /// The checkpoint with this table is safe on disk.
    pub fn durable(&mut self, table: &Table) {
        for (stream, ledger) in &table.streams {
            if let Some(state) = self.streams.get_mut(stream).filter(|state| state.ledger.durable < ledger.consumed) {
                state.ledger.durable = ledger.consumed;
                state.dirty = true;
            }
        }
    }

    /// Refuses to live on beside a younger learner of the same run, heard in any message with a run and a life.
    pub fn require_newest(&self, run: Uuid, life: u32) -> Result<()> {
        if run == self.run && self.life < life {
            return Err(Error::invalid(format!(
                "run {run} has a learner of life {life}; this one is life {} and stops",
                self.life
            )));
        }
        Ok(())
    }

    /// Gives a batch its verdict. `accept` says what is in time, see [`super::Coordinator::accept`].
    pub fn receive(&mut self, batch: Batch, now: Duration, accept: Accept) -> Verdict {
        if let Some(sentence) = self.foreign(&batch) {
            self.ignored += 1;
            return Verdict::Ignored(sentence);
        }
        let trusted = header(&batch).is_ok();
        let base = if trusted { batch.base } else { 0 };
        let verdict = check(&batch, &self.contract, &self.contract_hash)
            .and_then(|()| in_time(&batch, self.life, self.newest, accept));
        let doubtful = matches!(verdict, Err(ref refusal) if !matches!(refusal, Refusal::Stale(_)));
        if doubtful && self.streams.get(&batch.stream).is_none_or(|state| !state.ledger.known(batch.seq)) {
            let suspects = self.suspects.of(&batch.stream);
            if let (false, Err(refusal)) = (suspects.again(&batch, now), &verdict) {
                self.suspect += 1;
                return Verdict::Suspect(refusal.clone());
            }
        }
        let resumed = 1 < self.life;
        let new = || Stream::new(Ledger::new(base, resumed));
        let stream = batch.stream.clone();
        let state = self.streams.entry(stream.clone()).or_insert_with(new);
        state.heard = Some(now);
        if !doubtful || !state.ledger.known(batch.seq) {
            state.both().into_iter().for_each(|ledger| ledger.raise_floor(base));
        }
        if state.ledger.known(batch.seq) {
            self.duplicates += 1;
            state.dirty = true;
            note_gaps(&mut self.trail, &stream, state);
            return Verdict::Duplicate;
        }
        if !state.ledger.in_reach(batch.seq) {
            self.ignored += 1;
            note_gaps(&mut self.trail, &stream, state);
            return Verdict::Ignored(format!("batch {} of {} is too far ahead", batch.seq, batch.stream));
        }
        self.suspects.of(&batch.stream).settled(batch.seq);
        state.dirty = true;
        let steps = batch.steps();
        let malformed = matches!(verdict, Err(Refusal::Malformed(_)));
        let first_step = trusted.then_some(batch.first_step);
        let entry = Entry { first_step, steps, pending: verdict.is_ok(), malformed };
        state.both().into_iter().for_each(|ledger| ledger.enter(batch.seq, entry));
        let verdict = match verdict {
            Ok(()) => {
                state.both().into_iter().for_each(|ledger| ledger.admitted += steps);
                let Batch { stream, seq, first_step, fragments, .. } = &batch;
                self.trail.note(|| Note::Stored {
                    stream: stream.clone(),
                    seq: *seq,
                    first_step: *first_step,
                    rows: spans(fragments),
                });
                Verdict::Admitted(batch)
            }
            Err(refusal) => {
                for Ledger { refused, .. } in state.both() {
                    *match &refusal {
                        Refusal::Malformed(_) => &mut refused.malformed,
                        Refusal::NonFinite(_) => &mut refused.nonfinite,
                        Refusal::Stale(_) => &mut refused.stale,
                        Refusal::Contract(_) => &mut refused.contract,
                    } += steps;
                }
                self.trail.note(|| Note::Refused {
                    stream: batch.stream.clone(),
                    seq: batch.seq,
                    reason: refusal.to_string(),
                });
                Verdict::Refused(refusal)
            }
        };
        note_gaps(&mut self.trail, &stream, state);
        verdict
    }

    fn foreign(&self, batch: &Batch) -> Option<String> {
        if batch.run != self.run {
            return Some(format!("{} sends to run {}; this is run {}", batch.stream, batch.run, self.run));
        }
        self.require_newest(batch.run, batch.life).err().map(|error| error.to_string())
    }

    /// An admitted batch was moved into the store of the update being gathered: its stream may send more.
    pub fn consumed(&mut self, stream: &StreamId, seq: u64) {
        if let Some(state) = self.streams.get_mut(stream) {
            state.dirty |= state.ledger.consume(seq);
            note_gaps(&mut self.trail, stream, state);
        }
    }

    /// A consumed batch was handed to an update whole, or dropped: a checkpoint may know of it.
    pub fn learned(&mut self, stream: &StreamId, seq: u64) {
        if let Some(state) = self.streams.get_mut(stream) {
            state.learned.consume(seq);
        }
    }

    /// The stream lives (its status was heard): its acks go on. `in_flight`: batches that it has sent and that are not
    /// consumed; a suspect beyond them is not its own.
    pub fn heard(&mut self, stream: &StreamId, in_flight: u32, now: Duration) {
        let mut consumed = 0;
        if let Some(state) = self.streams.get_mut(stream) {
            state.heard = Some(now);
            consumed = state.ledger.consumed;
        }
        self.suspects.of(stream).in_flight(in_flight, consumed);
    }

    /// What the learner has of a stream; `None` if it never heard of it.
    pub fn ack(&self, stream: &StreamId) -> Option<Ack> {
        let state = self.streams.get(stream)?;
        Some(state.ledger.ack(Ack {
            run: self.run,
            life: self.life,
            stream: stream.clone(),
            received: 0,
            received_mask: 0,
            consumed: 0,
            durable: 0,
            admitted: 0,
            lost: 0,
            refused: Refused::default(),
        }))
    }

    /// The acks to send now: of each stream that something happened to since its last one, and at 5 Hz of each live one.
    pub fn acks_due(&mut self, now: Duration) -> Vec<Ack> {
        let mut due = Vec::new();
        for (stream, state) in &mut self.streams {
            let alive = state.heard.is_some_and(|heard| now.saturating_sub(heard) <= ACK_FOR);
            let periodic = alive && state.acked.is_none_or(|acked| acked + ACK_PERIOD <= now);
            if state.dirty || periodic {
                state.dirty = false;
                state.acked = Some(now);
                due.push(stream.clone());
            }
        }
        due.iter().filter_map(|stream| self.ack(stream)).collect()
    }

    /// All streams together.
    pub fn totals(&self) -> AdmissionTotals {
        let mut totals = AdmissionTotals {
            duplicates: self.duplicates,
            ignored: self.ignored,
            suspect: self.suspect,
            ..AdmissionTotals::default()
        };
        for Stream { ledger, .. } in self.streams.values() {
            totals.admitted += ledger.admitted;
            totals.lost += ledger.lost();
            totals.refused.malformed += ledger.refused.malformed;
            totals.refused.nonfinite += ledger.refused.nonfinite;
            totals.refused.stale += ledger.refused.stale;
            totals.refused.contract += ledger.refused.contract;
        }
        totals
    }
}

fn note_gaps(trail: &mut Trail, stream: &StreamId, state: &mut Stream) {
    state.learned.take_gaps();
    for (from, to) in state.ledger.take_gaps() {
        trail.note(|| Note::Lost { stream: stream.clone(), from, to });
    }
}

fn in_time(batch: &Batch, life: u32, newest: Option<u64>, accept: Accept) -> Result<(), Refusal> {
    let stale = |what: String| Err(Refusal::Stale(format!("batch {} of {} {what}", batch.seq, batch.stream)));
    let of_this_life = batch.life == life;
    let versions = || batch.fragments.iter().flat_map(|fragment| &fragment.steps).map(|step| step.version);
    if let (Some(version), Some(newest), true) = (versions().max(), newest, of_this_life)
        && newest < version
    {
        return stale(format!(
            "was decided by version {version}, which this life has not published; its newest is {newest}"
        ));
    }
    match accept {
        Accept::Run => Ok(()),
        Accept::Life | Accept::Phase(_) if !of_this_life => {
            stale(format!("is of life {}; the learner's is {life}", batch.life))
        }
        Accept::Phase(open) if open == 0 || batch.phase != open => {
            stale(format!("is of phase {}; its stream's open phase is {open} (0: none)", batch.phase))
        }
        Accept::Phase(open) => match (versions().min(), newest) {
            (Some(version), Some(newest)) if version < newest => {
                stale(format!("was decided by version {version}; phase {open} is of version {newest}"))
            }
            _ => Ok(()),
        },
        Accept::Life => Ok(()),
    }
}
