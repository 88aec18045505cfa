//! The store of the update being gathered.

use super::pieces::{append, continues};
use super::{Batch, Fragment, StreamId};
use crate::config::UpdateMode;
use std::collections::{BTreeSet, VecDeque};

/// A row of an update, and who recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// Who recorded it.
    pub stream: StreamId,
    /// Number of the batch that brought it; of the first one where rows were joined.
    pub seq: u64,
    /// Successive steps of one environment.
    pub fragment: Fragment,
}

/// Transitions that went through the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatherCounters {
    /// Moved into the store.
    pub gathered: u64,
    /// Handed to an update.
    pub taken: u64,
    /// Dropped because they were over the lag when an update began.
    pub dropped_lag: u64,
    /// Dropped with their stream, out of a phase.
    pub dropped_out: u64,
}

/// The store of the update being gathered. Synchronous: all of the open phase. Asynchronous: first in, first out,
/// until one update is there; the rest waits outside, unconsumed, so that its stream's window slides later: what is recorded ahead
/// of need lags.
pub struct Gather {
    mode: UpdateMode,
    batch_steps: u64,
    max_lag: u64,
    store: VecDeque<Gathered>,
    stored: u64,
    waiting: VecDeque<Batch>,
    moved: Vec<(StreamId, u64)>,
    /// Batches in the store, oldest first.
    inside: VecDeque<(StreamId, u64)>,
    counters: GatherCounters,
}

impl Gather {
    /// An empty store. `batch_steps`: transitions of an asynchronous update. `max_lag` [versions]: older steps are
    /// dropped when an asynchronous update begins; the synchronous mode allows none.
    pub fn new(mode: UpdateMode, batch_steps: u64, max_lag: u64) -> Self {
        Self {
            mode,
            batch_steps: batch_steps.max(1),
            max_lag: if mode == UpdateMode::Sync { 0 } else { max_lag },
            store: VecDeque::new(),
            stored: 0,
            waiting: VecDeque::new(),
            moved: Vec::new(),
            inside: VecDeque::new(),
            counters: GatherCounters::default(),
        }
    }

    /// Takes an admitted batch. What [`Self::moved`] names afterwards is consumed.
    pub fn put(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
        self.refill();
    }

    /// Batches moved into the store since the last call, for [`super::Admission::consumed`].
    /// Ask after [`Self::put`] and after [`Self::take`].
    pub fn moved(&mut self) -> Vec<(StreamId, u64)> {
        std::mem::take(&mut self.moved)
    }

    /// Batches of which nothing is in the store any more, since the last call, for [`super::Admission::learned`]. Ask after
    /// [`Self::take`] and [`Self::drop_stream`].
    pub fn left(&mut self) -> Vec<(StreamId, u64)> {
        let store = &self.store;
        let inside: BTreeSet<(&StreamId, u64)> = store.iter().map(|row| (&row.stream, row.seq)).collect();
        let (inside, left): (VecDeque<_>, VecDeque<_>) =
            self.inside.drain(..).partition(|(stream, seq)| inside.contains(&(stream, *seq)));
        self.inside = inside;
        Vec::from(left)
    }

    /// Forgets all of a stream (a member out of its phase). Returns the transitions dropped.
    pub fn drop_stream(&mut self, stream: &StreamId) -> u64 {
        let before = self.stored;
        self.store.retain(|row| row.stream != *stream);
        self.stored = steps(&self.store);
        let dropped = before - self.stored;
        self.counters.dropped_out += dropped;
        self.refill();
        dropped
    }

    /// The rows of one update under `version`, sorted by rollout, environment and time: their order of arrival changes
    /// nothing. Synchronous: all; ask when the phase is complete. Asynchronous: whole batches, the oldest, until
    /// they have `batch_steps`, so that no checkpoint cuts one; `None` until there are as many within the lag. Fragments with a step over the lag are dropped and counted.
    pub fn take(&mut self, version: u64) -> Option<Vec<Gathered>> {
        let oldest = version.saturating_sub(self.max_lag);
        loop {
            let before = self.stored;
            self.store.retain(|row| row.fragment.steps.iter().all(|step| oldest <= step.version));
            self.stored = steps(&self.store);
            self.counters.dropped_lag += before - self.stored;
            if self.refill() == 0 {
                break;
            }
        }
        let mut rows = Vec::new();
        let mut taken = 0;
        match self.mode {
            UpdateMode::Sync => rows.extend(self.store.drain(..)),
            UpdateMode::Async => {
                if self.stored < self.batch_steps {
                    return None;
                }
                let same = |a: &Gathered, b: &Gathered| (&a.stream, a.seq) == (&b.stream, b.seq);
                while let Some(next) = self.store.front()
                    && (taken < self.batch_steps || rows.last().is_some_and(|last| same(last, next)))
                {
                    taken += next.fragment.steps.len() as u64;
                    rows.extend(self.store.pop_front());
                }
            }
        }
        let rows = self.hand_out(rows);
        self.refill();
        Some(rows)
    }

    /// All rows, and all that waits, in the order of [`Self::take`]: where no update comes any more.
    pub fn drain(&mut self) -> Vec<Gathered> {
        while let Some(batch) = self.waiting.pop_front() {
            self.admit(batch);
        }
        let rows = self.store.drain(..).collect();
        self.hand_out(rows)
    }

    fn hand_out(&mut self, mut rows: Vec<Gathered>) -> Vec<Gathered> {
        self.counters.taken += steps(&rows);
        self.stored = steps(&self.store);
        rows.sort_by(|a, b| {
            (&a.stream, a.fragment.env, a.fragment.first).cmp(&(&b.stream, b.fragment.env, b.fragment.first))
        });
        rows
    }

    /// Transitions in the store.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Batches that wait for room in the store.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What went through the store.
    pub fn counters(&self) -> GatherCounters {
        self.counters
    }

    /// Moves waiting batches in while there is room. Returns how many.
    fn refill(&mut self) -> usize {
        let before = self.moved.len();
        while self.has_room() {
            let Some(batch) = self.waiting.pop_front() else { break };
            self.admit(batch);
        }
        self.moved.len() - before
    }

    fn admit(&mut self, batch: Batch) {
        self.stored += batch.steps();
        self.counters.gathered += batch.steps();
        self.moved.push((batch.stream.clone(), batch.seq));
        self.inside.push_back((batch.stream.clone(), batch.seq));
        let (stream, seq) = (batch.stream, batch.seq);
        let row = |fragment| Gathered { stream: stream.clone(), seq, fragment };
        self.store.extend(batch.fragments.into_iter().map(row));
    }

    fn has_room(&self) -> bool {
        self.mode == UpdateMode::Sync || self.stored < self.batch_steps
    }
}

fn steps<'a>(rows: impl IntoIterator<Item = &'a Gathered>) -> u64 {
    rows.into_iter().map(|row| row.fragment.steps.len() as u64).sum()
}

/// Joins neighbours that go on where the one before stops into one row: same stream and environment, no step missing,
/// no hold between. Expects the order of [`Gather::take`].
pub fn join(rows: Vec<Gathered>) -> Vec<Gathered> {
    let mut joined: Vec<Gathered> = Vec::new();
    for row in rows {
        match joined.last_mut() {
            Some(last) if last.stream == row.stream && continues(&last.fragment, &row.fragment) => {
                append(&mut last.fragment, row.fragment);
            }
            _ => joined.push(row),
        }
    }
    joined
}
