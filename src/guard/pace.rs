//! Whether ticks come in time, and whether time runs forwards.

/// How ticks came, in the recent past.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Mean time between ticks [s]; 0 before the second.
    pub period_secs: f64,
    /// Mean distance of a period from the mean [s].
    pub jitter_secs: f64,
    /// Share of ticks that were late by half a period or more.
    pub late_ratio: f64,
    /// The longest period since the start [s].
    pub worst_secs: f64,
}

/// Means run over about this many ticks.
const RECENT_TICKS: f64 = 100.0;

/// Measures the pace of ticks that should come every `nominal_secs`.
#[derive(Clone, Debug)]
pub(super) struct Metronome {
    nominal_secs: f64,
    last_secs: Option<f64>,
    pace: Pace,
}

impl Metronome {
    pub(super) fn new(nominal_secs: f64) -> Self {
        Self { nominal_secs, last_secs: None, pace: Pace::default() }
    }

    /// A tick. The time since the last one, 0 for the first; none if it is not later, or no number: then it counts for nothing.
    pub(super) fn tick(&mut self, now_secs: f64) -> Option<f64> {
        if !now_secs.is_finite() {
            return None;
        }
        let Some(last) = self.last_secs.replace(now_secs) else { return Some(0.0) };
        let period = now_secs - last;
        if period <= 0.0 {
            self.last_secs = Some(last);
            return None;
        }
        let Pace { period_secs, jitter_secs, late_ratio, worst_secs } = &mut self.pace;
        if *period_secs == 0.0 {
            *period_secs = period;
        }
        *period_secs += (period - *period_secs) / RECENT_TICKS;
        *jitter_secs += ((period - *period_secs).abs() - *jitter_secs) / RECENT_TICKS;
        let late = if period >= 1.5 * self.nominal_secs { 1.0 } else { 0.0 };
        *late_ratio += (late - *late_ratio) / RECENT_TICKS;
        *worst_secs = worst_secs.max(period);
        Some(period)
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }
}

/// What a stamp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Later than the one before, or the first.
    Newer,
    /// The same, or a little earlier: out of order, to be ignored.
    Old,
    /// Earlier by more than messages out of order are: time was set back.
    Back,
}

/// A stream of stamps, of states or of a clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    newest_secs: Option<f64>,
}

impl Stamps {
    /// Messages out of order are at most this much earlier [s]; more than two ticks of a 60 Hz simulator.
    const OUT_OF_ORDER_SECS: f64 = 0.04;

    pub(super) fn admit(&mut self, stamp_secs: f64) -> Stamp {
        let Some(newest) = self.newest_secs else {
            self.newest_secs = Some(stamp_secs);
            return Stamp::Newer;
        };
        if stamp_secs > newest {
            self.newest_secs = Some(stamp_secs);
            Stamp::Newer
        } else if newest - stamp_secs <= Self::OUT_OF_ORDER_SECS {
            Stamp::Old
        } else {
            self.newest_secs = Some(stamp_secs);
            Stamp::Back
        }
    }
}

/// How much later than the fastest a message came: the clocks of its stamp and of its reader differ by an unknown amount, but
/// not by a changing one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    /// Least of arrival less stamp, and when it was seen [s].
    least: Option<(f64, f64)>,
}

impl Delay {
    /// Clocks drift apart by less than this [s/s].
    const DRIFT: f64 = 1e-3;

    /// How late a message is [s]; 0 for the fastest.
    pub(super) fn beyond_least(&mut self, stamp_secs: f64, now_secs: f64) -> f64 {
        let found = now_secs - stamp_secs;
        let least = self.least.map_or(found, |(least, at)| found.min(least + Self::DRIFT * (now_secs - at)));
        self.least = Some((least, now_secs));
        found - least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_even_ticks_is_their_period() {
        let mut metronome = Metronome::new(0.01);
        assert_eq!(metronome.tick(5.0), Some(0.0));
        assert_eq!(metronome.pace(), Pace::default());
        for tick in 1..=10 {
            let found = metronome.tick(5.0 + 0.01 * f64::from(tick)).unwrap();
            assert!((found - 0.01).abs() < 1e-12);
        }
        let pace = metronome.pace();
        assert!((pace.period_secs - 0.01).abs() < 1e-9 && (pace.worst_secs - 0.01).abs() < 1e-9, "{pace:?}");
        assert!(pace.jitter_secs < 1e-9 && pace.late_ratio == 0.0, "{pace:?}");
    }

    #[test]
    fn late_ticks_are_told_by_share_worst_and_jitter() {
        let mut metronome = Metronome::new(0.01);
        let mut now = 0.0;
        metronome.tick(now);
        for tick in 0..1000 {
            now += if tick % 4 == 0 { 0.016 } else { 0.01 };
            metronome.tick(now);
        }
        let pace = metronome.pace();
        assert!((pace.late_ratio - 0.25).abs() < 0.02, "{pace:?}");
        assert!((pace.period_secs - 0.0115).abs() < 1e-4 && (pace.worst_secs - 0.016).abs() < 1e-9, "{pace:?}");
        // a quarter is 4.5 ms off the mean, the others 1.5 ms
        assert!((pace.jitter_secs - 0.00225).abs() < 2e-4, "{pace:?}");
    }

    #[test]
    fn a_tick_that_is_not_later_counts_for_nothing() {
        let mut metronome = Metronome::new(0.01);
        metronome.tick(1.0);
        assert_eq!([1.0, 0.5, f64::NAN].map(|now| metronome.tick(now)), [None; 3]);
        assert_eq!(metronome.tick(1.25), Some(0.25));
    }

    #[test]
    fn stamps_out_of_order_are_no_jump() {
        let mut stamps = Stamps::default();
        let found = [1.0, 1.02, 1.02, 0.99, 1.03, 0.5, 0.52].map(|stamp| stamps.admit(stamp));
        use Stamp::{Back, Newer, Old};
        assert_eq!(found, [Newer, Newer, Old, Old, Newer, Back, Newer]);
    }

    #[test]
    fn a_message_is_as_late_as_it_is_later_than_the_fastest() {
        let mut delay = Delay::default();
        // stamps are of another clock, 1000 s ahead
        let late = [(1000.5, 0.5), (1001.0, 1.002), (1001.5, 1.75), (1002.0, 1.999), (1002.5, 2.501)]
            .map(|(stamp, now)| delay.beyond_least(stamp, now));
        for (found, want) in late.iter().zip([0.0, 0.002, 0.25, 0.0, 0.002]) {
            assert!((found - want).abs() < 1.3e-3, "{late:?}");
        }
        // a clock that is 100 ppm faster is no delay, an hour later either
        let mut delay = Delay::default();
        let latest =
            (0..3600).map(|now| delay.beyond_least(f64::from(now) * 0.9999, f64::from(now))).fold(0.0, f64::max);
        assert!(latest < 1e-9, "{latest}");
    }
}
