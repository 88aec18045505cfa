//! Accounting by ids: what each process notes of every transition, and the check that the notes of all agree.
//! A transition is known by its stream, its environment and its number there; a batch gives it a place in the stream.

mod books;
#[cfg(test)]
mod tests;

pub use books::{Account, account};

use super::{Fragment, StreamId};
use serde::{Deserialize, Serialize};

/// Successive transitions of one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Environment within the rollout.
    pub env: u32,
    /// Transitions recorded in this environment of this stream before the first one here.
    pub first: u64,
    /// How many.
    pub steps: u64,
    /// Episode of the first one.
    pub episode: u64,
    /// Control tick within the episode of the first one.
    pub t: u32,
}

/// One transition at the moment that it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Environment within the rollout.
    pub env: u32,
    /// Transitions recorded in this environment of this stream before.
    pub index: u64,
    /// Episode within the environment.
    pub episode: u64,
    /// Control tick within the episode.
    pub t: u32,
}

/// What a learner takes up of a stream at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The stream.
    pub stream: StreamId,
    /// Every batch below this number keeps its verdict ...
    pub below: u64,
    /// ... and so do these.
    pub others: Vec<u64>,
    /// Transitions recorded in the stream before batch `below`, as far as known.
    pub position: u64,
    /// Transitions before this one that never come again are lost: a former life had them, and no checkpoint has.
    pub presumed: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case", deny_unknown_fields)]
pub enum Note {
    /// Rollout: transitions came into being.
    Recorded {
        /// Whose.
        stream: StreamId,
        /// Which.
        steps: Vec<Step>,
    },
    /// Rollout: transitions became a batch.
    Numbered {
        /// Whose.
        stream: StreamId,
        /// Number of the batch.
        seq: u64,
        /// Transitions in the stream before it.
        first_step: u64,
        /// Which, in their order in the stream.
        rows: Vec<Span>,
    },
    /// Rollout: transitions will never be sent: another run was adopted, or the memory was full.
    Voided {
        /// Whose.
        stream: StreamId,
        /// Transitions in the stream before them.
        first_step: u64,
        /// Which.
        rows: Vec<Span>,
    },
    /// Rollout: the learner has every batch below this number, and the rollout has forgotten them.
    Freed {
        /// Whose.
        stream: StreamId,
        /// The number.
        below: u64,
    },
    /// Learner: it starts. Verdicts of earlier lives that are not named here are undone.
    Begun {
        /// Its life.
        life: u32,
        /// What it takes up.
        streams: Vec<Taken>,
    },
    /// Learner: a batch was admitted.
    Stored {
        /// Whose.
        stream: StreamId,
        /// Number of the batch.
        seq: u64,
        /// Transitions in the stream before it.
        first_step: u64,
        /// Which.
        rows: Vec<Span>,
    },
    /// Learner: a batch was refused, and its number is used up.
    Refused {
        /// Whose.
        stream: StreamId,
        /// Number of the batch.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// Learner: transitions of the stream are counted as lost.
    Lost {
        /// Whose.
        stream: StreamId,
        /// From this one ...
        from: u64,
        /// ... to before this one.
        to: u64,
    },
    /// Learner: an update was made of these.
    Learned {
        /// Whose.
        stream: StreamId,
        /// Which.
        rows: Vec<Span>,
    },
    /// Learner: what its own counters say at its end.
    Totals {
        /// Transitions admitted.
        admitted: u64,
        /// Transitions refused.
        refused: u64,
        /// Transitions lost.
        lost: u64,
    },
}

/// Notes of one state machine, if anybody wants them.
#[derive(Clone, Debug, Default)]
pub struct Trail(Option<Vec<Note>>);

impl Trail {
    /// From now on what happens is noted.
    pub fn start(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Whether anybody wants notes.
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Notes something; costs nothing where nobody wants it.
    pub fn note(&mut self, note: impl FnOnce() -> Note) {
        if let Some(notes) = &mut self.0 {
            notes.push(note());
        }
    }

    /// What was noted since the last call.
    pub fn take(&mut self) -> Vec<Note> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// What fragments hold.
pub fn spans<'a>(fragments: impl IntoIterator<Item = &'a Fragment>) -> Vec<Span> {
    let span = |fragment: &Fragment| Span {
        env: fragment.env,
        first: fragment.first,
        steps: fragment.steps.len() as u64,
        episode: fragment.steps.first().map_or(0, |step| step.episode),
        t: fragment.steps.first().map_or(0, |step| step.t),
    };
    fragments.into_iter().map(span).collect()
}
