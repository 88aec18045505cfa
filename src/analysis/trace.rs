//! A quantity over the time of a bag in bounded memory: lowest and highest in each column of a plot, and the worst moments.

use serde::Serialize;

/// Columns of a plot.
pub const COLUMNS: usize = 640;
/// Moments that are kept at most.
const MOMENTS: usize = 10;
/// Columns that two moments are apart at least.
const APART: usize = 5;

/// The time that a bag spans, in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// From the first message to the last [s].
    pub secs: f64,
}

impl Axis {
    /// The column of a time since the first message [s]; the last one for what is later.
    pub fn column(self, at_secs: f64) -> usize {
        let share = if 0.0 < self.secs { at_secs / self.secs } else { 0.0 };
        ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
    }

    /// The middle of a column [s].
    pub fn middle_secs(self, column: usize) -> f64 {
        (column as f64 + 0.5) / COLUMNS as f64 * self.secs
    }
}

/// What one column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    sum: f64,
    count: u64,
}

impl Column {
    /// Mean of its values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

/// A quantity over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    axis: Axis,
    columns: Vec<Option<Column>>,
}

impl Trace {
    /// Empty.
    pub fn new(axis: Axis) -> Self {
        Self { axis, columns: vec![None; COLUMNS] }
    }

    /// Takes a value in; what is not finite is left out.
    pub fn add(&mut self, at_secs: f64, value: f64) {
        let Some(column) = self.columns.get_mut(self.axis.column(at_secs)).filter(|_| value.is_finite()) else {
            return;
        };
        let column = column.get_or_insert(Column { low: value, high: value, sum: 0.0, count: 0 });
        (column.low, column.high) = (column.low.min(value), column.high.max(value));
        column.sum += value;
        column.count += 1;
    }

    /// Columns that hold something, with their middles [s].
    pub fn columns(&self) -> impl Iterator<Item = (f64, Column)> + '_ {
        self.columns.iter().enumerate().filter_map(|(at, column)| Some((self.axis.middle_secs(at), (*column)?)))
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(Option::is_none)
    }
}

/// A time to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Since the first message [s].
    pub at_secs: f64,
    /// How bad; of one kind, more is worse.
    pub score: f64,
    /// What was so, in words.
    pub what: String,
}

/// The worst moments, apart from one another.
#[derive(Clone, Debug, Default)]
pub struct Worst {
    axis: Axis,
    columns: Vec<Option<Moment>>,
}

impl Worst {
    /// Empty.
    pub fn new(axis: Axis) -> Self {
        Self { axis, columns: vec![None; COLUMNS] }
    }

    /// Takes a moment in; `what` is asked only for the worst of its column.
    pub fn add(&mut self, at_secs: f64, score: f64, what: impl FnOnce() -> String) {
        let Some(column) = self.columns.get_mut(self.axis.column(at_secs)) else { return };
        if score.is_finite() && column.as_ref().is_none_or(|moment| moment.score < score) {
            *column = Some(Moment { at_secs, score, what: what() });
        }
    }

    /// The worst first.
    pub fn finish(self) -> Vec<Moment> {
        let mut all: Vec<(usize, Moment)> =
            self.columns.into_iter().enumerate().filter_map(|(at, moment)| Some((at, moment?))).collect();
        all.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        let mut kept: Vec<(usize, Moment)> = Vec::new();
        for (at, moment) in all {
            if kept.len() < MOMENTS && kept.iter().all(|(other, _)| APART <= at.abs_diff(*other)) {
                kept.push((at, moment));
            }
        }
        kept.into_iter().map(|(_, moment)| moment).collect()
    }
}

/// Mean of a sample and how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    count: u64,
    sum: f64,
    squares: f64,
}

/// What a [`Tally`] says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of the 95 % interval of the mean, as if they were independent.
    pub margin: f64,
    /// Root of the mean square.
    pub rms: f64,
}

impl Tally {
    /// Takes a value in; what is not finite is left out.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.count += 1;
            self.sum += value;
            self.squares += value * value;
        }
    }

    /// None without values.
    pub fn mean(&self) -> Option<Mean> {
        let count = self.count as f64;
        let mean = (0 < self.count).then(|| self.sum / count)?;
        let variance = (self.squares / count - mean * mean).max(0.0);
        let margin = 1.959_963_984_540_054 * (variance / count).sqrt();
        Some(Mean { count: self.count, mean, margin, rms: (self.squares / count).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_lowest_highest_and_mean() {
        let mut trace = Trace::new(Axis { secs: 64.0 });
        for (at, value) in [(0.0, 1.0), (0.05, 5.0), (0.09, f64::NAN), (63.99, 2.0), (64.0, -2.0), (70.0, 0.0)] {
            trace.add(at, value);
        }
        let columns: Vec<_> =
            trace.columns().map(|(at, column)| (at, column.low, column.high, column.mean())).collect();
        assert_eq!(columns, [(0.05, 1.0, 5.0, 3.0), (63.95, -2.0, 2.0, 0.0)]);
        assert!(Trace::new(Axis::default()).is_empty());
    }

    #[test]
    fn the_worst_moments_are_apart() {
        let mut worst = Worst::new(Axis { secs: 640.0 });
        for (at, score) in [(10.5, 3.0), (11.5, 4.0), (11.6, 5.0), (300.0, 4.5), (301.0, f64::INFINITY)] {
            worst.add(at, score, || format!("{score}"));
        }
        let found: Vec<_> = worst.finish().into_iter().map(|moment| (moment.at_secs, moment.what)).collect();
        assert_eq!(found, [(11.6, "5".into()), (300.0, "4.5".into())]);
    }

    #[test]
    fn a_mean_has_its_margin() {
        let mut tally = Tally::default();
        assert_eq!(tally.mean(), None);
        [1.0, 3.0, f64::NAN].into_iter().for_each(|value| tally.add(value));
        let mean = tally.mean().unwrap();
        // standard deviation 1, of two values: 1.96 / sqrt 2
        assert!((mean.margin - 1.385_903_8).abs() < 1e-6 && (mean.rms - 5f64.sqrt()).abs() < 1e-12);
        assert_eq!((mean.count, mean.mean), (2, 2.0));
    }
}
