//! The oracle's problems for the learner: one-hot states and no hidden layer, so that weights are tables.

use crate::contract::{Contract, Options};
use crate::data::{Choice, End, Final, Forced, Fragment, NO_OPTION, Transition};
use crate::option::tests::oracle::{Logits, OPTIONS, STATES, index};
use crate::policy::tests::contract as small;
use std::sync::Arc;

/// Options may end at every step.
pub(super) fn contract() -> Arc<Contract> {
    let options = Options { count: OPTIONS, min_steps: 1, max_steps: 1000 };
    Arc::new(Contract { options, ..(*small(OPTIONS, &[])).clone() })
}

pub(super) fn one_hot(state: usize) -> [f32; STATES] {
    std::array::from_fn(|at| if at == state { 1.0 } else { 0.0 })
}

/// The oracle's terminations, choices and values; `other` has the parameters beside these, by segment, row and state.
pub(super) fn parameters(logits: &Logits, values: &[f64], other: impl Fn(&str, usize, usize) -> f64) -> Vec<f32> {
    let layout = contract().layout();
    let mut parameters = vec![0.0; layout.len()];
    for segment in &layout.segments {
        for (at, float) in parameters[segment.range()].iter_mut().enumerate() {
            let (row, state) = (at / STATES, at % STATES);
            *float = match segment.name.as_str() {
                "termination.weight" => logits.termination[row][state],
                "over_options.weight" => logits.over_options[state][row],
                "critic.value.weight" => values[index(state, row)],
                name => other(name, row, state),
            } as f32;
        }
    }
    parameters
}

/// What a step is made of.
pub(super) struct Step {
    pub(super) state: usize,
    /// None at a start.
    pub(super) running: Option<usize>,
    pub(super) option: usize,
    pub(super) proposal: [f32; 2],
    pub(super) reward: f64,
    /// Recorded, of the action and of the option.
    pub(super) log_probs: [f64; 2],
}

impl Step {
    fn transition(&self, t: usize, end: End) -> Transition {
        let [log_prob_action, log_prob_option] = self.log_probs.map(|log| log as f32);
        Transition {
            version: 1,
            episode: 0,
            t: t as u32,
            stamp_secs: 0.0,
            choice: Choice {
                option_prev: self.running.map_or(NO_OPTION, |running| running as u8),
                option: self.option as u8,
                option_terminated: self.running != Some(self.option),
                forced: if self.running.is_none() { Forced::Init } else { Forced::Free },
                option_age: u32::from(self.running.is_some()),
                proposal: self.proposal.to_vec(),
                action: self.proposal.map(f32::tanh).to_vec(),
                log_prob_action,
                log_prob_option,
                log_prob_termination: 0.0,
                log_prob_mixture: 0.0,
                termination_prob: 0.5,
            },
            filtered: false,
            intervened: false,
            reward: self.reward as f32,
            end,
        }
    }
}

/// A row of steps that led to a state, or, without one, to the end of the episode.
pub(super) fn row(steps: &[Step], led: Option<usize>) -> Fragment {
    let last = steps.len() - 1;
    let observation = one_hot(led.unwrap_or(0));
    let end = |t: usize| if t == last && led.is_none() { End::Terminated } else { End::None };
    Fragment {
        env: 0,
        first: 0,
        obs_size: STATES,
        steps: steps.iter().enumerate().map(|(t, step)| step.transition(t, end(t))).collect(),
        observations: steps.iter().flat_map(|step| one_hot(step.state)).chain(observation).collect(),
        finals: match led {
            None => vec![Final { step: last, observation: observation.to_vec() }],
            Some(_) => Vec::new(),
        },
    }
}
