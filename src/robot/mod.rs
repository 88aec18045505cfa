//! The arm: joint names, limits, ready pose, kinematics, self-collision capsules. Plain numbers, SI units, radians.

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
    /// The arm's joint names, base to flange. `Both` speaks with the Panda's names.
    pub fn joint_names(self) -> [String; ARM_DOF] {
        let prefix = match self {
            Self::Panda | Self::Both => "panda",
            Self::Fr3 => "fr3",
        };
        std::array::from_fn(|joint| format!("{prefix}_joint{}", joint + 1))
    }
}
