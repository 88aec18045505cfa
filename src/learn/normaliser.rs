//! Running mean and variance, merged batch by batch.

use crate::contract::Normaliser;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Added to a variance before its root (SB3's VecNormalize).
const EPS: f64 = 1e-8;

/// Vectors after which [`Moments::merge_observations`] limits.
const SETTLED: f64 = 10_000.0;
/// Standard deviations: as far as networks see ([`crate::config::HsPpo::observation_clip`]).
const FAR: f64 = 10.0;

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
        self.merge_within(rows, |_| None)
    }

    /// The same for what a network sees through a clip: once enough was seen, a value counts as no further from the mean
    /// than [`FAR`] standard deviations of before, so that a faulty sensor cannot blind it. What really moved is followed: its
    /// standard deviation grows with each batch, and the limit with it.
    pub fn merge_observations(&mut self, rows: &[f32]) -> Result<()> {
        let settled = SETTLED <= self.count;
        let before = |moments: &Self, component: usize| {
            let far = FAR * (moments.square[component] / moments.count).sqrt();
            (settled && 0.0 < far).then(|| (moments.mean[component] - far, moments.mean[component] + far))
        };
        let limits: Vec<_> = (0..self.mean.len()).map(|component| before(self, component)).collect();
        self.merge_within(rows, |component| limits[component])
    }

    fn merge_within(&mut self, rows: &[f32], limits: impl Fn(usize) -> Option<(f64, f64)>) -> Result<()> {
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
            let (least, most) = limits(component).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            let values = || rows[component..].iter().step_by(size).map(|&value| f64::from(value).clamp(least, most));
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
