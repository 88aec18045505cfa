//! Small statistics, each with its definition.

use std::collections::VecDeque;

/// 0.975 quantile of the normal distribution: two-sided 95 %.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// Wilson's score interval of a proportion (Wilson 1927; Newcombe 1998, method 3), at `z` standard deviations.
/// `[0, 1]` without trials.
pub fn wilson(successes: u64, trials: u64, z: f64) -> [f64; 2] {
    if trials == 0 {
        return [0.0, 1.0];
    }
    let (n, z2) = (trials as f64, z * z);
    let p = successes as f64 / n;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    [(centre - half).max(0.0), (centre + half).min(1.0)]
}

/// Arithmetic mean; none without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); none for fewer than two values.
pub fn std(values: &[f64]) -> Option<f64> {
    let middle = mean(values).filter(|_| 1 < values.len())?;
    let square: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    Some((square / (values.len() - 1) as f64).sqrt())
}

/// Percentile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7: numpy's default);
/// `percent` is clamped to `[0, 100]`. None without values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = percent.clamp(0.0, 100.0) / 100.0 * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (sorted.get(rank.floor() as usize)?, sorted.get(rank.ceil() as usize)?);
    Some(below + (above - below) * rank.fract())
}

/// The 50th percentile.
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 50.0)
}

/// The last N values.
#[derive(Clone, Debug)]
pub struct Window {
    values: VecDeque<f64>,
    size: usize,
}

impl Window {
    /// Of the last `size` values, at least 1.
    pub fn new(size: usize) -> Self {
        Self { values: VecDeque::new(), size: size.max(1) }
    }

    /// Takes a value in; the oldest goes when there are too many.
    pub fn push(&mut self, value: f64) {
        if self.values.len() == self.size {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// Their mean, summed afresh so that no rounding error builds up; none before the first.
    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Events a second over the last seconds, from a counter that only grows.
#[derive(Clone, Debug)]
pub struct Rate {
    seen: VecDeque<(f64, u64)>,
    window_secs: f64,
}

impl Rate {
    /// Over `window_secs`.
    pub fn new(window_secs: f64) -> Self {
        Self { seen: VecDeque::new(), window_secs }
    }

    /// Takes in the counter at `now_secs` and tells the rate [1/s]; 0 until it has seen two moments.
    pub fn update(&mut self, now_secs: f64, count: u64) -> f64 {
        self.seen.push_back((now_secs, count));
        while self.seen.get(1).is_some_and(|(time, _)| *time <= now_secs - self.window_secs) {
            self.seen.pop_front();
        }
        match self.seen.front() {
            Some((time, first)) if *time < now_secs => count.saturating_sub(*first) as f64 / (now_secs - time),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_agrees_with_newcombes_table() {
        // Newcombe 1998 (Statistics in Medicine 17:857), table I, method 3
        for (successes, trials, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let [found_low, found_high] = wilson(successes, trials, Z_95);
            assert!((found_low - low).abs() < 5e-5 && (found_high - high).abs() < 5e-5, "{successes}/{trials}");
        }
    }

    #[test]
    fn wilsons_ends_solve_its_defining_equation() {
        // the interval is where |p - p0| = z sqrt(p0 (1 - p0) / n)
        for (successes, trials) in [(1, 3), (298, 300), (7, 50)] {
            let p = successes as f64 / trials as f64;
            for end in wilson(successes, trials, 2.0) {
                let right = 2.0 * (end * (1.0 - end) / trials as f64).sqrt();
                assert!(((p - end).abs() - right).abs() < 1e-12);
            }
        }
        assert_eq!(wilson(0, 0, Z_95), [0.0, 1.0]);
        assert_eq!(wilson(5, 5, Z_95)[1], 1.0);
    }

    #[test]
    fn percentiles_are_numpys() {
        let values = [7.0, 1.0, 3.0, 2.0];
        // numpy.percentile([7, 1, 3, 2], [0, 10, 50, 90, 100])
        for (percent, expected) in [(0.0, 1.0), (10.0, 1.3), (50.0, 2.5), (90.0, 5.8), (100.0, 7.0)] {
            assert!((percentile(&values, percent).unwrap() - expected).abs() < 1e-12, "{percent}");
        }
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&values), Some(3.25));
        // numpy.std([7, 1, 3, 2], ddof=1)
        assert!((std(&values).unwrap() - 2.629_955_639_676_583).abs() < 1e-12);
        assert_eq!(std(&[3.0]), None);
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn a_window_forgets_what_is_older() {
        let mut window = Window::new(3);
        assert!(window.is_empty() && window.mean().is_none());
        [1e9, 1.0, 2.0, 6.0].into_iter().for_each(|value| window.push(value));
        assert_eq!((window.len(), window.mean()), (3, Some(3.0)));
    }

    #[test]
    fn a_rate_is_over_its_window_only() {
        let mut rate = Rate::new(10.0);
        assert_eq!(rate.update(0.0, 0), 0.0);
        assert_eq!(rate.update(5.0, 500), 100.0);
        assert_eq!(rate.update(10.0, 500), 50.0);
        // the moment at 5 s is now the last one at or before the window
        assert_eq!(rate.update(15.0, 1500), 100.0);
    }
}
