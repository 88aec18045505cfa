//! Rows of fragments laid flat, checked, with every state whose value is needed.

use crate::contract::Contract;
use crate::data::{End, Forced, Fragment, NO_OPTION, Transition};
use crate::defect::defect;
use crate::error::{Error, Result};
use crate::option::Running;

/// Where a step's trace leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// To the next step.
    Step,
    /// Nowhere: the episode terminated.
    Nothing,
    /// To an edge, by its number: the trace is cut and bootstraps.
    Edge(usize),
}

/// N steps of all rows, and E edges.
pub(super) struct Gathered<'a> {
    /// N.
    pub(super) steps: Vec<&'a Transition>,
    /// N: what ran on arrival; none where the option was drawn from the policy over options.
    pub(super) arrivals: Vec<Running>,
    /// N.
    pub(super) next: Vec<Next>,
    /// Steps of each row.
    pub(super) rows: Vec<usize>,
    /// E: what runs on arrival at an edge.
    pub(super) edges: Vec<Running>,
    /// (N + E) x D, raw: the observation of each step, then of each edge.
    pub(super) observations: Vec<f32>,
}

impl<'a> Gathered<'a> {
    /// Lays rows flat. An episode that terminated leads nowhere; one that was truncated or aborted, the end of a row
    /// and a step before a pre-emption lead to an edge: the option still runs there, so the value is U, not Q nor V.
    pub(super) fn new(rows: &'a [Fragment], contract: &Contract, version: u64) -> Result<Self> {
        let mut all = Self {
            steps: Vec::new(),
            arrivals: Vec::new(),
            next: Vec::new(),
            rows: rows.iter().map(|row| row.steps.len()).collect(),
            edges: Vec::new(),
            observations: Vec::new(),
        };
        let mut beyond = Vec::new();
        for row in rows {
            check(row, contract, version)?;
            all.observations.extend_from_slice(&row.observations[..row.steps.len() * row.obs_size]);
            for (t, step) in row.steps.iter().enumerate() {
                let running = arrival(step);
                let follows = row.steps.get(t + 1).is_some_and(|next| !starts(next));
                let next = match step.end {
                    End::Terminated => Next::Nothing,
                    End::Truncated if defect("time_limit_is_terminal") => Next::Nothing,
                    End::None if follows => Next::Step,
                    End::None | End::Truncated | End::Aborted => {
                        let reset = defect("bootstraps_after_the_reset");
                        beyond.extend_from_slice(if reset { row.observation(t + 1) } else { row.next_observation(t) });
                        all.edges.push(running.next(step.choice.option, step.choice.option_terminated));
                        Next::Edge(all.edges.len() - 1)
                    }
                };
                all.steps.push(step);
                all.arrivals.push(running);
                all.next.push(next);
            }
        }
        if all.steps.is_empty() {
            return Err(Error::invalid("an update needs at least one step"));
        }
        all.observations.append(&mut beyond);
        Ok(all)
    }
}

/// The option was drawn from the policy over options, whatever ran before.
fn starts(step: &Transition) -> bool {
    step.choice.option_prev == NO_OPTION || matches!(step.choice.forced, Forced::Init | Forced::Preempted)
}

fn arrival(step: &Transition) -> Running {
    if starts(step) {
        Running::default()
    } else {
        Running { option: Some(step.choice.option_prev), age: step.choice.option_age }
    }
}

fn check(row: &Fragment, contract: &Contract, version: u64) -> Result<()> {
    let env = row.env;
    let refuse = |what: String| Err(Error::invalid(format!("a row of environment {env} {what}")));
    let (obs, action, options) = (contract.obs_size(), contract.action_size(), contract.options.count);
    if row.obs_size != obs || row.observations.len() != (row.steps.len() + 1) * obs {
        let (found, steps) = (row.observations.len(), row.steps.len());
        return refuse(format!("has {found} observed floats; {steps} steps need {}", (steps + 1) * obs));
    }
    let finite = |floats: &[f32]| floats.iter().all(|float| float.is_finite());
    if !finite(&row.observations) || !row.finals.iter().all(|last| finite(&last.observation)) {
        return refuse("holds an observation that is not finite".into());
    }
    for (t, step) in row.steps.iter().enumerate() {
        let known = |option: u8| usize::from(option) < options;
        if !known(step.choice.option) || !(known(step.choice.option_prev) || step.choice.option_prev == NO_OPTION) {
            let (prev, option) = (step.choice.option_prev, step.choice.option);
            return refuse(format!("goes from option {prev} to {option} in step {t}; the options are {options}"));
        }
        if step.choice.proposal.len() != action {
            return refuse(format!(
                "proposes {} floats in step {t}; an action has {action}",
                step.choice.proposal.len()
            ));
        }
        let numbers = [step.reward, step.choice.log_prob_action, step.choice.log_prob_option];
        if !finite(&step.choice.proposal) || !finite(&numbers) {
            return refuse(format!("holds a number that is not finite in step {t}"));
        }
        if version < step.version {
            return refuse(format!("was decided by version {} in step {t}; this is {version}", step.version));
        }
        let last = row.finals.iter().find(|last| last.step == t).map_or(0, |last| last.observation.len());
        if matches!(step.end, End::Truncated | End::Aborted) && last != obs {
            return refuse(format!("was truncated in step {t} without its last observation"));
        }
    }
    Ok(())
}
