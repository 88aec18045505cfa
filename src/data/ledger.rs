//! What the learner knows of one stream: which numbers have a verdict, and where every transition went.

use super::audit::Taken;
use super::pieces::MAX_BATCH_BYTES;
use super::{Ack, Refused, StreamId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Batches past the first missing one that an ack can name.
pub(super) const AHEAD: u64 = 64;

/// More transitions than fit into one batch: each has 72 bytes at least.
const MOST_STEPS: u64 = MAX_BATCH_BYTES as u64 / 64;

/// One batch that has its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Transitions recorded in the stream before it; `None`: its header is not to be trusted.
    pub(super) first_step: Option<u64>,
    /// Its transitions.
    pub(super) steps: u64,
    /// Admitted, and not yet in an update or replay.
    #[serde(skip)]
    pub(super) pending: bool,
    /// Refused as malformed: what it says of its place and length need not hold. Without steps, nobody could count its
    /// transitions: the next batch tells how many they were.
    #[serde(default)]
    pub(super) malformed: bool,
}

/// One stream. Serialised, it is what a checkpoint must know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ledger {
    /// Every number below has been moved into an update or replay, was refused, or is lost.
    pub(super) consumed: u64,
    /// Every number below has a verdict or is lost.
    received: u64,
    /// Every number below is in a checkpoint.
    pub(super) durable: u64,
    /// Highest base that the rollout told: below it nothing will come any more.
    floor: u64,
    /// Transitions recorded in the stream before batch `consumed`; `None`: the first batch will say.
    position: Option<u64>,
    /// Transitions before this one that will never come are lost: a former life had them, and no checkpoint has.
    #[serde(default)]
    presumed: u64,
    /// The last batch before `position` was malformed, and nobody could count its transitions.
    #[serde(default)]
    uncounted: bool,
    /// Numbers since the last batch before `position` that will never come.
    #[serde(default)]
    skipped: u64,
    /// Ranges counted as lost since [`Self::take_gaps`].
    #[serde(skip)]
    gaps: Vec<(u64, u64)>,
    /// Verdicts at `consumed` and above.
    #[serde(with = "pairs")]
    entries: BTreeMap<u64, Entry>,
    /// Transitions.
    pub(super) admitted: u64,
    /// Transitions.
    lost: u64,
    /// Transitions.
    pub(super) refused: Refused,
}

impl Ledger {
    /// A stream first heard with its base. `count_before`: what lies below the base was meant for this run.
    pub(super) fn new(base: u64, count_before: bool) -> Self {
        Self {
            consumed: if count_before { 0 } else { base },
            received: base,
            durable: 0,
            floor: base,
            position: (count_before || base == 0).then_some(0),
            presumed: 0,
            uncounted: false,
            skipped: 0,
            gaps: Vec::new(),
            entries: BTreeMap::new(),
            admitted: 0,
            lost: 0,
            refused: Refused::default(),
        }
    }

    /// Whether the number has its verdict, or was given up.
    pub(super) fn known(&self, seq: u64) -> bool {
        seq < self.received || self.entries.contains_key(&seq)
    }

    /// Whether an ack could name the number.
    pub(super) fn in_reach(&self, seq: u64) -> bool {
        seq <= self.received.saturating_add(AHEAD)
    }

    /// The rollout holds nothing below `base` any more.
    pub(super) fn raise_floor(&mut self, base: u64) {
        self.floor = self.floor.max(base);
        self.advance();
    }

    /// Files a verdict.
    pub(super) fn enter(&mut self, seq: u64, entry: Entry) {
        self.entries.insert(seq, entry);
        self.advance();
    }

    /// An admitted batch was moved into an update or replay. Returns whether it was waiting for that.
    pub(super) fn consume(&mut self, seq: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&seq).filter(|entry| entry.pending) else { return false };
        entry.pending = false;
        self.advance();
        true
    }

    /// A former life got as far as `position` in the stream: what no checkpoint has of that, and does not come again, is
    /// lost.
    pub(super) fn presume(&mut self, position: u64) {
        self.presumed = self.presumed.max(position);
    }

    /// Transitions recorded, and never to come.
    pub(super) fn lost(&self) -> u64 {
        let position = self.position.unwrap_or(0);
        // What has its verdict beyond the position is not lost.
        let judged = self.entries.values().map(|entry| {
            let first = entry.first_step.unwrap_or(position).max(position);
            first.saturating_add(entry.steps).min(self.presumed).saturating_sub(first)
        });
        self.lost + self.presumed.saturating_sub(position).saturating_sub(judged.sum())
    }

    /// Transitions in the stream up to the newest batch below which all is settled, now or in a former life; `None`: not
    /// known yet.
    pub(super) fn mark(&self) -> Option<u64> {
        self.position.map(|position| position.max(self.presumed))
    }

    /// Ranges of the stream that were counted as lost since the last call.
    pub(super) fn take_gaps(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.gaps)
    }

    /// What it stands for, for the audit: see [`super::audit::Taken`].
    pub(super) fn taken(&self, stream: &StreamId) -> Taken {
        Taken {
            stream: stream.clone(),
            below: self.consumed,
            others: self.entries.keys().copied().collect(),
            position: self.position.unwrap_or(0),
            presumed: self.presumed,
        }
    }

    /// What a checkpoint may know: what was admitted and is not consumed will come again, so it is taken back.
    pub(super) fn settled(&self) -> Self {
        let mut settled = self.clone();
        let pending: u64 = self.entries.values().filter(|entry| entry.pending).map(|entry| entry.steps).sum();
        settled.admitted -= pending;
        settled.entries.retain(|_, entry| !entry.pending);
        settled.received = settled.consumed;
        settled.floor = settled.consumed;
        settled
    }

    /// Takes up what [`Self::settled`] left.
    pub(super) fn restored(mut self) -> Self {
        self.received = self.consumed;
        self.floor = self.consumed;
        self.durable = self.consumed;
        self.advance();
        self
    }

    /// Fills in what is this stream's.
    pub(super) fn ack(&self, ack: Ack) -> Ack {
        let mask = (0..AHEAD)
            .filter(|bit| self.received.checked_add(1 + bit).is_some_and(|seq| self.entries.contains_key(&seq)));
        Ack {
            received: self.received,
            received_mask: mask.fold(0, |mask, bit| mask | 1 << bit),
            consumed: self.consumed,
            durable: self.durable,
            admitted: self.admitted,
            lost: self.lost(),
            refused: self.refused,
            ..ack
        }
    }

    fn advance(&mut self) {
        loop {
            if self.entries.contains_key(&self.received) {
                self.received += 1;
            } else if self.received < self.floor {
                let next = self.entries.range(self.received..).next().map_or(self.floor, |(&seq, _)| seq);
                self.received = next.min(self.floor);
            } else {
                break;
            }
        }
        loop {
            match self.entries.first_key_value() {
                Some((&seq, &entry)) if seq == self.consumed => {
                    if entry.pending {
                        break;
                    }
                    self.entries.pop_first();
                    self.settle(entry);
                    self.consumed += 1;
                }
                first => {
                    let next = first.map_or(self.received, |(&seq, _)| seq.min(self.received));
                    if next <= self.consumed {
                        break;
                    }
                    self.skipped += next - self.consumed;
                    self.consumed = next;
                    self.uncounted = false;
                }
            }
        }
    }

    /// Moves the position past a batch; what lies between was recorded and will never come, unless the batch before
    /// could not be counted.
    fn settle(&mut self, Entry { first_step, steps, malformed, .. }: Entry) {
        let skipped = std::mem::take(&mut self.skipped);
        let position = self.position.unwrap_or(0);
        // A malformed batch may skip no more transitions than fit in the batches between.
        let first_step = first_step
            .filter(|&first| !malformed || first.saturating_sub(position) <= skipped.saturating_mul(MOST_STEPS));
        if let (Some(position), Some(first_step)) = (self.position, first_step)
            && position < first_step
        {
            let gap = first_step - position;
            if self.uncounted {
                self.refused.malformed += gap;
            } else {
                self.lost += gap;
                self.gaps.push((position, first_step));
            }
        }
        self.uncounted = malformed && steps == 0;
        let start = first_step.max(self.position);
        self.position = start.map(|start| start.saturating_add(steps));
    }
}

/// A map with numbers for keys as a list of pairs: JSON has no such map.
mod pairs {
    use super::Entry;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<u64, Entry>, serializer: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u64, Entry>, D::Error> {
        Ok(Vec::<(u64, Entry)>::deserialize(deserializer)?.into_iter().collect())
    }
}
