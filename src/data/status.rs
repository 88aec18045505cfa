//! What learner and rollouts tell one another beside data and weights. The shell that sends them adds the wall time.

use super::StreamId;
use crate::config::UpdateMode;
use crate::contract::Hash;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Transitions refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Shapes or codes that do not fit.
    pub malformed: u64,
    /// NaN or infinity.
    pub nonfinite: u64,
    /// Older life or closed phase.
    pub stale: u64,
    /// Another contract.
    pub contract: u64,
}

impl Refused {
    /// All reasons.
    pub fn total(&self) -> u64 {
        self.malformed + self.nonfinite + self.stale + self.contract
    }
}

/// What the learner has of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The learner's run.
    pub run: Uuid,
    /// The learner's life.
    pub life: u32,
    /// Whose batches.
    pub stream: StreamId,
    /// Every batch below this number has a verdict.
    pub received: u64,
    /// Bit i: batch `received + 1 + i` has a verdict.
    pub received_mask: u64,
    /// Batches below this number were moved into an update or replay, or refused.
    pub consumed: u64,
    /// Batches below this number are in a checkpoint.
    pub durable: u64,
    /// Transitions admitted.
    pub admitted: u64,
    /// Transitions that no life of the learner can get any more.
    pub lost: u64,
    /// Transitions refused.
    pub refused: Refused,
}

/// State of the learner, at 5 Hz and at each change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnerStatus {
    /// Its run.
    pub run: Uuid,
    /// Its life.
    pub life: u32,
    /// Newest weights; 0: none yet.
    pub version: u64,
    /// Hash of the newest weights.
    pub hash: Hash,
    /// How it gathers.
    pub update_mode: UpdateMode,
    /// Open phase of the synchronous mode; 0: none is open.
    pub phase: u64,
    /// Valid steps of each environment that the phase asks for.
    pub quota: u64,
    /// Members of the open phase.
    pub members: Vec<StreamId>,
    /// Rollouts hold.
    pub paused: bool,
    /// What it does now, in a word: waiting, gathering, learning, saving.
    pub activity: String,
    /// Updates made.
    pub updates: u64,
    /// Transitions learned from.
    pub env_steps: u64,
    /// Transitions admitted, all streams.
    pub admitted: u64,
    /// Transitions counted as lost.
    pub lost: u64,
    /// Transitions refused, all reasons.
    pub refused: u64,
    /// Admitted transitions dropped unlearned: over the lag, or out of a phase.
    pub dropped: u64,
    /// Batches that wait for admission.
    pub queue_batches: u32,
    /// Transitions gathered for the next update.
    pub gathered_steps: u32,
}

/// State of one rollout, at 5 Hz and at each change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutStatus {
    /// The run that it follows; `None`: none yet.
    pub run: Option<Uuid>,
    /// Life of the learner that it follows.
    pub life: u32,
    /// Who it is.
    pub stream: StreamId,
    /// Weights that it acts with; 0: none yet.
    pub version: u64,
    /// Hash of these weights.
    pub hash: Hash,
    /// Phase that it acts in; 0: none.
    pub phase: u64,
    /// Valid steps recorded in this stream.
    pub steps: u64,
    /// Valid steps of its slowest environment in this phase.
    pub phase_steps: u64,
    /// Environments.
    pub num_envs: u32,
    /// It says goodbye: its data of the phase is dropped.
    pub leaving: bool,
    /// What it does now: acting, or what it waits for ([`super::Wait`]).
    pub state: String,
    /// Batches sent and not consumed.
    pub in_flight: u32,
    /// Batches made and not yet sent.
    pub queue_batches: u32,
    /// Episodes that a fault ended.
    pub aborted_episodes: u64,
    /// Snapshots refused.
    pub refused_weights: u64,
    /// Ticks answered with HOLD.
    pub held_ticks: u64,
}
