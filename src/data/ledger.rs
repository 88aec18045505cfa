//! What the learner knows of one stream: which numbers have a verdict, and where every transition went.

use super::{Ack, Refused};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Batches past the first missing one that an ack can name.
pub(super) const AHEAD: u64 = 64;

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
    /// Verdicts at `consumed` and above.
    #[serde(with = "pairs")]
    entries: BTreeMap<u64, Entry>,
    /// Transitions.
    pub(super) admitted: u64,
    /// Transitions.
    pub(super) lost: u64,
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
            lost: self.lost,
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
                    self.consumed = next;
                }
            }
        }
    }

    /// Moves the position past a batch; what lies between was recorded and will never come.
    fn settle(&mut self, Entry { first_step, steps, .. }: Entry) {
        if let (Some(position), Some(first_step)) = (self.position, first_step) {
            self.lost += first_step.saturating_sub(position);
        }
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
