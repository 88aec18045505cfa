//! Whether a recorded fragment was decided by the version that it names: its log-probabilities, worked out anew.

use super::decide::{Policy, log_density_anywhere};
use crate::contract::Snapshot;
use crate::data::{Choice, Forced, Fragment, NO_OPTION, Transition};
use crate::error::Result;
use crate::option::{Arrival, Running};

/// Largest absolute difference of the recorded log-probabilities of actions, options and terminations from the
/// snapshot's own, over the steps that name its version; none if no step does. Infinite where one is not a number. The
/// fragment must fit the contract.
pub fn log_prob_error(snapshot: &Snapshot, fragment: &Fragment) -> Result<Option<f64>> {
    let mine: Vec<(usize, &Transition)> =
        fragment.steps.iter().enumerate().filter(|(_, step)| step.version == snapshot.version).collect();
    if mine.is_empty() {
        return Ok(None);
    }
    let observations: Vec<f32> = mine.iter().flat_map(|(t, _)| fragment.observation(*t).iter().copied()).collect();
    let outputs = Policy::new(snapshot)?.outputs(&observations)?;
    let mut largest = 0.0_f64;
    for (row, (_, step)) in mine.iter().enumerate() {
        let option = usize::from(step.choice.option);
        let running = running(&step.choice);
        let logit = running.option.map_or(0.0, |running| outputs.termination(row, usize::from(running)));
        let arrival = Arrival::new(logit, running, &snapshot.contract.options);
        let action = if snapshot.random_warmup {
            log_density_anywhere(&step.choice.proposal)
        } else {
            outputs.log_prob_action(row, option, &step.choice.proposal)
        };
        let over_options = arrival.log_transition(option, &outputs.log_over_options(row));
        let termination = match (arrival.forced, step.choice.option_terminated) {
            (Forced::Free, true) => arrival.log_stop,
            (Forced::Free, false) => arrival.log_continue,
            _ => 0.0,
        };
        let recorded = [step.choice.log_prob_action, step.choice.log_prob_option, step.choice.log_prob_termination];
        for (recorded, own) in recorded.into_iter().zip([action, over_options, termination]) {
            let error = (f64::from(recorded) - own).abs();
            largest = if error.is_nan() { f64::INFINITY } else { largest.max(error) };
        }
    }
    Ok(Some(largest))
}

/// What ran when it was decided; nothing where the option was taken away.
pub fn running(choice: &Choice) -> Running {
    if choice.option_prev == NO_OPTION || matches!(choice.forced, Forced::Init | Forced::Preempted) {
        Running::default()
    } else {
        Running { option: Some(choice.option_prev), age: choice.option_age }
    }
}
