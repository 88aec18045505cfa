//! What an algorithm moves: parameters with their optimiser.

use super::optimiser::{Adam, Rates};
use crate::contract::{Group, Layout};

/// A flat vector, its gradient and its optimiser.
pub(super) struct Learned {
    pub(super) parameters: Vec<f32>,
    pub(super) gradient: Vec<f32>,
    pub(super) adam: Adam,
    pub(super) rates: Rates,
}

impl Learned {
    pub(super) fn new(layout: Layout, parameters: Vec<f32>, rate: impl Fn(Group) -> Option<f64>) -> Self {
        let rates = Rates::new(&layout, rate);
        Self { gradient: vec![0.0; parameters.len()], parameters, adam: Adam::new(layout), rates }
    }

    /// One step down the gradient, unless it is not finite; returns whether.
    pub(super) fn step(&mut self) -> bool {
        let finite = self.gradient.chunks(256).all(|some| some.iter().fold(true, |all, float| all & float.is_finite()));
        if finite {
            self.adam.step(&mut self.parameters, &self.gradient, &self.rates);
        }
        finite
    }
}
