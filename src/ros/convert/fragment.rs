//! Transitions of one environment: rows in memory, columns on the wire.

use crate::data::wire::FragmentMessage;
use crate::data::{Fragment, Transition};
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

impl From<msg::Fragment> for FragmentMessage {
    fn from(message: msg::Fragment) -> Self {
        Self {
            env: message.env,
            first: message.first,
            num_steps: message.num_steps,
            obs_size: message.obs_size,
            action_size: message.action_size,
            version: message.version,
            episode: message.episode,
            t: message.t,
            stamp: message.stamp,
            option_prev: message.option_prev,
            option: message.option,
            option_terminated: message.option_terminated,
            forced: message.forced,
            option_age: message.option_age,
            proposal: message.proposal,
            action: message.action,
            filtered: message.filtered,
            intervened: message.intervened,
            reward: message.reward,
            end: message.end,
            log_prob_action: message.log_prob_action,
            log_prob_option: message.log_prob_option,
            log_prob_termination: message.log_prob_termination,
            log_prob_mixture: message.log_prob_mixture,
            termination_prob: message.termination_prob,
            observations: message.observations,
            final_steps: message.final_steps,
            final_observations: message.final_observations,
        }
    }
}

impl TryFrom<msg::Fragment> for Fragment {
    type Error = Error;

    fn try_from(message: msg::Fragment) -> Result<Self> {
        FragmentMessage::from(message).try_into()
    }
}
