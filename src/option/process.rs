//! The option process: what happens to the running option on arrival in a state.
//!
//! `p^(o | s, o-) = (1 - beta_{o-}(s)) 1[o = o-] + beta_{o-}(s) P(o | s)`, and `P(o | s)` at the start of an episode:
//! the termination is marginalised (Zhang & Whiteson 2019, arXiv 1904.12691, the high-level MDP of DAC).

use super::Running;
use crate::contract::Options;
use crate::data::Forced;

/// Termination logits are clamped to `±` this, so that neither going on nor ending becomes impossible.
pub const TERMINATION_LOGIT_MAX: f64 = 6.0;

/// beta that holds for an option which has run `age` steps on arrival: 0 below d_min, 1 from d_max on.
pub fn beta_effective(beta: f64, age: u32, options: &Options) -> (f64, Forced) {
    if options.max_steps <= age {
        (1.0, Forced::MaxSteps)
    } else if age < options.min_steps {
        (0.0, Forced::MinSteps)
    } else {
        (beta, Forced::Free)
    }
}

/// Writes p^ over the K options of `over_options` (P, which sums to 1); `running` is none at the start of an episode.
pub fn transition(beta_effective: f64, running: Option<usize>, over_options: &[f64], out: &mut [f64]) {
    match running {
        None => out.copy_from_slice(over_options),
        Some(running) => {
            for (option, (out, share)) in out.iter_mut().zip(over_options).enumerate() {
                let goes_on = if option == running { 1.0 - beta_effective } else { 0.0 };
                *out = goes_on + beta_effective * share;
            }
        }
    }
}

/// U(s, o-) = sum_o p^(o) (Q(s, o) - cost 1[o != o-]): the value on arrival, before the option is chosen.
/// A change of option costs `cost`; the first choice of an episode (`running` none) costs nothing.
pub fn arrival_value(transition: &[f64], values: &[f64], running: Option<usize>, cost: f64) -> f64 {
    let changes = |option: usize| running.is_some_and(|running| running != option);
    let net = |(option, value): (usize, &f64)| if changes(option) { value - cost } else { *value };
    values.iter().enumerate().map(net).zip(transition).map(|(net, share)| share * net).sum()
}

/// One arrival, in log space: whether the running option may end here, and how likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The option that was running; none at the start of an episode.
    pub running: Option<usize>,
    /// log beta, effective: 0 where the option must end, minus infinity where it must not.
    pub log_stop: f64,
    /// log (1 - beta), effective.
    pub log_continue: f64,
    /// Where the policy does not choose.
    pub forced: Forced,
}

impl Arrival {
    /// `logit` is the running option's termination logit in the state (ignored where there is none running).
    pub fn new(logit: f64, running: Running, options: &Options) -> Self {
        let Some(option) = running.option else {
            return Self { running: None, log_stop: 0.0, log_continue: f64::NEG_INFINITY, forced: Forced::Init };
        };
        let logit = logit.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
        let (beta, forced) = beta_effective(log_sigmoid(logit).exp(), running.age, options);
        let (log_stop, log_continue) = match forced {
            Forced::Free => (log_sigmoid(logit), log_sigmoid(-logit)),
            _ => (beta.ln(), (1.0 - beta).ln()),
        };
        Self { running: Some(usize::from(option)), log_stop, log_continue, forced }
    }

    /// beta, effective.
    pub fn beta(&self) -> f64 {
        self.log_stop.exp()
    }

    /// log p^(option); `log_over_options` is log P. Minus infinity where d_min forbids the option.
    pub fn log_transition(&self, option: usize, log_over_options: &[f64]) -> f64 {
        let chosen = self.log_stop + log_over_options[option];
        if self.running == Some(option) { log_sum_exp(&[self.log_continue, chosen]).min(0.0) } else { chosen }
    }
}

impl Running {
    /// What runs on the next arrival: the age restarts at every choice, of the same option too.
    pub fn next(self, option: u8, terminated: bool) -> Self {
        Self { option: Some(option), age: if terminated { 1 } else { self.age.saturating_add(1) } }
    }
}

/// log sigmoid(x), for every x.
pub fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// log sum exp; minus infinity for nothing but minus infinities.
pub fn log_sum_exp(logs: &[f64]) -> f64 {
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY { max } else { max + logs.iter().map(|log| (log - max).exp()).sum::<f64>().ln() }
}

/// log softmax, in place.
pub fn log_softmax(logits: &mut [f64]) {
    let total = log_sum_exp(logits);
    for logit in logits {
        *logit -= total;
    }
}
