//! The ROS room in a real graph, with rclpy as the independent other side.

mod harness;
mod messages;
