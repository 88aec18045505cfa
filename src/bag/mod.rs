//! rosbag2 recordings: mcap and sqlite3, whole or broken, to messages and back. Executes nothing, and bounds what it allocates.

mod cdr;
mod cut;
mod damage;
mod decode;
pub mod encode;
mod files;
mod folder;
mod intervals;
mod mcap;
pub mod message;
mod metadata;
mod packed;
mod part;
mod qos;
mod reader;
pub mod robots;
mod schema;
mod sqlite;
mod storage;
mod survey;
mod track;
mod unusable;
mod verdict;
mod write;

pub use cut::{Cut, Cutting};
pub use damage::Damage;
pub use decode::{decode, stamp_ns};
pub use folder::{Folder, Split};
pub use intervals::Intervals;
pub use metadata::Metadata;
pub use qos::Qos;
pub use reader::{Bag, Message, Messages, Select};
pub use schema::{Schema, Schemas};
pub use storage::{Definition, Order, Topic};
pub use survey::{Jump, Survey, TopicSurvey, Weights, jump_back};
pub use verdict::{Finding, NO_TRANSITIONS, Purpose, Verdict};
pub use write::Writer;

#[cfg(test)]
pub(crate) mod tests;
