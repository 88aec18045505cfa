//! What one joint may do now: the arm's limits, those of its description and the policy's, scaled, less the margins.

use super::Config;
use super::stop::{Motion, Stop};
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Limits, PerJoint, Robot, VelocityCurve};

/// Motions are planned this far inside the tables, so that rounding never leaves them (libfranka's rate limiter keeps the
/// same distance: rate_limiting.h, `kLimitEps`).
const HEADROOM: f64 = 0.999;

/// Bounds of one joint. A motion is kept such that its stop obeys them too; then it can always stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// [rad/s].
    pub(super) velocity: f64,
    /// [rad/s²].
    pub(super) acceleration: f64,
    /// [rad/s³].
    pub(super) jerk: f64,
    /// Length of a tick [s].
    tick_secs: f64,
    /// Towards higher positions.
    high: Side,
    /// Towards lower positions, mirrored: positions negated.
    low: Side,
}

/// The end of a joint's range on one side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    /// No stop ends beyond [rad]. An arm that was found beyond may move inwards only.
    end: f64,
    /// Every stop before the end can be made with this deceleration [rad/s²].
    deceleration: f64,
}

impl Side {
    /// `limit` is the end by position. The FR3's velocity bound `v + o <= sqrt(c (upper - q))` holds at every point of a
    /// stop with deceleration D that ends at e when the parabola `v² <= 2 D (e - q)` lies below it, which is when
    /// `e <= upper - o² / (c - 2 D)`, D < c/2 (the difference of the two is least at v = 2 o D / (c - 2 D)). D is as large
    /// as the acceleration and `limit` allow, but not under c/4; then the end gives way.
    ///
    /// `travel` is what a joint moves in one tick at most: a backward difference looks back by so much.
    fn new(limit: f64, acceleration: f64, curve: Option<(f64, &VelocityCurve)>, travel: f64) -> Self {
        let Some((upper, curve)) = curve else { return Self { end: limit, deceleration: acceleration } };
        let (offset, slope) = (curve.offset_rad_per_sec, curve.slope_rad_per_sec2);
        let upper = upper - travel;
        let room = (upper - limit).max(0.0);
        let largest = (slope - offset * offset / room) / 2.0; // -inf without room
        let deceleration = largest.max(slope / 4.0).min(acceleration);
        let end = limit.min(upper - offset * offset / (slope - 2.0 * deceleration));
        Self { end, deceleration }
    }

    /// The highest position of the stop of a motion [rad].
    fn reach(&self, motion: Motion, jerk: f64) -> f64 {
        let Motion { position, velocity, acceleration } = motion;
        if motion.coasting(jerk) > 0.0 {
            return position.max(Stop::new(motion, self.deceleration, jerk).end(motion));
        }
        if velocity <= 0.0 {
            return position;
        }
        // it turns back while the deceleration fades
        let turn = (-acceleration - (acceleration * acceleration - 2.0 * jerk * velocity).max(0.0).sqrt()) / jerk;
        motion.after(jerk, turn).position
    }

    /// Whether a motion that comes from `before` can still stop before the end, and is slow enough for where it is. Beyond
    /// the end it may go inwards only.
    fn holds(&self, motion: Motion, before: f64, jerk: f64) -> bool {
        if motion.position > self.end {
            return motion.position <= before && motion.velocity <= 0.0 && motion.coasting(jerk) <= 0.0;
        }
        let by_speed = motion.position + motion.velocity.max(0.0).powi(2) / (2.0 * self.deceleration);
        by_speed <= self.end && self.reach(motion, jerk) <= self.end
    }
}

impl Bounds {
    /// The bounds of every joint at `scale` of the tables' velocity, acceleration and jerk.
    ///
    /// `robots` are the connected arm and the one that the policy was made for; `limits` what both of them and the arm's
    /// description allow.
    pub(super) fn of(
        config: &Config,
        scale: f64,
        robots: [Robot; 2],
        limits: &Limits,
        tick_secs: f64,
    ) -> Result<[Self; ARM_DOF]> {
        let mut bounds = [Self::default(); ARM_DOF];
        for (joint, bound) in bounds.iter_mut().enumerate() {
            let curve = robots.iter().find_map(|robot| robot.velocity_curve(joint));
            let scaled = |table: &PerJoint| table[joint] * scale * HEADROOM;
            let velocity = scaled(&limits.velocity_rad_per_sec);
            let acceleration = scaled(&limits.acceleration_rad_per_sec2);
            let jerk = scaled(&limits.jerk_rad_per_sec3);
            let margin = config.position_margin_rad;
            let travel = velocity * tick_secs;
            let (low, high) = (limits.position_min_rad[joint], limits.position_max_rad[joint]);
            let side = |limit: f64, upper: fn(&VelocityCurve) -> f64| {
                Side::new(limit - margin, acceleration, curve.as_ref().map(|curve| (upper(curve), curve)), travel)
            };
            *bound = Self {
                velocity,
                acceleration,
                jerk,
                tick_secs,
                high: side(high, |curve| curve.upper_rad),
                low: side(-low, |curve| -curve.lower_rad),
            };
            let positive = [velocity, acceleration, jerk].iter().all(|value| *value > 0.0 && value.is_finite());
            let (from, to) = bound.range();
            if !positive || from.partial_cmp(&to) != Some(std::cmp::Ordering::Less) {
                return Err(Error::invalid(format!(
                    "joint {} may not move between {low} and {high} rad at {} rad/s less a margin of {margin} rad; a \
                     joint needs some range and speed",
                    joint + 1,
                    limits.velocity_rad_per_sec[joint]
                )));
            }
        }
        Ok(bounds)
    }

    /// Where targets may lie, from lowest to highest [rad].
    pub(super) fn range(&self) -> (f64, f64) {
        (-self.low.end, self.high.end)
    }

    /// Whether a motion and its stop obey the speed. The acceleration is given one tick more to fade than it needs, so that
    /// ticks of constant jerk can come to the highest speed without hunting about it.
    pub(super) fn slow(&self, motion: Motion) -> bool {
        let peak = |motion: Motion| {
            let acceleration = motion.acceleration.max(0.0);
            motion.velocity + 0.5 * acceleration * (acceleration / self.jerk + self.tick_secs)
        };
        peak(motion) <= self.velocity && peak(motion.mirrored()) <= self.velocity
    }

    /// Whether a motion that comes from the position `before`, and its stop, obey everything.
    pub(super) fn hold(&self, motion: Motion, before: f64) -> bool {
        motion.acceleration.abs() <= self.acceleration
            && self.slow(motion)
            && self.high.holds(motion, before, self.jerk)
            && self.low.holds(motion.mirrored(), -before, self.jerk)
    }

    /// The fastest stop.
    pub(super) fn stop(&self, motion: Motion) -> Stop {
        Stop::new(motion, self.acceleration, self.jerk)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        let side = Side { end: 0.0, deceleration: 1.0 };
        Self { velocity: 1.0, acceleration: 1.0, jerk: 1.0, tick_secs: 1.0, high: side, low: side }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(robot: Robot, margin: f64, tick_secs: f64) -> [Bounds; ARM_DOF] {
        let config = Config { position_margin_rad: margin, ..Config::default() };
        Bounds::of(&config, 1.0, [robot; 2], robot.limits(), tick_secs).unwrap()
    }

    fn near(found: f64, want: f64) -> bool {
        (found - want).abs() < 1e-6
    }

    #[test]
    fn the_panda_brakes_before_its_ends_with_all_it_has() {
        let [first, second, ..] = bounds(Robot::Panda, 0.1, 1e-3);
        assert!(near(first.velocity, 2.172825) && near(first.acceleration, 14.985) && near(first.jerk, 7492.5));
        assert_eq!(second.high, Side { end: 1.7628 - 0.1, deceleration: 7.5 * HEADROOM });
        assert_eq!(second.low, second.high);
        let (low, high) = bounds(Robot::Panda, 0.1, 1e-3)[3].range();
        assert!(near(low, -2.9718) && near(high, -0.1698), "{low} {high}");
    }

    #[test]
    fn the_fr3_brakes_under_its_velocity_curve() {
        // joint 2: o = 0.2, c = 5.17, upper = 1.7918, less 1 ms at 2.61738 rad/s: 1.7891826; to 1.6837 that is 0.1054826, and
        // (5.17 - 0.04 / 0.1054826) / 2 = 2.395395
        let second = bounds(Robot::Fr3, 0.1, 1e-3)[1];
        assert!(near(second.high.end, 1.6837) && near(second.high.deceleration, 2.395395), "{second:?}");
        assert!(near(second.low.end, 1.6837) && near(second.low.deceleration, 2.395395), "{second:?}");
        // at 60 Hz upper is 1.748177, before the limit of 1.7637: c / 4, and the end is 0.04 / (5.17 / 2) before upper
        let second = bounds(Robot::Fr3, 0.02, 1.0 / 60.0)[1];
        assert!(near(second.high.end, 1.732703) && near(second.high.deceleration, 1.2925), "{second:?}");
        // joint 5 could brake harder than it may
        assert!(near(bounds(Robot::Fr3, 0.1, 1e-3)[4].high.deceleration, 9.99));
        // joint 6 is not symmetric
        let (low, high) = bounds(Robot::Fr3, 0.1, 1e-3)[5].range();
        assert!(near(low, 0.6445) && near(high, 4.4169), "{low} {high}");
    }

    #[test]
    fn every_braking_parabola_lies_under_the_curve() {
        for (margin, tick_secs) in [(0.02, 1e-3), (0.1, 1e-3), (0.02, 1.0 / 60.0), (0.5, 0.01)] {
            for (joint, bounds) in bounds(Robot::Fr3, margin, tick_secs).iter().enumerate() {
                let (low, high) = bounds.range();
                for step in 0..=1000 {
                    let mut pose = [0.0; ARM_DOF];
                    pose[joint] = low + (high - low) * f64::from(step) / 1000.0;
                    let speed =
                        |room: f64, side: &Side| (2.0 * side.deceleration * room.max(0.0)).sqrt().min(bounds.velocity);
                    let travel = bounds.velocity * tick_secs;
                    let up = speed(high - pose[joint], &bounds.high);
                    let down = speed(pose[joint] - low, &bounds.low);
                    let at = pose[joint];
                    pose[joint] = at + travel;
                    assert!(up <= Robot::Fr3.velocity_range(&pose).1[joint] + 1e-9, "joint {joint} at {at}");
                    pose[joint] = at - travel;
                    assert!(-down >= Robot::Fr3.velocity_range(&pose).0[joint] - 1e-9, "joint {joint} at {at}");
                }
            }
        }
    }

    /// v / 2 (v / D + D / J) is the way of a stop from cruise.
    #[test]
    fn a_motion_holds_as_long_as_its_stop_ends_inside() {
        let bounds = bounds(Robot::Fr3, 0.1, 1e-3)[1];
        let (deceleration, jerk) = (bounds.high.deceleration, bounds.jerk);
        let way = 0.5 * (1.0 / deceleration + deceleration / jerk);
        for sign in [1.0, -1.0] {
            let at = |position: f64| Motion { position: sign * position, velocity: sign, acceleration: 0.0 };
            assert!(bounds.hold(at(1.6837 - way - 1e-9), 0.0));
            assert!(!bounds.hold(at(1.6837 - way + 1e-9), 0.0));
            // one that already brakes harder than the curve's parabola is judged by its speed
            let hard = |position: f64| Motion { acceleration: -sign * 9.0, ..at(position) };
            let by_speed = 1.6837 - 0.5 / deceleration;
            assert!(bounds.hold(hard(by_speed - 1e-9), 0.0) && !bounds.hold(hard(by_speed + 1e-9), 0.0));
        }
    }

    #[test]
    fn one_that_turns_back_holds_as_long_as_it_turns_inside() {
        let bounds = bounds(Robot::Panda, 0.1, 1e-3)[0];
        let turning = |position: f64| Motion { position, velocity: 0.005, acceleration: -14.0 };
        assert!(turning(0.0).coasting(bounds.jerk) < 0.0);
        let stop = bounds.stop(turning(0.0));
        let highest =
            (0..=100_000).map(|step| stop.at(turning(0.0), 1e-8 * f64::from(step)).position).fold(0.0, f64::max);
        assert!(highest > 5e-7, "{highest}");
        assert!(bounds.hold(turning(2.7973 - highest - 1e-10), 0.0));
        assert!(!bounds.hold(turning(2.7973 - highest + 1e-10), 0.0));
    }

    #[test]
    fn beyond_the_end_only_inwards_holds() {
        let bounds = bounds(Robot::Panda, 0.1, 1e-3)[0];
        let (_, end) = bounds.range();
        assert!(bounds.hold(Motion::rest(end), end - 0.01), "the end itself is inside");
        for sign in [1.0, -1.0] {
            let at = |velocity: f64, acceleration: f64| Motion {
                position: sign * 2.85,
                velocity: sign * velocity,
                acceleration: sign * acceleration,
            };
            let hold = |motion, before: f64| bounds.hold(motion, sign * before);
            assert!(hold(at(0.0, 0.0), 2.85) && hold(at(-0.1, 0.0), 2.86) && hold(at(-0.1, 1.0), 2.85));
            assert!(!hold(at(0.0, 0.0), 2.84), "it came out");
            assert!(!hold(at(1e-6, -1.0), 2.86) && !hold(at(0.0, 1.0), 2.86), "it goes out");
        }
    }

    #[test]
    fn speed_and_acceleration_are_held_too() {
        let bounds = bounds(Robot::Panda, 0.1, 1e-3)[0];
        for sign in [1.0, -1.0] {
            let at = |velocity: f64, acceleration: f64| Motion {
                position: 0.0,
                velocity: sign * velocity,
                acceleration: sign * acceleration,
            };
            assert!(bounds.hold(at(2.1728, 0.0), 0.0) && !bounds.hold(at(2.1729, 0.0), 0.0));
            // 10 rad/s² take 10 / 2 (10 / 7492.5 + 0.001) = 0.011673 rad/s to fade
            let most = 2.172825 - 0.011673;
            assert!(bounds.hold(at(most - 1e-5, 10.0), 0.0) && !bounds.hold(at(most + 1e-5, 10.0), 0.0));
            assert!(bounds.hold(at(2.1728, -10.0), 0.0));
            assert!(bounds.hold(at(0.0, 14.985), 0.0) && !bounds.hold(at(0.0, 14.986), 0.0));
        }
    }
}
