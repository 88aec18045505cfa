//! handoff trains option policies for a Franka arm asynchronously over ROS 2 and carries them to hardware.
//! ARCHITECTURE.md has the bird's eye; each module is one room.

pub mod analysis;
pub mod app;
pub mod bag;
pub mod config;
pub mod contract;
pub mod data;
mod defect;
pub mod error;
pub mod guard;
#[cfg(feature = "torch")]
pub mod learn;
pub mod link;
pub mod node;
pub mod option;
#[cfg(feature = "torch")]
pub mod policy;
pub mod replay;
pub mod report;
pub mod robot;
#[cfg(feature = "ros")]
pub mod ros;
pub mod run;
#[cfg(feature = "sim")]
pub mod sim;
pub mod task;
