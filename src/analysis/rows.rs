//! Decisions that are looked at together: what was recorded of each, on its observation.

use crate::contract::Contract;
use crate::data::{End, Fragment};
use crate::option::Running;
use crate::policy::running;
use uuid::Uuid;

/// Weights by run, life and version.
pub(super) type Name = (Uuid, u32, u64);

/// What a transition recorded of the policy that made it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sampled {
    pub(super) by: Name,
    /// Before tanh.
    pub(super) proposal: Vec<f32>,
    pub(super) log_prob_action: f64,
    pub(super) log_prob_option: f64,
}

/// What a node published of the policy that it ran.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Published {
    /// None where its weights were not heard before it.
    pub(super) by: Option<Name>,
    pub(super) over_options: Vec<f64>,
    pub(super) termination_prob: f64,
}

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) at_secs: f64,
    /// Environment, episode, tick, as far as they are known.
    pub(super) place: (usize, u64, u32),
    /// What ran on arrival.
    pub(super) running: Running,
    /// What acted.
    pub(super) option: u8,
    /// What runs on the next arrival.
    pub(super) after: Running,
    pub(super) sampled: Option<Sampled>,
    pub(super) published: Option<Published>,
    /// What the present policy chose, where it was asked.
    pub(super) decided: Option<u8>,
    pub(super) reward: Option<f64>,
    /// No value beyond.
    pub(super) terminated: bool,
    /// Row of the block's observations where it led.
    pub(super) next: Option<usize>,
}

/// Decisions and observations: row i answers observation i; more observations may follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Block {
    pub(super) rows: Vec<Row>,
    pub(super) observations: Vec<f32>,
}

impl Block {
    /// The rows of a fragment of a run's life. `at_secs` says when a step was, `env` numbers its environment in the bag.
    pub(super) fn of(
        fragment: &Fragment,
        (run, life): (Uuid, u32),
        env: usize,
        at_secs: impl Fn(usize) -> f64,
    ) -> Self {
        let steps = fragment.steps.len();
        let mut observations = fragment.observations.clone();
        let mut rows = Vec::with_capacity(steps);
        for (t, step) in fragment.steps.iter().enumerate() {
            let choice = &step.choice;
            let running = running(choice);
            let next = match fragment.finals.iter().find(|last| last.step == t) {
                Some(last) => {
                    observations.extend_from_slice(&last.observation);
                    observations.len() / fragment.obs_size - 1
                }
                None => t + 1,
            };
            rows.push(Row {
                at_secs: at_secs(t),
                place: (env, step.episode, step.t),
                running,
                option: choice.option,
                after: running.next(choice.option, choice.option_terminated),
                sampled: (!step.intervened).then(|| Sampled {
                    by: (run, life, step.version),
                    proposal: choice.proposal.clone(),
                    log_prob_action: f64::from(choice.log_prob_action),
                    log_prob_option: f64::from(choice.log_prob_option),
                }),
                published: None,
                decided: None,
                reward: Some(f64::from(step.reward)),
                terminated: step.end == End::Terminated,
                next: Some(next),
            });
        }
        Self { rows, observations }
    }
}

/// Stamps are of the recorder's clock if the last one is at most this old on receipt [s].
const OLDEST_SECS: f64 = 10.0;

/// When each step of a fragment was, since the bag's first message [s], of a batch received at `at_secs`: by its stamp, where stamps are
/// of the recorder's clock. A simulator's own time is none: its steps were made one after another since `since_secs`, the receipt before.
pub(super) fn times(fragment: &Fragment, at_secs: f64, since_secs: f64, start_ns: i64) -> impl Fn(usize) -> f64 + '_ {
    let (steps, start_secs) = (&fragment.steps, start_ns as f64 * 1e-9);
    let age_secs = steps.last().map_or(f64::NAN, |last| start_secs + at_secs - last.stamp_secs);
    let stamped = (-1e-3..OLDEST_SECS).contains(&age_secs);
    move |t| match steps.get(t).filter(|_| stamped) {
        Some(step) => (step.stamp_secs - start_secs).max(0.0),
        None => since_secs + (at_secs - since_secs) * (t + 1) as f64 / steps.len() as f64,
    }
}

/// Where a field of the observation lies.
pub(super) fn field(contract: &Contract, name: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for field in &contract.observation {
        if field.name == name {
            return Some(at..at + field.len);
        }
        at += field.len;
    }
    None
}

/// Why an episode ended, in a word.
pub(super) fn end(end: End) -> &'static str {
    match end {
        End::None => "not ended",
        End::Terminated => "terminated",
        End::Truncated => "truncated",
        End::Aborted => "aborted",
    }
}
