//! What a batch must be before anything learns from it.

use super::{Batch, End, Forced, Fragment, NO_OPTION, Transition};
use crate::contract::{Contract, Hash};
use std::collections::BTreeMap;
use std::fmt;

/// No number to learn from is larger in SI units: one that is has to be a mistake, and would drown all others in running
/// statistics. Two of them add up to a finite `f32`.
const MOST: f32 = 1e6;

/// Why a batch is refused, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Shapes or codes that do not fit.
    Malformed(String),
    /// NaN, infinity, or beyond [`MOST`].
    NonFinite(String),
    /// Older life or closed phase.
    Stale(String),
    /// Another contract.
    Contract(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, sentence) = match self {
            Self::Malformed(sentence) => ("malformed", sentence),
            Self::NonFinite(sentence) => ("non-finite", sentence),
            Self::Stale(sentence) => ("stale", sentence),
            Self::Contract(sentence) => ("other contract", sentence),
        };
        write!(formatter, "{reason}: {sentence}")
    }
}

type Checked = Result<(), Refusal>;

fn require(holds: bool, sentence: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Refusal::Malformed(sentence())) }
}

/// Refuses a batch that is of another contract, malformed or not finite (1e6 at most), in this order.
/// `contract_hash` is the hash of `contract`. Whether the batch is stale is for [`super::Admission`] to say.
pub fn check(batch: &Batch, contract: &Contract, contract_hash: &Hash) -> Result<(), Refusal> {
    if batch.contract_hash != *contract_hash {
        return Err(Refusal::Contract(format!(
            "batch {} of {} has contract {}; the learner's is {}",
            batch.seq,
            batch.stream,
            hex::encode(&batch.contract_hash[..4]),
            hex::encode(&contract_hash[..4])
        )));
    }
    header(batch)?;
    shapes(batch, contract).and_then(|()| finite(batch)).map_err(|refusal| {
        let named = |sentence| format!("batch {} of {}: {sentence}", batch.seq, batch.stream);
        match refusal {
            Refusal::Malformed(sentence) => Refusal::Malformed(named(sentence)),
            Refusal::NonFinite(sentence) => Refusal::NonFinite(named(sentence)),
            other => other,
        }
    })
}

/// The numbers that place a batch in its stream.
pub(super) fn header(batch: &Batch) -> Checked {
    let Batch { seq, base, stream, .. } = batch;
    require(base <= seq, || {
        format!("batch {seq} of {stream} says that {base} is the lowest held; it must not be above")
    })?;
    require(*seq < u64::MAX && batch.first_step.checked_add(batch.steps()).is_some(), || {
        format!("batch {seq} of {stream} starts at step {}, beyond what can be counted", batch.first_step)
    })
}

fn shapes(batch: &Batch, contract: &Contract) -> Checked {
    require(!(batch.fragments.is_empty() && batch.episodes.is_empty()), || "it holds nothing".into())?;
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for fragment in &batch.fragments {
        let Fragment { env, first, .. } = fragment;
        fragment_shapes(fragment, contract)?;
        let end = first.checked_add(fragment.steps.len() as u64);
        let before = ends.get(env).copied().unwrap_or(0);
        require(before <= *first, || format!("env {env} goes back to step {first} after {before}"))?;
        require(end.is_some(), || format!("env {env} starts at step {first}, beyond what can be counted"))?;
        ends.insert(*env, end.unwrap_or(u64::MAX));
    }
    for stats in &batch.episodes {
        let (env, episode, options) = (stats.env, stats.episode, contract.options.count);
        require(stats.end != End::None, || format!("the statistics of env {env} episode {episode} have no end"))?;
        require(stats.option_steps.len() == options && stats.option_runs.len() == options, || {
            format!(
                "the statistics of env {env} episode {episode} count {} and {} options; the contract has {options}",
                stats.option_steps.len(),
                stats.option_runs.len()
            )
        })?;
    }
    Ok(())
}

fn fragment_shapes(fragment: &Fragment, contract: &Contract) -> Checked {
    let (env, obs_size, steps) = (fragment.env, contract.obs_size(), fragment.steps.len());
    require(0 < steps, || format!("the fragment of env {env} has no steps"))?;
    require(fragment.obs_size == obs_size, || {
        format!("env {env} observes {} floats; the contract has {obs_size}", fragment.obs_size)
    })?;
    let floats = (steps + 1) * obs_size;
    require(fragment.observations.len() == floats, || {
        format!("env {env} has {} floats of observations; {steps} steps need {floats}", fragment.observations.len())
    })?;
    for (index, step) in fragment.steps.iter().enumerate() {
        step_shapes(step, contract).map_err(|sentence| {
            Refusal::Malformed(format!("env {env} episode {} t {}: {sentence}", step.episode, step.t))
        })?;
        if let Some(next) = fragment.steps.get(index + 1) {
            require(follows(step, next), || {
                format!(
                    "env {env} goes from episode {} t {} ({:?}) to episode {} t {}",
                    step.episode, step.t, step.end, next.episode, next.t
                )
            })?;
        }
    }
    let ends = fragment.steps.iter().enumerate().filter(|(_, step)| step.end != End::None).map(|(index, _)| index);
    require(ends.eq(fragment.finals.iter().map(|last| last.step)), || {
        format!("the last observations of env {env} do not stand at its ends of episodes")
    })?;
    require(fragment.finals.iter().all(|last| last.observation.len() == obs_size), || {
        format!("a last observation of env {env} has not {obs_size} floats")
    })
}

fn step_shapes(step: &Transition, contract: &Contract) -> Result<(), String> {
    let (actions, options) = (contract.action_size(), contract.options.count);
    let known = |option: u8| usize::from(option) < options;
    let init = step.choice.forced == Forced::Init;
    let ended = step.choice.option_terminated;
    let rules = [
        (step.choice.proposal.len() == actions, "the proposal has not the contract's size"),
        (step.choice.action.len() == actions, "the action has not the contract's size"),
        (known(step.choice.option), "the contract has no such option"),
        (
            known(step.choice.option_prev) || step.choice.option_prev == NO_OPTION,
            "the contract has no such former option",
        ),
        (
            (step.choice.option_prev == NO_OPTION) == init,
            "there is no former option exactly where one is drawn at the start",
        ),
        (init || step.t != 0, "an option is drawn at the start of an episode"),
        (!init || (ended && step.choice.option_age == 0), "at the start the option counts as ended, of age 0"),
        (ended || step.choice.option == step.choice.option_prev, "the option changed without ending"),
        (step.choice.forced != Forced::MinSteps || !ended, "an option ended before its least duration"),
        (step.choice.forced != Forced::MaxSteps || ended, "an option went on beyond its longest duration"),
        (
            init || step.choice.forced == Forced::Preempted
                || step.choice.forced == forced(step.choice.option_age, contract),
            "the age of the option says otherwise whether it could end",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, sentence)) => {
            Err(format!("{sentence} (option {} after {})", step.choice.option, step.choice.option_prev))
        }
    }
}

/// Whether an option of this age ends by itself.
fn forced(age: u32, contract: &Contract) -> Forced {
    match age {
        age if contract.options.max_steps <= age => Forced::MaxSteps,
        age if age < contract.options.min_steps => Forced::MinSteps,
        _ => Forced::Free,
    }
}

/// Whether `next` is the step after `step` of the same environment.
pub(super) fn follows(step: &Transition, next: &Transition) -> bool {
    match step.end {
        End::None => next.episode == step.episode && Some(next.t) == step.t.checked_add(1),
        _ => step.episode < next.episode && next.t == 0,
    }
}

/// Refuses the first number that nothing may learn from.
fn sound(floats: &[f32], what: impl FnOnce() -> String) -> Checked {
    match floats.iter().find(|float| !(-MOST..=MOST).contains(*float)) {
        None => Ok(()),
        Some(found) => {
            Err(Refusal::NonFinite(format!("{} holds {found}; a finite number of at most {MOST} is right", what())))
        }
    }
}

fn finite(batch: &Batch) -> Checked {
    let stamped = |stamp_secs: f64, what: &dyn Fn() -> String| match stamp_secs.is_finite() {
        true => Ok(()),
        false => Err(Refusal::NonFinite(format!("{} has the time {stamp_secs}, which is not finite", what()))),
    };
    for fragment in &batch.fragments {
        let observation = || format!("an observation of env {}", fragment.env);
        sound(&fragment.observations, observation)?;
        for last in &fragment.finals {
            sound(&last.observation, observation)?;
        }
        for step in &fragment.steps {
            let Transition { reward, choice, episode, t, .. } = step;
            let what = || format!("env {} episode {episode} t {t}", fragment.env);
            sound(&[*reward], || format!("the reward of {}", what()))?;
            sound(&choice.proposal, what)?;
            sound(&choice.action, what)?;
            let scalars = [
                choice.log_prob_action,
                choice.log_prob_option,
                choice.log_prob_termination,
                choice.log_prob_mixture,
                choice.termination_prob,
            ];
            sound(&scalars, what)?;
            stamped(step.stamp_secs, &what)?;
        }
    }
    for stats in &batch.episodes {
        let what = || format!("the statistics of env {} episode {}", stats.env, stats.episode);
        sound(&[stats.episode_return, stats.final_error], what)?;
        stamped(stats.stamp_secs, &what)?;
    }
    Ok(())
}
