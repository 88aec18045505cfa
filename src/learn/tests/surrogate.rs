//! The option level's loss, weighed by an exact oracle's visits, has the oracle's gradient.

use super::together;
use crate::contract::{Contract, Group};
use crate::learn::batch::{Anchor, Batch, COLUMNS, Column};
use crate::option::arrival_value;
use crate::option::tests::oracle::{Charge, OPTIONS, STATES, index, pairs, target};
use crate::policy::Network;
use crate::policy::tests::contract;
use crate::{config, option};
use std::sync::Arc;
use tch::Tensor;

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
        let mut network = Network::new(&contract, &tabular(&contract), true).unwrap();

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
            option.push(chosen as i64);
            ran.push(running.unwrap_or(0) as i64);
        }
        let count = option.len();
        let batch = Batch {
            input: network.input(&input),
            option: Tensor::from_slice(&option),
            running: Tensor::from_slice(&ran),
            proposal: Tensor::zeros([count as i64, 2], (tch::Kind::Float, tch::Device::Cpu)),
            columns: Tensor::from_slice(&columns).view([count as i64, COLUMNS as i64]),
            anchor: None,
        };
        let log_std = network.split(&network.actor(&batch.input)).log_std.squeeze_dim(0).detach();
        let anchor = Anchor { options: Vec::new(), log_std };
        let losses = together(&network, &batch, &anchor, &config::HsPpo::default());
        (losses.options.unwrap().policy * count as f64).backward();
        let mut gradient = vec![0.0; contract.layout().len()];
        network.take_gradient(&mut gradient);

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
