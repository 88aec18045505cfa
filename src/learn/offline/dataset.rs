//! Recorded steps as columns, apart by what their episodes are for.

use crate::config;
use crate::contract::{Contract, Normaliser};
use crate::data::{End, Forced, Logged, Part, Transition};
use crate::error::{Error, Result};
use crate::learn::{Moments, Scale};
use crate::option::{Running, beta_effective};
use crate::policy::running;
use std::collections::{BTreeMap, BTreeSet};
use tch::Tensor;

/// Actions are kept so far from the ends of their range that their proposals before tanh are bounded (Kostrikov et al. 2021,
/// `implicit_q_learning`: `dataset_utils.py`).
const ACTION_MAX: f32 = 1.0 - 1e-5;

/// N steps.
pub(super) struct Steps {
    /// What was observed, normalised, `[N, D]`.
    pub(super) input: Tensor,
    /// Where the steps led, normalised, `[N, D]`.
    pub(super) next: Tensor,
    /// What was carried out, `[N, A]`.
    pub(super) action: Tensor,
    /// The same before tanh, `[N, A]`.
    pub(super) proposal: Tensor,
    /// Scaled, `[N]`.
    pub(super) reward: Tensor,
    /// gamma, 0 where the task ended the episode, `[N]`.
    pub(super) discount: Tensor,
    /// 1 for the option that acted, `[N, K]`.
    pub(super) executed: Tensor,
    /// 1 for the option that ran on arrival, where it was free to end or to go on, `[N, K]`.
    pub(super) running: Tensor,
    /// 1 where the running option ended, `[N]`.
    pub(super) ended: Tensor,
    /// 1 where the option was chosen by the policy over options, `[N]`.
    pub(super) chosen: Tensor,
    /// Termination probability of the acting option where the step led, where d_min or d_max decides it, `[N, K]`; below 0
    /// everywhere else.
    pub(super) forced: Tensor,
}

impl Steps {
    /// N.
    pub(super) fn len(&self) -> usize {
        self.reward.size()[0] as usize
    }

    /// Some of them.
    pub(super) fn select(&self, rows: &[i64]) -> Self {
        let rows = Tensor::from_slice(rows);
        let pick = |column: &Tensor| column.index_select(0, &rows);
        Self {
            input: pick(&self.input),
            next: pick(&self.next),
            action: pick(&self.action),
            proposal: pick(&self.proposal),
            reward: pick(&self.reward),
            discount: pick(&self.discount),
            executed: pick(&self.executed),
            running: pick(&self.running),
            ended: pick(&self.ended),
            chosen: pick(&self.chosen),
            forced: pick(&self.forced),
        }
    }
}

/// A recorded step, found.
struct Found<'a> {
    logged: &'a Logged,
    at: usize,
    /// Discounted sum of the rewards up to here, since the episode began or the record has a gap.
    past: f32,
    part: Part,
}

impl Found<'_> {
    fn step(&self) -> &Transition {
        &self.logged.fragment.steps[self.at]
    }
}

/// Everything that is learned from.
pub struct Dataset {
    pub(super) parts: BTreeMap<Part, Steps>,
    /// Episodes of each part.
    episodes: BTreeMap<Part, usize>,
    /// Of the training observations.
    pub(super) observations: Moments,
    /// Of the training returns.
    pub(super) returns: Moments,
    pub(super) scale: Scale,
}

impl Dataset {
    /// From fragments that were checked against the contract, in any order; a step that comes twice counts once. Refuses what leaves
    /// nothing to learn from, or to validate with.
    pub fn new(contract: &Contract, logged: &[Logged], config: &config::Learner) -> Result<Self> {
        let (ppo, offline) = (&config.hs_ppo, &config.offline);
        let (found, episodes) = found(logged, ppo.gamma, offline);
        let total: usize = episodes.values().sum();
        if total == 0 {
            return Err(Error::invalid("not one recorded step: there is nothing to learn from"));
        }
        for (part, share, key) in [
            (Part::Train, 1.0 - offline.validation - offline.test, "training"),
            (Part::Validation, offline.validation, "validation"),
        ] {
            if 0.0 < share && !episodes.contains_key(&part) {
                return Err(Error::invalid(format!(
                    "none of the {total} recorded episodes falls to the {key}, whose share is {share:.2}: record more, or lower \
                     learner.offline.validation ({}) and test ({}); --val 0 goes without a validation",
                    offline.validation, offline.test
                )));
            }
        }
        let mut observations = Moments::new(contract.obs_size());
        let mut returns = Moments::new(1);
        for found in found.iter().filter(|found| found.part == Part::Train) {
            observations.merge(found.logged.fragment.observation(found.at))?;
            returns.merge(&[found.past])?;
        }
        let normaliser = observations.normaliser(ppo.observation_clip as f32);
        let scale = Scale::of(ppo, contract.options.count, &returns);
        let part = |part: Part| {
            let own: Vec<&Found<'_>> = found.iter().filter(|found| found.part == part).collect();
            (part, steps(&own, contract, &normaliser, scale, ppo.gamma))
        };
        let parts = episodes.keys().map(|&key| part(key)).collect();
        Ok(Self { parts, episodes, observations, returns, scale })
    }

    /// Episodes and steps of a part.
    pub fn count(&self, part: Part) -> (usize, usize) {
        (self.episodes.get(&part).copied().unwrap_or(0), self.parts.get(&part).map_or(0, Steps::len))
    }
}

/// Every step once, by environment and time, and the episodes of each part.
fn found<'a>(logged: &'a [Logged], gamma: f64, config: &config::Offline) -> (Vec<Found<'a>>, BTreeMap<Part, usize>) {
    let mut environments: BTreeMap<_, Vec<&Logged>> = BTreeMap::new();
    for logged in logged {
        environments.entry((logged.run, &logged.stream, logged.fragment.env)).or_default().push(logged);
    }
    let (mut all, mut episodes) = (Vec::new(), BTreeMap::new());
    for fragments in environments.values_mut() {
        fragments.sort_by_key(|logged| logged.fragment.first);
        let (mut expected, mut past, mut seen) = (None, 0.0, BTreeSet::new());
        for logged in fragments {
            for (at, step) in logged.fragment.steps.iter().enumerate() {
                let index = logged.fragment.first + at as u64;
                if expected.is_some_and(|expected| index < expected) {
                    continue;
                }
                if expected != Some(index) {
                    past = 0.0;
                }
                expected = Some(index + 1);
                past = gamma * past + f64::from(step.reward);
                let part = Part::of(logged, step.episode, config.validation, config.test);
                if seen.insert(step.episode) {
                    *episodes.entry(part).or_default() += 1;
                }
                all.push(Found { logged, at, past: past as f32, part });
                if step.end != End::None {
                    past = 0.0;
                }
            }
        }
    }
    (all, episodes)
}

fn steps(found: &[&Found<'_>], contract: &Contract, normaliser: &Normaliser, scale: Scale, gamma: f64) -> Steps {
    let (count, options) = (found.len(), contract.options.count);
    let matrix = |floats: Vec<f32>| Tensor::from_slice(&floats).view([count as i64, -1]);
    let normalised = |mut floats: Vec<f32>| {
        normaliser.apply(&mut floats);
        matrix(floats)
    };
    let column = |number: &dyn Fn(&Transition) -> f64| {
        Tensor::from_slice(&found.iter().map(|found| number(found.step()) as f32).collect::<Vec<_>>())
    };
    let table = |empty: f32, entry: &dyn Fn(&Transition) -> Option<(u8, f64)>| {
        let mut floats = vec![empty; count * options];
        for (row, found) in found.iter().enumerate() {
            if let Some((option, value)) = entry(found.step()) {
                floats[row * options + usize::from(option)] = value as f32;
            }
        }
        matrix(floats)
    };
    let actions = |of: fn(f32) -> f32| -> Tensor {
        let each = |found: &&Found<'_>| found.step().choice.action.clone();
        matrix(found.iter().flat_map(each).map(|action| of(action.clamp(-ACTION_MAX, ACTION_MAX))).collect())
    };
    let flag = |holds: bool| f64::from(u8::from(holds));
    Steps {
        input: normalised(
            found.iter().flat_map(|found| found.logged.fragment.observation(found.at)).copied().collect(),
        ),
        next: normalised(
            found.iter().flat_map(|found| found.logged.fragment.next_observation(found.at)).copied().collect(),
        ),
        action: actions(|action| action),
        proposal: actions(f32::atanh),
        reward: column(&|step| f64::from(step.reward) / scale.reward),
        discount: column(&|step| if step.end == End::Terminated { 0.0 } else { gamma }),
        executed: table(0.0, &|step| Some((step.choice.option, 1.0))),
        running: table(0.0, &|step| (step.choice.forced == Forced::Free).then_some((step.choice.option_prev, 1.0))),
        ended: column(&|step| flag(step.choice.option_terminated)),
        chosen: column(&|step| flag(step.choice.option_terminated && step.choice.forced != Forced::Preempted)),
        forced: table(-1.0, &|step| {
            let choice = &step.choice;
            let Running { age, .. } = running(choice).next(choice.option, choice.option_terminated);
            match beta_effective(0.0, age, &contract.options) {
                (beta, Forced::MinSteps | Forced::MaxSteps) => Some((choice.option, beta)),
                _ => None,
            }
        }),
    }
}
