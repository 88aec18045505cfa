//! What passes between sim and rollout in lockstep.

use super::StreamId;
use crate::robot::ARM_DOF;

/// Finger joints of the hand.
pub const HAND_DOF: usize = 2;
/// Joints in a row of states or commands: the arm, then the fingers.
pub const STATE_DOF: usize = ARM_DOF + HAND_DOF;

/// States of N simulated arms after one control tick.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmStates {
    /// Random, new for each start of the sim.
    pub sim_life: u64,
    /// Number of the tick within the life.
    pub tick: u64,
    /// Simulated time of the tick [s].
    pub stamp_secs: f64,
    /// The stream that the sim serves now.
    pub bound: Option<StreamId>,
    /// Joint positions [rad], fingers [m]; one row an environment.
    pub position: Vec<[f64; STATE_DOF]>,
    /// Joint velocities [rad/s], fingers [m/s]; one row an environment.
    pub velocity: Vec<[f64; STATE_DOF]>,
    /// x y z [m], qw qx qy qz of the cube in the base frame; empty without a cube.
    pub object_pose: Vec<[f64; 7]>,
    /// What the sim adds to physics, as in [`crate::contract::Told`].
    pub told: crate::contract::Told,
}

/// What one environment does in the next control tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Drive to the position for one control period.
    Step = 0,
    /// Place the arm at the position with zero velocity; draw its variation from the seed.
    Reset = 1,
    /// No time passes in it.
    Hold = 2,
}

/// The answer to one [`ArmStates`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArmCommands {
    /// Of the states that are answered.
    pub sim_life: u64,
    /// Of the states that are answered.
    pub tick: u64,
    /// Who answers.
    pub stream: StreamId,
    /// One an environment.
    pub operation: Vec<Operation>,
    /// Joint targets [rad], fingers [m]; one row an environment.
    pub position: Vec<[f64; STATE_DOF]>,
    /// Seed of the episode, read at [`Operation::Reset`]; one an environment.
    pub seed: Vec<u64>,
}
