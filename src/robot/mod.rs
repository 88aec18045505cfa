//! The arm: joint names, limits, ready pose, kinematics, self-collision capsules. Plain numbers, SI units, radians.

mod capsules;
mod kinematics;
mod limits;

pub use capsules::{
    CAPSULES, Capsule, HAND, PAIRS, Segment, floor_clearance, floor_clearance_of, place, self_clearance,
    self_clearance_of,
};
pub use kinematics::{
    HAND_FROM_TCP_M, REACH_M, READY, flange_from_hand, forward, from_shoulder_m, jacobian, link_frames, tcp,
};
pub use limits::{Limits, PerJoint, VelocityCurve};

use serde::{Deserialize, Serialize};

/// Joints of the arm without the hand.
pub const ARM_DOF: usize = 7;

/// The arms that we know. Their kinematics are equal; their limits differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Robot {
    /// Franka Emika Panda (FER).
    Panda,
    /// Franka Research 3.
    Fr3,
    /// The intersection of the limits: a policy for either arm.
    Both,
}

impl Robot {
    /// Prefix of every name of the arm. `Both` speaks with the Panda's names.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Panda | Self::Both => "panda",
            Self::Fr3 => "fr3",
        }
    }

    /// The arm's joint names, base to flange.
    pub fn joint_names(self) -> [String; ARM_DOF] {
        std::array::from_fn(|joint| format!("{}_joint{}", self.prefix(), joint + 1))
    }

    /// Joint names of the hand's fingers. Each opens from 0 to 0.04 m (franka_description, franka_hand.xacro).
    pub fn finger_joint_names(self) -> [String; 2] {
        std::array::from_fn(|finger| format!("{}_finger_joint{}", self.prefix(), finger + 1))
    }

    /// What the arm's joints may do.
    pub fn limits(self) -> &'static Limits {
        match self {
            Self::Panda => &limits::PANDA,
            Self::Fr3 => &limits::FR3,
            Self::Both => &limits::BOTH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_arms_prefix() {
        assert_eq!(Robot::Both.joint_names()[0], "panda_joint1");
        assert_eq!(Robot::Fr3.joint_names()[6], "fr3_joint7");
        assert_eq!(Robot::Panda.finger_joint_names(), ["panda_finger_joint1", "panda_finger_joint2"]);
        assert_eq!(Robot::Fr3.finger_joint_names()[1], "fr3_finger_joint2");
    }
}
