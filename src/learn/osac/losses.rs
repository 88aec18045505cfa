//! The losses of option soft actor-critic, on tensors alone.
//!
//! Soft values (Soft Options Critic: Lobo & Jordan 2019, arXiv 1905.11222; with one option SAC: Haarnoja et al. 2018,
//! arXiv 1812.05905): `Qs(s, o) = min_i Q_i(s, o, a_o) - alpha log pi_o(a_o | s)`, one a_o ~ pi_o for each option;
//! `V(s) = sum_o P(o | s) (Qs(s, o) - alpha_P log P(o | s))`; on arrival with o running
//! `U(o, s) = (1 - beta_o) Qs(s, o) + beta_o (V(s) - eta)`, terminations in expectation, so that every option learns from
//! every step, whichever acted.

use crate::config::Osac as Config;
use crate::defect::defect;
use crate::learn::twin::Twin;
use crate::option::TERMINATION_LOGIT_MAX;
use crate::policy::{Heads, Network};
use tch::{Kind, Tensor};

/// Temperatures of the actions and of the policy over options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temperatures {
    pub(super) action: f64,
    pub(super) option: f64,
}

/// Steps for the critics.
pub(super) struct Drawn {
    /// `[B, D]`, normalised.
    pub(super) input: Tensor,
    /// Where the steps led, `[B, D]`, normalised.
    pub(super) next: Tensor,
    /// What was carried out, `[B, A]`.
    pub(super) action: Tensor,
    /// `[B]`.
    pub(super) reward: Tensor,
    /// gamma, 0 where the task ended the episode, `[B]`.
    pub(super) discount: Tensor,
    /// Importance weights, `[B]`.
    pub(super) weight: Tensor,
    /// Weights of the options in the loss, `[B, K]`, rows sum to 1.
    pub(super) share: Tensor,
    /// 1 for the option that acted, `[B, K]`.
    pub(super) executed: Tensor,
    /// Termination probability of the acting option on arrival where d_min or d_max decides it, `[B, K]`; below 0
    /// everywhere else.
    pub(super) forced: Tensor,
    /// Normal draws for the actions where the steps led, `[B, K, A]`.
    pub(super) noise: Tensor,
}

/// Steps for the actor.
pub(super) struct Picked {
    /// `[N, D]`, normalised.
    pub(super) input: Tensor,
    /// h: how far each option is responsible for what is done here, `[N, K]`, rows sum to 1.
    pub(super) responsibility: Tensor,
    /// g: belief that an option runs on arrival here, `[N, K]`; rows are 0 where the termination was not the policy's.
    pub(super) running: Tensor,
    /// Normal draws for the actions, `[N, K, A]`.
    pub(super) noise: Tensor,
}

/// One action of each option in N states.
pub(super) struct Imagined {
    /// In (-1, 1), `[N, K, A]`.
    pub(super) action: Tensor,
    /// log density of the action, the Jacobian of tanh included, `[N, K]`.
    pub(super) log_prob: Tensor,
}

/// `a = tanh(mean + std noise)`; `log(1 - tanh² u) = 2 (ln 2 - u - softplus(-2 u))` is exact for every u.
pub(super) fn imagine(heads: &Heads, noise: &Tensor) -> Imagined {
    let u = &heads.mean + heads.log_std.exp() * noise;
    let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
    let normal = noise.square() * -0.5 - &heads.log_std - half_log_tau;
    let jacobian = ((&u + (&u * -2.0).softplus()) * -1.0 + std::f64::consts::LN_2) * 2.0;
    Imagined { log_prob: (normal - jacobian).sum_dim_intlist([2i64].as_slice(), false, Kind::Float), action: u.tanh() }
}

/// Qs of own actions, `[N, K]`.
fn soft(critics: &Twin, input: &Tensor, imagined: &Imagined, alpha: f64) -> Tensor {
    critics.of_own_actions(input, &imagined.action).amin([0i64].as_slice(), false) - &imagined.log_prob * alpha
}

/// V, `[N, 1]`, of Qs and log P.
fn value(soft: &Tensor, log_over: &Tensor, alpha: f64) -> Tensor {
    (log_over.exp() * (soft - log_over * alpha)).sum_dim_intlist([1i64].as_slice(), true, Kind::Float)
}

fn beta(heads: &Heads) -> Tensor {
    heads.termination.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX).sigmoid()
}

/// Networks that are learned, and those that follow them slowly.
pub(super) struct Networks {
    pub(super) actor: Network,
    pub(super) slow_actor: Network,
    pub(super) critics: Twin,
    pub(super) slow_critics: Twin,
}

/// `y_o = r + gamma m U(o, s')` for every option, `[B, K]`, without gradients: values of the slow critics, terminations
/// and choices of the slow actor, actions of the learned one. What d_min and d_max decide is not drawn from the heads.
pub(super) fn targets(networks: &Networks, batch: &Drawn, alphas: Temperatures, config: &Config) -> Tensor {
    tch::no_grad(|| {
        let actor = &networks.actor;
        let imagined = imagine(&actor.split(&actor.actor(&batch.next)), &batch.noise);
        let soft = soft(&networks.slow_critics, &batch.next, &imagined, alphas.action);
        let arrival = if actor.options() == 1 {
            soft
        } else {
            let reached = if defect("ends_where_it_left") { &batch.input } else { &batch.next };
            let slow = networks.slow_actor.split(&networks.slow_actor.actor(reached));
            let log_over = slow.over_options.log_softmax(1, Kind::Float);
            let eta = soft.std(true) * config.deliberation_cost;
            let stop = value(&soft, &log_over, alphas.option) - eta;
            let beta = batch.forced.where_self(&batch.forced.ge(0.0), &beta(&slow));
            let soft = if defect("one_value_for_all_options") {
                (&soft * &batch.executed).sum_dim_intlist([1i64].as_slice(), true, Kind::Float).expand_as(&soft)
            } else {
                soft
            };
            &soft + beta * (stop - &soft)
        };
        batch.reward.unsqueeze(1) + batch.discount.unsqueeze(1) * arrival
    })
}

/// `sum_i mean_b w_b sum_o v_o H(Q_i(s, o, a) - y_o)`, H Huber's or half the square, whose gradient the critics take;
/// and the error of the option that acted, mean of the twins' absolute ones, `[B]`.
pub(super) fn critic_loss(critics: &mut Twin, batch: &Drawn, targets: &Tensor, config: &Config) -> (Tensor, Tensor) {
    let pass = critics.pass(&batch.input, &batch.action);
    let error = &pass.values - targets;
    let delta = config.huber_delta;
    let slope = if delta == 0.0 { error.shallow_clone() } else { error.clamp(-delta, delta) };
    let weight = &batch.share * (&batch.weight / batch.input.size()[0] as f64).unsqueeze(1);
    // H = e² / 2 where |e| < delta, delta (|e| - delta / 2) beyond: H' = clamp(e), H = H' (e - H' / 2).
    let weighed = &slope * &weight;
    let loss = (&weighed * (&error - slope * 0.5)).sum(Kind::Float);
    critics.learn(&pass, weighed);
    let errors = error.abs().mean_dim([0i64].as_slice(), false, Kind::Float);
    (loss, (errors * &batch.executed).sum_dim_intlist([1i64].as_slice(), false, Kind::Float))
}

/// The actor's losses, each a scalar.
pub(super) struct ActorLosses {
    /// `mean sum_o h_o (alpha log pi_o(a_o) - min_i Q_i(s, o, a_o))`.
    pub(super) policy: Tensor,
    /// `mean sum_o h_o log pi_o(a_o)`, without gradient: minus the entropy.
    pub(super) log_prob: Tensor,
    /// For more than one option.
    pub(super) options: Option<OptionLosses>,
}

impl ActorLosses {
    /// Their sum; each group of parameters hears of its own.
    pub(super) fn total(&self) -> Tensor {
        match &self.options {
            Some(options) => &self.policy + &options.over_options + &options.termination,
            None => self.policy.shallow_clone(),
        }
    }
}

/// The losses of the option level. No gradient reaches the trunk.
pub(super) struct OptionLosses {
    /// `mean sum_o P(o) (alpha_P log P(o) - Qs(s, o))`: exact in the options.
    pub(super) over_options: Tensor,
    /// `mean sum_o g_o (beta_o (Qs - V + eta) - t H(beta_o))`, of slow networks: at its optimum
    /// `beta_o = sigmoid(-(Qs - V + eta) / t)`.
    pub(super) termination: Tensor,
    /// Mean entropy of P, without gradient.
    pub(super) entropy: Tensor,
    /// Mean of beta over the belief that an option runs, `[K]`, without gradient.
    pub(super) beta: Tensor,
    /// Mean of (max - min over options) over the standard deviation of Qs, without gradient.
    pub(super) spread: Tensor,
}

/// Runs the networks and takes every loss of the actor.
pub(super) fn actor_losses(networks: &Networks, picked: &Picked, alphas: Temperatures, config: &Config) -> ActorLosses {
    let actor = &networks.actor;
    let features = actor.features(&picked.input);
    let heads = actor.split(&actor.heads(&features));
    let imagined = imagine(&heads, &picked.noise);
    let action = imagined.action.detach();
    let least = networks.critics.least(&picked.input, &action);
    // The value, and its gradient by the action: the critics themselves are not asked again on the way back.
    let rising = (&imagined.action - &action) * &least.slope;
    let rising = rising.sum_dim_intlist([2i64].as_slice(), false, Kind::Float);
    let soft_values = &least.value + rising - &imagined.log_prob * alphas.action;
    let rows = picked.input.size()[0] as f64;
    let weighed = |values: &Tensor| (values * &picked.responsibility).sum(Kind::Float) / rows;
    ActorLosses {
        policy: -weighed(&soft_values),
        log_prob: weighed(&imagined.log_prob.detach()),
        options: (1 < actor.options()).then(|| {
            // The heads of the option level, without a way back into the trunk.
            let heads = actor.split(&actor.heads(&features.detach()));
            option_losses(networks, picked, &heads, &imagined, &soft_values.detach(), alphas, config)
        }),
    }
}

fn option_losses(
    networks: &Networks,
    picked: &Picked,
    heads: &Heads,
    imagined: &Imagined,
    soft_values: &Tensor,
    alphas: Temperatures,
    config: &Config,
) -> OptionLosses {
    let rows = picked.input.size()[0] as f64;
    let log_over = heads.over_options.log_softmax(1, Kind::Float);
    let over = log_over.exp();
    let over_options = (&over * (&log_over * alphas.option - soft_values)).sum(Kind::Float) / rows;

    let (advantage, scale) = tch::no_grad(|| {
        let imagined = Imagined { action: imagined.action.detach(), log_prob: imagined.log_prob.detach() };
        let slow_values = soft(&networks.slow_critics, &picked.input, &imagined, alphas.action);
        let slow = networks.slow_actor.split(&networks.slow_actor.actor(&picked.input));
        let slow_log_over = slow.over_options.log_softmax(1, Kind::Float);
        let scale = slow_values.std(true);
        let stop = value(&slow_values, &slow_log_over, alphas.option) - &scale * config.deliberation_cost;
        (slow_values - stop, scale)
    });
    let logit = heads.termination.clamp(-TERMINATION_LOGIT_MAX, TERMINATION_LOGIT_MAX);
    let beta = logit.sigmoid();
    // H(Bernoulli(beta)) = -beta log beta - (1 - beta) log(1 - beta) = softplus(logit) - beta logit
    let entropy = logit.softplus() - &beta * &logit;
    let each = &beta * advantage - entropy * (scale * config.termination_temperature);
    let mass = picked.running.sum_dim_intlist([0i64].as_slice(), false, Kind::Float).clamp_min(1e-6);
    let betas = (beta.detach() * &picked.running).sum_dim_intlist([0i64].as_slice(), false, Kind::Float) / mass;
    let range = soft_values.amax([1i64].as_slice(), false) - soft_values.amin([1i64].as_slice(), false);
    OptionLosses {
        over_options,
        termination: (each * &picked.running).sum(Kind::Float) / rows,
        entropy: (&over * &log_over).sum(Kind::Float).detach() / -rows,
        beta: betas,
        spread: range.mean(Kind::Float) / soft_values.std(true).clamp_min(1e-12),
    }
}
