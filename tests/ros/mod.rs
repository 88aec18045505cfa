//! The ROS room in a real graph, with rclpy as the independent other side.

#[cfg(all(feature = "torch", feature = "sim"))]
mod bags;
mod graph;
pub(super) mod harness;
mod latency;
mod messages;
mod parameters;
#[cfg(all(feature = "torch", feature = "sim"))]
mod policy;
mod queues;
mod weights;
