//! From replay to tensors: draws for the critics, fragments and responsibilities for the actor.

use super::actor::Picked;
use super::losses::{Drawn, outputs};
use crate::contract::{Contract, Normaliser};
use crate::data::{End, Forced, NO_OPTION};
use crate::defect::defect;
use crate::option::{Filter, Running, TERMINATION_LOGIT_MAX, beta_effective, log_sigmoid};
use crate::policy::{Network, Outputs};
use crate::replay::{self, Draw, Replay, Step};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use tch::Tensor;

/// What stays as it is during an update.
pub(super) struct Frame<'a> {
    pub(super) contract: &'a Contract,
    pub(super) normaliser: &'a Normaliser,
}

impl Frame<'_> {
    fn options(&self) -> usize {
        self.contract.options.count
    }

    fn matrix(&self, floats: &[f32], width: usize) -> Tensor {
        Tensor::from_slice(floats).view([-1, width as i64])
    }

    fn normalised(&self, mut observations: Vec<f32>) -> Tensor {
        self.normaliser.apply(&mut observations);
        self.matrix(&observations, self.contract.obs_size())
    }

    /// Normal, rows x K x A.
    fn noise(&self, rows: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let draws = rows * self.options() * self.contract.action_size();
        (0..draws).map(|_| rng.sample(StandardNormal)).collect()
    }

    /// The critics' steps.
    pub(super) fn drawn(
        &self,
        replay: &Replay,
        draws: &[Draw],
        weights: Vec<f64>,
        gamma: f64,
        rng: &mut ChaCha8Rng,
    ) -> Drawn {
        let steps: Vec<Step<'_>> = draws.iter().filter_map(|draw| replay.step(draw.step)).collect();
        let flat = |floats: for<'a> fn(&Step<'a>) -> &'a [f32]| -> Vec<f32> {
            steps.iter().map(floats).collect::<Vec<_>>().concat()
        };
        let forced = |step: &Step<'_>| match beta_effective(0.0, age_beyond(step), &self.contract.options) {
            (beta, Forced::MinSteps | Forced::MaxSteps) => Some(beta),
            _ => None,
        };
        let discount = |step: &Step<'_>| match step.end {
            End::Terminated => 0.0,
            End::Truncated if defect("replayed_time_limit_is_terminal") => 0.0,
            _ => gamma,
        };
        Drawn {
            input: self.normalised(flat(|step| step.observation)),
            next: self.normalised(flat(|step| step.next_observation)),
            action: self.matrix(&flat(|step| step.action), self.contract.action_size()),
            reward: steps.iter().map(|step| f64::from(step.reward)).collect(),
            discount: steps.iter().map(discount).collect(),
            weight: weights,
            executed: steps.iter().map(|step| usize::from(step.option)).collect(),
            forced: steps.iter().map(forced).collect(),
            noise: self.noise(steps.len(), rng),
        }
    }

    /// The actor's steps. For more than one option the responsibilities are the filter's along each fragment, under the
    /// actor as it is, with the share `floor` spread over all options.
    pub(super) fn picked(
        &self,
        replay: &Replay,
        fragments: &[replay::Picked],
        actor: &Network,
        floor: f64,
        rng: &mut ChaCha8Rng,
    ) -> Picked {
        let options = self.options();
        let (mut observations, mut responsibility, mut running) = (Vec::new(), Vec::new(), Vec::new());
        let beliefs = if options == 1 { Vec::new() } else { self.beliefs(replay, fragments, actor) };
        for (at, fragment) in fragments.iter().enumerate() {
            for &step in &fragment.steps {
                observations.extend_from_slice(replay.of(fragment, step).observation);
                match beliefs.get(at).and_then(|fragment| fragment.get(step)) {
                    None => {
                        responsibility.push(1.0);
                        running.push(0.0);
                    }
                    Some(belief) => {
                        let mixed = |share: &f64| (1.0 - floor) * share + floor / options as f64;
                        responsibility.extend(belief.acting.iter().map(mixed));
                        running.extend(&belief.running);
                    }
                }
            }
        }
        let rows = responsibility.len() / options;
        Picked { input: self.normalised(observations), responsibility, running, noise: self.noise(rows, rng) }
    }

    /// For each step of each fragment, up to the last picked one.
    pub(super) fn beliefs(&self, replay: &Replay, fragments: &[replay::Picked], actor: &Network) -> Vec<Vec<Belief>> {
        let lengths: Vec<usize> =
            fragments.iter().map(|fragment| 1 + fragment.steps.iter().copied().max().unwrap_or(0)).collect();
        let steps = fragments.iter().zip(&lengths);
        let observations: Vec<&[f32]> = steps
            .flat_map(|(fragment, &length)| (0..length).map(move |step| replay.of(fragment, step).observation))
            .collect();
        let outputs = outputs(actor, &self.normalised(observations.concat()));
        let mut row = 0;
        let mut all = Vec::with_capacity(fragments.len());
        for (fragment, length) in fragments.iter().zip(lengths) {
            let steps: Vec<Step<'_>> = (0..length).map(|step| replay.of(fragment, step)).collect();
            all.push(beliefs(&steps, &outputs, row, self.options()));
            row += length;
        }
        all
    }
}

/// What the filter says at one step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Belief {
    /// h: before the action, K shares.
    pub(super) acting: Vec<f64>,
    /// g of the step before: on arrival; all 0 where the termination was not the policy's.
    pub(super) running: Vec<f64>,
}

/// Filters the successive steps of one fragment. `outputs` are the actor's, from `row` on.
fn beliefs(steps: &[Step<'_>], outputs: &Outputs, row: usize, options: usize) -> Vec<Belief> {
    let known = steps.first().map_or(0, |step| usize::from(step.option_prev));
    let mut filter = Filter::new(options, if known < options { known } else { 0 });
    let mut all = Vec::with_capacity(steps.len());
    for (row, step) in (row..).zip(steps) {
        let drawn = step.option_prev == NO_OPTION || matches!(step.forced, Forced::Init | Forced::Preempted);
        let free = !drawn && step.forced == Forced::Free;
        let free = free && !(defect("masked_by_its_own_end") && step.end != End::None);
        let logit = |option| outputs.termination(row, option).clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
        let beta: Vec<f64> = (0..options).map(|option| log_sigmoid(logit(option)).exp()).collect();
        let over: Vec<f64> = outputs.log_over_options(row).iter().map(|log| log.exp()).collect();
        let acting = filter.arrive(drawn, &beta, &over);
        let ran = if defect("ends_before_it_ran") { &acting } else { filter.after() };
        let running = if free { ran.to_vec() } else { vec![0.0; options] };
        let likelihood: Vec<f64> =
            (0..options).map(|option| outputs.log_prob_action(row, option, step.proposal)).collect();
        filter.act(&acting, &likelihood);
        all.push(Belief { acting, running });
    }
    all
}

/// Steps that the option that acted has run on the next arrival.
fn age_beyond(step: &Step<'_>) -> u32 {
    Running { option: Some(step.option), age: step.option_age }.next(step.option, step.option_terminated).age
}
