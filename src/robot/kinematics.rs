//! Forward kinematics and Jacobian; Panda and FR3 are equal.

use super::ARM_DOF;
use nalgebra::{Isometry3, SMatrix, Translation3, UnitQuaternion, Vector3};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

/// The ready pose [rad]: libfranka's examples, franka_ros2's move_to_start, and the SRDF's `ready`.
pub const READY: [f64; ARM_DOF] = [0.0, -FRAC_PI_4, 0.0, -3.0 * FRAC_PI_4, 0.0, FRAC_PI_2, FRAC_PI_4];

/// The TCP lies this far along z of the hand [m] (franka_description, franka_hand.xacro: `tcp_xyz`).
pub const HAND_FROM_TCP_M: f64 = 0.1034;

/// (a, d, alpha) of each joint in Craig's convention, from link i-1 to link i (Franka's documentation,
/// "Denavit–Hartenberg parameters").
const DENAVIT_HARTENBERG: [(f64, f64, f64); ARM_DOF] = [
    (0.0, 0.333, 0.0),
    (0.0, 0.0, -FRAC_PI_2),
    (0.0, 0.316, FRAC_PI_2),
    (0.0825, 0.0, FRAC_PI_2),
    (-0.0825, 0.384, -FRAC_PI_2),
    (0.0, 0.0, FRAC_PI_2),
    (0.088, 0.0, FRAC_PI_2),
];

/// The flange lies this far along z of link 7 [m] (same table).
const LINK7_FROM_FLANGE_M: f64 = 0.107;

/// The TCP comes no farther from the shoulder [m]: the lengths from shoulder to elbow, to wrist and to TCP in one line
/// (Denavit-Hartenberg parameters; the limits of the joints may keep it nearer).
pub const REACH_M: f64 = 0.94742;

/// How far a point of the base frame lies from the shoulder, the origin of links 1 and 2 [m].
pub fn from_shoulder_m(point: &[f64; 3]) -> f64 {
    let [(_, height, _), ..] = DENAVIT_HARTENBERG;
    Vector3::new(point[0], point[1], point[2] - height).norm()
}

/// `base_from_link` of links 0 to 7 (0 is the base). Link i turns about its own z.
pub fn link_frames(q: &[f64; ARM_DOF]) -> [Isometry3<f64>; ARM_DOF + 1] {
    let mut frames = [Isometry3::identity(); ARM_DOF + 1];
    for (joint, (a, d, alpha)) in DENAVIT_HARTENBERG.into_iter().enumerate() {
        let tilt = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), alpha);
        let turn = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), q[joint]);
        let offset = tilt * Vector3::new(0.0, 0.0, d) + Vector3::new(a, 0.0, 0.0);
        frames[joint + 1] = frames[joint] * Isometry3::from_parts(Translation3::from(offset), tilt * turn);
    }
    frames
}

/// `base_from_flange`.
pub fn forward(q: &[f64; ARM_DOF]) -> Isometry3<f64> {
    link_frames(q)[ARM_DOF] * Translation3::new(0.0, 0.0, LINK7_FROM_FLANGE_M)
}

/// `flange_from_hand`: the hand is mounted turned by -45 degrees about z (franka_description, franka_robot.xacro).
pub fn flange_from_hand() -> UnitQuaternion<f64> {
    UnitQuaternion::from_axis_angle(&Vector3::z_axis(), -FRAC_PI_4)
}

/// `base_from_tcp`: the point between the fingertips, in the hand's orientation.
pub fn tcp(q: &[f64; ARM_DOF]) -> Isometry3<f64> {
    forward(q) * flange_from_hand() * Translation3::new(0.0, 0.0, HAND_FROM_TCP_M)
}

/// The TCP's Jacobian in the base frame: rows are linear velocity x y z, then angular velocity x y z.
pub fn jacobian(q: &[f64; ARM_DOF]) -> SMatrix<f64, 6, ARM_DOF> {
    let frames = link_frames(q);
    let tip = tcp(q).translation.vector;
    let mut jacobian = SMatrix::<f64, 6, ARM_DOF>::zeros();
    for joint in 0..ARM_DOF {
        let frame = &frames[joint + 1];
        let axis = frame.rotation * Vector3::z();
        jacobian.fixed_view_mut::<3, 1>(0, joint).copy_from(&axis.cross(&(tip - frame.translation.vector)));
        jacobian.fixed_view_mut::<3, 1>(3, joint).copy_from(&axis);
    }
    jacobian
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Matrix3;

    fn assert_near(found: Vector3<f64>, expected: [f64; 3], tolerance: f64) {
        let expected = Vector3::from(expected);
        assert!((found - expected).amax() < tolerance, "{found} is not {expected}");
    }

    #[test]
    fn the_flange_is_where_franka_prints_it() {
        assert_near(forward(&[0.0; 7]).translation.vector, [0.088, 0.0, 0.926], 5e-6);
        assert_near(forward(&READY).translation.vector, [0.30689, 0.0, 0.59028], 5e-6);
        let menagerie_home = [0.0, 0.0, 0.0, -FRAC_PI_2, 0.0, FRAC_PI_2, -FRAC_PI_4];
        assert_near(forward(&menagerie_home).translation.vector, [0.5545, 0.0, 0.6245], 5e-6);
    }

    #[test]
    fn the_arm_in_one_line_reaches_as_far_as_it_can() {
        let angles = || (0..=628).map(|step| 0.01 * f64::from(step));
        let tips = angles().flat_map(|elbow| angles().map(move |wrist| tcp(&[0.3, 0.5, 0.0, elbow, 0.0, wrist, 0.0])));
        let farthest = tips.map(|tip| from_shoulder_m(&tip.translation.vector.into())).fold(0.0, f64::max);
        assert!((farthest - REACH_M).abs() < 1e-4 && farthest < REACH_M, "{farthest}");
    }

    #[test]
    fn the_tcp_of_the_ready_pose_points_down() {
        let base_from_tcp = tcp(&READY);
        assert_near(base_from_tcp.translation.vector, [0.30689, 0.0, 0.48688], 5e-6);
        let down = Matrix3::from_diagonal(&Vector3::new(1.0, -1.0, -1.0));
        assert!((base_from_tcp.rotation.to_rotation_matrix().matrix() - down).amax() < 1e-12);
    }

    /// panda-gym's neutral pose; its grasp target lies 0.105 m along z of the hand.
    #[test]
    fn the_grasp_target_is_where_panda_gym_observes_it() {
        let base_from_flange = forward(&[0.0, 0.41, 0.0, -1.85, 0.0, 2.26, 0.79]);
        let target = base_from_flange * Translation3::new(0.0, 0.0, 0.105);
        assert_near(target.translation.vector, [0.6384, 0.0, 0.1974], 5e-5);
    }

    #[test]
    fn the_jacobian_is_the_derivative_of_the_tcp() {
        let q = [0.3, -0.6, 0.2, -2.1, 0.4, 1.7, -0.9];
        let step = 1e-6;
        let found = jacobian(&q);
        for joint in 0..ARM_DOF {
            let (mut ahead, mut behind) = (q, q);
            ahead[joint] += step;
            behind[joint] -= step;
            let (ahead, behind) = (tcp(&ahead), tcp(&behind));
            let linear = (ahead.translation.vector - behind.translation.vector) / (2.0 * step);
            let angular = (ahead.rotation * behind.rotation.inverse()).scaled_axis() / (2.0 * step);
            assert_near(found.fixed_view::<3, 1>(0, joint).into(), linear.into(), 1e-8);
            assert_near(found.fixed_view::<3, 1>(3, joint).into(), angular.into(), 1e-8);
        }
    }
}
