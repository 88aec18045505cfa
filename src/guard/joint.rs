//! One joint: from a target that jumps to a motion inside the bounds, tick by tick.

use super::bounds::Bounds;
use super::stop::Motion;

/// Halvings in the search for the jerk: 2⁻²⁰ of the range is far below what a robot resolves.
const HALVINGS: u32 = 20;

/// A linear law that brings a joint to its target without overshoot: three equal poles, in discrete time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    /// Gains of position error, velocity and acceleration for units of ticks.
    gains: [f64; 3],
    /// Length of a tick [s].
    tick_secs: f64,
}

impl Law {
    /// Poles at `exp(-3 tick / delay)`, so that a moving target is followed `delay_secs` late; 0: as fast as ticks allow.
    ///
    /// With x = (q, v dt, a dt²) a tick of constant jerk is `x' = (I + N) x + b j dt³`; Ackermann's formula for
    /// `(z - 1 + p)³` gives `p³, 3 p² - p³, 3 p - 3/2 p² + p³/3`.
    pub(super) fn new(delay_secs: f64, tick_secs: f64) -> Self {
        let p = -(-3.0 * tick_secs / delay_secs).exp_m1(); // 1 without delay
        let (p2, p3) = (p * p, p * p * p);
        Self { gains: [p3, 3.0 * p2 - p3, 3.0 * p - 1.5 * p2 + p3 / 3.0], tick_secs }
    }

    /// The jerk that the law asks for [rad/s³].
    fn jerk(&self, motion: Motion, target: f64) -> f64 {
        let [position, velocity, acceleration] = self.gains;
        let dt = self.tick_secs;
        let moved = velocity * motion.velocity * dt + acceleration * motion.acceleration * dt * dt;
        (position * (target - motion.position) - moved) / (dt * dt * dt)
    }
}

/// Where a joint goes in a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// At the end of the tick.
    pub(super) next: Motion,
    /// The jerk throughout the tick; none where it follows the stop.
    pub(super) jerk: Option<f64>,
    /// Whether velocity, acceleration, jerk or the way to stop kept it from what the law asks for.
    pub(super) limited: bool,
}

/// A tick along the stop.
pub(super) fn brake(bounds: &Bounds, motion: Motion, tick_secs: f64) -> Step {
    Step { next: bounds.stop(motion).at(motion, tick_secs), jerk: None, limited: false }
}

/// The mean jerk of a tick along the stop [rad/s³].
pub(super) fn braking_jerk(bounds: &Bounds, motion: Motion, tick_secs: f64) -> f64 {
    (bounds.stop(motion).at(motion, tick_secs).acceleration - motion.acceleration) / tick_secs
}

/// Whether a tick of constant jerk obeys the bounds, on its way and at its end.
pub(super) fn allowed(bounds: &Bounds, motion: Motion, jerk: f64, tick_secs: f64) -> bool {
    let next = motion.after(jerk, tick_secs);
    // the speed may have its peak within the tick
    let peaks = motion.acceleration * next.acceleration < 0.0;
    let peak = peaks.then(|| motion.after(jerk, -motion.acceleration / jerk));
    bounds.hold(next, motion.position) && peak.is_none_or(|peak| bounds.hold(peak, motion.position))
}

/// A tick towards a target inside the bounds' range.
///
/// The jerk is the law's, or the nearest to it whose motion obeys the bounds and whose stop does not pass the target. Where
/// no jerk that is constant over the tick does, the joint follows its stop, which always does: a motion that the bounds
/// hold has a stop that they hold throughout.
pub(super) fn toward(bounds: &Bounds, motion: Motion, target: f64, law: &Law) -> Step {
    let dt = law.tick_secs;
    let wanted = law.jerk(motion, target);
    let (least, most) = (-bounds.acceleration - motion.acceleration, bounds.acceleration - motion.acceleration);
    let clipped = wanted.min(most / dt).max(least / dt).min(bounds.jerk).max(-bounds.jerk);
    let ahead = bounds.stop(motion).end(motion) <= target;
    let good = |jerk: f64| {
        let next = motion.after(jerk, dt);
        let end = bounds.stop(next).end(next);
        (if ahead { end <= target } else { end >= target }) && allowed(bounds, motion, jerk, dt)
    };
    if good(clipped) {
        return Step { next: motion.after(clipped, dt), jerk: Some(clipped), limited: clipped != wanted };
    }
    let mut best = braking_jerk(bounds, motion, dt);
    if !good(best) {
        return Step { limited: true, ..brake(bounds, motion, dt) };
    }
    let mut beyond = clipped;
    for _ in 0..HALVINGS {
        let middle = 0.5 * (best + beyond);
        if good(middle) {
            best = middle;
        } else {
            beyond = middle;
        }
    }
    Step { next: motion.after(best, dt), jerk: Some(best), limited: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Config;
    use crate::robot::Robot;

    const DT: f64 = 1e-3;

    fn bounds(robot: Robot, joint: usize) -> Bounds {
        Bounds::of(&Config::default(), 1.0, [robot; 2], robot.limits(), DT).unwrap()[joint]
    }

    fn panda(joint: usize) -> Bounds {
        bounds(Robot::Panda, joint)
    }

    /// The motion of every tick.
    fn run(bounds: &Bounds, law: &Law, mut motion: Motion, target: f64, ticks: u32) -> Vec<Motion> {
        let mut path = vec![motion];
        for _ in 0..ticks {
            motion = toward(bounds, motion, target, law).next;
            path.push(motion);
        }
        path
    }

    #[test]
    fn the_law_has_three_equal_poles() {
        // unbounded, from rest, the error after n ticks is that of a discrete triple pole: it obeys
        // e[n+3] = 3 z e[n+2] - 3 z² e[n+1] + z³ e[n]
        let law = Law::new(0.03, DT);
        let z = (-3.0 * DT / 0.03).exp();
        let mut motion = Motion::rest(0.0);
        let mut errors = Vec::new();
        for _ in 0..50 {
            errors.push(1.0 - motion.position);
            motion = motion.after(law.jerk(motion, 1.0), DT);
        }
        for window in errors.windows(4) {
            let want = 3.0 * z * window[2] - 3.0 * z * z * window[1] + z * z * z * window[0];
            assert!((window[3] - want).abs() < 1e-9, "{window:?}");
        }
    }

    #[test]
    fn a_ramp_is_followed_by_the_delay() {
        let law = Law::new(0.03, DT);
        let bounds = panda(0);
        let mut motion = Motion::rest(0.0);
        let mut target = 0.0;
        for _ in 0..2000 {
            target += 0.5 * DT;
            motion = toward(&bounds, motion, target, &law).next;
        }
        // the target of a tick is where the ramp is at its end; the lag of the discrete law is within a tick of the delay
        assert!((motion.velocity - 0.5).abs() < 1e-6, "{motion:?}");
        let late = (target - motion.position) / 0.5;
        assert!((late - 0.03).abs() < 2.0 * DT, "{late}");
    }

    #[test]
    fn a_far_target_is_reached_in_about_the_least_time_without_overshoot() {
        let bounds = panda(0);
        // 2 rad at 2.175 rad/s, 15 rad/s², 7500 rad/s³: way / v + v / a + a / j = 0.9195 + 0.145 + 0.002 = 1.0665 s
        for delay in [0.0, 0.03] {
            let path = run(&bounds, &Law::new(delay, DT), Motion::rest(-1.0), 1.0, 2000);
            assert!(path.iter().all(|motion| motion.position <= 1.0 + 1e-9), "overshoot");
            let there = path.iter().position(|motion| motion.position > 1.0 - 1e-4).unwrap();
            assert!((1055..1110 + (delay / DT * 3.0) as usize).contains(&there), "{delay}: {there}");
            let last = path.last().unwrap();
            assert!((last.position - 1.0).abs() < 1e-9 && last.velocity.abs() < 1e-6, "{last:?}");
        }
    }

    #[test]
    fn nothing_hunts_about_a_limit() {
        // up to A, to 0, to -A, to 0: the acceleration of a fast way moves by 4 A in all, and by little more at ticks; one that
        // hunts moves by thousands
        for (robot, joint, from, to) in [
            (Robot::Panda, 0, -1.5, 1.5),
            (Robot::Fr3, 1, -1.5, 1.5),
            (Robot::Fr3, 1, 0.0, 1.6837),
            (Robot::Fr3, 4, 1.0, -2.7065),
        ] {
            let bounds = bounds(robot, joint);
            for delay in [0.0, 0.02, 0.1] {
                let path = run(&bounds, &Law::new(delay, DT), Motion::rest(from), to, 6000);
                let change = |pair: &[Motion]| (pair[1].acceleration - pair[0].acceleration).abs();
                let total: f64 = path.windows(2).map(change).sum();
                assert!(total < 20.0 * bounds.acceleration, "{robot:?} {joint} {delay}: {total}");
                assert!((path.last().unwrap().position - to).abs() < 1e-6, "{:?}", path.last());
            }
        }
    }

    #[test]
    fn a_target_behind_is_reached_after_a_stop() {
        let bounds = panda(1);
        let law = Law::new(0.0, DT);
        let path = run(&bounds, &law, Motion::rest(0.0), 1.0, 500);
        let fast = *path.last().unwrap();
        assert!(fast.velocity > 1.0, "{fast:?}");
        let back = run(&bounds, &law, fast, 0.0, 2000);
        assert!(back.iter().all(|motion| motion.position > -1e-9), "undershoot");
        assert!(back.last().unwrap().position.abs() < 1e-6, "{:?}", back.last());
    }

    #[test]
    fn a_stop_that_ends_at_the_last_place_is_followed() {
        // at 60 Hz a tick of constant jerk cannot: the stop's ramps last 2 ms
        let dt = 1.0 / 60.0;
        let bounds = Bounds::of(&Config::default(), 1.0, [Robot::Panda; 2], Robot::Panda.limits(), dt).unwrap()[0];
        let (a, j) = (bounds.acceleration, bounds.jerk);
        let end = bounds.range().1;
        let motion = Motion { position: end - 0.5 * (1.0 / a + a / j) - 1e-9, velocity: 1.0, acceleration: 0.0 };
        let step = toward(&bounds, motion, end, &Law::new(0.0, dt));
        assert!(step.jerk.is_none() && step.limited, "{step:?}");
        // a tick less a ramp of a / j at the whole deceleration, and half of it in the ramp
        assert!((step.next.velocity - (1.0 - a * (dt - 0.5 * a / j))).abs() < 1e-9, "{step:?}");
    }

    #[test]
    fn a_limit_that_acts_is_told() {
        let bounds = panda(0);
        assert!(toward(&bounds, Motion::rest(0.0), 1.0, &Law::new(0.03, DT)).limited);
        assert!(!toward(&bounds, Motion::rest(0.0), 1e-6, &Law::new(0.03, DT)).limited);
        assert!(!toward(&bounds, Motion::rest(0.0), 0.0, &Law::new(0.03, DT)).limited);
    }
}
