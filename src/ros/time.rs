//! ROS time to seconds and back.

use crate::data::wire::Stamp;
use crate::error::Result;
use r2r::builtin_interfaces::msg::{Duration, Time};

const NANOS: f64 = 1e9;

/// Seconds as ROS time, to the nearest nanosecond; what a stamp cannot hold saturates, NaN is 0.
pub fn stamp(secs: f64) -> Time {
    const SECOND: u32 = NANOS as u32;
    let whole = secs.floor();
    let nanosec = ((secs - whole) * NANOS).round() as u32;
    let sec = (whole as i64).saturating_add(i64::from(nanosec / SECOND));
    match i32::try_from(sec) {
        Ok(sec) => Time { sec, nanosec: nanosec % SECOND },
        Err(_) if sec < 0 => Time { sec: i32::MIN, nanosec: 0 },
        Err(_) => Time { sec: i32::MAX, nanosec: SECOND - 1 },
    }
}

/// Seconds as a duration, to the nearest nanosecond.
pub(super) fn span(secs: f64) -> Duration {
    let Time { sec, nanosec } = stamp(secs);
    Duration { sec, nanosec }
}

/// ROS time as seconds; refused where the nanoseconds are a second or more.
pub fn secs(time: &Time) -> Result<f64> {
    Stamp { sec: time.sec, nanosec: time.nanosec }.secs()
}

/// Wall time [ns since 1970].
pub(super) fn wall_now_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Wall time [s since 1970].
pub fn wall_now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_stamps_to_the_nearest_nanosecond() {
        assert_eq!(stamp(1.25), Time { sec: 1, nanosec: 250_000_000 });
        assert_eq!(stamp(0.05 * 3.0), Time { sec: 0, nanosec: 150_000_000 });
        assert_eq!(stamp(2.999_999_999_9), Time { sec: 3, nanosec: 0 });
        assert_eq!(stamp(-0.25), Time { sec: -1, nanosec: 750_000_000 });
    }

    #[test]
    fn what_a_stamp_cannot_hold_saturates() {
        assert_eq!(stamp(f64::NAN), Time { sec: 0, nanosec: 0 });
        assert_eq!(stamp(1e300), Time { sec: i32::MAX, nanosec: 999_999_999 });
        assert_eq!(stamp(f64::INFINITY), Time { sec: i32::MAX, nanosec: 999_999_999 });
        assert_eq!(stamp(f64::NEG_INFINITY), Time { sec: i32::MIN, nanosec: 0 });
    }

    #[test]
    fn stamps_survive_as_seconds() {
        for time in [Time { sec: 1_790_000_000, nanosec: 999_999_761 }, Time { sec: -7, nanosec: 1 }] {
            assert!((secs(&time).unwrap() - secs(&stamp(secs(&time).unwrap())).unwrap()).abs() < 1e-9);
        }
        assert_eq!(secs(&Time { sec: -1, nanosec: 750_000_000 }).unwrap(), -0.25);
    }

    #[test]
    fn a_stamp_with_a_second_of_nanoseconds_is_refused() {
        let error = secs(&Time { sec: 0, nanosec: 1_000_000_000 }).unwrap_err().to_string();
        assert!(error.contains("1000000000 nanoseconds"), "{error}");
    }
}
