use super::invariants::NOTHING;
use super::{acting, closed, config, fresh};
use crate::contract::Contract;
use crate::learn::batch::{Anchor, Batch, COLUMNS, Column, Steps};
use crate::learn::loss::{Clipped, Weights};
use crate::option::transition;
use crate::policy::Network;
use crate::policy::tests::{OBS, contract};
use std::sync::Arc;

/// PPO's clip at .2: (ratio, advantage) gives (objective, gradient of the ratio).
#[test]
fn the_clip_table() {
    for (ratio, advantage, objective, slope) in
        [(1.3, 1.0, 1.2, 0.0), (0.7, 1.0, 0.7, 1.0), (1.3, -1.0, -1.3, -1.0), (0.7, -1.0, -0.8, 0.0)]
    {
        let mut found = Clipped::default();
        // Half of a minibatch; the slope is along the log ratio.
        let found_slope = found.add(f64::ln(ratio), advantage, 0.2, 0.5);
        assert!((found.loss + 0.5 * objective).abs() < 1e-12);
        assert!((found_slope + 0.5 * slope * ratio).abs() < 1e-12);
        assert_eq!(found.share, 0.5);
    }
}

/// In eight dimensions the typical density is 1e-5: a log of (density + small) would halve this gradient.
#[test]
fn the_slope_of_an_action_is_the_score_of_a_gaussian_in_eight_dimensions() {
    const JOINTS: usize = 8;
    let joints = (0..JOINTS).map(|joint| joint.to_string()).collect();
    let contract = Arc::new(Contract { joints, ..(*contract(1, &[])).clone() });
    let mut parameters = vec![0.0; contract.layout().len()];
    let layout = contract.layout();
    let range = |name: &str| layout.segments.iter().find(|segment| segment.name == name).unwrap().range();
    parameters[range("option.0.log_std")].fill(0.4);
    let network = Network::new(&contract, &parameters, false).unwrap();
    let sigma = 0.4f64.exp();
    for scale in [1.0, 6.0] {
        let z: Vec<f64> = (0..JOINTS).map(|joint| if joint % 2 == 0 { scale } else { -scale }).collect();
        let log = JOINTS as f64 * (-0.5 * scale * scale - 0.4 - 0.5 * std::f64::consts::TAU.ln());
        let mut columns = vec![0.0; COLUMNS];
        (columns[Column::LogProbAction as usize], columns[Column::AdvantageAction as usize]) = (log as f32, 1.0);
        let proposal = z.iter().map(|z| (z * sigma) as f32).collect();
        let steps = Steps { option: vec![0], running: vec![0], proposal, columns, anchor: None };
        let batch = Batch { input: network.input(&[0.0; OBS]), steps: Arc::new(steps) };
        let anchor = Anchor { options: Vec::new(), log_std: Vec::new() };
        let weights = Weights { policy: 1.0, ..NOTHING };
        let (losses, _, gradient) = closed(&network, &batch, &anchor, &config(), &weights, 0.0);
        assert!(losses.policy.most < 1e-4, "log density differs by {}", losses.policy.most);
        let near =
            |found: f32, want: f64| assert!((f64::from(found) + want).abs() < 1e-4 * scale * scale, "{found} {want}");
        for (joint, z) in z.iter().enumerate() {
            near(gradient[range("option.0.mean.bias")][joint], z / sigma);
            near(gradient[range("option.0.log_std")][joint], z * z - 1.0);
        }
    }
}

/// KL of Gaussians of mean .1 and -.2, sigma .5 and .8, both ways.
#[test]
fn the_anchor_is_the_divergence_of_gaussians() {
    let contract = contract(2, &[]);
    let layout = contract.layout();
    let (a, b) = ((0.1f32, 0.5f32), (-0.2f32, 0.8f32));
    for ((before, after), want) in [((a, b), 0.23562863), ((b, a), 0.48999638)] {
        let mut parameters = vec![0.0; layout.len()];
        for segment in &layout.segments {
            match segment.name.as_str() {
                "option.1.mean.bias" => parameters[segment.range()].fill(after.0),
                "option.1.log_std" => parameters[segment.range()].fill(after.1.ln()),
                _ => {}
            }
        }
        let network = Network::new(&contract, &parameters, false).unwrap();
        let proximal = Some(vec![0.0, 0.0, before.0, before.0]);
        let steps = Steps {
            option: vec![0],
            running: vec![0],
            proposal: vec![0.0; 2],
            columns: vec![0.0; COLUMNS],
            anchor: proximal,
        };
        let batch = Batch { input: network.input(&[0.0; OBS]), steps: Arc::new(steps) };
        let anchor = Anchor { options: vec![1], log_std: vec![f64::from(before.1).ln(); 4] };
        let (losses, ..) = closed(&network, &batch, &anchor, &config(), &NOTHING, 0.0);
        let found = losses.anchor.unwrap() / 2.0;
        assert!((found - want).abs() < 1e-6, "{found} a joint is not {want}");
    }
}

/// KL(mean p^ || uniform), each step's law in plain numbers.
#[test]
fn the_load_balance_is_that_of_the_law_by_hand() {
    const K: usize = 4;
    let (learner, rows) = fresh(K, &config());
    let prepared = learner.prepare(&rows, 1).unwrap();
    let count = prepared.gathered.steps.len();
    let mut mean = [0.0; K];
    for (row, arrival) in prepared.estimated.arrivals.iter().enumerate() {
        let over: Vec<f64> = prepared.outputs.log_over_options(row).iter().map(|log| log.exp()).collect();
        let mut law = [0.0; K];
        transition(arrival.beta(), arrival.running, &over, &mut law);
        mean.iter_mut().zip(law).for_each(|(mean, law)| *mean += law / count as f64);
    }
    let want: f64 = mean.iter().map(|share| share * (share * K as f64).ln()).sum();
    let network = Network::new(acting(&learner, 1).contract(), &learner.state().parameters, false).unwrap();
    let (losses, ..) = closed(&network, &prepared.batch, &prepared.anchor, &config(), &NOTHING, 0.0);
    let found = losses.options.unwrap().load_balance;
    assert!((found - want).abs() < 1e-5 && 1e-3 < want, "{found} is not {want}");
}
