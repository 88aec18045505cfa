//! Control ticks by the stamps of states: which state answers one, which come late, which are missing.

/// States' stamps are this exact [s].
const STAMP_SECS: f64 = 1e-3;
/// Of this many ticks ...
const RECENT: u32 = 20;
/// ... at most so many may be late: more, and what was commanded is not what was in force.
const MOST_LATE: u32 = 5;

/// What a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// Between two control ticks.
    Between,
    /// Of a control tick.
    Due,
    /// Of a control tick, after one that no state answered, or after too many that were answered late.
    Broken,
}

/// A control tick is answered by the first state that is not earlier. It is *late* where a state should have come before that
/// one, and *missing* where none came within half a period.
#[derive(Clone, Debug)]
pub(super) struct Ticks {
    period_secs: f64,
    due_secs: Option<f64>,
    newest_secs: Option<f64>,
    /// Running mean of the distance of states [s].
    state_secs: f64,
    /// One bit a tick, the newest lowest.
    late_bits: u32,
    /// Ticks that were answered late.
    pub(super) late: u64,
    /// Ticks that no state answered.
    pub(super) missing: u64,
}

impl Ticks {
    /// `period_secs` apart.
    pub(super) fn new(period_secs: f64) -> Self {
        let (due_secs, newest_secs) = (None, None);
        Self { period_secs, due_secs, newest_secs, state_secs: 0.0, late_bits: 0, late: 0, missing: 0 }
    }

    /// Time jumped, or nobody looked: the next state is of a control tick.
    pub(super) fn restart(&mut self) {
        (self.due_secs, self.newest_secs, self.late_bits) = (None, None, 0);
    }

    /// A state of this stamp. One that is not newer counts for nothing.
    pub(super) fn state(&mut self, stamp_secs: f64) -> Tick {
        if let Some(newest) = self.newest_secs {
            let distance = stamp_secs - newest;
            if distance <= 0.0 {
                return Tick::Between;
            }
            // a gap says nothing about the pace
            if self.state_secs == 0.0 {
                self.state_secs = distance;
            } else if distance < 1.5 * self.state_secs {
                self.state_secs += 0.1 * (distance - self.state_secs);
            }
        }
        self.newest_secs = Some(stamp_secs);
        let due = self.due_secs.unwrap_or(stamp_secs);
        if stamp_secs < due - STAMP_SECS {
            return Tick::Between;
        }
        let behind = stamp_secs - due;
        if 0.5 * self.period_secs <= behind {
            self.missing += (behind / self.period_secs).round().max(1.0) as u64;
            (self.due_secs, self.late_bits) = (Some(stamp_secs + self.period_secs), 0);
            return Tick::Broken;
        }
        self.due_secs = Some(due + self.period_secs);
        let late = 0.0 < self.state_secs && self.state_secs - STAMP_SECS <= behind;
        self.late += u64::from(late);
        self.late_bits = ((self.late_bits << 1) | u32::from(late)) & ((1 << RECENT) - 1);
        if MOST_LATE < self.late_bits.count_ones() {
            self.late_bits = 0;
            return Tick::Broken;
        }
        Tick::Due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: f64 = 0.05;

    /// What states at `rate` Hz are, but for those whose numbers `lost` names.
    fn of(ticks: &mut Ticks, rate: f64, numbers: std::ops::Range<u32>, lost: impl Fn(u32) -> bool) -> Vec<(u32, Tick)> {
        let heard = numbers.filter(|&number| !lost(number));
        heard
            .map(|number| (number, ticks.state(f64::from(number) / rate)))
            .filter(|(_, tick)| *tick != Tick::Between)
            .collect()
    }

    #[test]
    fn every_third_of_60_states_a_second_is_a_tick_of_20_hz() {
        let mut ticks = Ticks::new(PERIOD);
        let found = of(&mut ticks, 60.0, 0..600, |_| false);
        let want: Vec<_> = (0..200).map(|tick| (3 * tick, Tick::Due)).collect();
        assert_eq!((found, ticks.late, ticks.missing), (want, 0, 0));
        assert!((ticks.state_secs - 1.0 / 60.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_that_does_not_divide_is_not_late() {
        let mut ticks = Ticks::new(PERIOD);
        let found = of(&mut ticks, 50.0, 0..500, |_| false);
        assert_eq!((found.len(), ticks.late, ticks.missing), (200, 0, 0));
        assert!(found.iter().all(|(_, tick)| *tick == Tick::Due));
    }

    #[test]
    fn a_lost_state_is_late_and_the_grid_stays() {
        let mut ticks = Ticks::new(PERIOD);
        let found = of(&mut ticks, 60.0, 0..60, |number| number == 30);
        assert!(found.contains(&(31, Tick::Due)) && found.contains(&(33, Tick::Due)), "{found:?}");
        assert_eq!((ticks.late, ticks.missing), (1, 0));
    }

    #[test]
    fn a_tick_without_a_state_for_half_a_period_is_missing() {
        let mut ticks = Ticks::new(PERIOD);
        let found = of(&mut ticks, 60.0, 0..60, |number| (30..32).contains(&number));
        assert!(found.contains(&(32, Tick::Broken)), "{found:?}");
        assert!(found.contains(&(35, Tick::Due)), "the grid begins anew: {found:?}");
        assert_eq!((ticks.late, ticks.missing), (0, 1));
        // the next tick was due at 62/60 s: 19 are missing
        assert_eq!(ticks.state(59.0 / 60.0 + 1.0), Tick::Broken);
        assert_eq!(ticks.missing, 20);
    }

    #[test]
    fn six_late_ones_in_twenty_are_too_many() {
        let mut ticks = Ticks::new(PERIOD);
        let lost = |every: u32| move |number: u32| number.is_multiple_of(3) && (number / 3) % every == every - 1;
        let found = of(&mut ticks, 60.0, 0..1200, lost(4)); // a quarter
        assert!(found.iter().all(|(_, tick)| *tick == Tick::Due) && 0 < ticks.late);
        let found = of(&mut ticks, 60.0, 1200..2400, lost(3)); // a third
        assert!(found.iter().any(|(_, tick)| *tick == Tick::Broken));
        assert_eq!(ticks.missing, 0);
    }

    #[test]
    fn old_stamps_are_nothing_and_a_restart_begins_a_grid() {
        let mut ticks = Ticks::new(PERIOD);
        assert_eq!(ticks.state(5.0), Tick::Due);
        assert_eq!((ticks.state(5.0), ticks.state(4.9)), (Tick::Between, Tick::Between));
        ticks.restart();
        assert_eq!((ticks.state(0.01), ticks.state(0.03), ticks.state(0.06)), (Tick::Due, Tick::Between, Tick::Due));
    }
}
