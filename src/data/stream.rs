//! The rollout's side of a stream: numbers batches, holds them, sends and resends them until they are safe.

use super::audit::{Note, Trail, spans};
use super::pieces::{MAX_BATCH_BYTES, pieces};
use super::{Ack, Batch, EpisodeStats, Fragment, StreamId};
use crate::contract::Hash;
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// What is not acknowledged is sent again after this [s] ...
const RESEND_SECS: f64 = 1.0;
/// ... and after twice as long each time, up to this [s]. A batch that a later one overtook was lost alone: sent again at
/// once, it says nothing of the network, and the wait stays as it is.
const RESEND_MAX_SECS: f64 = 4.0;

/// When a batch may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// When an update or replay has it: simulation.
    Consumed,
    /// When a checkpoint has it: hardware. At most `capacity` batches are held; what does not fit is dropped.
    Durable {
        /// Batches.
        capacity: usize,
    },
}

/// Whose weights decided the steps of a batch, and for which phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The run.
    pub run: Uuid,
    /// Its learner's life.
    pub life: u32,
    /// Phase of the synchronous mode; 0 in the asynchronous one.
    pub phase: u64,
    /// Of the contract.
    pub contract_hash: Hash,
}

/// What became of a stream. `recorded = freed + voided + overflowed +` [`Outbox::held_steps`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounters {
    /// Transitions pushed.
    pub recorded: u64,
    /// Batches sent for the first time.
    pub sent: u64,
    /// Batches sent again.
    pub resent: u64,
    /// Transitions that were freed because the learner has them (or refused them).
    pub freed: u64,
    /// Transitions that became void when another run was adopted.
    pub voided: u64,
    /// Transitions dropped because the memory for held batches was full.
    pub overflowed: u64,
}

struct Held {
    batch: Batch,
    /// Sends in this life.
    sends: u32,
    /// Sent in an earlier life, too.
    sent_before: bool,
    /// Sends in this life that silence called for.
    silences: u32,
    /// Number of its first and of its last send, over all batches of this life.
    first_order: u64,
    last_order: u64,
    resend_at: Duration,
    received: bool,
    consumed: bool,
}

/// The rollout's side of a stream. Only the batches of one run are in it at a time.
pub struct Outbox {
    stream: StreamId,
    window: usize,
    hold: Hold,
    learner: Option<(Uuid, u32)>,
    next_seq: u64,
    held: VecDeque<Held>,
    order: u64,
    counters: OutboxCounters,
    trail: Trail,
}

impl Outbox {
    /// An empty stream. `window` is clamped to 1..=8 batches in flight.
    pub fn new(stream: StreamId, window: usize, hold: Hold) -> Self {
        Self {
            stream,
            window: window.clamp(1, 8),
            hold,
            learner: None,
            next_seq: 0,
            held: VecDeque::new(),
            order: 0,
            counters: OutboxCounters::default(),
            trail: Trail::default(),
        }
    }

    /// From now on what becomes of batches is noted, see [`Self::notes`].
    pub fn audit(&mut self) {
        self.trail.start();
    }

    /// What was noted since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        self.trail.take()
    }

    /// Follows a learner. A greater life of the same run: all that is held is sent again. Another run: all that is held
    /// is void. An older life changes nothing.
    pub fn adopt(&mut self, run: Uuid, life: u32) {
        match self.learner {
            Some((ours, known)) if ours == run && life <= known => return,
            Some((ours, _)) if ours != run => {
                self.counters.voided += self.held_steps();
                for Held { batch, .. } in self.held.drain(..) {
                    self.trail.note(|| void(&batch));
                }
            }
            _ => {}
        }
        self.learner = Some((run, life));
        for held in &mut self.held {
            held.sent_before |= 0 < held.sends;
            held.sends = 0;
            held.silences = 0;
            held.received = false;
            held.consumed = false;
        }
    }

    /// Numbers what was recorded since the last call and holds it for [`Self::due`], in as many batches as the wire
    /// needs. Steps of another run than the adopted one are void at once.
    pub fn push(&mut self, fragments: Vec<Fragment>, episodes: Vec<EpisodeStats>, origin: Origin) {
        for (fragments, episodes) in pieces(fragments, episodes, MAX_BATCH_BYTES) {
            let batch = Batch {
                run: origin.run,
                life: origin.life,
                stream: self.stream.clone(),
                seq: self.next_seq,
                base: self.base(),
                first_step: self.counters.recorded,
                phase: origin.phase,
                contract_hash: origin.contract_hash,
                fragments,
                episodes,
            };
            let steps = batch.steps();
            self.counters.recorded += steps;
            if self.learner.is_none_or(|(run, _)| run != origin.run) {
                self.counters.voided += steps;
                self.trail.note(|| void(&batch));
            } else if matches!(self.hold, Hold::Durable { capacity } if capacity <= self.held.len()) {
                self.counters.overflowed += steps;
                self.trail.note(|| void(&batch));
            } else {
                self.next_seq += 1;
                self.trail.note(|| Note::Numbered {
                    stream: batch.stream.clone(),
                    seq: batch.seq,
                    first_step: batch.first_step,
                    rows: spans(&batch.fragments),
                });
                self.held.push_back(Held {
                    batch,
                    sends: 0,
                    sent_before: false,
                    silences: 0,
                    first_order: 0,
                    last_order: 0,
                    resend_at: Duration::ZERO,
                    received: false,
                    consumed: false,
                });
            }
        }
    }

    /// What must go out now, oldest first: new batches inside the window; at once, a batch that a later one overtook;
    /// otherwise what has waited for 1 s, 2 s, 4 s.
    pub fn due(&mut self, now: Duration) -> Vec<Batch> {
        let (base, mut in_flight) = (self.base(), self.in_flight());
        let newest_received = self.held.iter().filter(|held| held.received).map(|held| held.first_order).max();
        let mut due = Vec::new();
        for held in self.held.iter_mut().filter(|held| !held.received) {
            let again = 0 < held.sends;
            if again {
                let overtaken = newest_received.is_some_and(|order| held.last_order < order);
                let silent = held.resend_at <= now;
                if !overtaken && !silent {
                    continue;
                }
                held.silences += u32::from(silent);
            } else {
                if self.window <= in_flight {
                    break;
                }
                in_flight += 1;
            }
            self.order += 1;
            held.last_order = self.order;
            if !again {
                held.first_order = self.order;
            }
            if again || held.sent_before {
                self.counters.resent += 1;
            } else {
                self.counters.sent += 1;
            }
            let wait_secs = (RESEND_SECS * f64::from(1 << held.silences.min(8))).min(RESEND_MAX_SECS);
            held.resend_at = now + Duration::from_secs_f64(wait_secs);
            held.sends += 1;
            due.push(Batch { base, ..held.batch.clone() });
        }
        due
    }

    /// Takes the learner's word. An ack of another run, life or stream changes nothing.
    pub fn acknowledge(&mut self, ack: &Ack) {
        if self.learner != Some((ack.run, ack.life)) || ack.stream != self.stream {
            return;
        }
        for held in &mut self.held {
            let seq = held.batch.seq;
            let bit = seq.checked_sub(ack.received.saturating_add(1));
            held.received |=
                seq < ack.received || bit.is_some_and(|bit| bit < 64 && ack.received_mask & (1 << bit) != 0);
            held.consumed |= seq < ack.consumed;
        }
        let safe = match self.hold {
            Hold::Consumed => ack.consumed,
            Hold::Durable { .. } => ack.durable,
        };
        let base = self.base();
        while self.held.front().is_some_and(|held| held.batch.seq < safe) {
            self.counters.freed += self.held.pop_front().map_or(0, |held| held.batch.steps());
        }
        if base < self.base() {
            let (stream, below) = (&self.stream, self.base());
            self.trail.note(|| Note::Freed { stream: stream.clone(), below });
        }
    }

    /// Lowest number held; the next number if nothing is.
    pub fn base(&self) -> u64 {
        self.held.front().map_or(self.next_seq, |held| held.batch.seq)
    }

    /// Batches sent and not consumed: never more than the window.
    pub fn in_flight(&self) -> usize {
        self.held.iter().filter(|held| 0 < held.sends && !held.consumed).count()
    }

    /// Batches made and not yet sent.
    pub fn queued(&self) -> usize {
        self.held.iter().filter(|held| held.sends == 0 && !held.received).count()
    }

    /// Whether the window is used up: simulation waits, hardware goes on.
    pub fn full(&self) -> bool {
        self.window <= self.held.iter().filter(|held| !held.consumed).count()
    }

    /// Batches held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Transitions held.
    pub fn held_steps(&self) -> u64 {
        self.held.iter().map(|held| held.batch.steps()).sum()
    }

    /// What became of the stream so far.
    pub fn counters(&self) -> OutboxCounters {
        self.counters
    }

    /// Who records.
    pub fn stream(&self) -> &StreamId {
        &self.stream
    }
}

fn void(batch: &Batch) -> Note {
    Note::Voided { stream: batch.stream.clone(), first_step: batch.first_step, rows: spans(&batch.fragments) }
}
