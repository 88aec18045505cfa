//! Adam over one flat parameter vector, by segment: a segment at rest does not move at all, moments included.

use crate::contract::{Group, Layout};
use crate::defect::defect;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
/// As in the PPO of OpenAI baselines; PyTorch's default is 1e-8.
const EPS: f64 = 1e-5;

/// What Adam remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamState {
    /// First moments, flat.
    pub first: Vec<f32>,
    /// Second moments, flat.
    pub second: Vec<f32>,
    /// Steps of each segment.
    pub steps: Vec<u64>,
}

/// Learning rate of each segment; none: the segment rests.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(Vec<Option<f64>>);

impl Rates {
    /// One rate a segment, by its group.
    pub fn new(layout: &Layout, rate: impl Fn(Group) -> Option<f64>) -> Self {
        Self(layout.segments.iter().map(|segment| rate(segment.group)).collect())
    }
}

/// Adam (Kingma & Ba 2015, algorithm 1) with PyTorch's arithmetic (`torch.optim.Adam`, single tensor, f32).
#[derive(Clone, Debug)]
pub struct Adam {
    layout: Layout,
    state: AdamState,
}

impl Adam {
    /// At rest: no moments, no steps.
    pub fn new(layout: Layout) -> Self {
        let zeros = vec![0.0; layout.len()];
        let state = AdamState { first: zeros.clone(), second: zeros, steps: vec![0; layout.segments.len()] };
        Self { layout, state }
    }

    /// What a checkpoint keeps.
    pub fn state(&self) -> &AdamState {
        &self.state
    }

    /// Goes on from a checkpoint; refuses sizes of another layout and moments that are not finite.
    pub fn restore(&mut self, state: AdamState) -> Result<()> {
        let sizes = |state: &AdamState| (state.first.len(), state.second.len(), state.steps.len());
        if sizes(&state) != sizes(&self.state) {
            let (found, want) = (sizes(&state), sizes(&self.state));
            return Err(Error::invalid(format!("Adam's state has the sizes {found:?}; this network needs {want:?}")));
        }
        if !state.first.iter().chain(&state.second).all(|moment| moment.is_finite()) {
            return Err(Error::invalid("Adam's state holds a moment that is not finite"));
        }
        self.state = state;
        Ok(())
    }

    /// One step down `gradient`.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rates: &Rates) {
        for (index, segment) in self.layout.segments.iter().enumerate() {
            let others = if defect("momentum_moves_what_rests") { rates.0[0] } else { None };
            let Some(rate) = rates.0[index].or(others) else { continue };
            self.state.steps[index] += 1;
            let steps = self.state.steps[index] as f64;
            let size = (-rate / (1.0 - BETA1.powf(steps))) as f32;
            let correction = (1.0 - BETA2.powf(steps)).sqrt() as f32;
            let range = segment.range();
            let moments = self.state.first[range.clone()].iter_mut().zip(&mut self.state.second[range.clone()]);
            let floats = parameters[range.clone()].iter_mut().zip(&gradient[range]);
            for ((parameter, gradient), (first, second)) in floats.zip(moments) {
                *first += (1.0 - BETA1) as f32 * (gradient - *first);
                *second = BETA2 as f32 * *second + (1.0 - BETA2) as f32 * gradient * gradient;
                *parameter += size * *first / (second.sqrt() / correction + EPS as f32);
            }
        }
    }
}

/// The sum of the squares, in lanes that a processor adds at once.
fn squares(floats: &[f32]) -> f64 {
    let mut lanes = [0.0; 8];
    for floats in floats.chunks(lanes.len()) {
        for (lane, &float) in lanes.iter_mut().zip(floats) {
            *lane += f64::from(float) * f64::from(float);
        }
    }
    lanes.iter().sum()
}

/// Scales the gradient of all segments that move to at most `max_norm` (as `torch.nn.utils.clip_grad_norm_`);
/// returns the norm that it had. A norm that is not finite leaves the gradient as it was.
pub fn clip_gradient(layout: &Layout, gradient: &mut [f32], rates: &Rates, max_norm: f64) -> f64 {
    let moving = || layout.segments.iter().zip(&rates.0).filter(|(_, rate)| rate.is_some());
    let norm = moving().map(|(segment, _)| squares(&gradient[segment.range()])).sum::<f64>().sqrt();
    let scale = max_norm / (norm + 1e-6);
    if norm.is_finite() && scale < 1.0 {
        for (segment, _) in moving() {
            for float in &mut gradient[segment.range()] {
                *float *= scale as f32;
            }
        }
    }
    norm
}

/// Norm of the gradient of each option's own parameters.
pub(super) fn head_norms(layout: &Layout, gradient: &[f32], options: usize) -> Vec<f64> {
    let mut sums = vec![0.0; options];
    for segment in &layout.segments {
        if let Group::Option(option) = segment.group {
            sums[option] += squares(&gradient[segment.range()]);
        }
    }
    sums.into_iter().map(f64::sqrt).collect()
}
