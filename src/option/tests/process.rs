use super::{all_close, close};
use crate::contract::Options;
use crate::data::Forced;
use crate::option::{
    Arrival, Running, TERMINATION_LOGIT_MAX, arrival_value, beta_effective, log_sigmoid, log_softmax, log_sum_exp,
    transition,
};
use proptest::prelude::*;

const OPTIONS: Options = Options { count: 3, min_steps: 2, max_steps: 5 };

fn running(option: u8, age: u32) -> Running {
    Running { option: Some(option), age }
}

#[test]
fn an_option_may_not_end_before_d_min_and_must_at_d_max() {
    let at = |age| beta_effective(0.3, age, &OPTIONS);
    assert_eq!(at(1), (0.0, Forced::MinSteps));
    assert_eq!(at(2), (0.3, Forced::Free));
    assert_eq!(at(4), (0.3, Forced::Free));
    assert_eq!(at(5), (1.0, Forced::MaxSteps));
    assert_eq!(at(9), (1.0, Forced::MaxSteps));
}

#[test]
fn an_option_runs_exactly_d_min_ticks_before_it_may_end() {
    let mut now = Running::default().next(1, true);
    let mut ticks = 1;
    while Arrival::new(0.0, now, &OPTIONS).forced == Forced::MinSteps {
        now = now.next(1, false);
        ticks += 1;
    }
    assert_eq!(ticks, OPTIONS.min_steps);
}

#[test]
fn the_age_restarts_at_every_choice_of_the_same_option_too() {
    assert_eq!(running(2, 4).next(2, true), running(2, 1));
    assert_eq!(running(2, 4).next(2, false), running(2, 5));
    assert_eq!(Running::default().next(0, true), running(0, 1));
}

#[test]
fn the_transition_by_hand() {
    let mut out = [0.0; 3];
    transition(0.25, Some(1), &[0.5, 0.3, 0.2], &mut out);
    all_close(&out, &[0.125, 0.825, 0.05], 1e-15);
    transition(0.25, None, &[0.5, 0.3, 0.2], &mut out);
    all_close(&out, &[0.5, 0.3, 0.2], 0.0);
}

#[test]
fn only_a_change_pays_and_never_the_first_choice() {
    let (law, values) = ([0.125, 0.825, 0.05], [1.0, 2.0, 4.0]);
    close(arrival_value(&law, &values, Some(1), 0.4), 0.125 + 1.65 + 0.2 - 0.4 * 0.175, 1e-15);
    close(arrival_value(&law, &values, None, 0.4), 0.125 + 1.65 + 0.2, 1e-15);
}

#[test]
fn with_one_option_the_option_level_is_silent() {
    let one = Options { count: 1, ..OPTIONS };
    for age in 0..8 {
        for logit in [-9.0, -2.0, 0.1, 3.0] {
            let arrival = Arrival::new(logit, running(0, age), &one);
            close(arrival.log_transition(0, &[0.0]), 0.0, 1e-15);
            let mut law = [0.0];
            transition(arrival.beta(), arrival.running, &[1.0], &mut law);
            close(arrival_value(&law, &[7.5], Some(0), 3.0), 7.5, 1e-14);
        }
    }
}

#[test]
fn termination_logits_are_clamped_and_stay_finite() {
    let arrival = Arrival::new(1e6, running(0, 3), &OPTIONS);
    close(arrival.log_continue, log_sigmoid(-TERMINATION_LOGIT_MAX), 0.0);
    let arrival = Arrival::new(-1e6, running(0, 3), &OPTIONS);
    close(arrival.log_stop, log_sigmoid(-TERMINATION_LOGIT_MAX), 0.0);
}

#[test]
fn an_option_that_d_min_forbids_has_no_probability() {
    let arrival = Arrival::new(0.0, running(0, 1), &OPTIONS);
    assert_eq!(arrival.log_transition(1, &[-1.0, -1.0, -1.2]), f64::NEG_INFINITY);
    close(arrival.log_transition(0, &[-1.0, -1.0, -1.2]), 0.0, 0.0);
}

#[test]
fn logs_far_out() {
    close(log_sigmoid(-800.0), -800.0, 0.0);
    close(log_sigmoid(800.0), 0.0, 0.0);
    close(log_sigmoid(0.0), -(2f64.ln()), 1e-16);
    close(log_sum_exp(&[-1000.0, -1000.0]), -1000.0 + 2f64.ln(), 1e-12);
    assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
}

proptest! {
    #[test]
    fn every_row_of_the_transition_sums_to_one_and_the_logs_agree(
        logits in prop::collection::vec(-8.0..8.0f64, 3),
        stop in -9.0..9.0f64,
        option in prop::option::of(0u8..3),
        age in 0u32..8,
    ) {
        let mut log_over = logits;
        log_softmax(&mut log_over);
        let over: Vec<f64> = log_over.iter().map(|log| log.exp()).collect();
        let arrival = Arrival::new(stop, Running { option, age }, &OPTIONS);
        let mut law = [0.0; 3];
        transition(arrival.beta(), arrival.running, &over, &mut law);
        prop_assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (to, share) in law.iter().enumerate() {
            prop_assert!((arrival.log_transition(to, &log_over).exp() - share).abs() < 1e-12);
        }
        prop_assert!((arrival.log_stop.exp() + arrival.log_continue.exp() - 1.0).abs() < 1e-12);
    }
}
