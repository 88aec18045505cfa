//! Gradients against central differences, on a tiny network.

use super::{ALPHAS, Parameters, config, drawn, off_policy, picked};
use crate::config::Osac as Config;
use crate::contract::{Contract, Group};
use crate::learn::osac::actor::{ActorLosses, actor_losses};
use crate::learn::osac::losses::{critic_loss, targets};

const STEP: f32 = 2e-2;

/// Compares where the difference is large enough to be told from rounding.
fn compare(gradient: &[f32], loss: &dyn Fn(usize, f32) -> f64, what: &str) {
    let scale = gradient.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let mut far = Vec::new();
    for (index, &gradient) in gradient.iter().enumerate() {
        let difference = (loss(index, STEP) - loss(index, -STEP)) / f64::from(2.0 * STEP);
        if (difference - f64::from(gradient)).abs() > 0.02 * f64::from(scale) {
            far.push((index, difference, gradient));
        }
    }
    // A kink of ReLU or of the smaller twin between the two points leaves a few off.
    assert!(
        far.len() * 20 <= gradient.len(),
        "{what}: {} of {} differ: {:?}",
        far.len(),
        gradient.len(),
        &far[..3.min(far.len())]
    );
}

/// Each group of parameters climbs down its own loss: the option level does not reach the trunk.
#[test]
fn the_actors_gradient_is_the_slope_of_its_losses() {
    let contract = off_policy(2, &[6, 5]);
    let parameters = Parameters::new(&contract);
    let chosen = picked(&contract);
    let config = Config { deliberation_cost: 0.1, termination_temperature: 0.5, load_balance_coef: 0.7, ..config() };
    let losses = |parameters: &Parameters| {
        let mut gradient = vec![0.0; parameters.actor.len()];
        let losses = actor_losses(&parameters.networks(&contract), &chosen, ALPHAS, &config, &mut gradient);
        (losses, gradient)
    };
    let gradient = losses(&parameters).1;
    type Part = (&'static str, fn(&ActorLosses) -> f64, fn(Group) -> bool);
    let parts: [Part; 3] = [
        ("policy", |losses| losses.policy, |group| matches!(group, Group::Trunk | Group::Option(_))),
        ("choices", |losses| losses.options.as_ref().unwrap().over_options, |group| group == Group::OverOptions),
        ("terminations", |losses| losses.options.as_ref().unwrap().termination, |group| group == Group::Termination),
    ];
    for (name, part, moves) in parts {
        let places = places(&contract, moves);
        let slopes: Vec<f32> = places.iter().map(|&place| gradient[place]).collect();
        let loss = |index: usize, step: f32| {
            let mut moved = parameters.clone();
            moved.actor[places[index]] += step;
            part(&losses(&moved).0)
        };
        compare(&slopes, &loss, name);
    }
}

fn places(contract: &Contract, of: fn(Group) -> bool) -> Vec<usize> {
    let layout = contract.layout();
    layout.segments.iter().filter(|segment| of(segment.group)).flat_map(|segment| segment.range()).collect()
}

#[test]
fn the_critics_gradient_is_the_slope_of_their_loss() {
    let contract = off_policy(2, &[6, 5]);
    let parameters = Parameters::new(&contract);
    let batch = drawn(&contract);
    let config = config();
    let mut networks = parameters.networks(&contract);
    let wanted = targets(&networks, &batch, ALPHAS, &config);
    let _ = critic_loss(&mut networks.critics, &batch, &wanted, &config);
    let mut gradient = vec![0.0; parameters.critics.len()];
    networks.critics.take_gradient(&mut gradient);
    let loss = |index: usize, step: f32| {
        let mut moved = parameters.clone();
        moved.critics[index] += step;
        critic_loss(&mut moved.networks(&contract).critics, &batch, &wanted, &config).loss
    };
    compare(&gradient, &loss, "critics");
}
