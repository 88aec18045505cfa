//! The values of actions, which stay with the learner.

use super::dataset::Steps;
use super::losses::{executed, expectile_loss, targets};
use crate::config::{Offline as Config, Seed};
use crate::contract::{Contract, Layout};
use crate::learn::learned::Learned;
use crate::learn::twin::{Pass, Twin};
use crate::learn::uniform;
use crate::policy::Network;
use tch::{Kind, Tensor};

/// What each option learns of a step, `[N, K]`: the executed one most.
pub(super) fn shares(steps: &Steps, config: &Config) -> Tensor {
    let options = steps.executed.size()[1] as f64;
    &steps.executed * config.executed_weight + (1.0 - config.executed_weight) / options
}

/// Values of actions, `Q_i(s, o, a)`, and those that follow them slowly.
pub(super) struct Critics {
    pub(super) twin: Twin,
    pub(super) slow: Twin,
    pub(super) learned: Learned,
}

impl Critics {
    pub(super) fn new(contract: &Contract, lr: f64, seed: Seed) -> Self {
        let inputs = contract.obs_size() + contract.action_size();
        let layout = Layout::twin_critics(inputs, &contract.network.hidden, contract.options.count);
        let parameters = uniform::parameters(&layout, contract.layout().segments.len() as u64, 0.0, seed);
        let twin = || Twin::new(&layout, &parameters);
        Self { twin: twin(), slow: twin(), learned: Learned::new(layout.clone(), parameters.clone(), |_| Some(lr)) }
    }

    /// The lesser of the slow twins, `[N, K]`.
    pub(super) fn least(&self, steps: &Steps) -> Tensor {
        self.slow.pass(&steps.input, &steps.action).values.amin([0i64].as_slice(), false)
    }

    /// `mean_n expectile_tau(min_i Q_i(s, o, a) - W(s, o))` of the option that acted.
    pub(super) fn value_loss(&self, network: &Network, steps: &Steps, config: &Config) -> Tensor {
        let error = executed(&(self.least(steps) - network.critic(&steps.input)), steps);
        expectile_loss(&error, config.expectile).mean(Kind::Float)
    }

    /// `sum_i mean_n sum_o v_o (Q_i(s, o, a) - y_o)²`, the pass through the critics, and the gradient by their values.
    pub(super) fn loss(&self, network: &Network, steps: &Steps, config: &Config, cost: f64) -> (Tensor, Pass, Tensor) {
        tch::no_grad(|| {
            let heads = network.split(&network.actor(&steps.next));
            let wanted = targets(&heads, &network.critic(&steps.next), steps, cost);
            let share = shares(steps, config);
            let pass = self.twin.pass(&steps.input, &steps.action);
            let error = &pass.values - wanted;
            let weighed = &error * (share / steps.len() as f64);
            ((&weighed * &error).sum(Kind::Float), pass, weighed * 2.0)
        })
    }
}
