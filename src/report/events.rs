//! TensorBoard's event files: `Event` messages (tensorflow/core/util/event.proto, framework/summary.proto) in TFRecord
//! frames (tensorflow/core/lib/io/record_writer.h).

use prost::{Message, Oneof};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Unix time [s].
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    /// One of a oneof, hence written even at 0.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// `SessionLog.SessionStatus.START`.
const START: i32 = 1;

fn frame(event: &Event) -> Vec<u8> {
    let data = event.encode_to_vec();
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = length.to_vec();
    bytes.extend(masked_crc(&length).to_le_bytes());
    bytes.extend(&data);
    bytes.extend(masked_crc(&data).to_le_bytes());
    bytes
}

/// tensorflow/core/lib/hash/crc32c.h, `Mask`.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn unix_secs(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// How a file starts: its version, and the start of a session, which makes TensorBoard drop what an earlier session
/// wrote at or after `step` (the run was resumed from before it).
pub(super) fn header(time: SystemTime, step: u64) -> Vec<u8> {
    let version = Event { wall_time: unix_secs(time), step: 0, what: Some(What::FileVersion("brain.Event:2".into())) };
    let session = What::SessionLog(SessionLog { status: START });
    let start = Event { wall_time: unix_secs(time), step: to_step(step), what: Some(session) };
    [frame(&version), frame(&start)].concat()
}

/// Scalars at a step.
pub(super) fn scalars<'a>(time: SystemTime, step: u64, values: impl Iterator<Item = (&'a str, f64)>) -> Vec<u8> {
    let value = values.map(|(tag, value)| Value { tag: tag.into(), simple_value: Some(value as f32) }).collect();
    frame(&Event { wall_time: unix_secs(time), step: to_step(step), what: Some(What::Summary(Summary { value })) })
}

fn to_step(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32c_masked_as_tensorflow_does() {
        // crc32c: RFC 3720's polynomial, its usual check value; masked: TensorBoard's own masked_crc32c(b"123456789")
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked_crc(b"123456789"), 0xc78a_b0e5);
    }

    #[test]
    fn a_scalar_of_zero_is_written() {
        let bytes = scalars(UNIX_EPOCH, 1, [("a", 0.0)].into_iter());
        // step 1; summary(len 10) { value(len 8) { tag "a", simple_value 0.0 } }
        let event = [0x10, 1, 0x2a, 10, 0x0a, 8, 0x0a, 1, b'a', 0x15, 0, 0, 0, 0];
        assert_eq!(&bytes[12..12 + event.len()], event);
        assert_eq!(bytes[..8], (event.len() as u64).to_le_bytes());
    }
}
