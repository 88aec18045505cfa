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
