//! Writes a bag: a folder with one mcap file and metadata.yaml, as every rosbag2 since Foxy and `rosbags` read it.

use super::qos;
use super::reader::Message;
use super::schema::Schema;
use super::storage::{Definition, Topic};
use crate::error::{Error, Result};
use mcap::records::MessageHeader;
use mcap::{Compression, McapError, WriteOptions};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// Unpacked bytes of a chunk. What a full disk or a power cut takes is at most this.
const CHUNK_BYTES: u64 = 1 << 20;
/// Metadata 8 says the same as 9, in the form that older readers know.
const VERSION: u32 = 8;

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
        let mut out = options.create(out).map_err(fail)?;
        let mut declared = Vec::with_capacity(topics.len());
        for topic in topics {
            let known =
                || Schema::definition(&topic.type_name).map(|text| Definition { encoding: "ros2msg".into(), text });
            let definition = topic.definition.clone().or_else(known);
            let (encoding, text) =
                definition.map(|definition| (definition.encoding, definition.text)).unwrap_or_default();
            let schema = out.add_schema(&topic.type_name, &encoding, text.as_bytes()).map_err(fail)?;
            let metadata = BTreeMap::from([
                ("offered_qos_profiles".to_owned(), qos::write(&topic.offers)),
                ("topic_type_hash".to_owned(), topic.type_hash.clone()),
            ]);
            let channel = out.add_channel(schema, &topic.name, &topic.format, &metadata).map_err(fail)?;
            declared.push((topic.clone(), channel, 0));
        }
        Ok(Self { path: path.to_owned(), out, topics: declared, span_ns: None })
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

    /// Writes the end of the file.
    pub fn finish(&mut self) -> Result<()> {
        self.out.finish().map(|_| ()).map_err(|error| failure(&self.path, error))
    }

    /// What metadata.yaml says about the file.
    fn metadata(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let quote = |text: &str| serde_json::Value::from(text).to_string(); // a JSON string is a YAML one
        let (start, end) = self.span_ns.unwrap_or((i64::MAX, i64::MAX));
        let (duration, count) = (end - start, self.messages());
        let topics: String = self
            .topics
            .iter()
            .map(|(topic, _, written)| {
                format!(
                    "    - topic_metadata:\n        name: {}\n        type: {}\n        serialization_format: {}\n        \
                     offered_qos_profiles: {}\n        type_description_hash: {}\n      message_count: {written}\n",
                    quote(&topic.name),
                    quote(&topic.type_name),
                    quote(&topic.format),
                    quote(&qos::write(&topic.offers)),
                    quote(&topic.type_hash),
                )
            })
            .collect();
        let topics = if topics.is_empty() { " []\n".to_owned() } else { format!("\n{topics}") };
        format!(
            "rosbag2_bagfile_information:\n  version: {VERSION}\n  storage_identifier: mcap\n  duration:\n    nanoseconds: {duration}\n  \
             starting_time:\n    nanoseconds_since_epoch: {start}\n  message_count: {count}\n  topics_with_message_count:{topics}  \
             compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n    - {name}\n  files:\n    - path: {name}\n      \
             starting_time:\n        nanoseconds_since_epoch: {start}\n      duration:\n        nanoseconds: {duration}\n      \
             message_count: {count}\n  custom_data: ~\n  ros_distro: \"\"\n",
            name = quote(&name),
        )
    }
}

/// A bag's folder that is being written.
pub struct Folder {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Folder {
    /// Makes the folder, which must not exist.
    pub fn create(path: &Path, topics: &[Topic]) -> Result<Self> {
        fs::create_dir(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::invalid(format!("{} exists already: give another name", path.display()))
            }
            _ => Error::io(path)(error),
        })?;
        let name = path.file_name().unwrap_or(std::ffi::OsStr::new("bag")).to_string_lossy();
        let file = path.join(format!("{name}_0.mcap"));
        let out = BufWriter::new(File::create_new(&file).map_err(Error::io(&file))?);
        Ok(Self { path: path.to_owned(), writer: Writer::new(&file, out, topics)? })
    }

    /// The file in it.
    pub fn writer(&mut self) -> &mut Writer<BufWriter<File>> {
        &mut self.writer
    }

    /// Writes the end of the file, and metadata.yaml.
    pub fn finish(mut self) -> Result<()> {
        self.writer.finish()?;
        let path = self.path.join("metadata.yaml");
        fs::write(&path, self.writer.metadata()).map_err(Error::io(&path))
    }
}

fn failure(path: &Path, error: McapError) -> Error {
    match error {
        McapError::Io(error) => Error::io(path)(error),
        error => Error::invalid(format!("{} cannot be written: {error}", path.display())),
    }
}
