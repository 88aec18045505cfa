//! Returns and advantages on the half-step chain: one kernel for GAE and V-trace at both levels.
//!
//! The chain interleaves the two decisions of a step. X_{2t} = (s_t, o_{t-1}), value U, decides o_t with p^, reward
//! `-cost`, discount 1, ratio rho^H; X_{2t+1} = (s_t, o_t), value Q, decides a_t, reward r_t, discount gamma, ratio
//! rho^L. It is an ordinary MDP, so V-trace (Espeholt et al. 2018, arXiv 1802.01561, eq. 1; with the lambda of remark 2)
//! holds on it as it stands. On-policy it is GAE: lam_option = 1 gives DAC's high-level advantages, lam_action = 1 its
//! low-level ones (Zhang & Whiteson 2019, arXiv 1904.12691).

use crate::defect::defect;
use crate::error::{Error, Result};

/// One step of a row, both half-steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfStep {
    /// r_t.
    pub reward: f64,
    /// Deliberation cost that the sampled choice paid: eta where o_t differs from o_{t-1}, else 0.
    pub cost: f64,
    /// gamma; 0 where the step terminated.
    pub discount: f64,
    /// U(s_t, o_{t-1}), cost included; sum_o P Q at the start of an episode.
    pub arrival_value: f64,
    /// Q(s_t, o_t).
    pub value: f64,
    /// Where the trace is cut (terminated, truncated, end of the row): U(s', o_t) in the state where the step led.
    /// None where the next step of the row follows.
    pub bootstrap: Option<f64>,
    /// log of p^_target(o_t) / p^_behaviour(o_t).
    pub log_rho_option: f64,
    /// log of pi_target(a_t) / pi_behaviour(a_t).
    pub log_rho_action: f64,
}

/// How far errors travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traces {
    /// Decay from an action to what follows.
    pub lam_action: f64,
    /// Decay from an option choice to its action.
    pub lam_option: f64,
    /// Truncation of the ratios, rho bar = c bar.
    pub rho_clip: f64,
}

/// What the kernel says of one step. Advantages lack the leading ratio; IMPALA's have it: `rho_option * advantage_option`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// V-trace target of U(s_t, o_{t-1}).
    pub arrival_target: f64,
    /// V-trace target of Q(s_t, o_t).
    pub target: f64,
    /// A_H: advantage of o_t.
    pub advantage_option: f64,
    /// A_L: advantage of a_t.
    pub advantage_action: f64,
    /// min(rho bar, rho^H).
    pub rho_option: f64,
    /// min(rho bar, rho^L).
    pub rho_action: f64,
}

/// Runs the kernel over one row. Refuses a row whose last step has no bootstrap.
pub fn half_step(steps: &[HalfStep], traces: &Traces) -> Result<Vec<Estimate>> {
    let mut estimates = vec![Estimate::default(); steps.len()];
    let mut follows: Option<(f64, f64)> = None;
    for (t, (step, estimate)) in steps.iter().zip(&mut estimates).enumerate().rev() {
        let (next_value, next_error) = match (step.bootstrap, follows) {
            (Some(value), Some((_, error))) if defect("trace_crosses_an_end") => (value, error),
            (Some(value), _) => (value, 0.0),
            (None, Some(next)) => next,
            (None, None) => {
                return Err(Error::invalid(format!("step {t} ends its row; it needs the value where it led")));
            }
        };
        let rho_action = step.log_rho_action.exp().min(traces.rho_clip);
        let log_rho_option = if defect("action_ratios_alone") { 0.0 } else { step.log_rho_option };
        let rho_option = log_rho_option.exp().min(traces.rho_clip);

        let carried = step.discount * traces.lam_action * next_error;
        let advantage_action = step.reward + step.discount * next_value - step.value + carried;
        let error = rho_action * advantage_action;

        let advantage_option = step.value - step.cost - step.arrival_value + traces.lam_option * error;
        let arrival_error = rho_option * advantage_option;

        *estimate = Estimate {
            arrival_target: step.arrival_value + arrival_error,
            target: step.value + error,
            advantage_option,
            advantage_action,
            rho_option,
            rho_action,
        };
        follows = Some((step.arrival_value, arrival_error));
    }
    Ok(estimates)
}
