//! Running mean and variance, merged batch by batch.

use crate::contract::Normaliser;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Added to a variance before its root (SB3's VecNormalize).
const EPS: f64 = 1e-8;

/// Count, mean and summed squared deviation of vectors; batches merge by Chan, Golub & LeVeque 1979, eq. 2.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Vectors seen.
    pub count: f64,
    /// Mean of each component.
    pub mean: Vec<f64>,
    /// Summed squared deviation from the mean of each component.
    pub square: Vec<f64>,
}

impl Moments {
    /// Nothing seen.
    pub fn new(size: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; size], square: vec![0.0; size] }
    }

    /// Merges vectors, row-major; refuses the whole batch where a number is not finite.
    pub fn merge(&mut self, rows: &[f32]) -> Result<()> {
        let size = self.mean.len();
        if let Some(at) = rows.iter().position(|value| !value.is_finite()) {
            return Err(Error::invalid(format!("component {} of statistics got {}", at % size, rows[at])));
        }
        let added = (rows.len() / size) as f64;
        if added == 0.0 {
            return Ok(());
        }
        let total = self.count + added;
        for component in 0..size {
            let values = || rows[component..].iter().step_by(size).map(|&value| f64::from(value));
            let mean = values().sum::<f64>() / added;
            let square = values().map(|value| (value - mean).powi(2)).sum::<f64>();
            let apart = mean - self.mean[component];
            self.mean[component] += apart * added / total;
            self.square[component] += square + apart * apart * self.count * added / total;
        }
        self.count = total;
        Ok(())
    }

    /// Standard deviation of a component, positive; 1 before anything was seen.
    pub fn std(&self, component: usize) -> f64 {
        if self.count == 0.0 { 1.0 } else { (self.square[component] / self.count + EPS).sqrt() }
    }

    /// The normaliser that a snapshot carries.
    pub fn normaliser(&self, clip: f32) -> Normaliser {
        Normaliser {
            mean: self.mean.iter().map(|&mean| mean as f32).collect(),
            std: (0..self.mean.len()).map(|component| self.std(component) as f32).collect(),
            clip,
            count: self.count,
        }
    }

    /// Refuses statistics of another size, or that are no statistics.
    pub fn check(&self, what: &str, size: usize) -> Result<()> {
        if self.mean.len() != size || self.square.len() != size {
            let found = self.mean.len();
            return Err(Error::invalid(format!("the statistics of the {what} have {found} components, not {size}")));
        }
        let sound = |value: &f64| value.is_finite();
        let counts = self.count.is_finite() && 0.0 <= self.count;
        if counts && self.mean.iter().all(sound) && self.square.iter().all(|square| sound(square) && 0.0 <= *square) {
            return Ok(());
        }
        Err(Error::invalid(format!("the statistics of the {what} hold a number that is not finite or negative")))
    }
}
