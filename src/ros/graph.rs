//! What a node sees of the graph, from its own thread.

use super::names::Names;
use super::qos::Qos;
use crate::error::{Error, Result};
use r2r::qos::{DurabilityPolicy, ReliabilityPolicy};

/// The graph, as the node sees it now.
pub struct Graph<'a> {
    pub(super) node: &'a r2r::Node,
    pub(super) names: &'a Names,
}

/// A publisher of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Writer {
    /// Its node, with namespace.
    pub node: String,
    /// Its message type, e.g. `sensor_msgs/msg/JointState`.
    pub kind: String,
    /// What it offers.
    pub qos: Qos,
}

impl Graph<'_> {
    /// Publishers of a topic, which is named as in [`super::Node::subscribe`].
    pub fn writers(&self, topic: &str) -> Result<Vec<Writer>> {
        let topic = self.names.resolve(topic);
        let infos = self
            .node
            .get_publishers_info_by_topic(&topic, false)
            .map_err(|error| Error::invalid(format!("the publishers of {topic} cannot be listed: {error}")))?;
        Ok(infos
            .into_iter()
            .map(|info| Writer {
                node: format!("{}/{}", info.node_namespace.trim_end_matches('/'), info.node_name),
                kind: info.topic_type,
                qos: info.qos_profile,
            })
            .collect())
    }

    /// A sentence for each publisher of a topic whose messages a subscription with `reader` never gets.
    pub fn mismatches(&self, topic: &str, reader: &Qos) -> Result<Vec<String>> {
        let full = self.names.resolve(topic);
        let writers = self.writers(topic)?;
        Ok(writers
            .iter()
            .filter_map(|writer| {
                let why = mismatch(&writer.qos, reader)?;
                Some(format!("nothing that {} publishes on {full} arrives: {why}", writer.node))
            })
            .collect())
    }
}

/// Why DDS does not connect a writer and a reader: the offer must be at least what is requested.
fn mismatch(writer: &Qos, reader: &Qos) -> Option<&'static str> {
    if writer.reliability == ReliabilityPolicy::BestEffort && reader.reliability == ReliabilityPolicy::Reliable {
        Some("it offers best effort, reliable is requested")
    } else if writer.durability == DurabilityPolicy::Volatile && reader.durability == DurabilityPolicy::TransientLocal {
        Some("it offers volatile, transient local is requested")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::qos::{everything, latched, newest, sensor};
    use super::*;

    #[test]
    fn the_offer_must_be_at_least_what_is_requested() {
        assert_eq!(mismatch(&sensor(), &newest()), Some("it offers best effort, reliable is requested"));
        assert_eq!(mismatch(&everything(), &latched()), Some("it offers volatile, transient local is requested"));
        for (writer, reader) in [(newest(), sensor()), (latched(), everything()), (sensor(), sensor())] {
            assert_eq!(mismatch(&writer, &reader), None);
        }
    }
}
