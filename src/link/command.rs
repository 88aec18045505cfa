//! What a robot is sent.

use crate::data::JointState;
use crate::robot::{ARM_DOF, PerJoint};

/// The forms of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// sensor_msgs/JointState: names, and where to be now.
    Positions,
    /// trajectory_msgs/JointTrajectory: where to be two command periods from now, and the way to rest from there. A joint trajectory
    /// controller has no time-out of its own: left alone, it comes to rest inside the limits.
    Trajectory,
}

/// A command on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Of [`Form::Positions`].
    Positions(JointState),
    /// Of [`Form::Trajectory`].
    Trajectory(Trajectory),
}

/// Positions with their times. It begins when it is received.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The arm's joints, base to flange.
    pub names: [String; ARM_DOF],
    /// In time; the last at rest.
    pub points: Vec<Point>,
}

/// A point of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From the start [s].
    pub secs: f64,
    /// [rad].
    pub position: PerJoint,
    /// [rad/s].
    pub velocity: PerJoint,
}
