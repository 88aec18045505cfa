//! Writes a file of a bag, as every rosbag2 since Foxy and `rosbags` read it.

use super::qos;
use super::reader::Message;
use super::schema::Schema;
use super::storage::{Definition, Topic};
use crate::error::{Error, Result};
use mcap::records::MessageHeader;
use mcap::{Compression, McapError, WriteOptions};
use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Unpacked bytes of a chunk. What a full disk or a power cut takes is at most this.
const CHUNK_BYTES: u64 = 1 << 20;

/// One mcap file that is being written; whole chunks can be read however it ends.
pub struct Writer<W: Write + Seek> {
    path: PathBuf,
    out: mcap::Writer<W>,
    topics: Vec<(Topic, u16, u64)>,
    span_ns: Option<(i64, i64)>,
}

impl<W: Write + Seek> Writer<W> {
    /// Writes to `out`; `path` is its name in errors. Messages refer to `topics` by index.
    pub fn new(path: &Path, out: W, topics: &[Topic]) -> Result<Self> {
        let options = WriteOptions::new()
            .profile("ros2")
            .library(concat!("handoff ", env!("CARGO_PKG_VERSION")))
            .chunk_size(Some(CHUNK_BYTES))
            .compression(Some(Compression::Zstd))
            .disable_seeking(true); // a chunk is written when it is complete
        let fail = |error| failure(path, error);
        let out = options.create(out).map_err(fail)?;
        let mut writer = Self { path: path.to_owned(), out, topics: Vec::with_capacity(topics.len()), span_ns: None };
        topics.iter().try_for_each(|topic| writer.declare(topic))?;
        Ok(writer)
    }

    /// One more topic, behind those that are there.
    pub fn declare(&mut self, topic: &Topic) -> Result<()> {
        let fail = |error| failure(&self.path, error);
        let known = || {
            let text = Schema::definition(&topic.type_name)?;
            Some(Arc::new(Definition { encoding: "ros2msg".into(), text }))
        };
        let definition = topic.definition.clone().or_else(known);
        let (encoding, text) = definition
            .as_ref()
            .map(|definition| (definition.encoding.as_str(), definition.text.as_str()))
            .unwrap_or_default();
        let schema = self.out.add_schema(&topic.type_name, encoding, text.as_bytes()).map_err(fail)?;
        let metadata = BTreeMap::from([
            ("offered_qos_profiles".to_owned(), qos::write(&topic.offers)),
            ("topic_type_hash".to_owned(), topic.type_hash.clone()),
        ]);
        let channel = self.out.add_channel(schema, &topic.name, &topic.format, &metadata).map_err(fail)?;
        self.topics.push((topic.clone(), channel, 0));
        Ok(())
    }

    /// Adds a message. Times before 1970 are refused, as mcap has none.
    pub fn write(&mut self, message: &Message) -> Result<()> {
        let count = self.topics.len();
        let Some((_, channel_id, written)) = self.topics.get_mut(message.topic) else {
            return Err(Error::invalid(format!("topic {} is not among the {count} of this bag", message.topic)));
        };
        let time = |nanoseconds: i64| {
            u64::try_from(nanoseconds)
                .map_err(|_| Error::invalid(format!("the time {nanoseconds} ns lies before 1970: mcap has no such")))
        };
        let (log_time, publish_time) = (time(message.time_ns)?, time(message.sent_ns)?);
        let header = MessageHeader { channel_id: *channel_id, sequence: 0, log_time, publish_time };
        self.out.write_to_known_channel(&header, &message.data).map_err(|error| failure(&self.path, error))?;
        *written += 1;
        let (start, end) = self.span_ns.unwrap_or((message.time_ns, message.time_ns));
        self.span_ns = Some((start.min(message.time_ns), end.max(message.time_ns)));
        Ok(())
    }

    /// Messages written.
    pub fn messages(&self) -> u64 {
        self.topics.iter().map(|(.., written)| written).sum()
    }

    /// What was written: first and last time [ns], and messages of each topic.
    pub(super) fn written(&self) -> (Option<(i64, i64)>, Vec<u64>) {
        (self.span_ns, self.topics.iter().map(|(.., written)| *written).collect())
    }

    /// Writes the end of the file.
    pub fn finish(&mut self) -> Result<()> {
        self.out.finish().map(|_| ()).map_err(|error| failure(&self.path, error))
    }
}

fn failure(path: &Path, error: McapError) -> Error {
    match error {
        McapError::Io(error) => Error::io(path)(error),
        error => Error::invalid(format!("{} cannot be written: {error}", path.display())),
    }
}
