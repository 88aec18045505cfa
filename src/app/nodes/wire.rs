//! Between topics and channels.

use crate::data::JointState;
use crate::error::{Error, Result};
use crate::node::Output;
use crate::ros::{self, msg};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Messages that wait between the spin thread and an actor; what does not fit is dropped and asked for again.
pub(in crate::app) const QUEUE: usize = 256;

/// What was dropped on the way in, by topic and why; shown in `/diagnostics`.
#[derive(Clone, Default)]
pub(in crate::app) struct Drops(Arc<Mutex<BTreeMap<String, u64>>>);

impl Drops {
    /// One more. Returns how many of its kind.
    pub(super) fn count(&self, topic: &str, why: &str) -> u64 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(format!("{topic}_{why}")).or_default();
        *count += 1;
        *count
    }

    /// All that are not zero.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (name.clone(), *count)).collect()
    }
}

/// The bounded way from the spin thread to an actor. What does not fit is dropped and counted; the protocol repeats it.
pub(super) struct Queue<T> {
    topic: &'static str,
    sender: mpsc::Sender<T>,
    drops: Drops,
}

impl<T> Queue<T> {
    pub(super) fn new(topic: &'static str, sender: mpsc::Sender<T>, drops: &Drops) -> Self {
        Self { topic, sender, drops: drops.clone() }
    }

    pub(super) fn put(&mut self, value: T) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(value) {
            let dropped = self.drops.count(self.topic, "overflow");
            if dropped.is_power_of_two() {
                tracing::warn!("{dropped} messages on {} found the queue of {QUEUE} full", self.topic);
            }
        }
    }
}

/// Puts a topic's messages into a queue, converted. A message that does not convert is refused with a sentence.
pub(in crate::app) fn to_queue<M, T>(
    topic: &'static str,
    sender: mpsc::Sender<T>,
    drops: &Drops,
) -> impl FnMut(M) + Send + 'static
where
    T: TryFrom<M, Error = Error> + Send + 'static,
    M: 'static,
{
    let (mut queue, drops) = (Queue::new(topic, sender, drops), drops.clone());
    move |message| convert(message, topic, &drops, |value| queue.put(value))
}

/// Hands a message on, or says why it does not fit.
pub(super) fn convert<M, T: TryFrom<M, Error = Error>>(message: M, topic: &str, drops: &Drops, take: impl FnOnce(T)) {
    match T::try_from(message) {
        Ok(value) => take(value),
        Err(error) => {
            drops.count(topic, "unreadable");
            tracing::warn!("a message on {topic} was refused: {error}");
        }
    }
}

/// Joints as they came: NaN has a meaning in commands, and joints that are none of the arm's may have one in states.
pub(super) fn joints(message: msg::JointState) -> Result<JointState> {
    Ok(JointState {
        stamp_secs: ros::secs(&message.header.stamp)?,
        names: message.name,
        position: message.position,
        velocity: message.velocity,
    })
}

/// Publishes what an actor says.
pub(in crate::app) fn to_topic<M, T>(publisher: ros::Publisher<M>) -> Output<T>
where
    M: ros::Message + for<'a> From<&'a T>,
{
    Box::new(move |value: &T| {
        if let Err(error) = publisher.send(&value.into()) {
            tracing::error!("{error}");
        }
    })
}

/// A topic below a namespace.
pub(super) fn topic_of(namespace: &str, topic: &str) -> String {
    format!("{}/{topic}", namespace.trim_end_matches('/'))
}
