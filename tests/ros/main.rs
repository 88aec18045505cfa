//! The ROS room against a real graph, with rclpy as the independent other side.
#![cfg(feature = "ros")]

mod harness;
mod messages;
