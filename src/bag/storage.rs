//! What every storage gives: topics, and messages in an order.

use super::damage::Damage;
use super::qos::Qos;
use crate::error::Result;
use bytes::Bytes;
use std::sync::Arc;

/// In which order messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By time. Equal times: by file in the order of the bag, then by position in the file (mcap) or id (sqlite3).
    Time,
    /// As they were recorded: by file, then by position or id. Clocks that jump show only here.
    Recorded,
}

/// Text that defines a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `ros2msg` is understood.
    pub encoding: String,
    /// The definition with those that it needs.
    pub text: String,
}

/// One topic with one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Name, e.g. `/joint_states`.
    pub name: String,
    /// Type, e.g. `sensor_msgs/msg/JointState`.
    pub type_name: String,
    /// How messages are encoded: `cdr`.
    pub format: String,
    /// What its publishers offered.
    pub offers: Vec<Qos>,
    /// Hash of the type as ROS 2 writes it; empty: not recorded.
    pub type_hash: String,
    /// Its definition, if the bag has it; one for all topics that share it.
    pub definition: Option<Arc<Definition>>,
}

impl Topic {
    /// Late subscribers were to get its last messages.
    pub fn latched(&self) -> bool {
        self.offers.iter().any(|qos| qos.transient_local == Some(true))
    }

    /// The same topic in two files of a bag.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.type_name == other.type_name && self.format == other.format
    }
}

/// Which messages come.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// One for each topic of the file.
    pub(super) topics: Vec<bool>,
    /// First and last time [ns], inclusive.
    pub(super) span_ns: (i64, i64),
    pub(super) order: Order,
}

impl Selection {
    pub(super) fn wants(&self, topic: usize, time_ns: i64) -> bool {
        self.topics.get(topic).is_some_and(|&wanted| wanted) && self.span_ns.0 <= time_ns && time_ns <= self.span_ns.1
    }
}

/// What a look at a file tells before its messages are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) topics: Vec<Topic>,
    /// First and last time [ns]; none without a message.
    pub(super) span_ns: Option<(i64, i64)>,
    /// Messages that the file says it has.
    pub(super) stated: Option<u64>,
    pub(super) damage: Vec<Damage>,
}

/// One message of one file.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    /// Index in the file's topics.
    pub(super) topic: usize,
    pub(super) time_ns: i64,
    pub(super) sent_ns: i64,
    pub(super) data: Bytes,
}

/// The messages of one file, in their order.
pub(super) trait Stream: Send {
    /// The next message; none at the end. An error is one of the system; damage is no error.
    fn next(&mut self) -> Result<Option<Raw>>;

    /// What was lost up to here.
    fn damage(&self) -> &[Damage];
}

/// What one piece of a file may unpack to: 64 times the file, and 16 MiB. More is refused as damage. Vectors that grow, and a place for each
/// message of a piece, make 320 times the file and 192 MiB of it at most, with what overlaps in time.
pub(super) fn unpack_limit(file_bytes: u64) -> u64 {
    file_bytes.saturating_mul(64).saturating_add(16 << 20)
}
