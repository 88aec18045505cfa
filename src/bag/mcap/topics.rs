//! Channels and schemas of a file as topics.

use crate::bag::qos;
use crate::bag::storage::{Definition, Topic};
use mcap::records::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest name of a type, as DDS bounds it; what names itself longer defines nothing. Every channel of a schema repeats it.
const LONGEST_NAME: usize = 255;

/// Topics in the order in which their channels first appear; several channels may be one topic.
#[derive(Debug, Default)]
pub(super) struct Topics {
    schemas: BTreeMap<u16, (String, Option<Arc<Definition>>)>,
    channels: BTreeMap<u16, usize>,
    pub(super) list: Vec<Topic>,
}

impl Topics {
    pub(super) fn channel_count(&self) -> u32 {
        self.channels.len() as u32
    }

    /// The topic of a channel.
    pub(super) fn of(&self, channel: u16) -> Option<usize> {
        self.channels.get(&channel).copied()
    }

    /// Takes a schema or a channel; the first with a number holds.
    pub(super) fn declare(&mut self, record: Record<'static>) {
        match record {
            Record::Schema { header, data } if header.name.len() <= LONGEST_NAME => {
                let definition =
                    Definition { encoding: header.encoding, text: String::from_utf8_lossy(&data).into_owned() };
                let definition = (!data.is_empty()).then(|| Arc::new(definition));
                self.schemas.entry(header.id).or_insert((header.name, definition));
            }
            Record::Channel(channel) if !self.channels.contains_key(&channel.id) => {
                let (type_name, definition) = self.schemas.get(&channel.schema_id).cloned().unwrap_or_default();
                let of = |key: &str| channel.metadata.get(key).cloned().unwrap_or_default();
                let topic = Topic {
                    name: channel.topic,
                    type_name,
                    format: channel.message_encoding,
                    offers: qos::parse(&of("offered_qos_profiles")),
                    type_hash: of("topic_type_hash"),
                    definition,
                };
                let index = self.list.iter().position(|known| known.is(&topic));
                let index = index.unwrap_or_else(|| {
                    self.list.push(topic);
                    self.list.len() - 1
                });
                self.channels.insert(channel.id, index);
            }
            _ => {}
        }
    }
}
