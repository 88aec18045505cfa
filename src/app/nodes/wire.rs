//! Between topics and channels.

use crate::data::JointState;
use crate::error::{Error, Result};
use crate::node::Output;
use crate::ros::{self, msg};
use tokio::sync::mpsc;

/// Messages that wait between the spin thread and an actor; what does not fit is dropped and asked for again.
pub(in crate::app) const QUEUE: usize = 256;

/// The bounded way from the spin thread to an actor. What does not fit is dropped and counted; the protocol repeats it.
pub(super) struct Queue<T> {
    topic: &'static str,
    sender: mpsc::Sender<T>,
    dropped: u64,
}

impl<T> Queue<T> {
    pub(super) fn new(topic: &'static str, sender: mpsc::Sender<T>) -> Self {
        Self { topic, sender, dropped: 0 }
    }

    pub(super) fn put(&mut self, value: T) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(value) {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                tracing::warn!("{} messages on {} found the queue of {QUEUE} full", self.dropped, self.topic);
            }
        }
    }
}

/// Puts a topic's messages into a queue, converted. A message that does not convert is refused with a sentence.
pub(in crate::app) fn to_queue<M, T>(topic: &'static str, sender: mpsc::Sender<T>) -> impl FnMut(M) + Send + 'static
where
    T: TryFrom<M, Error = Error> + Send + 'static,
    M: 'static,
{
    let mut queue = Queue::new(topic, sender);
    move |message| convert(message, topic, |value| queue.put(value))
}

/// Hands a message on, or says why it does not fit.
pub(super) fn convert<M, T: TryFrom<M, Error = Error>>(message: M, topic: &str, take: impl FnOnce(T)) {
    match T::try_from(message) {
        Ok(value) => take(value),
        Err(error) => tracing::warn!("a message on {topic} was refused: {error}"),
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
