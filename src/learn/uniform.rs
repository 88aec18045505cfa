//! Initial parameters off-policy: uniform within 1 / sqrt(inputs), as `torch.nn.Linear` has them.

use crate::config::{Purpose, Seed};
use crate::contract::{Group, Layout};
use rand::RngExt as _;

/// Weights and biases of terminations and choices start small, so that options start alike in use.
const OPTION_HEAD_GAIN: f64 = 0.01;

/// Flat parameters; each segment draws from its own generator, number `first` and on. Termination biases are as told.
pub(super) fn parameters(layout: &Layout, first: u64, termination_bias: f64, seed: Seed) -> Vec<f32> {
    let mut parameters = vec![0.0; layout.len()];
    let mut bound = 0.0;
    for (index, segment) in layout.segments.iter().enumerate() {
        if segment.name.ends_with("weight") {
            bound = segment.shape.last().map_or(0.0, |&inputs| 1.0 / (inputs as f64).sqrt());
        }
        let of_options = matches!(segment.group, Group::Termination | Group::OverOptions);
        let bound = if of_options { OPTION_HEAD_GAIN * bound } else { bound };
        let middle = if segment.name == "termination.bias" { termination_bias } else { 0.0 };
        let mut rng = seed.of(Purpose::Parameters).rng(first + index as u64);
        parameters[segment.range()].fill_with(|| (middle + bound * rng.random_range(-1.0..1.0)) as f32);
    }
    parameters
}
