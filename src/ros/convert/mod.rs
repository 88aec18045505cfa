//! Messages to data and back. From the wire nothing is believed: each array length, code and stamp is checked against
//! the sizes that the message states, and nothing is allocated that the message does not already fill.
//! Whether the floats of a batch are finite is for admission to judge: that is another verdict.

mod arm;
mod batch;
mod fragment;
mod link;
mod scene;
mod status;
mod weights;

pub use batch::heading;

use crate::data::wire::{finite, hash, length, run, size, stream, unknown};
use crate::ros::time;
use r2r::std_msgs::msg::Header;

fn header(stamp_secs: f64, frame: &str) -> Header {
    Header { stamp: time::stamp(stamp_secs), frame_id: frame.to_owned() }
}

#[cfg(test)]
mod tests;
