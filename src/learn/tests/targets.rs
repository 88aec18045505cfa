//! What the critic is taught: cuts, bootstraps, forced options, by hand from the network's own outputs.

use super::{acting, config, fresh, learner};
use crate::config::HsPpo as Config;
use crate::data::{End, Final, Forced, Fragment, NO_OPTION};
use crate::learn::HsPpo;
use crate::learn::gather::{Gathered, Next};
use crate::option::{Arrival, Running, arrival_value, transition};
use crate::policy::tests::contract;

fn exact() -> Config {
    Config { normalise_reward: false, lam: 0.0, lam_option: 0.0, deliberation_cost: 0.0, ..config() }
}

/// U of a raw observation, by the acting policy's public face.
fn arrival_worth(learner: &HsPpo, observation: &[f32], running: Running, cost: f64) -> f64 {
    let policy = acting(learner, 1);
    let outputs = policy.outputs(observation).unwrap();
    let values: Vec<f64> = policy.values(observation).unwrap().iter().map(|&value| f64::from(value)).collect();
    let logit = running.option.map_or(0.0, |option| outputs.termination(0, usize::from(option)));
    let arrival = Arrival::new(logit, running, &policy.contract().options);
    let over: Vec<f64> = outputs.log_over_options(0).iter().map(|log| log.exp()).collect();
    let mut law = vec![0.0; over.len()];
    transition(arrival.beta(), arrival.running, &over, &mut law);
    arrival_value(&law, &values, arrival.running, cost)
}

#[test]
fn one_step_targets_bootstrap_where_the_step_led() {
    let config = exact();
    let (learner, mut rows) = fresh(3, &config);
    rows[0].steps[5].end = End::Aborted;
    let last = rows[0].observation(6).to_vec();
    rows[0].finals.push(Final { step: 5, observation: last });
    rows[0].finals.sort_by_key(|last| last.step);
    let prepared = learner.prepare(&rows, 1).unwrap();
    let mut seen = [0; 4];
    let mut estimates = prepared.estimated.estimates.iter();
    for row in &rows {
        for (t, step) in row.steps.iter().enumerate() {
            let age = Running { option: None, age: step.choice.option_age }
                .next(step.choice.option, step.choice.option_terminated)
                .age;
            let running = Running { option: Some(step.choice.option), age };
            let value = if step.end == End::Terminated {
                0.0
            } else {
                config.gamma * arrival_worth(&learner, row.next_observation(t), running, 0.0)
            };
            let found = estimates.next().unwrap().target;
            let want = f64::from(step.reward) + value;
            assert!((found - want).abs() < 1e-4, "{:?} step {t}: {found}, want {want}", step.end);
            seen[step.end as usize] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "every end was seen: {seen:?}");
}

#[test]
fn a_bootstrap_knows_the_age_of_the_option_that_runs_on() {
    let (_, rows) = fresh(3, &exact());
    let contract = contract(3, &[16, 16]);
    let gathered = Gathered::new(&rows, &contract, 1).unwrap();
    for (row, fragment) in rows.iter().enumerate() {
        let last = (row + 1) * 64 - 1;
        let Next::Edge(edge) = gathered.next[last] else { continue };
        let step = &fragment.steps[63];
        let age = if step.choice.option_terminated { 1 } else { step.choice.option_age + 1 };
        assert_eq!(gathered.edges[edge], Running { option: Some(step.choice.option), age });
    }
    for (row, step) in gathered.steps.iter().enumerate() {
        let within = (row + 1) % 64 != 0;
        assert_eq!(gathered.next[row] == Next::Step, step.end == End::None && within);
    }
}

/// Safety took the option away: the step before bootstraps as if it ran on, the choice itself is not learned from.
#[test]
fn a_pre_emption_cuts_the_trace_and_its_choice_is_masked() {
    let (learner, mut rows) = fresh(3, &Config { lam: 0.95, lam_option: 1.0, ..exact() });
    let at = (1..63).find(|&t| rows[0].steps[t].end == End::None && rows[0].steps[t - 1].end == End::None).unwrap();
    let prev = rows[0].steps[at - 1].choice.option;
    let policy = acting(&learner, 1);
    let outputs = policy.outputs(rows[0].observation(at)).unwrap();
    let step = &mut rows[0].steps[at];
    (step.choice.forced, step.choice.option_terminated, step.choice.option_prev, step.choice.option_age) =
        (Forced::Preempted, true, prev, 4);
    step.choice.log_prob_option = outputs.log_over_options(0)[usize::from(step.choice.option)] as f32;
    let prepared = learner.prepare(&rows, 1).unwrap();
    let Next::Edge(edge) = prepared.gathered.next[at - 1] else { panic!("the trace runs on") };
    assert_eq!(prepared.gathered.edges[edge].option, Some(prev));
    assert!(prepared.estimated.log_rho_option[at].abs() < 1e-5);
    let advantage = |t: usize| prepared.batch.steps.column(t, crate::learn::batch::Column::AdvantageOption);
    assert_eq!(advantage(at), 0.0);
    let init = (0..64).filter(|&t| rows[0].steps[t].choice.forced == Forced::Init);
    assert!(init.map(|t| advantage(t).abs()).all(|advantage| 0.0 < advantage), "starts count");
    let others: f64 = (0..64).map(|t| advantage(t).abs()).sum();
    assert!(others > 1.0);
}

#[test]
fn a_change_of_option_pays_in_the_sample_and_in_the_expectation() {
    let cost = 0.7;
    let (learner, rows) = fresh(3, &Config { deliberation_cost: cost, ..exact() });
    let prepared = learner.prepare(&rows, 1).unwrap();
    let eta = prepared.scale.cost;
    assert!((eta - cost * prepared.returns.std(0)).abs() < 1e-12);
    let (mut changes, mut row) = (0, 0);
    for fragment in &rows[..2] {
        for (t, step) in fragment.steps.iter().enumerate() {
            let running = match step.choice.option_prev {
                NO_OPTION => Running::default(),
                option => Running { option: Some(option), age: step.choice.option_age },
            };
            let worth = arrival_worth(&learner, fragment.observation(t), running, eta);
            let paid = if step.choice.option_prev != NO_OPTION && step.choice.option_prev != step.choice.option {
                eta
            } else {
                0.0
            };
            changes += usize::from(paid > 0.0);
            let want = prepared.estimated.values[row] - paid - worth;
            let found = prepared.estimated.estimates[row].advantage_option;
            assert!((found - want).abs() < 1e-4, "step {t}: {found}, want {want}");
            row += 1;
        }
    }
    assert!(changes > 5);
}

#[test]
fn one_option_never_pays() {
    let (learner, rows) = fresh(1, &Config { deliberation_cost: 0.7, ..exact() });
    assert_eq!(learner.prepare(&rows, 1).unwrap().scale.cost, 0.0);
}

#[test]
fn rewards_are_divided_by_the_spread_of_the_discounted_return() {
    let config = Config { normalise_reward: true, ..exact() };
    let (learner, rows) = fresh(2, &config);
    let mut sums = Vec::new();
    for row in &rows {
        let mut sum = 0.0;
        for step in &row.steps {
            sum = config.gamma * sum + f64::from(step.reward);
            sums.push(sum);
            sum = if step.end == End::None { sum } else { 0.0 };
        }
    }
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / sums.len() as f64;
    let found = learner.prepare(&rows, 1).unwrap().scale.reward;
    assert!((found - variance.sqrt()).abs() < 1e-5 * found);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_change_nothing() {
    let (mut learner, rows) = fresh(3, &config());
    let before = learner.state();
    let mut refused = |change: &dyn Fn(&mut Fragment), says: &str| {
        let mut rows = rows.clone();
        change(&mut rows[1]);
        let error = learner.update(&rows, 1).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(learner.state(), before);
    };
    refused(&|row| row.observations[4] = f32::NAN, "observation that is not finite");
    refused(&|row| row.steps[3].reward = f32::INFINITY, "not finite in step 3");
    refused(&|row| row.steps[3].choice.log_prob_option = f32::NAN, "not finite in step 3");
    refused(&|row| row.steps[3].choice.option = 3, "the options are 3");
    refused(&|row| row.steps[3].version = 2, "decided by version 2");
    refused(&|row| row.steps[3].choice.proposal.truncate(1), "proposes 1 floats");
    refused(&|row| row.observations.truncate(9), "observed floats");
    refused(&|row| row.steps[3].end = End::Truncated, "without its last observation");
    let at = rows[1].steps.iter().position(|step| step.choice.forced == Forced::MinSteps).unwrap();
    refused(&|row| row.steps[at].choice.option = (row.steps[at].choice.option + 1) % 3, "has no probability");
    assert!(learner.update(&[], 1).is_err());
}

#[test]
fn a_learner_of_other_shape_is_not_restored() {
    let config = config();
    let small = learner(&contract(2, &[16]), &config, 0.3);
    let mut large = learner(&contract(3, &[16]), &config, 0.3);
    assert!(large.restore(small.state()).unwrap_err().to_string().contains("parameters"));
    let mut broken = large.state();
    broken.parameters[0] = f32::NAN;
    assert!(large.restore(broken).is_err());
}
