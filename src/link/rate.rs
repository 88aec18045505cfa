//! When a command is due.

/// Stamps of states that have a command may come early by this share of a command tick.
const EARLY: f64 = 0.1;

/// When a command is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// One for each state, never faster than the guard's command rate by the states' stamps: who takes one message a tick out of
    /// a queue must not be fed faster.
    PerState,
    /// At the guard's command rate, on the steady clock.
    Fixed,
}

/// Which states have a command, at [`Rate::PerState`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Due {
    /// Header stamp of the next one [s].
    at_secs: Option<f64>,
}

impl Due {
    /// Whether the state with this stamp has one: never more of them than ticks of the guard, so that speeds are right.
    pub fn state(&mut self, stamp_secs: f64, tick_secs: f64) -> bool {
        // after a reset time is earlier
        let due = self.at_secs.filter(|due| *due < stamp_secs + 2.0 * tick_secs).unwrap_or(stamp_secs);
        let reached = stamp_secs + EARLY * tick_secs;
        if reached < due {
            return false;
        }
        self.at_secs = Some(due.max(reached - 2.0 * EARLY * tick_secs) + tick_secs);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: f64 = 1.0 / 60.0;

    /// How many of these states have a command.
    fn commands(due: &mut Due, stamps: impl Iterator<Item = f64>) -> usize {
        stamps.filter(|&stamp| due.state(stamp, TICK)).count()
    }

    #[test]
    fn states_at_the_rate_of_commands_or_slower_have_one_each() {
        for rate in [60.0, 50.0, 20.0] {
            // stamps are rounded to milliseconds
            let stamps = (0..200).map(|state| (f64::from(state) / rate * 1e3).round() / 1e3);
            assert_eq!(commands(&mut Due::default(), stamps), 200, "{rate} Hz");
        }
    }

    #[test]
    fn faster_states_have_60_commands_a_second_at_most() {
        // every second one, every fourth; every 16th or 17th, where that of 10.000 s comes at 9.999 s
        for (rate, want) in [(100.0, 500), (240.0, 600), (1000.0, 601)] {
            let stamps = (0..10 * rate as u32).map(|state| f64::from(state) / rate);
            assert_eq!(commands(&mut Due::default(), stamps), want, "{rate} Hz");
        }
    }

    #[test]
    fn a_gap_is_not_made_up_for_and_after_a_reset_it_goes_on_at_once() {
        let mut due = Due::default();
        assert!(due.state(7.0, TICK) && due.state(9.0, TICK));
        assert!(!due.state(9.0 + 0.5 * TICK, TICK) && due.state(9.0 + TICK, TICK));
        assert!(due.state(0.0, TICK) && !due.state(0.5 * TICK, TICK));
    }
}
