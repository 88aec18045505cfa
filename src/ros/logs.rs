//! Warnings and errors of `tracing` to `/rosout`, where `ros2 topic echo`, rqt_console and bags look for them.

use super::node::Node;
use super::qos::Qos;
use super::time;
use crate::error::Result;
use r2r::rcl_interfaces::msg::Log;
use std::fmt::{Debug, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Lines that wait for the spin thread; more are dropped, they stand in the other logs.
const WAITING: usize = 256;

/// Takes warnings and errors; for the subscriber.
pub struct Rosout(SyncSender<Log>);

/// What was taken; for [`Node::rosout`].
pub struct Lines(Receiver<Log>);

/// Both ends of the way to `/rosout`.
pub fn rosout() -> (Rosout, Lines) {
    let (sender, receiver) = sync_channel(WAITING);
    (Rosout(sender), Lines(receiver))
}

impl<S: Subscriber> Layer<S> for Rosout {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // rcl_interfaces/msg/Log
        let level = match *metadata.level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => return,
        };
        let mut text = Text::default();
        event.record(&mut text);
        let log = Log {
            stamp: time::stamp(time::wall_now()),
            level,
            name: String::new(),
            // a C string ends at its first zero
            msg: (text.message + &text.fields).replace('\0', "\u{fffd}"),
            file: metadata.file().unwrap_or_default().into(),
            function: metadata.target().into(),
            line: metadata.line().unwrap_or(0),
        };
        // full or gone: the line stands in the other logs
        let _ = self.0.try_send(log);
    }
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // writing to a string does not fail
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

impl Node {
    /// Publishes these lines on `/rosout`, under the node's logger name.
    pub fn rosout(&mut self, lines: Lines) -> Result<()> {
        // rmw's rosout profile: late joiners get the last lines
        let qos = Qos::default().keep_last(1000).reliable().transient_local().lifespan(Duration::from_secs(10));
        let publisher = self.publish::<Log>("/rosout", qos)?;
        let name = self.inner.logger().to_owned();
        self.pumps.push(Box::new(move || {
            while let Ok(log) = lines.0.try_recv() {
                // no log about a log that cannot be sent
                let _ = publisher.send(&Log { name: name.clone(), ..log });
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[test]
    fn warnings_and_errors_are_taken_with_their_fields() {
        let (layer, lines) = rosout();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!("not this");
            tracing::warn!(steps = 3, "a gap\0");
            tracing::error!("the end");
        });
        let taken: Vec<_> = lines.0.try_iter().map(|log| (log.level, log.msg)).collect();
        assert_eq!(taken, [(30, "a gap\u{fffd} steps=3".to_owned()), (40, "the end".to_owned())]);
    }
}
