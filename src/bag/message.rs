//! Messages that handoff reads, as [`decode`](super::decode) gives them; their texts stay where they are. Fields: the `.msg` files of the same names.

pub use crate::contract::PolicyWeights;
pub use crate::data::wire::{BatchMessage, Stamp};

use serde::Deserialize;

/// std_msgs/Header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Header<'a> {
    /// When what follows was so.
    pub stamp: Stamp,
    /// The frame.
    pub frame_id: &'a str,
}

/// sensor_msgs/JointState: states and commands alike. An array may be empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JointState<'a> {
    /// Stamp of the state.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// Joints, in any order.
    #[serde(borrow)]
    pub name: Vec<&'a str>,
    /// [rad], [m].
    pub position: Vec<f64>,
    /// [rad/s], [m/s].
    pub velocity: Vec<f64>,
    /// [N·m], [N].
    pub effort: Vec<f64>,
}

/// trajectory_msgs/JointTrajectory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JointTrajectory<'a> {
    /// Stamp 0: it begins when it is received.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// Joints, in any order.
    #[serde(borrow)]
    pub joint_names: Vec<&'a str>,
    /// In time.
    pub points: Vec<TrajectoryPoint>,
}

/// trajectory_msgs/JointTrajectoryPoint, as far as it says where to be.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct TrajectoryPoint {
    /// [rad].
    pub positions: Vec<f64>,
}

impl<'a> JointTrajectory<'a> {
    /// Its first point as a command; none where it has no point.
    pub fn first(self) -> Option<JointState<'a>> {
        let Self { header, joint_names: name, points } = self;
        let position = points.into_iter().next()?.positions;
        Some(JointState { header, name, position, ..JointState::default() })
    }
}

/// The joints that a JointState speaks of, and nothing else of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct JointNames<'a> {
    /// Joints, in any order.
    #[serde(borrow)]
    pub name: Vec<&'a str>,
}

/// geometry_msgs/Point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Point {
    /// [m]
    pub x: f64,
    /// [m]
    pub y: f64,
    /// [m]
    pub z: f64,
}

/// geometry_msgs/Quaternion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the parts of a quaternion")]
pub struct Quaternion {
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub w: f64,
}

/// geometry_msgs/Pose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Pose {
    /// Where.
    pub position: Point,
    /// Which way.
    pub orientation: Quaternion,
}

/// geometry_msgs/PoseStamped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PoseStamped<'a> {
    /// Stamp and frame.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// The pose in that frame.
    pub pose: Pose,
}

/// handoff/OptionState.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/OptionState.msg")]
pub struct OptionState<'a> {
    #[serde(borrow)]
    pub header: Header<'a>,
    pub version: u64,
    pub option: u8,
    pub duration: u32,
    pub switched: bool,
    pub termination_prob: f32,
    pub option_probs: Vec<f32>,
}

/// diagnostic_msgs/DiagnosticArray.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct DiagnosticArray<'a> {
    /// When it was so.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// Who says what.
    #[serde(borrow)]
    pub status: Vec<DiagnosticStatus<'a>>,
}

/// diagnostic_msgs/DiagnosticStatus.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct DiagnosticStatus<'a> {
    /// 0 fine, 1 a warning, 2 an error, 3 stale.
    pub level: u8,
    /// Who.
    pub name: &'a str,
    /// What, in a sentence.
    pub message: &'a str,
    /// Numbers behind it.
    #[serde(borrow)]
    pub values: Vec<KeyValue<'a>>,
}

/// diagnostic_msgs/KeyValue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "a pair")]
pub struct KeyValue<'a> {
    pub key: &'a str,
    pub value: &'a str,
}

/// What a handoff/TransitionBatch holds, without its rows.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/TransitionBatch.msg")]
pub struct TransitionHead {
    pub run: String,
    pub life: u32,
    pub rollout: String,
    pub incarnation: u64,
    pub seq: u64,
    pub contract_hash: Vec<u8>,
    pub fragments: Vec<FragmentHead>,
}

/// What a handoff/Fragment holds, without its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "msg/Fragment.msg")]
pub struct FragmentHead {
    pub env: u32,
    pub num_steps: u32,
    pub obs_size: u32,
    pub action_size: u32,
}
