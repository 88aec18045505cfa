//! Statistics of the times between messages in bounded memory: a histogram whose buckets are 1/32 of an octave wide at most.

use std::collections::BTreeMap;

/// Buckets for each power of two.
const PER_OCTAVE: u32 = 32;

/// Times between successive messages. Steps back are left out.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    buckets: BTreeMap<u32, u64>,
    count: u64,
    longest: Option<(i64, i64)>,
}

/// The bucket of an interval [ns]: exact below 32 ns, then by the five bits behind the first.
fn bucket(interval: u64) -> u32 {
    let bits = 64 - interval.leading_zeros();
    match bits.checked_sub(6) {
        None => interval as u32,
        Some(shift) => (shift + 1) * PER_OCTAVE + ((interval >> shift) as u32 & (PER_OCTAVE - 1)),
    }
}

/// The middle of a bucket [ns].
fn middle(bucket: u32) -> f64 {
    match (bucket / PER_OCTAVE).checked_sub(1) {
        None => f64::from(bucket),
        Some(shift) => (f64::from(PER_OCTAVE + bucket % PER_OCTAVE) + 0.5) * 2f64.powi(shift as i32),
    }
}

impl Intervals {
    /// From the time of one message to that of the next [ns].
    pub fn add(&mut self, from: i64, to: i64) {
        let Some(interval) = to.checked_sub(from).filter(|&interval| 0 <= interval) else { return };
        *self.buckets.entry(bucket(interval as u64)).or_default() += 1;
        self.count += 1;
        if self.longest.is_none_or(|(longest, _)| longest < interval) {
            self.longest = Some((interval, from));
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A share (0 to 1) of the intervals is not longer than this, within 2 %, and never longer than the longest [ns].
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let (mut below, wanted) = (0, share * self.count as f64);
        let found = self.buckets.iter().find_map(|(&bucket, &count)| {
            below += count;
            (wanted <= below as f64).then(|| middle(bucket))
        });
        found.zip(self.longest).map(|(found, (longest, _))| found.min(longest as f64))
    }

    /// The median within 2 % [ns].
    pub fn median_ns(&self) -> Option<f64> {
        self.quantile_ns(0.5)
    }

    /// How many are longer than a time [ns], by the middles of their buckets.
    pub fn longer_than(&self, time: f64) -> u64 {
        self.buckets.iter().filter(|(bucket, _)| time < middle(**bucket)).map(|(_, count)| count).sum()
    }

    /// The longest, and when it began [ns].
    pub fn longest(&self) -> Option<(i64, i64)> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for interval in [0u64, 1, 31, 32, 33, 100, 4095, 4096, 1_000_000, u64::from(u32::MAX), i64::MAX as u64] {
            let exact = interval as f64;
            assert!((middle(bucket(interval)) - exact).abs() <= exact / 60.0, "{interval}");
            assert!(bucket(interval) <= bucket(interval + 1));
        }
    }

    #[test]
    fn median_gaps_and_the_longest_are_found() {
        let mut intervals = Intervals::default();
        let mut time = 0;
        for index in 0..101 {
            let next = time + if index == 70 { 50_000_000 } else { 1_000_000 };
            intervals.add(time, next);
            time = next;
        }
        intervals.add(time, 5); // a step back
        let median = intervals.median_ns().unwrap();
        assert!((median - 1e6).abs() < 2e4, "{median}");
        assert_eq!(intervals.longer_than(3.0 * median), 1);
        assert_eq!(intervals.longest(), Some((50_000_000, 70_000_000)));
        assert_eq!(Intervals::default().median_ns(), None);
    }

    #[test]
    fn no_share_is_longer_than_the_longest() {
        let mut intervals = Intervals::default();
        (0..10).for_each(|index| intervals.add(2_000_000 * index, 2_000_000 * (index + 1)));
        assert!(2e6 < middle(bucket(2_000_000)));
        assert_eq!(intervals.quantile_ns(0.99), Some(2e6));
    }
}
