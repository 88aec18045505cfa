//! Writes a bag: a folder with mcap files and metadata.yaml, as every rosbag2 since Foxy and `rosbags` read it.

use super::qos;
use super::reader::{Bag, Message, Select};
use super::storage::{Order, Topic};
use super::write::Writer;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

/// Metadata 8 says the same as 9, in the form that older readers know.
const VERSION: u32 = 8;
/// Latched messages of one topic that are carried over at most.
pub(super) const MAX_LATCHED: u64 = 100;

/// When the next file begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// After these bytes of messages; none: never.
    pub bytes: Option<u64>,
    /// After this time [ns]; none: never.
    pub span_ns: Option<i64>,
}

/// A file of the bag that is complete: name, first and last time [ns], messages of each topic.
type Part = (String, Option<(i64, i64)>, Vec<u64>);

/// A bag's folder that is being written.
pub struct Folder {
    path: PathBuf,
    topics: Vec<Topic>,
    split: Split,
    parts: Vec<Part>,
    writer: Writer<BufWriter<File>>,
    /// Of the file that is being written.
    bytes: u64,
    start_ns: Option<i64>,
    /// The last messages of latched topics, which every file begins with.
    latched: BTreeMap<usize, VecDeque<Bytes>>,
}

impl Folder {
    /// Makes the folder, which must not exist; that around it must.
    pub fn create(path: &Path, topics: &[Topic], split: Split) -> Result<Self> {
        fs::create_dir(path).map_err(Error::unwritable(path))?;
        let (path, topics) = (path.to_owned(), topics.to_vec());
        let writer = file(&path, 0, &topics)?;
        let (parts, latched) = (Vec::new(), BTreeMap::new());
        Ok(Self { path, topics, split, parts, writer, bytes: 0, start_ns: None, latched })
    }

    /// One more topic; messages refer to it by the index that comes back.
    pub fn declare(&mut self, topic: &Topic) -> Result<usize> {
        self.writer.declare(topic)?;
        self.topics.push(topic.clone());
        Ok(self.topics.len() - 1)
    }

    /// Adds a message, in a new file where the last is full.
    pub fn write(&mut self, message: &Message) -> Result<()> {
        let start_ns = *self.start_ns.get_or_insert(message.time_ns);
        let long = self.split.span_ns.is_some_and(|most| most <= message.time_ns.saturating_sub(start_ns));
        if long || self.split.bytes.is_some_and(|most| most <= self.bytes) {
            self.next_file(message.time_ns)?;
        }
        self.writer.write(message)?;
        self.bytes += message.data.len() as u64;
        if self.split != Split::default() && self.topics[message.topic].latched() {
            let depth = depth(&self.topics[message.topic]);
            let queue = self.latched.entry(message.topic).or_default();
            while depth <= queue.len() {
                queue.pop_front();
            }
            queue.push_back(Bytes::copy_from_slice(&message.data));
        }
        Ok(())
    }

    /// Messages in all files.
    pub fn messages(&self) -> u64 {
        self.messages_in_parts() + self.writer.messages()
    }

    fn next_file(&mut self, time_ns: i64) -> Result<()> {
        self.writer.finish()?;
        let next = file(&self.path, self.parts.len() + 1, &self.topics)?;
        self.close();
        self.writer = next;
        (self.bytes, self.start_ns) = (0, Some(time_ns));
        for (&topic, queue) in &self.latched {
            for data in queue {
                self.writer.write(&Message { topic, time_ns, sent_ns: time_ns, data: data.clone() })?;
            }
        }
        Ok(())
    }

    /// The file that is being written is complete.
    fn close(&mut self) {
        let (span_ns, counts) = self.writer.written();
        self.parts.push((name(&self.path, self.parts.len()), span_ns, counts));
    }

    /// Writes the end of the file, and metadata.yaml.
    pub fn finish(mut self) -> Result<()> {
        if let Err(error) = self.writer.finish() {
            return Err(self.broken(error, 0));
        }
        self.close();
        let path = self.path.join("metadata.yaml");
        fs::write(&path, self.metadata()).map_err(Error::io(&path))
    }

    /// Ends after a failed write, which is not tried again: the error, with the messages that can be read back and those that cannot.
    /// `unwritten`: messages that it refused.
    pub fn broken(self, error: Error, unwritten: u64) -> Error {
        let Error::Io { path, source } = error else { return error };
        let (whole, begun) = (self.messages_in_parts(), self.writer.messages());
        let last = self.path.join(name(&self.path, self.parts.len()));
        drop(self.writer); // writes what it still can
        let kept = readable(&last).unwrap_or(0).min(begun);
        let lost = begun - kept + unwritten;
        let full = matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let remedy = if full { "; free some space" } else { "" };
        let sentence = format!("{source}: {} messages kept, {lost} lost{remedy}", whole + kept);
        Error::Io { path, source: io::Error::new(source.kind(), sentence) }
    }

    fn metadata(&self) -> String {
        let quote = |text: &str| serde_json::Value::from(text).to_string(); // a JSON string is a YAML one
        let spans = || self.parts.iter().filter_map(|(_, span_ns, _)| *span_ns);
        let whole = spans().reduce(|(a, b), (start, end)| (a.min(start), b.max(end)));
        let count = |index: usize| self.parts.iter().filter_map(|(.., counts)| counts.get(index)).sum::<u64>();
        let topics: String = self
            .topics
            .iter()
            .enumerate()
            .map(|(index, topic)| {
                format!(
                    "    - topic_metadata:\n        name: {}\n        type: {}\n        serialization_format: {}\n        \
                     offered_qos_profiles: {}\n        type_description_hash: {}\n      message_count: {}\n",
                    quote(&topic.name),
                    quote(&topic.type_name),
                    quote(&topic.format),
                    quote(&qos::write(&topic.offers)),
                    quote(&topic.type_hash),
                    count(index),
                )
            })
            .collect();
        let topics = if topics.is_empty() { " []\n".to_owned() } else { format!("\n{topics}") };
        let span = |indent: &str, span_ns: Option<(i64, i64)>, messages: u64| {
            let (start, end) = span_ns.unwrap_or((i64::MAX, i64::MAX));
            format!(
                "{indent}duration:\n{indent}  nanoseconds: {}\n{indent}starting_time:\n{indent}  nanoseconds_since_epoch: {start}\n\
                 {indent}message_count: {messages}\n",
                end.saturating_sub(start)
            )
        };
        let (mut paths, mut files) = (String::new(), String::new());
        for (name, span_ns, counts) in &self.parts {
            paths += &format!("    - {}\n", quote(name));
            files += &format!("    - path: {}\n{}", quote(name), span("      ", *span_ns, counts.iter().sum()));
        }
        format!(
            "rosbag2_bagfile_information:\n  version: {VERSION}\n  storage_identifier: mcap\n{}  topics_with_message_count:{topics}  \
             compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n{paths}  files:\n{files}  custom_data: ~\n  \
             ros_distro: \"\"\n",
            span("  ", whole, self.messages_in_parts()),
        )
    }

    fn messages_in_parts(&self) -> u64 {
        self.parts.iter().flat_map(|(.., counts)| counts).sum()
    }
}

/// As many messages as a topic's publishers keep for late subscribers.
pub(super) fn depth(topic: &Topic) -> usize {
    let offers = topic.offers.iter().filter(|qos| qos.transient_local == Some(true));
    offers.map(|qos| qos.depth.unwrap_or(MAX_LATCHED)).fold(0, u64::saturating_add).clamp(1, MAX_LATCHED) as usize
}

/// Messages that can be read from a file.
fn readable(path: &Path) -> Result<u64> {
    let bag = Bag::open(path)?;
    let mut messages = bag.read(&Select { order: Order::Recorded, ..Select::default() })?;
    let mut count = 0;
    while messages.read()?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn name(folder: &Path, number: usize) -> String {
    let name = folder.file_name().unwrap_or(std::ffi::OsStr::new("bag")).to_string_lossy();
    format!("{name}_{number}.mcap")
}

fn file(folder: &Path, number: usize, topics: &[Topic]) -> Result<Writer<BufWriter<File>>> {
    let path = folder.join(name(folder, number));
    let out = BufWriter::new(File::create_new(&path).map_err(Error::io(&path))?);
    Writer::new(&path, out, topics)
}
