//! What an update learns from: densities under the proximal policy, advantages, value targets.

use super::gather::{Gathered, Next};
use super::metrics::{mean, std};
use super::normaliser::Moments;
use crate::config;
use crate::contract::Contract;
use crate::data::End;
use crate::defect::defect;
use crate::error::{Error, Result};
use crate::option::{Arrival, Estimate, HalfStep, Running, Traces, arrival_value, half_step, transition};
use crate::policy::Outputs;

/// Per step, all of the same length N. "Proximal" is the policy of the parameters at the start of the update.
pub(super) struct Estimated {
    /// log density of the proposal, proximal.
    pub(super) log_prob_action: Vec<f64>,
    /// log p^(option), proximal.
    pub(super) log_prob_option: Vec<f64>,
    /// log of proximal / behaviour, actions.
    pub(super) log_rho_action: Vec<f64>,
    /// log of proximal / behaviour, options.
    pub(super) log_rho_option: Vec<f64>,
    /// What happened to the running option, proximal.
    pub(super) arrivals: Vec<Arrival>,
    /// The kernel's answer.
    pub(super) estimates: Vec<Estimate>,
    /// Q(s, o) of the option that acted.
    pub(super) values: Vec<f64>,
    /// A_L over all steps: mean 0, standard deviation 1.
    pub(super) advantage_action: Vec<f64>,
    /// A_H over the standard deviation of the raw A_L (never its own, which is noise where options are alike), less the
    /// mean that it took over from A_L: a constant baseline, 0 for lam_option = 0.
    pub(super) advantage_option: Vec<f64>,
}

/// Scale of rewards and the cost of a change of option, in scaled rewards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Rewards are divided by this.
    pub reward: f64,
    /// eta.
    pub cost: f64,
}

impl Scale {
    /// Rewards in units of the return's standard deviation, and the deliberation cost; none for one option.
    pub(super) fn of(config: &config::HsPpo, options: usize, returns: &Moments) -> Self {
        let reward = if config.normalise_reward { returns.std(0) } else { 1.0 };
        let fraction = if options == 1 { 0.0 } else { config.deliberation_cost };
        Self { reward, cost: fraction * returns.std(0) / reward }
    }
}

/// Discounted sums of past rewards, as SB3's VecNormalize keeps them: anew after each end, and at the start of a row.
pub(super) fn past_returns(gathered: &Gathered<'_>, gamma: f64) -> Vec<f32> {
    let mut steps = gathered.steps.iter();
    let mut sums = Vec::with_capacity(gathered.steps.len());
    for &length in &gathered.rows {
        let mut sum = 0.0;
        for step in steps.by_ref().take(length) {
            sum = gamma * sum + f64::from(step.reward);
            sums.push(sum as f32);
            if step.end != End::None {
                sum = 0.0;
            }
        }
    }
    sums
}

/// Runs the half-step kernel over all rows. `outputs` and `q` (`[N + E, K]`) are the current networks' on
/// `gathered.observations`.
pub(super) fn estimate(
    gathered: &Gathered<'_>,
    outputs: &Outputs,
    q: &[f32],
    contract: &Contract,
    config: &config::HsPpo,
    scale: Scale,
) -> Result<Estimated> {
    let (count, options) = (gathered.steps.len(), contract.options.count);
    let values_at = |row: usize| -> Vec<f64> {
        q[row * options..(row + 1) * options].iter().map(|&value| f64::from(value)).collect()
    };
    let arrive = |row: usize, running: Running| {
        let logit = running.option.map_or(0.0, |option| outputs.termination(row, usize::from(option)));
        Arrival::new(logit, running, &contract.options)
    };
    let worth = |row: usize, arrival: &Arrival, log_over: &[f64], values: &[f64]| {
        let over: Vec<f64> = log_over.iter().map(|log| log.exp()).collect();
        let mut law = vec![0.0; options];
        transition(arrival.beta(), arrival.running, &over, &mut law);
        let value = arrival_value(&law, values, arrival.running, scale.cost);
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::invalid(format!("the networks' outputs on observation {row} of the update are not finite")))
    };

    let mut all = Estimated {
        log_prob_action: Vec::with_capacity(count),
        log_prob_option: Vec::with_capacity(count),
        log_rho_action: Vec::with_capacity(count),
        log_rho_option: Vec::with_capacity(count),
        arrivals: Vec::with_capacity(count),
        estimates: Vec::with_capacity(count),
        values: Vec::with_capacity(count),
        advantage_action: Vec::new(),
        advantage_option: Vec::new(),
    };
    let mut half_steps = Vec::with_capacity(count);
    for (row, step) in gathered.steps.iter().enumerate() {
        let option = usize::from(step.choice.option);
        let (values, log_over) = (values_at(row), outputs.log_over_options(row));
        let arrival = arrive(row, gathered.arrivals[row]);
        let log_prob_option = arrival.log_transition(option, &log_over);
        let log_prob_action = outputs.log_prob_action(row, option, &step.choice.proposal);
        if !log_prob_option.is_finite() || !log_prob_action.is_finite() {
            let (age, prev) = (step.choice.option_age, step.choice.option_prev);
            return Err(Error::invalid(format!(
                "option {option} after {prev} at age {age} (step {row} of the update) has no probability"
            )));
        }
        let (discount, bootstrap) = match gathered.next[row] {
            Next::Step => (config.gamma, None),
            Next::Nothing => (0.0, Some(0.0)),
            Next::Edge(edge) => {
                let at = count + edge;
                let arrival = arrive(at, gathered.edges[edge]);
                (config.gamma, Some(worth(at, &arrival, &outputs.log_over_options(at), &values_at(at))?))
            }
        };
        let changed = arrival.running.is_some_and(|running| running != option);
        let half = HalfStep {
            reward: f64::from(step.reward) / scale.reward,
            cost: if changed { scale.cost } else { 0.0 },
            discount,
            arrival_value: worth(row, &arrival, &log_over, &values)?,
            value: values[option],
            bootstrap,
            log_rho_option: if config.option_ratios {
                log_prob_option - f64::from(step.choice.log_prob_option)
            } else {
                0.0
            },
            log_rho_action: if config.action_ratios {
                log_prob_action - f64::from(step.choice.log_prob_action)
            } else {
                0.0
            },
        };
        let half = with_defects(half, step.end, scale.cost);
        all.log_prob_action.push(log_prob_action);
        all.log_prob_option.push(log_prob_option);
        all.log_rho_action.push(half.log_rho_action);
        all.log_rho_option.push(half.log_rho_option);
        all.arrivals.push(arrival);
        all.values.push(half.value);
        half_steps.push(half);
    }

    let traces = Traces { lam_action: config.lam, lam_option: config.lam_option, rho_clip: config.rho_clip };
    let mut rest = &half_steps[..];
    for &length in &gathered.rows {
        let (row, others) = rest.split_at(length);
        all.estimates.append(&mut half_step(row, &traces)?);
        rest = others;
    }
    if defect("credit_of_the_next_step") {
        all.estimates.rotate_left(1);
    }
    let raw: Vec<f64> = all.estimates.iter().map(|estimate| estimate.advantage_action).collect();
    let (middle, spread) = (mean(raw.iter().copied()), std(&raw) + 1e-8);
    all.advantage_action = raw.iter().map(|advantage| (advantage - middle) / spread).collect();
    let carried = mean(all.estimates.iter().map(|estimate| estimate.rho_action * estimate.advantage_action));
    let baseline = config.lam_option * carried;
    all.advantage_option =
        all.estimates.iter().map(|estimate| (estimate.advantage_option - baseline) / spread).collect();
    Ok(all)
}

/// The step as it is, unless a test throws a switch.
fn with_defects(half: HalfStep, end: End, cost: f64) -> HalfStep {
    let made_up = half.bootstrap.map(|_| (half.value - half.reward) / half.discount.max(f64::MIN_POSITIVE));
    match half {
        _ if defect("an_end_pays") && end != End::None => HalfStep { cost, ..half },
        _ if defect("pays_twice") => HalfStep { cost: 2.0 * half.cost, ..half },
        _ if defect("old_data_as_new") => HalfStep { log_rho_action: 0.0, log_rho_option: 0.0, ..half },
        _ if defect("last_value_made_up") && end != End::Terminated => HalfStep { bootstrap: made_up, ..half },
        _ if defect("levels_swapped") => HalfStep { arrival_value: half.value, value: half.arrival_value, ..half },
        _ => half,
    }
}

/// Weight of each option's steps: sqrt of equal share over its share, within 1/4 to 4, mean 1 over the steps.
pub(super) fn option_weights(counts: &[usize]) -> Vec<f64> {
    let (total, options) = (counts.iter().sum::<usize>() as f64, counts.len() as f64);
    let raw: Vec<f64> =
        counts.iter().map(|&count| (total / (options * count.max(1) as f64)).sqrt().clamp(0.25, 4.0)).collect();
    let sum: f64 = raw.iter().zip(counts).map(|(weight, &count)| weight * count as f64).sum();
    raw.iter().map(|weight| weight * total / sum).collect()
}
