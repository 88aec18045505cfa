//! Transitions of one environment: rows in memory, columns on the wire.

use super::{end, length, size, unknown};
use crate::data::{Choice, End, Final, Forced, Fragment, Transition};
use crate::error::{Error, Result};
use r2r::handoff::msg;

impl From<&Fragment> for msg::Fragment {
    fn from(fragment: &Fragment) -> Self {
        let steps = &fragment.steps;
        fn column<T>(steps: &[Transition], cell: impl Fn(&Transition) -> T) -> Vec<T> {
            steps.iter().map(cell).collect()
        }
        fn table(steps: &[Transition], cells: impl Fn(&Transition) -> &[f32]) -> Vec<f32> {
            steps.iter().flat_map(|step| cells(step).iter().copied()).collect()
        }
        Self {
            env: fragment.env,
            first: fragment.first,
            num_steps: steps.len() as u32,
            obs_size: fragment.obs_size as u32,
            action_size: steps.first().map_or(0, |step| step.choice.action.len() as u32),
            version: column(steps, |step| step.version),
            episode: column(steps, |step| step.episode),
            t: column(steps, |step| step.t),
            stamp: column(steps, |step| step.stamp_secs),
            option_prev: column(steps, |step| step.choice.option_prev),
            option: column(steps, |step| step.choice.option),
            option_terminated: column(steps, |step| step.choice.option_terminated),
            forced: column(steps, |step| step.choice.forced as u8),
            option_age: column(steps, |step| step.choice.option_age),
            proposal: table(steps, |step| &step.choice.proposal),
            action: table(steps, |step| &step.choice.action),
            filtered: column(steps, |step| step.filtered),
            intervened: column(steps, |step| step.intervened),
            reward: column(steps, |step| step.reward),
            end: column(steps, |step| step.end as u8),
            log_prob_action: column(steps, |step| step.choice.log_prob_action),
            log_prob_option: column(steps, |step| step.choice.log_prob_option),
            log_prob_termination: column(steps, |step| step.choice.log_prob_termination),
            log_prob_mixture: column(steps, |step| step.choice.log_prob_mixture),
            termination_prob: column(steps, |step| step.choice.termination_prob),
            observations: fragment.observations.clone(),
            final_steps: fragment.finals.iter().map(|last| last.step as u32).collect(),
            final_observations: fragment.finals.iter().flat_map(|last| last.observation.iter().copied()).collect(),
        }
    }
}

impl TryFrom<msg::Fragment> for Fragment {
    type Error = Error;

    fn try_from(message: msg::Fragment) -> Result<Self> {
        let env = message.env;
        from_message(message).map_err(|error| Error::invalid(format!("fragment of environment {env}: {error}")))
    }
}

fn from_message(message: msg::Fragment) -> Result<Fragment> {
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
fn check_lengths(message: &msg::Fragment, count: usize, width: usize) -> Result<()> {
    let obs_size = message.obs_size as usize;
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
