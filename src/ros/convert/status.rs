//! What learner and rollouts tell one another. What is sent is stamped with the wall time of now.

use super::{hash, length, run, stream, unknown};
use crate::config::UpdateMode;
use crate::data::{Ack, LearnerStatus, Refused, RolloutStatus, StreamId};
use crate::error::{Error, Result};
use crate::ros::time;
use r2r::handoff::msg;

impl From<&Ack> for msg::TransitionAck {
    fn from(ack: &Ack) -> Self {
        Self {
            run: ack.run.to_string(),
            life: ack.life,
            rollout: ack.stream.rollout.clone(),
            incarnation: ack.stream.incarnation,
            received: ack.received,
            received_mask: ack.received_mask,
            consumed: ack.consumed,
            durable: ack.durable,
            admitted: ack.admitted,
            lost: ack.lost,
            refused_malformed: ack.refused.malformed,
            refused_nonfinite: ack.refused.nonfinite,
            refused_stale: ack.refused.stale,
            refused_contract: ack.refused.contract,
        }
    }
}

impl TryFrom<msg::TransitionAck> for Ack {
    type Error = Error;

    fn try_from(message: msg::TransitionAck) -> Result<Self> {
        Ok(Self {
            run: run(&message.run)?,
            life: message.life,
            stream: stream(message.rollout, message.incarnation)?,
            received: message.received,
            received_mask: message.received_mask,
            consumed: message.consumed,
            durable: message.durable,
            admitted: message.admitted,
            lost: message.lost,
            refused: Refused {
                malformed: message.refused_malformed,
                nonfinite: message.refused_nonfinite,
                stale: message.refused_stale,
                contract: message.refused_contract,
            },
        })
    }
}

impl From<&LearnerStatus> for msg::LearnerStatus {
    fn from(status: &LearnerStatus) -> Self {
        Self {
            stamp: time::stamp(time::wall_now()),
            run: status.run.to_string(),
            life: status.life,
            version: status.version,
            hash: status.hash.to_vec(),
            update_mode: match status.update_mode {
                UpdateMode::Sync => 0,
                UpdateMode::Async => 1,
            },
            phase: status.phase,
            quota: status.quota,
            member_rollouts: status.members.iter().map(|member| member.rollout.clone()).collect(),
            member_incarnations: status.members.iter().map(|member| member.incarnation).collect(),
            paused: status.paused,
            activity: status.activity.clone(),
            updates: status.updates,
            env_steps: status.env_steps,
            admitted: status.admitted,
            lost: status.lost,
            refused: status.refused,
            dropped: status.dropped,
            queue_batches: status.queue_batches,
            gathered_steps: status.gathered_steps,
        }
    }
}

impl TryFrom<msg::LearnerStatus> for LearnerStatus {
    type Error = Error;

    fn try_from(message: msg::LearnerStatus) -> Result<Self> {
        length("member_incarnations", message.member_incarnations.len(), message.member_rollouts.len())?;
        Ok(Self {
            run: run(&message.run)?,
            life: message.life,
            version: message.version,
            hash: hash("hash", &message.hash)?,
            update_mode: match message.update_mode {
                0 => UpdateMode::Sync,
                1 => UpdateMode::Async,
                code => return Err(unknown("update_mode", code)),
            },
            phase: message.phase,
            quota: message.quota,
            members: message
                .member_rollouts
                .into_iter()
                .zip(message.member_incarnations)
                .map(|(rollout, incarnation)| stream(rollout, incarnation))
                .collect::<Result<Vec<StreamId>>>()?,
            paused: message.paused,
            activity: message.activity,
            updates: message.updates,
            env_steps: message.env_steps,
            admitted: message.admitted,
            lost: message.lost,
            refused: message.refused,
            dropped: message.dropped,
            queue_batches: message.queue_batches,
            gathered_steps: message.gathered_steps,
        })
    }
}

impl From<&RolloutStatus> for msg::RolloutStatus {
    fn from(status: &RolloutStatus) -> Self {
        Self {
            stamp: time::stamp(time::wall_now()),
            run: status.run.map_or_else(String::new, |run| run.to_string()),
            life: status.life,
            rollout: status.stream.rollout.clone(),
            incarnation: status.stream.incarnation,
            version: status.version,
            hash: status.hash.to_vec(),
            phase: status.phase,
            steps: status.steps,
            phase_steps: status.phase_steps,
            num_envs: status.num_envs,
            leaving: status.leaving,
            state: status.state.clone(),
            in_flight: status.in_flight,
            queue_batches: status.queue_batches,
            aborted_episodes: status.aborted_episodes,
            refused_weights: status.refused_weights,
            held_ticks: status.held_ticks,
        }
    }
}

impl TryFrom<msg::RolloutStatus> for RolloutStatus {
    type Error = Error;

    fn try_from(message: msg::RolloutStatus) -> Result<Self> {
        Ok(Self {
            run: if message.run.is_empty() { None } else { Some(run(&message.run)?) },
            life: message.life,
            stream: stream(message.rollout, message.incarnation)?,
            version: message.version,
            hash: hash("hash", &message.hash)?,
            phase: message.phase,
            steps: message.steps,
            phase_steps: message.phase_steps,
            num_envs: message.num_envs,
            leaving: message.leaving,
            state: message.state,
            in_flight: message.in_flight,
            queue_batches: message.queue_batches,
            aborted_episodes: message.aborted_episodes,
            refused_weights: message.refused_weights,
            held_ticks: message.held_ticks,
        })
    }
}
