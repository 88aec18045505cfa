//! Batches of transitions, and the outcomes of episodes.

use crate::data::wire::{BatchMessage, EpisodeMessage, Stamp};
use crate::data::{Batch, EpisodeStats};
use crate::error::{Error, Result};
use crate::ros::time;
use r2r::handoff::msg;

impl From<&EpisodeStats> for msg::EpisodeStats {
    fn from(stats: &EpisodeStats) -> Self {
        Self {
            stamp: time::stamp(stats.stamp_secs),
            rollout: stats.rollout.clone(),
            env: stats.env,
            episode: stats.episode,
            version: stats.version,
            episode_return: stats.episode_return,
            episode_length: stats.length,
            end: stats.end as u8,
            final_error: stats.final_error,
            success: stats.success,
            success_strict: stats.success_strict,
            first_success_step: stats.first_success_step,
            option_steps: stats.option_steps.clone(),
            option_runs: stats.option_runs.clone(),
            forced_ends: stats.forced_ends,
        }
    }
}

impl From<msg::EpisodeStats> for EpisodeMessage {
    fn from(message: msg::EpisodeStats) -> Self {
        Self {
            stamp: Stamp { sec: message.stamp.sec, nanosec: message.stamp.nanosec },
            rollout: message.rollout,
            env: message.env,
            episode: message.episode,
            version: message.version,
            episode_return: message.episode_return,
            episode_length: message.episode_length,
            end: message.end,
            final_error: message.final_error,
            success: message.success,
            success_strict: message.success_strict,
            first_success_step: message.first_success_step,
            option_steps: message.option_steps,
            option_runs: message.option_runs,
            forced_ends: message.forced_ends,
        }
    }
}

impl TryFrom<msg::EpisodeStats> for EpisodeStats {
    type Error = Error;

    fn try_from(message: msg::EpisodeStats) -> Result<Self> {
        EpisodeMessage::from(message).try_into()
    }
}

impl From<&Batch> for msg::TransitionBatch {
    fn from(batch: &Batch) -> Self {
        Self {
            run: batch.run.to_string(),
            life: batch.life,
            rollout: batch.stream.rollout.clone(),
            incarnation: batch.stream.incarnation,
            seq: batch.seq,
            base: batch.base,
            first_step: batch.first_step,
            phase: batch.phase,
            contract_hash: batch.contract_hash.to_vec(),
            fragments: batch.fragments.iter().map(Into::into).collect(),
            episodes: batch.episodes.iter().map(Into::into).collect(),
        }
    }
}

/// All but rows and episodes.
fn head(message: &msg::TransitionBatch) -> BatchMessage {
    BatchMessage {
        run: message.run.clone(),
        life: message.life,
        rollout: message.rollout.clone(),
        incarnation: message.incarnation,
        seq: message.seq,
        base: message.base,
        first_step: message.first_step,
        phase: message.phase,
        contract_hash: message.contract_hash.clone(),
        fragments: Vec::new(),
        episodes: Vec::new(),
    }
}

impl TryFrom<msg::TransitionBatch> for Batch {
    type Error = Error;

    fn try_from(message: msg::TransitionBatch) -> Result<Self> {
        let head = head(&message);
        let fragments = message.fragments.into_iter().map(Into::into).collect();
        let episodes = message.episodes.into_iter().map(Into::into).collect();
        BatchMessage { fragments, episodes, ..head }.try_into()
    }
}

/// A batch without its rows: whose it is and its number, which a malformed batch still has, so that it gets its verdict.
pub fn heading(message: &msg::TransitionBatch) -> Result<Batch> {
    head(message).heading()
}
