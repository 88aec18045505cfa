//! What an update reports.

/// Names and values in the order of their making; names as CleanRL and TensorBoard have them (`losses/policy_loss`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// Appends a value.
    pub fn push(&mut self, name: impl Into<String>, value: f64) {
        self.0.push((name.into(), value));
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, value)| *value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) = values.into_iter().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count == 0.0 { 0.0 } else { sum / count }
}

/// Sample standard deviation (n - 1, as torch's `std`); 0 for fewer than two values.
pub(super) fn std(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values.iter().copied());
    let square: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (square / (values.len() - 1) as f64).sqrt()
}

/// Share of the variance of what was wanted that is not in the residual; 0 where all is the same.
pub(super) fn explained_variance(wanted: &[f64], residual: &[f64]) -> f64 {
    let spread = std(wanted).powi(2);
    if spread == 0.0 { 0.0 } else { 1.0 - std(residual).powi(2) / spread }
}

/// Nearest-rank quantile of values sorted in place; 0 for none.
pub(super) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values.get((share * last).round() as usize).copied().unwrap_or(0.0)
}
