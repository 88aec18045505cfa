//! The option level's loss, weighed by an exact oracle's visits, has the oracle's gradient.

use super::closed;
use crate::contract::{Contract, Group};
use crate::learn::batch::{Anchor, Batch, COLUMNS, Column, Steps};
use crate::learn::loss::Weights;
use crate::option::arrival_value;
use crate::option::tests::oracle::{Charge, OPTIONS, STATES, index, pairs, target};
use crate::policy::Network;
use crate::policy::tests::contract;
use crate::{config, option};
use std::sync::Arc;

/// One-hot states and no hidden layer: the heads' weights are the oracle's logits.
fn tabular(contract: &Contract) -> Vec<f32> {
    let logits = target();
    let mut parameters = vec![0.0; contract.layout().len()];
    for segment in &contract.layout().segments {
        for (at, float) in parameters[segment.range()].iter_mut().enumerate() {
            let (option, state) = (at / STATES, at % STATES);
            match segment.name.as_str() {
                "termination.weight" => *float = logits.termination[option][state] as f32,
                "over_options.weight" => *float = logits.over_options[state][option] as f32,
                _ => {}
            }
        }
    }
    parameters
}

#[test]
fn half_step_ppo_climbs_the_exact_gradient_of_terminations_and_choices() {
    for eta in [0.0, 0.05] {
        let charge = Charge::Change(eta);
        let logits = target();
        let (values, arrivals) = (logits.solve(charge), logits.visits().1);
        let contract: Arc<Contract> = contract(OPTIONS, &[]);
        let network = Network::new(&contract, &tabular(&contract), false).unwrap();

        // Every (state, running or none, option), weighed by its arrivals and its law.
        let starts = (0..OPTIONS).map(|option| (0, None, option, 1.0));
        let arrivals = &arrivals;
        let later = pairs().flat_map(|(state, running)| {
            (0..OPTIONS).map(move |option| (state, Some(running), option, arrivals[index(state, running)]))
        });
        let (mut input, mut option, mut ran, mut columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (state, running, chosen, mass) in starts.chain(later) {
            let law = logits.transition(state, running);
            let here = &values[index(state, 0)..index(state, OPTIONS)];
            let cost = if running.is_some_and(|running| running != chosen) { eta } else { 0.0 };
            let advantage = here[chosen] - cost - arrival_value(&law, here, running, eta);
            let mut row = [0.0f32; COLUMNS];
            row[Column::LogProbOption as usize] = law[chosen].ln() as f32;
            row[Column::AdvantageOption as usize] = (mass * law[chosen] * advantage) as f32;
            let kind = match running {
                None => Column::Drawn,
                Some(running) if running == chosen => Column::FreeSame,
                Some(_) => Column::FreeOther,
            };
            row[kind as usize] = 1.0;
            columns.extend(row);
            input.extend((0..STATES).map(|s| if s == state { 1.0f32 } else { 0.0 }));
            option.push(chosen);
            ran.push(running.unwrap_or(0));
        }
        let count = option.len();
        let steps = Steps { option, running: ran, proposal: vec![0.0; count * 2], columns, anchor: None };
        let batch = Batch { input: network.input(&input), steps: Arc::new(steps) };
        let anchor = Anchor { options: Vec::new(), log_std: Vec::new() };
        let weights = Weights {
            policy: 0.0,
            entropy: 0.0,
            option_policy: count as f64,
            option_entropy: 0.0,
            load_balance: 0.0,
            anchor: 0.0,
        };
        let (.., gradient) = closed(&network, &batch, &anchor, &config::HsPpo::default(), &weights, 0.0);

        let (termination, over, _) = logits.differences(charge);
        let of = |group: Group| {
            let layout = contract.layout();
            let segment = layout.segments.iter().find(|s| s.group == group && s.name.ends_with("weight")).unwrap();
            gradient[segment.range()].iter().map(|&g| -f64::from(g)).collect::<Vec<f64>>()
        };
        option::tests::all_close(&of(Group::Termination), &termination, 1e-6);
        option::tests::all_close(&of(Group::OverOptions)[..STATES], &over, 1e-6);
    }
}
