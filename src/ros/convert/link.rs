//! Joints, goals, and the option process.

use super::{finite, header, length};
use crate::data::{GoalPose, JointState, OptionState};
use crate::error::{Error, Result};
use crate::link::{Point, Trajectory};
use crate::ros::time;
use r2r::geometry_msgs::msg::{Point as Position, Pose, PoseStamped, Quaternion};
use r2r::handoff::msg;
use r2r::sensor_msgs::msg::JointState as Joints;
use r2r::trajectory_msgs::msg::{JointTrajectory, JointTrajectoryPoint};

impl From<&JointState> for Joints {
    fn from(state: &JointState) -> Self {
        Self {
            header: header(state.stamp_secs, ""),
            name: state.names.clone(),
            position: state.position.clone(),
            velocity: state.velocity.clone(),
            effort: Vec::new(),
        }
    }
}

impl From<&Trajectory> for JointTrajectory {
    /// Stamped 0, which starts it when it is received.
    fn from(trajectory: &Trajectory) -> Self {
        let point = |point: &Point| JointTrajectoryPoint {
            positions: point.position.to_vec(),
            velocities: point.velocity.to_vec(),
            time_from_start: time::span(point.secs),
            ..Default::default()
        };
        Self {
            header: header(0.0, ""),
            joint_names: trajectory.names.to_vec(),
            points: trajectory.points.iter().map(point).collect(),
        }
    }
}

impl TryFrom<Joints> for JointState {
    type Error = Error;

    /// Efforts are not read.
    fn try_from(message: Joints) -> Result<Self> {
        length("position", message.position.len(), message.name.len())?;
        if !message.velocity.is_empty() {
            length("velocity", message.velocity.len(), message.name.len())?;
        }
        finite("position", &message.position)?;
        finite("velocity", &message.velocity)?;
        Ok(Self {
            stamp_secs: time::secs(&message.header.stamp)?,
            names: message.name,
            position: message.position,
            velocity: message.velocity,
        })
    }
}

impl From<&GoalPose> for PoseStamped {
    fn from(goal: &GoalPose) -> Self {
        let ([x, y, z], [qw, qx, qy, qz]) = (goal.position, goal.orientation);
        Self {
            header: header(goal.stamp_secs, &goal.frame),
            pose: Pose { position: Position { x, y, z }, orientation: Quaternion { x: qx, y: qy, z: qz, w: qw } },
        }
    }
}

impl TryFrom<PoseStamped> for GoalPose {
    type Error = Error;

    fn try_from(message: PoseStamped) -> Result<Self> {
        let Pose { position, orientation } = message.pose;
        Self::new(
            time::secs(&message.header.stamp)?,
            message.header.frame_id,
            [position.x, position.y, position.z],
            [orientation.w, orientation.x, orientation.y, orientation.z],
        )
    }
}

impl From<&OptionState> for msg::OptionState {
    fn from(state: &OptionState) -> Self {
        Self {
            header: header(state.stamp_secs, ""),
            version: state.version,
            env: state.env,
            option: state.option,
            duration: state.duration,
            switched: state.switched,
            termination_prob: state.termination_prob,
            option_probs: state.option_probs.clone(),
            option_values: state.option_values.clone(),
        }
    }
}

impl TryFrom<msg::OptionState> for OptionState {
    type Error = Error;

    fn try_from(message: msg::OptionState) -> Result<Self> {
        length("option_values", message.option_values.len(), message.option_probs.len())?;
        Ok(Self {
            stamp_secs: time::secs(&message.header.stamp)?,
            version: message.version,
            env: message.env,
            option: message.option,
            duration: message.duration,
            switched: message.switched,
            termination_prob: message.termination_prob,
            option_probs: message.option_probs,
            option_values: message.option_values,
        })
    }
}
