//! Reach: bring the tool centre point to a goal position and stay there.

use super::{Arm, Judgement, Start, Task};
use crate::contract::Field;
use crate::robot::{ARM_DOF, Limits, READY};
use nalgebra::{Isometry3, Translation3, UnitQuaternion};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Goals are uniform in this box [m, base frame].
const GOAL_MIN: [f64; 3] = [0.30, -0.30, 0.10];
/// Goals are uniform in this box [m, base frame].
const GOAL_MAX: [f64; 3] = [0.65, 0.30, 0.60];
/// Starts are uniform in the ready pose ± this [rad].
const START_SPREAD_RAD: f64 = 0.1;
/// Success at the last step [m].
const SUCCESS_M: f64 = 0.05;
/// The stricter success [m].
const STRICT_M: f64 = 0.01;

/// The tool centre point to a position; orientation is free. Never terminates; truncated after 50 control ticks.
///
/// Reward of a step: `-d - 0.005 |a|² + 0.5 exp(-(d / 5 cm)²) + 0.5 exp(-(d / 1 cm)²)`, d = distance to the goal [m].
#[derive(Clone, Copy, Debug)]
pub struct Reach;

impl Task for Reach {
    fn name(&self) -> &'static str {
        "reach"
    }

    fn observation(&self) -> Vec<Field> {
        [
            ("joint_position_rad", ARM_DOF),
            ("joint_velocity_rad_per_sec", ARM_DOF),
            ("reference_minus_position_rad", ARM_DOF),
            ("tcp_position_m", 3),
            ("goal_position_m", 3),
            ("goal_minus_tcp_m", 3),
        ]
        .map(|(name, len)| Field { name: name.into(), len })
        .to_vec()
    }

    fn cube(&self) -> bool {
        false
    }

    fn episode_steps(&self) -> u32 {
        50
    }

    fn start(&self, limits: &Limits, rng: &mut ChaCha8Rng) -> Start {
        let position = std::array::from_fn(|joint| {
            let offset = rng.random_range(-START_SPREAD_RAD..=START_SPREAD_RAD);
            (READY[joint] + offset).clamp(limits.position_min_rad[joint], limits.position_max_rad[joint])
        });
        let [x, y, z] = std::array::from_fn(|axis| rng.random_range(GOAL_MIN[axis]..=GOAL_MAX[axis]));
        let base_from_goal = Isometry3::from_parts(Translation3::new(x, y, z), UnitQuaternion::identity());
        Start { position, base_from_goal }
    }

    fn observe(&self, arm: &Arm, base_from_goal: &Isometry3<f64>, observation: &mut Vec<f32>) {
        let tcp = arm.base_from_tcp.translation.vector;
        let goal = base_from_goal.translation.vector;
        let lead = arm.reference.iter().zip(&arm.position).map(|(reference, position)| reference - position);
        observation.extend(arm.position.iter().chain(&arm.velocity).map(|&value| value as f32));
        observation.extend(lead.map(|value| value as f32));
        for vector in [tcp, goal, goal - tcp] {
            observation.extend(vector.iter().map(|&value| value as f32));
        }
    }

    fn judge(&self, arm: &Arm, base_from_goal: &Isometry3<f64>, action: &[f32]) -> Judgement {
        let distance = (base_from_goal.translation.vector - arm.base_from_tcp.translation.vector).norm();
        let effort: f64 = action.iter().map(|&value| f64::from(value).powi(2)).sum();
        let near = |scale: f64| 0.5 * (-(distance / scale).powi(2)).exp();
        Judgement {
            reward: -distance - 0.005 * effort + near(SUCCESS_M) + near(STRICT_M),
            terminated: false,
            error: distance,
            success: distance < SUCCESS_M,
            success_strict: distance < STRICT_M,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::Robot;
    use rand::SeedableRng as _;

    fn ready_arm() -> Arm {
        Arm::new(READY, [0.0; ARM_DOF], READY)
    }

    fn goal_at(x: f64, y: f64, z: f64) -> Isometry3<f64> {
        Isometry3::translation(x, y, z)
    }

    #[test]
    fn observation_fills_its_layout() {
        let mut observation = Vec::new();
        Reach.observe(&ready_arm(), &goal_at(0.5, 0.1, 0.3), &mut observation);
        assert_eq!(observation.len(), Reach.observation().iter().map(|field| field.len).sum::<usize>());
        // The ready pose's tool centre point is (0.30689, 0, 0.48688).
        for (value, want) in
            observation[21..].iter().zip([0.30689, 0.0, 0.48688, 0.5, 0.1, 0.3, 0.19311, 0.1, -0.18688])
        {
            assert!((value - want as f32).abs() < 1e-5, "{value} is not {want}");
        }
    }

    #[test]
    fn reward_is_what_the_formula_gives() {
        let tcp = ready_arm().base_from_tcp.translation.vector;
        let at = Reach.judge(&ready_arm(), &goal_at(tcp.x, tcp.y, tcp.z), &[0.0; 7]);
        assert!((at.reward - 1.0).abs() < 1e-12 && at.success && at.success_strict);
        // d = 5 cm, |a|² = 7 · 0.25: −0.05 − 0.00875 + 0.5/e + 0.5 e^−25
        let off = Reach.judge(&ready_arm(), &goal_at(tcp.x + 0.05, tcp.y, tcp.z), &[0.5; 7]);
        assert!(
            (off.reward - (-0.05 - 0.00875 + 0.183_939_720_585_721 + 6.943_972e-12)).abs() < 1e-9,
            "{}",
            off.reward
        );
        assert!(!off.terminated && !off.success_strict);
    }

    #[test]
    fn starts_stay_in_their_box_and_inside_the_limits() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let limits = Robot::Both.limits();
        for _ in 0..1000 {
            let start = Reach.start(limits, &mut rng);
            let goal = start.base_from_goal.translation.vector;
            for axis in 0..3 {
                assert!(GOAL_MIN[axis] <= goal[axis] && goal[axis] <= GOAL_MAX[axis]);
            }
            for (joint, ready) in READY.iter().enumerate() {
                assert!((start.position[joint] - ready).abs() <= START_SPREAD_RAD);
                assert!(limits.position_min_rad[joint] <= start.position[joint]);
                assert!(start.position[joint] <= limits.position_max_rad[joint]);
            }
        }
    }
}
