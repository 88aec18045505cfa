//! Franka's self-collision model: capsules on the links, the distance between them, and to the floor.

use super::kinematics::{flange_from_hand, forward, link_frames};
use super::{ARM_DOF, PerJoint};
use nalgebra::{Isometry3, Point3};
use std::f64::consts::FRAC_1_SQRT_2;

/// [`Capsule::link`] of the hand.
pub const HAND: usize = ARM_DOF + 1;

/// All points within `radius_m` of a segment that is fixed to a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capsule {
    /// Link 0 to 7, or [`HAND`].
    pub link: usize,
    /// Middle of the segment in the link's frame [m].
    pub centre_m: [f64; 3],
    /// Direction of the segment in the link's frame, of length 1.
    pub axis: [f64; 3],
    /// Length of the segment [m].
    pub length_m: f64,
    /// [m], without safety distance.
    pub radius_m: f64,
}

const X: [f64; 3] = [1.0, 0.0, 0.0];
const Y: [f64; 3] = [0.0, 1.0, 0.0];
const Z: [f64; 3] = [0.0, 0.0, 1.0];

const fn capsule(link: usize, centre_m: [f64; 3], axis: [f64; 3], length_m: f64, radius_m: f64) -> Capsule {
    Capsule { link, centre_m, axis, length_m, radius_m }
}

/// franka_description, franka_arm.xacro and franka_hand.xacro, with a safety distance of 0. Link 7's are given there in a
/// frame that is turned by 45 degrees about z, and stand here in the link's own.
pub const CAPSULES: [Capsule; 12] = [
    capsule(0, [-0.075, 0.0, 0.06], X, 0.03, 0.06),
    capsule(1, [0.0, 0.0, -0.1915], Z, 0.283, 0.06),
    capsule(2, [0.0, 0.0, 0.0], Z, 0.12, 0.06),
    capsule(3, [0.0, 0.0, -0.145], Z, 0.15, 0.06),
    capsule(4, [0.0, 0.0, 0.0], Z, 0.12, 0.06),
    capsule(5, [0.0, 0.0, -0.26], Z, 0.10, 0.06),
    capsule(5, [0.0, 0.08, -0.13], Z, 0.14, 0.025),
    capsule(6, [0.0, 0.0, -0.03], Z, 0.08, 0.05),
    capsule(7, [0.0, 0.0, 0.01], Z, 0.14, 0.04),
    capsule(7, [0.06 * FRAC_1_SQRT_2, 0.06 * FRAC_1_SQRT_2, 0.082], [FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0], 0.01, 0.03),
    capsule(HAND, [0.0, 0.0, 0.04], Y, 0.1, 0.04),
    capsule(HAND, [0.0, 0.0, 0.10], Y, 0.1, 0.02),
];

/// Indices into [`CAPSULES`] of the pairs that are checked: those of links at least two joints apart that touched in any of
/// 1,000,000 poses drawn uniformly from the union of the limits of Panda and FR3. Left out beside them is link 1 with link 3,
/// whose capsules meet at the ends of joint 2 where the arm itself allows it.
#[rustfmt::skip]
pub const PAIRS: [(usize, usize); 26] = [
    (0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (0, 10), (0, 11),
    (1, 5), (1, 6), (1, 7), (1, 8), (1, 9), (1, 10), (1, 11),
    (2, 6), (2, 7), (2, 8), (2, 9), (2, 10), (2, 11),
    (3, 9), (3, 10), (3, 11),
    (5, 10), (5, 11),
    (6, 9),
];

/// A capsule in the base frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// One end [m].
    pub start: Point3<f64>,
    /// The other end [m].
    pub end: Point3<f64>,
    /// [m].
    pub radius_m: f64,
}

impl Segment {
    /// Distance between the surfaces [m]; negative where they overlap.
    ///
    /// Closest points of two segments: Ericson, Real-Time Collision Detection, 5.1.9.
    pub fn clearance(&self, other: &Self) -> f64 {
        let (d1, d2, r) = (self.end - self.start, other.end - other.start, self.start - other.start);
        let (a, b, c, e, f) = (d1.norm_squared(), d1.dot(&d2), d1.dot(&r), d2.norm_squared(), d2.dot(&r));
        let along = |numerator: f64, length_squared: f64| {
            if length_squared > 0.0 { (numerator / length_squared).clamp(0.0, 1.0) } else { 0.0 }
        };
        let determinant = a * e - b * b;
        // parallel segments: any s will do
        let s = if determinant > 1e-12 * a * e { ((b * f - c * e) / determinant).clamp(0.0, 1.0) } else { 0.0 };
        let t = along(b * s + f, e);
        let s = along(b * t - c, a);
        let distance = ((self.start + d1 * s) - (other.start + d2 * t)).norm();
        distance - self.radius_m - other.radius_m
    }
}

/// The capsules of an arm at `q`, in the order of [`CAPSULES`].
pub fn place(q: &PerJoint) -> [Segment; CAPSULES.len()] {
    let links = link_frames(q);
    let base_from_hand = forward(q) * flange_from_hand();
    CAPSULES.map(|capsule| {
        let base_from_link: &Isometry3<f64> = links.get(capsule.link).unwrap_or(&base_from_hand);
        let end = |sign: f64| {
            base_from_link
                * Point3::from(std::array::from_fn(|i| {
                    capsule.centre_m[i] + sign * 0.5 * capsule.length_m * capsule.axis[i]
                }))
        };
        Segment { start: end(-1.0), end: end(1.0), radius_m: capsule.radius_m }
    })
}

/// The smallest clearance over [`PAIRS`] [m]; negative where the arm touches itself.
pub fn self_clearance(q: &PerJoint) -> f64 {
    self_clearance_of(&place(q))
}

/// [`self_clearance`] of capsules that are placed already.
pub fn self_clearance_of(placed: &[Segment; CAPSULES.len()]) -> f64 {
    PAIRS.iter().map(|&(a, b)| placed[a].clearance(&placed[b])).fold(f64::INFINITY, f64::min)
}

/// The smallest clearance of links 2 to 7 and the hand from a floor at height `z_m` of the base frame [m].
pub fn floor_clearance(q: &PerJoint, z_m: f64) -> f64 {
    floor_clearance_of(&place(q), z_m)
}

/// [`floor_clearance`] of capsules that are placed already.
pub fn floor_clearance_of(placed: &[Segment; CAPSULES.len()], z_m: f64) -> f64 {
    let moving = CAPSULES.iter().zip(placed).filter(|(capsule, _)| capsule.link >= 2);
    moving.map(|(_, s)| s.start.z.min(s.end.z) - s.radius_m - z_m).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Seed;
    use crate::robot::{READY, Robot};
    use rand::RngExt as _;

    fn segment(start: [f64; 3], end: [f64; 3], radius_m: f64) -> Segment {
        Segment { start: start.into(), end: end.into(), radius_m }
    }

    #[test]
    fn clearance_has_its_closed_form() {
        let along_x = segment([-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.1);
        // crossing above the middle; parallel; past the end, 3-4-5; a point; overlapping
        assert!((along_x.clearance(&segment([0.3, -1.0, 2.0], [0.3, 1.0, 2.0], 0.2)) - 1.7).abs() < 1e-12);
        assert!((along_x.clearance(&segment([0.5, 1.0, 0.0], [3.0, 1.0, 0.0], 0.2)) - 0.7).abs() < 1e-12);
        assert!((along_x.clearance(&segment([4.0, 4.0, 0.0], [9.0, 4.0, 0.0], 0.2)) - 4.7).abs() < 1e-12);
        assert!((along_x.clearance(&segment([0.0, 0.0, 1.0], [0.0, 0.0, 1.0], 0.0)) - 0.9).abs() < 1e-12);
        assert!((along_x.clearance(&segment([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.3)) + 0.4).abs() < 1e-12);
    }

    #[test]
    fn clearance_is_the_least_over_sampled_points() {
        let mut rng = Seed::root(7).rng(0);
        for _ in 0..20 {
            let mut point = || Point3::from(std::array::from_fn::<f64, 3, _>(|_| rng.random_range(-1.0..1.0)));
            let a = Segment { start: point(), end: point(), radius_m: 0.0 };
            let b = Segment { start: point(), end: point(), radius_m: 0.0 };
            let steps = 100;
            let on = |s: &Segment, i: i32| s.start + (s.end - s.start) * (f64::from(i) / f64::from(steps));
            let sampled = (0..=steps)
                .flat_map(|i| (0..=steps).map(move |j| (i, j)))
                .map(|(i, j)| (on(&a, i) - on(&b, j)).norm())
                .fold(f64::INFINITY, f64::min);
            let found = a.clearance(&b);
            // a grid point is at most half a step of either segment away from the closest points
            assert!(found <= sampled + 1e-12 && sampled <= found + 4.0 / f64::from(steps), "{found} {sampled}");
            assert!((found - b.clearance(&a)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_ready_pose_is_clear() {
        // closest: the forearm's second capsule and the elbow of link 7
        let placed = place(&READY);
        assert!((self_clearance(&READY) - placed[6].clearance(&placed[9])).abs() < 1e-12);
        assert!((self_clearance(&READY) - 0.1615).abs() < 1e-4, "{}", self_clearance(&READY));
        // the shoulder's capsule lies level at 0.333 m
        assert!((floor_clearance(&READY, 0.0) - (0.333 - 0.06)).abs() < 1e-12);
        assert!((floor_clearance(&READY, 0.1) - (0.233 - 0.06)).abs() < 1e-12);
        // the fingers' capsule ends 0.12 m below the flange, which is at 0.59028 m
        assert!((placed[11].start.z - placed[11].radius_m - 0.47028).abs() < 5e-6);
    }

    #[test]
    fn links_two_joints_apart_touch_only_in_the_checked_pairs() {
        let (panda, fr3) = (Robot::Panda.limits(), Robot::Fr3.limits());
        let mut rng = Seed::root(1).rng(0);
        for _ in 0..3000 {
            let q: PerJoint = std::array::from_fn(|joint| {
                let low = panda.position_min_rad[joint].min(fr3.position_min_rad[joint]);
                rng.random_range(low..panda.position_max_rad[joint].max(fr3.position_max_rad[joint]))
            });
            let placed = place(&q);
            for (a, b) in (0..CAPSULES.len()).flat_map(|a| (a + 1..CAPSULES.len()).map(move |b| (a, b))) {
                let apart = CAPSULES[b].link >= CAPSULES[a].link + 2 && (a, b) != (1, 3);
                if apart && placed[a].clearance(&placed[b]) < 0.0 {
                    assert!(PAIRS.contains(&(a, b)), "{a} and {b} touch at {q:?}");
                }
            }
        }
    }

    #[test]
    fn a_folded_arm_touches_itself() {
        // joint 2 back, elbow closed: the hand comes to the shoulder
        let folded = [0.0, -1.7, 0.0, -3.0, 0.0, 1.0, 0.0];
        assert!(self_clearance(&folded) < 0.0, "{}", self_clearance(&folded));
    }
}
