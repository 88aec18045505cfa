//! The losses of implicit Q-learning (Kostrikov, Nair & Levine 2021, arXiv 2110.06169) with options, on tensors alone. With one
//! option they are its own; with all weights 1 the actor's are those of cloning.
//!
//! `W(s, o)` is the value of an option, `V(s) = sum_o P(o | s) W(s, o)`, and on arrival with o running
//! `U(o, s) = (1 - beta_o) W(s, o) + beta_o (V(s) - eta)`.

use super::dataset::Steps;
use crate::option::TERMINATION_LOGIT_MAX;
use crate::policy::{Heads, LOG_STD_RANGE};
use tch::{Kind, Tensor};

fn sum(tensor: &Tensor, axis: i64) -> Tensor {
    tensor.sum_dim_intlist([axis].as_slice(), false, Kind::Float)
}

/// `|tau - 1[error < 0]| error²` (eq. 5): its minimum over what is taken from a sample is the sample's expectile.
pub(super) fn expectile_loss(error: &Tensor, tau: f64) -> Tensor {
    (error.lt(0.0).to_kind(error.kind()) - tau).abs() * error.square()
}

/// `min(exp(temperature advantage), most)` (eq. 7, clipped as in its code).
pub(super) fn weights(advantage: &Tensor, temperature: f64, most: f64) -> Tensor {
    (advantage * temperature).clamp_max(most.ln()).exp()
}

/// `[N]` of the option that acted.
pub(super) fn executed(values: &Tensor, steps: &Steps) -> Tensor {
    sum(&(values * &steps.executed), 1)
}

/// `V(s)`, `[N, 1]`.
pub(super) fn value(values: &Tensor, over_options: &Tensor) -> Tensor {
    (over_options.softmax(1, Kind::Float) * values).sum_dim_intlist([1i64].as_slice(), true, Kind::Float)
}

/// `raw` within its bounds. Beyond them it has the gradient of its bound where a descent along `slope`, of the loss at what it is within
/// them, leads back, and none where it leads on (as [`leads_back`](crate::learn::loss::leads_back)).
fn bounded(raw: &Tensor, (low, high): (f64, f64), slope: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let clamped = raw.clamp(low, high);
    let back = tch::no_grad(|| (slope(&clamped) * (raw - &clamped)).gt(0.0).to_kind(raw.kind()));
    clamped + (raw - raw.detach()) * back
}

/// `r + gamma m U(o, s')` for every option, `[N, K]`. `heads` and `values` are of where the steps led. What d_min and d_max decide is not
/// drawn from the heads.
pub(super) fn targets(heads: &Heads, values: &Tensor, steps: &Steps, cost: f64) -> Tensor {
    let stop = value(values, &heads.over_options) - cost;
    let own = heads.termination.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX).sigmoid();
    let beta = steps.forced.where_self(&steps.forced.ge(0.0), &own);
    let arrival = values + beta * (stop - values);
    steps.reward.unsqueeze(1) + steps.discount.unsqueeze(1) * arrival
}

/// How much the steps count.
pub(super) struct Counts {
    /// Of the actions for each option, `[N, K]`.
    pub(super) action: Tensor,
    /// Of the choices, `[N]`.
    pub(super) option: Tensor,
    /// `weight (W(s, o) - V(s) + eta)`, the gain of going on, `[N, K]`.
    pub(super) going_on: Tensor,
}

/// The actor's losses, each a scalar.
pub(super) struct ActorLosses {
    /// `-mean sum_o w_o log pi_o(u | s)`, density of the action before tanh.
    pub(super) policy: Tensor,
    /// `-mean w log P(o | s)` over the choices.
    pub(super) over_options: Tensor,
    /// `mean BCE(beta_o, b) + beta_o (W - V + eta)` over the arrivals with o running and free.
    pub(super) termination: Tensor,
}

impl ActorLosses {
    pub(super) fn new(heads: &Heads, steps: &Steps, counts: &Counts) -> Self {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        let apart = |log_std: &Tensor| (steps.proposal.unsqueeze(1) - &heads.mean) / log_std.exp();
        let counted = counts.action.unsqueeze(2);
        let log_std = bounded(&heads.log_std, LOG_STD_RANGE, |log_std| {
            ((apart(log_std).square() * -1.0 + 1.0) * &counted).sum_dim_intlist([0i64].as_slice(), true, Kind::Float)
        });
        let log_prob = sum(&(apart(&log_std).square() * -0.5 - &log_std - half_log_tau), 2);
        let log_over = heads.over_options.log_softmax(1, Kind::Float);
        let ended = steps.ended.unsqueeze(1);
        let logit = bounded(&heads.termination, (-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX), |logit| {
            let beta = logit.sigmoid();
            (&beta - &ended + (&beta - beta.square()) * &counts.going_on) * &steps.running
        });
        // BCE(sigmoid(logit), b) = softplus(logit) - b logit
        let likelihood = logit.softplus() - ended * &logit;
        let termination = (likelihood + logit.sigmoid() * &counts.going_on) * &steps.running;
        let some = |mass: &Tensor| mass.sum(Kind::Float).clamp_min(1.0);
        Self {
            policy: -sum(&(&log_prob * &counts.action), 1).mean(Kind::Float),
            over_options: -(executed(&log_over, steps) * &counts.option * &steps.chosen).sum(Kind::Float)
                / some(&steps.chosen),
            termination: termination.sum(Kind::Float) / some(&steps.running),
        }
    }

    /// What the actor goes down.
    pub(super) fn total(&self, options: usize) -> Tensor {
        if options == 1 { self.policy.shallow_clone() } else { &self.policy + &self.over_options + &self.termination }
    }
}
