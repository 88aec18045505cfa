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

use crate::contract::Hash;
use crate::data::{End, StreamId};
use crate::error::{Error, Result};
use crate::ros::time;
use r2r::std_msgs::msg::Header;
use uuid::Uuid;

/// Refuses an array of the wrong length.
fn length(what: &str, found: usize, want: usize) -> Result<()> {
    if found == want { Ok(()) } else { Err(Error::invalid(format!("{what} has {found} entries; {want} are right"))) }
}

/// Rows times columns, refused where no array could be so long.
fn size(what: &str, rows: usize, columns: usize) -> Result<usize> {
    rows.checked_mul(columns)
        .ok_or_else(|| Error::invalid(format!("{what} of {rows} x {columns} entries fits nowhere")))
}

fn unknown(what: &str, code: u8) -> Error {
    Error::invalid(format!("{what} has the unknown code {code}"))
}

fn hash(what: &str, bytes: &[u8]) -> Result<Hash> {
    bytes.try_into().map_err(|_| Error::invalid(format!("{what} has {} bytes; 32 are right", bytes.len())))
}

fn run(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| Error::invalid(format!("run {text:?} is no uuid")))
}

fn stream(rollout: String, incarnation: u64) -> Result<StreamId> {
    if rollout.is_empty() {
        return Err(Error::invalid("the rollout id is empty; it names the stream"));
    }
    Ok(StreamId { rollout, incarnation })
}

fn header(stamp_secs: f64, frame: &str) -> Header {
    Header { stamp: time::stamp(stamp_secs), frame_id: frame.to_owned() }
}

fn finite(what: &str, numbers: &[f64]) -> Result<()> {
    match numbers.iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => Err(Error::invalid(format!("{what} holds {number}; finite numbers are right"))),
    }
}

fn end(code: u8) -> Result<End> {
    match code {
        0 => Ok(End::None),
        1 => Ok(End::Terminated),
        2 => Ok(End::Truncated),
        3 => Ok(End::Aborted),
        _ => Err(unknown("end", code)),
    }
}

#[cfg(test)]
mod tests;
