//! Transitions as they travel and are recorded: the fields of the messages of the same names, an array a column. From the wire nothing is
//! believed: each length and code is checked against the sizes that the message states. Whether floats are finite is for
//! [`super::check`] to judge: that is another verdict.

use super::{Batch, Choice, End, EpisodeStats, Final, Forced, Fragment, StreamId, Transition};
use crate::contract::Hash;
use crate::error::{Error, Result};
use serde::Deserialize;
use uuid::Uuid;

/// builtin_interfaces/Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stamp {
    /// Seconds.
    pub sec: i32,
    /// Nanoseconds on top.
    pub nanosec: u32,
}

impl Stamp {
    /// In nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        i64::from(self.sec) * 1_000_000_000 + i64::from(self.nanosec)
    }

    /// In seconds; refused where the nanoseconds are a second or more.
    pub fn secs(self) -> Result<f64> {
        if self.nanosec < 1_000_000_000 {
            return Ok(f64::from(self.sec) + f64::from(self.nanosec) / 1e9);
        }
        let nanosec = self.nanosec;
        Err(Error::invalid(format!("a stamp has {nanosec} nanoseconds; fewer than 1000000000 are right")))
    }
}

/// handoff/TransitionBatch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/TransitionBatch.msg")]
pub struct BatchMessage {
    pub run: String,
    pub life: u32,
    pub rollout: String,
    pub incarnation: u64,
    pub seq: u64,
    pub base: u64,
    pub first_step: u64,
    pub phase: u64,
    pub contract_hash: Vec<u8>,
    pub fragments: Vec<FragmentMessage>,
    pub episodes: Vec<EpisodeMessage>,
}

/// handoff/Fragment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/Fragment.msg")]
pub struct FragmentMessage {
    pub env: u32,
    pub first: u64,
    pub num_steps: u32,
    pub obs_size: u32,
    pub action_size: u32,
    pub version: Vec<u64>,
    pub episode: Vec<u64>,
    pub t: Vec<u32>,
    pub stamp: Vec<f64>,
    pub option_prev: Vec<u8>,
    pub option: Vec<u8>,
    pub option_terminated: Vec<bool>,
    pub forced: Vec<u8>,
    pub option_age: Vec<u32>,
    pub proposal: Vec<f32>,
    pub action: Vec<f32>,
    pub filtered: Vec<bool>,
    pub intervened: Vec<bool>,
    pub reward: Vec<f32>,
    pub end: Vec<u8>,
    pub log_prob_action: Vec<f32>,
    pub log_prob_option: Vec<f32>,
    pub log_prob_termination: Vec<f32>,
    pub log_prob_mixture: Vec<f32>,
    pub termination_prob: Vec<f32>,
    pub observations: Vec<f32>,
    pub final_steps: Vec<u32>,
    pub final_observations: Vec<f32>,
}

/// handoff/EpisodeStats.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/EpisodeStats.msg")]
pub struct EpisodeMessage {
    pub stamp: Stamp,
    pub rollout: String,
    pub env: u32,
    pub episode: u64,
    pub version: u64,
    pub episode_return: f32,
    pub episode_length: u32,
    pub end: u8,
    pub final_error: f32,
    pub success: bool,
    pub success_strict: bool,
    pub first_success_step: u32,
    pub option_steps: Vec<u32>,
    pub option_runs: Vec<u32>,
    pub forced_ends: u32,
}

impl BatchMessage {
    /// A batch without its rows: whose it is and its number, which a malformed batch still has, so that it gets its verdict.
    pub fn heading(&self) -> Result<Batch> {
        Ok(Batch {
            run: run(&self.run)?,
            life: self.life,
            stream: stream(self.rollout.clone(), self.incarnation)?,
            seq: self.seq,
            base: self.base,
            first_step: self.first_step,
            phase: self.phase,
            contract_hash: hash("contract_hash", &self.contract_hash)?,
            fragments: Vec::new(),
            episodes: Vec::new(),
        })
    }
}

impl TryFrom<BatchMessage> for Batch {
    type Error = Error;

    fn try_from(mut message: BatchMessage) -> Result<Self> {
        let fragments = std::mem::take(&mut message.fragments);
        let episodes = std::mem::take(&mut message.episodes);
        Ok(Self {
            fragments: fragments.into_iter().map(TryInto::try_into).collect::<Result<_>>()?,
            episodes: episodes.into_iter().map(TryInto::try_into).collect::<Result<_>>()?,
            ..message.heading()?
        })
    }
}

impl TryFrom<EpisodeMessage> for EpisodeStats {
    type Error = Error;

    fn try_from(message: EpisodeMessage) -> Result<Self> {
        Ok(Self {
            stamp_secs: message.stamp.secs()?,
            rollout: message.rollout,
            env: message.env,
            episode: message.episode,
            version: message.version,
            episode_return: message.episode_return,
            length: message.episode_length,
            end: end(message.end)?,
            final_error: message.final_error,
            success: message.success,
            success_strict: message.success_strict,
            first_success_step: message.first_success_step,
            option_steps: message.option_steps,
            option_runs: message.option_runs,
            forced_ends: message.forced_ends,
        })
    }
}

impl TryFrom<FragmentMessage> for Fragment {
    type Error = Error;

    fn try_from(message: FragmentMessage) -> Result<Self> {
        let env = message.env;
        fragment(message).map_err(|error| Error::invalid(format!("fragment of environment {env}: {error}")))
    }
}

fn fragment(message: FragmentMessage) -> Result<Fragment> {
    let (count, width) = (message.num_steps as usize, message.action_size as usize);
    check_lengths(&message, count, width)?;
    let mut steps = Vec::with_capacity(count);
    for t in 0..count {
        let actions = t * width..(t + 1) * width;
        steps.push(Transition {
            version: message.version[t],
            episode: message.episode[t],
            t: message.t[t],
            stamp_secs: message.stamp[t],
            choice: Choice {
                option_prev: message.option_prev[t],
                option: message.option[t],
                option_terminated: message.option_terminated[t],
                forced: forced(message.forced[t])?,
                option_age: message.option_age[t],
                proposal: message.proposal[actions.clone()].to_vec(),
                action: message.action[actions].to_vec(),
                log_prob_action: message.log_prob_action[t],
                log_prob_option: message.log_prob_option[t],
                log_prob_termination: message.log_prob_termination[t],
                log_prob_mixture: message.log_prob_mixture[t],
                termination_prob: message.termination_prob[t],
            },
            filtered: message.filtered[t],
            intervened: message.intervened[t],
            reward: message.reward[t],
            end: end(message.end[t])?,
        });
    }
    let obs_size = message.obs_size as usize;
    let ends = steps.iter().enumerate().filter(|(_, step)| step.end != End::None).map(|(t, _)| t as u32);
    if !ends.eq(message.final_steps.iter().copied()) {
        return Err(Error::invalid("final_steps are not the steps whose end is not NONE"));
    }
    let finals = message
        .final_steps
        .iter()
        .enumerate()
        .map(|(row, &step)| Final {
            step: step as usize,
            observation: message.final_observations[row * obs_size..(row + 1) * obs_size].to_vec(),
        })
        .collect();
    Ok(Fragment { env: message.env, first: message.first, obs_size, steps, observations: message.observations, finals })
}

/// Every array against T, A and D.
fn check_lengths(message: &FragmentMessage, count: usize, width: usize) -> Result<()> {
    let obs_size = message.obs_size as usize;
    if obs_size == 0 {
        return Err(Error::invalid("obs_size is 0; the number of floats that a step observes is right"));
    }
    for (what, found) in [
        ("version", message.version.len()),
        ("episode", message.episode.len()),
        ("t", message.t.len()),
        ("stamp", message.stamp.len()),
        ("option_prev", message.option_prev.len()),
        ("option", message.option.len()),
        ("option_terminated", message.option_terminated.len()),
        ("forced", message.forced.len()),
        ("option_age", message.option_age.len()),
        ("filtered", message.filtered.len()),
        ("intervened", message.intervened.len()),
        ("reward", message.reward.len()),
        ("end", message.end.len()),
        ("log_prob_action", message.log_prob_action.len()),
        ("log_prob_option", message.log_prob_option.len()),
        ("log_prob_termination", message.log_prob_termination.len()),
        ("log_prob_mixture", message.log_prob_mixture.len()),
        ("termination_prob", message.termination_prob.len()),
    ] {
        length(what, found, count)?;
    }
    let actions = size("action", count, width)?;
    length("proposal", message.proposal.len(), actions)?;
    length("action", message.action.len(), actions)?;
    length("observations", message.observations.len(), size("observations", count.saturating_add(1), obs_size)?)?;
    let finals = size("final_observations", message.final_steps.len(), obs_size)?;
    length("final_observations", message.final_observations.len(), finals)
}

fn forced(code: u8) -> Result<Forced> {
    match code {
        0 => Ok(Forced::Free),
        1 => Ok(Forced::Init),
        2 => Ok(Forced::MinSteps),
        3 => Ok(Forced::MaxSteps),
        4 => Ok(Forced::Preempted),
        _ => Err(unknown("forced", code)),
    }
}

fn end(code: u8) -> Result<End> {
    match code {
        0 => Ok(End::None),
        1 => Ok(End::Terminated),
        2 => Ok(End::Truncated),
        3 => Ok(End::Aborted),
        _ => Err(unknown("end", code)),
    }
}

/// Refuses an array of the wrong length.
pub(crate) fn length(what: &str, found: usize, want: usize) -> Result<()> {
    if found == want { Ok(()) } else { Err(Error::invalid(format!("{what} has {found} entries; {want} are right"))) }
}

/// Rows times columns, refused where no array could be so long.
pub(crate) fn size(what: &str, rows: usize, columns: usize) -> Result<usize> {
    rows.checked_mul(columns)
        .ok_or_else(|| Error::invalid(format!("{what} of {rows} x {columns} entries fits nowhere")))
}

/// A code that no field has.
pub(crate) fn unknown(what: &str, code: u8) -> Error {
    Error::invalid(format!("{what} has the unknown code {code}"))
}

/// A sha256.
pub(crate) fn hash(what: &str, bytes: &[u8]) -> Result<Hash> {
    bytes.try_into().map_err(|_| Error::invalid(format!("{what} has {} bytes; 32 are right", bytes.len())))
}

/// The uuid of a run.
pub(crate) fn run(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| Error::invalid(format!("run {text:?} is no uuid")))
}

/// The name of a stream.
pub(crate) fn stream(rollout: String, incarnation: u64) -> Result<StreamId> {
    if rollout.is_empty() {
        return Err(Error::invalid("the rollout id is empty; it names the stream"));
    }
    Ok(StreamId { rollout, incarnation })
}

/// Refuses numbers that are not finite.
pub(crate) fn finite(what: &str, numbers: &[f64]) -> Result<()> {
    match numbers.iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => Err(Error::invalid(format!("{what} holds {number}; finite numbers are right"))),
    }
}
