//! Which option acted, from what was done: the forward filter over options
//! (HO2: Wulfmeier et al. 2021, arXiv 2007.15588, eq. 3; IOPG: Smith et al. 2018).

use super::log_sum_exp;
use crate::defect::defect;

/// The belief about the option that runs, along one fragment. d_min and d_max are left out: the ages of options that may
/// have run are not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// After the last action.
    after: Vec<f64>,
}

impl Filter {
    /// Before the first arrival: the option that is known to run there.
    pub fn new(options: usize, running: usize) -> Self {
        let mut after = vec![0.0; options];
        after[running] = 1.0;
        Self { after }
    }

    /// h_t(o), before the action: `sum_o- p^(o | s_t, o-) g_{t-1}(o-)`. `drawn`: the option is drawn from the policy over
    /// options whatever ran (start, pre-emption). `beta` and `over_options` are of s_t, K each.
    pub fn arrive(&self, drawn: bool, beta: &[f64], over_options: &[f64]) -> Vec<f64> {
        if drawn != defect("redrawn_at_every_step") {
            return over_options.to_vec();
        }
        let ended: f64 = self.after.iter().zip(beta).map(|(share, beta)| share * beta).sum();
        let stays = self.after.iter().zip(beta).map(|(share, beta)| share * (1.0 - beta));
        stays.zip(over_options).map(|(stays, over)| stays + ended * over).collect()
    }

    /// g_t(o), after the action: proportional to `h_t(o) pi_o(a_t | s_t)`; likelihoods in log space.
    pub fn act(&mut self, before: &[f64], log_likelihood: &[f64]) {
        let logs: Vec<f64> = before.iter().zip(log_likelihood).map(|(share, log)| share.ln() + log).collect();
        let total = log_sum_exp(&logs);
        self.after.clear();
        if total.is_finite() {
            self.after.extend(logs.iter().map(|log| (log - total).exp()));
        } else {
            self.after.extend(before);
        }
    }

    /// g_t, K numbers that sum to 1.
    pub fn after(&self) -> &[f64] {
        &self.after
    }
}
