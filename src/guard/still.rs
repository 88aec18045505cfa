//! Whether an arm stands still, seen in its positions.

use crate::robot::{ARM_DOF, PerJoint};

/// An arm that has kept its place for so long stands [s].
const STILL_SECS: f64 = 0.1;
/// Isaac Sim rounds positions to 1e-4 rad: they differ by as much at rest.
const ROUNDING_RAD: f64 = 1e-4;

/// Where an arm was when it was last seen to move, and the stamp of that [s].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Still(Option<(PerJoint, f64)>);

impl Still {
    /// Whether the arm has stood for 0.1 s, slower than `most` [rad/s]; one more position with its stamp [s]. Two states alone tell
    /// nothing: at 1 kHz rounding looks like 0.1 rad/s, and such a speed like rounding.
    pub(super) fn is_still(&mut self, position: &PerJoint, stamp_secs: f64, most: f64) -> bool {
        let room = most * STILL_SECS + ROUNDING_RAD;
        let kept =
            |(place, _): &(PerJoint, f64)| (0..ARM_DOF).all(|joint| (position[joint] - place[joint]).abs() <= room);
        let (_, since) = *self.0.get_or_insert((*position, stamp_secs));
        if !self.0.as_ref().is_some_and(kept) {
            self.0 = Some((*position, stamp_secs));
            return false;
        }
        stamp_secs - since >= STILL_SECS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is still in the end of a second of positions at 1 kHz.
    fn after_a_second(position: impl Fn(f64) -> f64) -> bool {
        let mut still = Still::default();
        (0..=1000)
            .map(|tick| still.is_still(&[position(f64::from(tick) * 1e-3); ARM_DOF], f64::from(tick) * 1e-3, 0.02))
            .last()
            == Some(true)
    }

    #[test]
    fn a_slow_motion_at_a_high_rate_is_no_rest() {
        let rounded = |rad: f64| (rad * 1e4).round() * 1e-4;
        assert!(after_a_second(|_| 0.3));
        assert!(after_a_second(|secs| 1e-4 * f64::from((secs * 1e3) as i32 % 2)), "rounding");
        for speed in [0.025, 0.1, 1.0] {
            assert!(!after_a_second(|secs| speed * secs), "{speed}");
            assert!(!after_a_second(|secs| rounded(-speed * secs)), "{speed}, rounded");
        }
        assert!(after_a_second(|secs| 0.01 * secs));
    }

    #[test]
    fn rest_takes_its_time() {
        let mut still = Still::default();
        let mut seen =
            |joint_4: f64, stamp_secs: f64| still.is_still(&[0.0, 0.0, 0.0, joint_4, 0.0, 0.0, 0.0], stamp_secs, 0.02);
        assert_eq!([5.0, 5.05, 5.0999, 5.1001].map(|stamp| seen(0.0, stamp)), [false, false, false, true]);
        assert!(seen(0.00209, 5.2) && !seen(0.0022, 5.21), "0.02 rad/s for 0.1 s, and rounding");
        assert!(!seen(0.0022, 5.3) && seen(0.0022, 5.32));
    }
}
