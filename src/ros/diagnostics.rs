//! `/diagnostics` at 1 Hz (REP-107), from what a closure sees.

use super::graph::Graph;
use super::node::Node;
use super::qos::everything;
use super::time;
use crate::error::Result;
use r2r::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue};
use r2r::std_msgs::msg::Header;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);

/// How it goes. The numbers are those of diagnostic_msgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// As it should be.
    Ok = 0,
    /// Works, but somebody should look.
    Warn = 1,
    /// Does not work.
    Error = 2,
    /// Nothing is heard any more.
    Stale = 3,
}

/// One answer to "how is it".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How it goes.
    pub level: Level,
    /// Why, in a sentence.
    pub message: String,
    /// Numbers behind it, by name.
    pub values: Vec<(String, String)>,
}

impl Node {
    /// Publishes at 1 Hz what `look` says, under the node's name.
    pub fn diagnose(&mut self, mut look: impl FnMut(&Graph<'_>) -> Health + Send + 'static) -> Result<()> {
        let publisher = self.publish::<DiagnosticArray>("/diagnostics", everything())?;
        let name = self.full_name()?;
        self.every(PERIOD, move |graph| {
            let health = look(graph);
            let values = health.values.into_iter().map(|(key, value)| KeyValue { key, value }).collect();
            let status = DiagnosticStatus {
                level: health.level as u8,
                name: name.clone(),
                message: health.message,
                hardware_id: String::new(),
                values,
            };
            let header = Header { stamp: time::stamp(time::wall_now()), frame_id: String::new() };
            if let Err(error) = publisher.send(&DiagnosticArray { header, status: vec![status] }) {
                tracing::warn!("{error}");
            }
        });
        Ok(())
    }
}
