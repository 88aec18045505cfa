//! Joint limits: Franka's documentation (frankaemika/docs, control-parameters-joint-panda.csv and -fr3.csv) and, for the
//! FR3's velocity, libfranka's rate_limiting.h.

use super::{ARM_DOF, Robot};

/// One number a joint, base to flange.
pub type PerJoint = [f64; ARM_DOF];

/// What the joints of an arm may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Lowest position [rad].
    pub position_min_rad: PerJoint,
    /// Highest position [rad].
    pub position_max_rad: PerJoint,
    /// Highest speed, at any position [rad/s]; see [`Robot::velocity_range`].
    pub velocity_rad_per_sec: PerJoint,
    /// Highest acceleration [rad/s²].
    pub acceleration_rad_per_sec2: PerJoint,
    /// Highest jerk [rad/s³].
    pub jerk_rad_per_sec3: PerJoint,
}

pub(super) static PANDA: Limits = Limits::PANDA;
pub(super) static FR3: Limits = Limits::FR3;
pub(super) static BOTH: Limits = Limits::PANDA.and(&Limits::FR3);

impl Limits {
    const PANDA: Self = Self {
        position_min_rad: [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973],
        position_max_rad: [2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973],
        velocity_rad_per_sec: [2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61],
        acceleration_rad_per_sec2: [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0],
        jerk_rad_per_sec3: [7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0],
    };
    const FR3: Self = Self {
        position_min_rad: [-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159],
        position_max_rad: [2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159],
        velocity_rad_per_sec: [2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26],
        acceleration_rad_per_sec2: [10.0; ARM_DOF],
        jerk_rad_per_sec3: [5000.0; ARM_DOF],
    };

    /// What both allow; where `other` has a NaN, what this one allows.
    pub const fn and(mut self, other: &Self) -> Self {
        let mut joint = 0;
        while joint < ARM_DOF {
            self.position_min_rad[joint] = self.position_min_rad[joint].max(other.position_min_rad[joint]);
            self.position_max_rad[joint] = self.position_max_rad[joint].min(other.position_max_rad[joint]);
            self.velocity_rad_per_sec[joint] = self.velocity_rad_per_sec[joint].min(other.velocity_rad_per_sec[joint]);
            self.acceleration_rad_per_sec2[joint] =
                self.acceleration_rad_per_sec2[joint].min(other.acceleration_rad_per_sec2[joint]);
            self.jerk_rad_per_sec3[joint] = self.jerk_rad_per_sec3[joint].min(other.jerk_rad_per_sec3[joint]);
            joint += 1;
        }
        self
    }

    /// The position, moved into the limits less `margin_rad` on either side.
    pub fn clamp_position(&self, position_rad: &PerJoint, margin_rad: f64) -> PerJoint {
        std::array::from_fn(|joint| {
            let (low, high) = (self.position_min_rad[joint] + margin_rad, self.position_max_rad[joint] - margin_rad);
            position_rad[joint].max(low).min(high)
        })
    }

    /// The first joint outside its limits, if any; a NaN is outside.
    pub fn outside(&self, position_rad: &PerJoint) -> Option<usize> {
        (0..ARM_DOF).find(|&joint| {
            !(self.position_min_rad[joint]..=self.position_max_rad[joint]).contains(&position_rad[joint])
        })
    }
}

// The FR3's velocity limits close in on the ends of the joints' ranges (libfranka rate_limiting.h).
const FR3_OFFSET: PerJoint = [0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35];
const FR3_SLOPE: PerJoint = [12.0, 5.17, 7.0, 8.0, 34.0, 11.0, 34.0];
const FR3_UPPER: PerJoint = [2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196];
const FR3_LOWER: PerJoint = [-2.7501, -1.7918, -2.9065, -3.0481, -2.8101, 0.54092, -3.0196];

/// How a joint's velocity limit closes in on the ends of its range: `min(v, max(0, -o + sqrt(max(0, c (upper - q)))))`
/// upwards, and the mirror downwards (libfranka rate_limiting.h).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VelocityCurve {
    /// o [rad/s].
    pub offset_rad_per_sec: f64,
    /// c [rad/s²].
    pub slope_rad_per_sec2: f64,
    /// [rad].
    pub upper_rad: f64,
    /// [rad].
    pub lower_rad: f64,
}

impl Robot {
    /// The velocity curve of a joint (0 to 6); the Panda has none.
    pub fn velocity_curve(self, joint: usize) -> Option<VelocityCurve> {
        (self != Self::Panda && joint < ARM_DOF).then(|| VelocityCurve {
            offset_rad_per_sec: FR3_OFFSET[joint],
            slope_rad_per_sec2: FR3_SLOPE[joint],
            upper_rad: FR3_UPPER[joint],
            lower_rad: FR3_LOWER[joint],
        })
    }

    /// Lowest and highest velocity at a position [rad/s]: constant for the Panda; for the FR3
    /// `min(v, max(0, -o + sqrt(c (upper - q))))` upwards, and its mirror downwards (libfranka rate_limiting.h,
    /// computeUpperLimitsJointVelocity and computeLowerLimitsJointVelocity).
    pub fn velocity_range(self, position_rad: &PerJoint) -> (PerJoint, PerJoint) {
        let most = &self.limits().velocity_rad_per_sec;
        let toward = |room_rad: fn(&VelocityCurve, f64) -> f64, joint: usize| match self.velocity_curve(joint) {
            None => most[joint],
            Some(curve) => {
                let room_rad = room_rad(&curve, position_rad[joint]).max(0.0);
                let speed = (curve.slope_rad_per_sec2 * room_rad).sqrt() - curve.offset_rad_per_sec;
                speed.clamp(0.0, most[joint])
            }
        };
        (
            std::array::from_fn(|joint| -toward(|curve, position| position - curve.lower_rad, joint)),
            std::array::from_fn(|joint| toward(|curve, position| curve.upper_rad - position, joint)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::READY;

    #[test]
    fn both_is_the_narrower_of_panda_and_fr3() {
        let both = Robot::Both.limits();
        assert_eq!(both.position_min_rad, [-2.7437, -1.7628, -2.8973, -3.0421, -2.8065, 0.5445, -2.8973]);
        assert_eq!(both.position_max_rad, [2.7437, 1.7628, 2.8973, -0.1518, 2.8065, 3.7525, 2.8973]);
        assert_eq!(both.velocity_rad_per_sec, Robot::Panda.limits().velocity_rad_per_sec);
        assert_eq!(both.acceleration_rad_per_sec2, [10.0, 7.5, 10.0, 10.0, 10.0, 10.0, 10.0]);
        assert_eq!(both.jerk_rad_per_sec3, [5000.0, 3750.0, 5000.0, 5000.0, 5000.0, 5000.0, 5000.0]);
    }

    #[test]
    fn the_ready_pose_is_inside_every_arms_limits() {
        for robot in [Robot::Panda, Robot::Fr3, Robot::Both] {
            assert_eq!(robot.limits().outside(&READY), None);
            assert_eq!(robot.limits().clamp_position(&READY, 0.1), READY);
        }
    }

    #[test]
    fn a_position_is_moved_inside_the_margin() {
        let q = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 5.0];
        assert_eq!(Robot::Panda.limits().outside(&q), Some(3));
        let clamped = Robot::Panda.limits().clamp_position(&q, 0.1);
        assert_eq!(clamped, [0.0, 0.0, 0.0, -0.0698 - 0.1, 0.0, 1.0, 2.8973 - 0.1]);
        let nan = [f64::NAN, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0];
        assert_eq!(Robot::Panda.limits().outside(&nan), Some(0));
    }

    #[test]
    fn the_fr3_slows_towards_the_end_of_a_joint() {
        // joint 1, 0.1201 rad before the end of libfranka's range: -0.3 + sqrt(12 * 0.1201) = 0.90050
        let mut q = READY;
        q[0] = 2.63;
        let (low, high) = Robot::Fr3.velocity_range(&q);
        assert!((high[0] - 0.900_499_8).abs() < 1e-6, "{}", high[0]);
        assert_eq!(low[0], -2.62);
        // its mirror
        q[0] = -2.63;
        assert!((Robot::Fr3.velocity_range(&q).0[0] + 0.900_499_8).abs() < 1e-6);
        // beyond the end: none, and never backwards
        q[0] = 2.76;
        assert_eq!(Robot::Fr3.velocity_range(&q).1[0], 0.0);
        // the Panda's is constant; both obey both
        assert_eq!(Robot::Panda.velocity_range(&q).1[0], 2.175);
        assert_eq!(Robot::Both.velocity_range(&READY).1[0], 2.175);
        assert_eq!(Robot::Both.velocity_range(&q).1[0], 0.0);
    }
}
