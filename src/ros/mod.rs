//! The only room that names r2r: the node and its spin thread, QoS, parameters, time, messages to data and back,
//! diagnostics, logs. Everything else sees [`msg`], [`srv`] and closures.

mod convert;
mod diagnostics;
mod franka;
mod graph;
mod lifecycle;
mod logs;
mod names;
mod node;
mod parameters;
mod qos;
mod running;
mod simulation;
mod tap;
mod time;

pub use convert::heading;
pub use diagnostics::{Health, Level};
pub use franka::Hand;
pub use graph::{Graph, Writer};
pub use lifecycle::Lifecycle;
pub use logs::{Lines, Rosout, rosout};
pub use node::{Client, Message, Node, Publisher, Service};
pub use qos::{Qos, everything, latched, newest, sensor};
pub use running::Running;
pub use simulation::Resetter;
pub use tap::{Heard, Offer, tap};
pub use time::{secs, stamp, wall_now};

/// Messages on the wire.
pub mod msg {
    pub use r2r::builtin_interfaces::msg::Time;
    pub use r2r::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue};
    pub use r2r::geometry_msgs::msg::PoseStamped;
    pub use r2r::handoff::msg::*;
    pub use r2r::rosgraph_msgs::msg::Clock;
    pub use r2r::sensor_msgs::msg::JointState;
    pub use r2r::std_msgs::msg::String;
    pub use r2r::trajectory_msgs::msg::JointTrajectory;
    pub use r2r::visualization_msgs::msg::MarkerArray;
}

/// Services on the wire.
pub mod srv {
    pub use r2r::handoff::srv::GetWeights;
    pub use r2r::std_srvs::srv::{SetBool, Trigger};
}
