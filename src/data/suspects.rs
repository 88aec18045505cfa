//! Batches that failed their check. Anybody can send a batch in a stream's name; only the stream's rollout
//! resends one until it is acknowledged.

use super::{Batch, StreamId};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

/// What comes again sooner is no resend: see [`super::Outbox::due`].
const RESENT: Duration = Duration::from_millis(500);

/// Streams that are remembered; names are free, so there may be any number.
const MOST: usize = 1024;

/// Those of all streams.
#[derive(Debug, Default)]
pub(super) struct AllSuspects(BTreeMap<StreamId, Suspects>);

impl AllSuspects {
    /// Those of one stream.
    pub(super) fn of(&mut self, stream: &StreamId) -> &mut Suspects {
        self.0.retain(|known, suspects| known == stream || !suspects.0.is_empty());
        if MOST <= self.0.len() {
            self.0.clear();
        }
        self.0.entry(stream.clone()).or_default()
    }
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    content: u64,
    since: Duration,
    base: u64,
}

/// What failed its check, by number; at most one content each, the newest.
#[derive(Debug, Default)]
pub(super) struct Suspects(BTreeMap<u64, Suspect>);

impl Suspects {
    /// Whether this content came before, long enough ago; otherwise it is remembered.
    pub(super) fn again(&mut self, batch: &Batch, now: Duration) -> bool {
        let content = content(batch);
        match self.0.get(&batch.seq) {
            Some(known) if known.content == content => RESENT <= now.saturating_sub(known.since),
            _ => {
                self.0.insert(
                    batch.seq,
                    Suspect { content, since: now, base: if batch.base <= batch.seq { batch.base } else { 0 } },
                );
                false
            }
        }
    }

    /// The number has its verdict.
    pub(super) fn settled(&mut self, seq: u64) {
        self.0.remove(&seq);
    }

    /// The rollout says that it has so many batches in flight, of which the learner has all below `consumed`: what is
    /// numbered beyond them it has not sent.
    pub(super) fn in_flight(&mut self, count: u32, consumed: u64) {
        self.0.retain(|&seq, suspect| seq < suspect.base.max(consumed).saturating_add(u64::from(count)));
    }
}

/// All but `base`, which differs between a batch and its resend. Debug output holds every float, NaN included.
fn content(batch: &Batch) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", Batch { base: 0, ..batch.clone() }).hash(&mut hasher);
    hasher.finish()
}
