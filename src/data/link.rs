//! What passes between a paced arm, people and the actors: plain numbers of the standard messages.

use super::wire::finite;
use crate::error::{Error, Result};

/// Joints of an arm: its state, or a command to it.
#[derive(Clone, Debug, PartialEq)]
pub struct JointState {
    /// Time of the measurement [s].
    pub stamp_secs: f64,
    /// Joints, in any order.
    pub names: Vec<String>,
    /// Positions [rad], fingers [m]; as many as names.
    pub position: Vec<f64>,
    /// Velocities [rad/s], fingers [m/s]; as many as names, or none.
    pub velocity: Vec<f64>,
}

/// Where the tool shall go.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalPose {
    /// Time of the wish [s].
    pub stamp_secs: f64,
    /// Frame that the numbers are in.
    pub frame: String,
    /// x y z [m].
    pub position: [f64; 3],
    /// qw qx qy qz, of length 1.
    pub orientation: [f64; 4],
}

impl GoalPose {
    /// Refuses numbers that are not finite, and an orientation that is none; brings its quaternion (w, x, y, z) to length 1.
    pub fn new(stamp_secs: f64, frame: String, position: [f64; 3], quaternion: [f64; 4]) -> Result<Self> {
        finite("position", &position)?;
        finite("orientation", &quaternion)?;
        let norm = quaternion.iter().map(|part| part * part).sum::<f64>().sqrt();
        if !(1e-6..1e6).contains(&norm) {
            return Err(Error::invalid(format!("orientation is a quaternion of length {norm}; 1 is right")));
        }
        Ok(Self { stamp_secs, frame, position, orientation: quaternion.map(|part| part / norm) })
    }
}

/// The option process of one arm at one control tick.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionState {
    /// Time of the state that was answered [s].
    pub stamp_secs: f64,
    /// Weights.
    pub version: u64,
    /// Environment.
    pub env: u32,
    /// Option in charge.
    pub option: u8,
    /// Control ticks that it has run, this one included.
    pub duration: u32,
    /// It took over at this tick.
    pub switched: bool,
    /// Termination probability of the option that was running on arrival.
    pub termination_prob: f32,
    /// K: policy over options.
    pub option_probs: Vec<f32>,
    /// K: critic.
    pub option_values: Vec<f32>,
}

/// What a person looks at beside an arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Time of the state that was answered [s].
    pub stamp_secs: f64,
    /// Frame that positions are in: the arm's base.
    pub frame: String,
    /// Where the tool shall go [m].
    pub goal: [f64; 3],
    /// Where the tool centre point was, the oldest first [m].
    pub trail: Vec<[f64; 3]>,
    /// Option in charge.
    pub option: u8,
    /// How many there are.
    pub options: usize,
}
