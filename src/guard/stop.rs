//! The stop: the fastest jerk-limited way from a velocity and an acceleration to rest, in closed form.
//!
//! Time is continuous here, on purpose. A command stream samples this motion at ticks of equal length, so its backward
//! differences of first, second and third order are averages of the motion's velocity, acceleration and jerk (weighted by
//! the B-spline of that order), and lie inside whatever bounds those obey.

/// Position, velocity and acceleration of one joint at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Motion {
    /// [rad].
    pub(super) position: f64,
    /// [rad/s].
    pub(super) velocity: f64,
    /// [rad/s²].
    pub(super) acceleration: f64,
}

impl Motion {
    /// Standing still.
    pub(super) fn rest(position: f64) -> Self {
        Self { position, ..Self::default() }
    }

    /// After `secs` of constant jerk [rad/s³].
    pub(super) fn after(self, jerk: f64, secs: f64) -> Self {
        let Self { position, velocity, acceleration } = self;
        Self {
            position: position + secs * (velocity + secs * (acceleration / 2.0 + secs * jerk / 6.0)),
            velocity: velocity + secs * (acceleration + secs * jerk / 2.0),
            acceleration: acceleration + secs * jerk,
        }
    }

    /// The velocity that is left when the acceleration has gone to 0 as fast as `jerk` allows.
    pub(super) fn coasting(self, jerk: f64) -> f64 {
        self.velocity + self.acceleration * self.acceleration.abs() / (2.0 * jerk)
    }

    /// The same motion with the joint's direction reversed.
    pub(super) fn mirrored(self) -> Self {
        Self { position: -self.position, velocity: -self.velocity, acceleration: -self.acceleration }
    }

    /// Whether it neither moves nor is about to.
    pub(super) fn is_rest(self) -> bool {
        self.velocity == 0.0 && self.acceleration == 0.0
    }
}

/// Three pieces of constant jerk that bring a joint to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    /// Duration [s] and jerk [rad/s³].
    pieces: [(f64, f64); 3],
}

impl Stop {
    /// The stop that brakes with at most `acceleration` [rad/s²] and `jerk` [rad/s³], both positive.
    ///
    /// For a coasting velocity above 0: the acceleration goes to `-peak`, stays, and returns to 0, where
    /// `peak² = jerk · velocity + acceleration² / 2` makes the stay vanish, and is bounded by `acceleration`. A joint that
    /// already brakes harder than that is first let off. Below 0: the mirror.
    pub(super) fn new(from: Motion, acceleration: f64, jerk: f64) -> Self {
        let sign = if from.coasting(jerk) < 0.0 { -1.0 } else { 1.0 };
        let (v, a) = (sign * from.velocity, sign * from.acceleration);
        if a < -acceleration {
            let let_off = (-acceleration - a) / jerk;
            let left = v - (a * a - acceleration * acceleration) / (2.0 * jerk);
            let stay = left / acceleration - acceleration / (2.0 * jerk);
            return Self { pieces: [(let_off, sign * jerk), (stay.max(0.0), 0.0), (acceleration / jerk, sign * jerk)] };
        }
        let peak = (jerk * v + a * a / 2.0).max(0.0).sqrt().min(acceleration);
        let stay = (v + a * a / (2.0 * jerk)) / acceleration - acceleration / jerk; // under 0 for a lower peak
        Self { pieces: [((a + peak).max(0.0) / jerk, -sign * jerk), (stay.max(0.0), 0.0), (peak / jerk, sign * jerk)] }
    }

    /// How long it takes [s].
    pub(super) fn secs(&self) -> f64 {
        self.pieces.iter().map(|(secs, _)| secs).sum()
    }

    /// When its pieces end [s].
    pub(super) fn edges(&self) -> [f64; 3] {
        let [(first, _), (second, _), (third, _)] = self.pieces;
        [first, first + second, first + second + third]
    }

    /// The highest speed on the way [rad/s]: where a piece begins or ends, or where the first piece's acceleration passes 0.
    pub(super) fn fastest(&self, from: Motion) -> f64 {
        let (first, jerk) = self.pieces[0];
        let crest = if jerk == 0.0 { 0.0 } else { (-from.acceleration / jerk).clamp(0.0, first) };
        let [one, two, _] = self.edges();
        [0.0, crest, one, two].map(|secs| self.at(from, secs).velocity.abs()).into_iter().fold(0.0, f64::max)
    }

    /// Where the joint is, `secs` after it was at `from`; at rest from the end on.
    pub(super) fn at(&self, from: Motion, mut secs: f64) -> Motion {
        let mut motion = from;
        for &(piece, jerk) in &self.pieces {
            if secs < piece {
                return motion.after(jerk, secs);
            }
            motion = motion.after(jerk, piece);
            secs -= piece;
        }
        Motion::rest(motion.position)
    }

    /// Where it ends [rad].
    pub(super) fn end(&self, from: Motion) -> f64 {
        self.pieces.iter().fold(from, |motion, &(secs, jerk)| motion.after(jerk, secs)).position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moving(velocity: f64, acceleration: f64) -> Motion {
        Motion { position: 0.5, velocity, acceleration }
    }

    #[test]
    fn a_stop_from_cruise_has_its_closed_form() {
        // v = 2, A = 10, J = 100: ramps of 0.1 s, a stay of 0.1 s; the way is v/2 * (v/A + A/J) = 0.3
        let stop = Stop::new(moving(2.0, 0.0), 10.0, 100.0);
        assert_eq!(stop.pieces.map(|(_, jerk)| jerk), [-100.0, 0.0, 100.0]);
        for (found, want) in stop.pieces.iter().zip([0.1, 0.1, 0.1]) {
            assert!((found.0 - want).abs() < 1e-12, "{stop:?}");
        }
        assert!((stop.secs() - 0.3).abs() < 1e-12);
        assert!(stop.edges().iter().zip([0.1, 0.2, 0.3]).all(|(found, want)| (found - want).abs() < 1e-12));
        assert!((stop.end(moving(2.0, 0.0)) - 0.8).abs() < 1e-12);
        assert!((Stop::new(moving(-2.0, 0.0), 10.0, 100.0).end(moving(-2.0, 0.0)) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_slow_stop_never_reaches_the_full_deceleration() {
        // v = 0.25, J = 100: the peak is sqrt(J v) = 5, two ramps of 0.05 s
        let stop = Stop::new(moving(0.25, 0.0), 10.0, 100.0);
        assert!((stop.secs() - 0.1).abs() < 1e-12);
        assert!((stop.at(moving(0.25, 0.0), 0.05).acceleration + 5.0).abs() < 1e-9);
    }

    #[test]
    fn one_that_brakes_too_hard_is_let_off_first() {
        // a = -20 with A = 10, J = 100: 0.1 s to -10 takes 1.5 off v = 3; 0.5 more in the last ramp leaves 1.0 for the stay
        let stop = Stop::new(moving(3.0, -20.0), 10.0, 100.0);
        for (found, want) in stop.pieces.iter().zip([(0.1, 100.0), (0.1, 0.0), (0.1, 100.0)]) {
            assert!((found.0 - want.0).abs() < 1e-12 && found.1 == want.1, "{stop:?}");
        }
    }

    #[test]
    fn rest_stays_rest() {
        let rest = Motion::rest(0.3);
        let stop = Stop::new(rest, 10.0, 100.0);
        assert_eq!(stop.secs(), 0.0);
        assert_eq!(stop.at(rest, 0.1), rest);
        assert!(rest.is_rest() && !moving(0.0, 1.0).is_rest() && !moving(1.0, 0.0).is_rest());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Integrated in small steps by the trapezoidal rule, independently of the closed form.
        #[test]
        fn a_stop_ends_at_rest_inside_its_bounds(v in -3.0..3.0f64, a in -20.0..20.0f64, most in 2.0..20.0f64) {
            let (jerk, from) = (1000.0, moving(v, a));
            let stop = Stop::new(from, most, jerk);
            let total = stop.secs();
            let steps = 2000;
            let fastest = stop.fastest(from);
            let mut last = from;
            for step in 1..=steps {
                let now = stop.at(from, total * f64::from(step) / f64::from(steps));
                let dt = total / f64::from(steps);
                prop_assert!(now.velocity.abs() <= fastest + 1e-9, "{} over {fastest}", now.velocity);
                prop_assert!(now.acceleration.abs() <= most.max(a.abs()) + 1e-9);
                prop_assert!((now.acceleration - last.acceleration).abs() <= jerk * dt + 1e-9);
                prop_assert!((now.velocity - last.velocity - dt * (now.acceleration + last.acceleration) / 2.0).abs() <= jerk * dt * dt);
                prop_assert!((now.position - last.position - dt * (now.velocity + last.velocity) / 2.0).abs() <= 20.0 * dt * dt);
                last = now;
            }
            // the last instant before rest is as good as rest
            let before = stop.at(from, total * (1.0 - 1e-9));
            prop_assert!(before.velocity.abs() < 1e-6 && before.acceleration.abs() < 1e-3, "{before:?}");
            let after = stop.at(from, total + 1e-9);
            prop_assert!((after.position - stop.end(from)).abs() < 1e-12 && after.is_rest());
            prop_assert!((after.position - last.position).abs() < 1e-9);
        }

        #[test]
        fn the_rest_of_a_stop_is_the_stop_of_the_rest(v in -3.0..3.0f64, a in -20.0..20.0f64, part in 0.0..1.0f64) {
            let from = moving(v, a);
            let stop = Stop::new(from, 8.0, 1000.0);
            let midway = stop.at(from, part * stop.secs());
            let rest = Stop::new(midway, 8.0, 1000.0);
            prop_assert!((rest.end(midway) - stop.end(from)).abs() < 1e-9);
            prop_assert!((rest.secs() - (1.0 - part) * stop.secs()).abs() < 1e-6);
        }
    }
}
