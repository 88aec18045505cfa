//! metadata.yaml, versions 1 to 9, and later ones as far as they keep the names.

use super::qos::{self, Profile, Qos};
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// What metadata.yaml says. Nothing of it is relied on to read messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Version of the format.
    pub version: u64,
    /// Messages in all.
    pub message_count: u64,
    /// Files with their numbers of messages, where known (version 5 and newer).
    pub files: Vec<(String, Option<u64>)>,
    /// `""`, `FILE` or `MESSAGE`.
    pub compression_mode: String,
    /// ROS distribution that recorded; empty: not said.
    pub ros_distro: String,
    /// Topics, also those without a message: name, type, serialization format, offers.
    pub topics: Vec<(String, String, String, Vec<Qos>)>,
}

#[derive(Deserialize)]
struct Document {
    rosbag2_bagfile_information: Information,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Information {
    version: u64,
    message_count: Option<u64>,
    relative_file_paths: Option<Vec<String>>,
    files: Option<Vec<FileInformation>>,
    compression_mode: Option<String>,
    ros_distro: Option<String>,
    topics_with_message_count: Option<Vec<TopicCount>>,
}

#[derive(Deserialize)]
struct FileInformation {
    path: String,
    message_count: Option<u64>,
}

#[derive(Deserialize)]
struct TopicCount {
    topic_metadata: TopicMetadata,
}

#[derive(Deserialize)]
struct TopicMetadata {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default)]
    serialization_format: String,
    offered_qos_profiles: Option<Offers>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Offers {
    Text(String),
    List(Vec<Profile>),
}

impl Metadata {
    /// Reads the file. Refuses what is no YAML of this form.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).map_err(Error::io(path))?;
        Self::parse(&String::from_utf8_lossy(&text))
            .map_err(|reason| Error::invalid(format!("{} is no metadata of a bag: {reason}", path.display())))
    }

    /// From the text of the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = serde_saphyr::from_str(text).map_err(|error| one_line(&error.to_string()))?;
        let information = document.rosbag2_bagfile_information;
        let counts = information.files.unwrap_or_default();
        let count_of = |path: &str| {
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            counts.iter().find(|file| name(&file.path) == name(path)).and_then(|file| file.message_count)
        };
        let paths = information.relative_file_paths.unwrap_or_default();
        let topics = information.topics_with_message_count.unwrap_or_default().into_iter().map(|topic| {
            let TopicMetadata { name, type_name, serialization_format, offered_qos_profiles } = topic.topic_metadata;
            let offers = match offered_qos_profiles {
                None => Vec::new(),
                Some(Offers::Text(text)) => qos::parse(&text),
                Some(Offers::List(list)) => list.into_iter().map(Qos::from).collect(),
            };
            (name, type_name, serialization_format, offers)
        });
        Ok(Self {
            version: information.version,
            message_count: information.message_count.unwrap_or_default(),
            compression_mode: information.compression_mode.unwrap_or_default(),
            ros_distro: information.ros_distro.unwrap_or_default(),
            topics: topics.collect(),
            files: paths.into_iter().map(|path| (path.clone(), count_of(&path))).collect(),
        })
    }
}

/// The first line of a parser's message.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_form_has_no_offers_no_counts_and_paths_with_the_folder() {
        let text = "rosbag2_bagfile_information:\n  version: 1\n  storage_identifier: sqlite3\n  relative_file_paths: [bag/bag_0.db3]\n  \
                    duration: {nanoseconds: 5}\n  starting_time: {nanoseconds_since_epoch: 1}\n  message_count: 2\n  \
                    topics_with_message_count: [{topic_metadata: {name: /a, type: std_msgs/msg/String, serialization_format: cdr}, message_count: 2}]\n";
        let metadata = Metadata::parse(text).unwrap();
        assert_eq!((metadata.version, metadata.message_count), (1, 2));
        assert_eq!(metadata.files, [("bag/bag_0.db3".into(), None)]);
        assert_eq!(metadata.topics, [("/a".into(), "std_msgs/msg/String".into(), "cdr".into(), vec![])]);
    }

    #[test]
    fn the_newest_form_has_counts_and_lists_of_offers() {
        let text = "rosbag2_bagfile_information:\n  version: 9\n  message_count: 3\n  compression_mode: FILE\n  ros_distro: jazzy\n  \
                    custom_data: ~\n  relative_file_paths: [a_0.mcap.zstd]\n  starting_time: {nanoseconds_since_epoch: 9223372036854775807}\n  \
                    files: [{path: a_0.mcap.zstd, starting_time: {nanoseconds_since_epoch: 1}, duration: {nanoseconds: -5}, message_count: 3}]\n  \
                    topics_with_message_count: [{topic_metadata: {name: /a, type: a/msg/B, serialization_format: cdr, \
                    offered_qos_profiles: [{history: keep_last, depth: 1, reliability: reliable, durability: transient_local}]}, message_count: 3}]\n";
        let metadata = Metadata::parse(text).unwrap();
        assert_eq!((metadata.compression_mode.as_str(), metadata.ros_distro.as_str()), ("FILE", "jazzy"));
        assert_eq!(metadata.files, [("a_0.mcap.zstd".into(), Some(3))]);
        assert_eq!(metadata.topics[0].3[0].transient_local, Some(true));
    }

    #[test]
    fn other_yaml_is_refused_in_one_line() {
        for text in ["", "a: 1", "[", "rosbag2_bagfile_information: 3"] {
            assert_eq!(Metadata::parse(text).unwrap_err().lines().count(), 1, "{text}");
        }
    }
}
