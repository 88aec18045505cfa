//! Transitions, and the fragments and batches that carry them.

use crate::contract::Hash;
use std::fmt;
use uuid::Uuid;

/// `option_prev` at the start of an episode.
pub const NO_OPTION: u8 = 255;

/// One rollout process life: the id that people give it, and a number drawn at its start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct StreamId {
    /// Rollout id.
    pub rollout: String,
    /// Random, new for each start of the process.
    pub incarnation: u64,
}

impl fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{:08x}", self.rollout, self.incarnation)
    }
}

/// How a step leaves its episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// The episode goes on.
    None = 0,
    /// The task ended it: no value beyond.
    Terminated = 1,
    /// Time limit: bootstrap from the true last observation.
    Truncated = 2,
    /// A fault ended it: truncated at the last valid observation.
    Aborted = 3,
}

/// Why an option ended or went on, where the policy did not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Forced {
    /// The policy chose.
    Free = 0,
    /// Start of an episode: the option is drawn from the policy over options.
    Init = 1,
    /// The option could not end yet (d_min).
    MinSteps = 2,
    /// The option had to end (d_max).
    MaxSteps = 3,
    /// Safety or an operator ended the option: masked in learning.
    Preempted = 4,
}

/// What a policy decided in one tick, and with what probability. Log-probabilities are of the sampled proposal, under the
/// version that decided; densities of actions are those of Gaussians before tanh, without its Jacobian.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Option that was running on arrival, or [`NO_OPTION`].
    pub option_prev: u8,
    /// Option that acts.
    pub option: u8,
    /// b_t: the running option ended on arrival (true at [`Forced::Init`]).
    pub option_terminated: bool,
    /// Where the policy did not choose.
    pub forced: Forced,
    /// Steps that the running option had run on arrival (0 at [`Forced::Init`]).
    pub option_age: u32,
    /// Sampled action before tanh, A floats.
    pub proposal: Vec<f32>,
    /// In [-1, 1], A floats: tanh of the proposal; in a record what was carried out.
    pub action: Vec<f32>,
    /// Log density of the proposal under the option that acts.
    pub log_prob_action: f32,
    /// log p^(option | state, option_prev), terminations marginalised.
    pub log_prob_option: f32,
    /// Log probability of `option_terminated`; 0 where forced.
    pub log_prob_termination: f32,
    /// Log density of the proposal, options marginalised over p^.
    pub log_prob_mixture: f32,
    /// Termination probability of the running option on arrival, before d_min and d_max; 1 where nothing was running.
    pub termination_prob: f32,
}

/// One control tick of one environment, without its observation (the fragment holds these).
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Weights that decided the step.
    pub version: u64,
    /// Episode within the environment.
    pub episode: u64,
    /// Control tick within the episode.
    pub t: u32,
    /// Time of the state that the step answered [s].
    pub stamp_secs: f64,
    /// What was decided; its action is the one carried out.
    pub choice: Choice,
    /// A safety layer changed the action.
    pub filtered: bool,
    /// A person acted.
    pub intervened: bool,
    /// Reward.
    pub reward: f32,
    /// How the step leaves its episode.
    pub end: End,
}

/// The true last observation of an episode that ended inside a fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct Final {
    /// Index of the step within the fragment.
    pub step: usize,
    /// D floats, raw.
    pub observation: Vec<f32>,
}

/// Successive transitions of one environment. Never across incarnations; episode ends inside are explicit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// Environment within the rollout.
    pub env: u32,
    /// Steps recorded in this environment of this stream before the first one here.
    pub first: u64,
    /// D.
    pub obs_size: usize,
    /// T of them.
    pub steps: Vec<Transition>,
    /// (T + 1) x D, raw, row-major: `observations[t]` is what step t answered; the last is where the fragment ends
    /// (after an end: the next episode's first observation if it is known, else a copy of the final one).
    pub observations: Vec<f32>,
    /// One for each step whose `end` is not [`End::None`], in order.
    pub finals: Vec<Final>,
}

impl Fragment {
    /// The observation that step `t` answered; `t = T` is where the fragment ends.
    pub fn observation(&self, t: usize) -> &[f32] {
        &self.observations[t * self.obs_size..(t + 1) * self.obs_size]
    }

    /// The observation that the first step answered.
    pub(super) fn first_row(&self) -> &[f32] {
        self.observation(0)
    }

    /// Where the fragment ends.
    pub(super) fn last_row(&self) -> &[f32] {
        self.observation(self.steps.len())
    }

    /// Where step `t` led: the true last observation if the episode ended there, else the next one.
    pub fn next_observation(&self, t: usize) -> &[f32] {
        match self.finals.iter().find(|last| last.step == t) {
            Some(last) => &last.observation,
            None => self.observation(t + 1),
        }
    }
}

/// Outcome of one finished episode.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeStats {
    /// Time of the last state [s].
    pub stamp_secs: f64,
    /// Rollout id.
    pub rollout: String,
    /// Environment within the rollout.
    pub env: u32,
    /// Number within the environment.
    pub episode: u64,
    /// Weights that decided the last step.
    pub version: u64,
    /// Undiscounted sum of rewards.
    pub episode_return: f32,
    /// Control ticks.
    pub length: u32,
    /// How it ended.
    pub end: End,
    /// The task's error at the last step; reach: distance to the goal [m].
    pub final_error: f32,
    /// The task's success at the last step.
    pub success: bool,
    /// The task's stricter success.
    pub success_strict: bool,
    /// First step inside success, or the length.
    pub first_success_step: u32,
    /// K: steps in each option.
    pub option_steps: Vec<u32>,
    /// K: runs of each option that ended by a termination.
    pub option_runs: Vec<u32>,
    /// Runs that d_max ended.
    pub forced_ends: u32,
}

/// Numbered transitions of one stream, one fragment an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The run whose weights decided these steps.
    pub run: Uuid,
    /// Its learner's life.
    pub life: u32,
    /// Who recorded them.
    pub stream: StreamId,
    /// Number in the stream, from 0.
    pub seq: u64,
    /// Lowest number that the rollout still holds.
    pub base: u64,
    /// Transitions recorded in this stream before this batch.
    pub first_step: u64,
    /// Phase of the synchronous mode; 0 in the asynchronous one.
    pub phase: u64,
    /// Of the contract.
    pub contract_hash: Hash,
    /// One row an environment; several of one environment follow one another.
    pub fragments: Vec<Fragment>,
    /// Episodes that ended in this batch.
    pub episodes: Vec<EpisodeStats>,
}

impl Batch {
    /// Transitions.
    pub fn steps(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.steps.len() as u64).sum()
    }
}
