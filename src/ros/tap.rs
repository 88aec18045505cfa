//! Hears topics of any type as bytes, as they appear.

use super::graph::Graph;
use super::node::Node;
use super::qos::Qos;
use super::time;
use crate::error::Result;
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use r2r::qos::{DurabilityPolicy, HistoryPolicy, ReliabilityPolicy};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often new topics are looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Longest wait for a message, and so for a stop.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// Turns after a stop, for what has arrived and was not yet heard.
const LAST_TURNS: usize = 1000;
/// History on the way to a recorder that is busy for a moment.
const DEPTH: usize = 1000;

/// What one publisher offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Every message is asked for again until it is there.
    pub reliable: bool,
    /// Late subscribers get the last messages.
    pub transient_local: bool,
    /// Messages kept; none: all of them.
    pub depth: Option<u64>,
}

/// What is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A topic, from now on: its name, its type, what is offered. Topics are numbered from 0 in this order.
    Topic(String, String, Vec<Offer>),
    /// A message as it was encoded: the number of its topic, and its receipt [ns since the epoch].
    Message(usize, i64, Vec<u8>),
}

/// Hears every topic that `wanted` says yes to by name and type, once somebody publishes it, with what all its publishers offer: reliable
/// and latched only if all are. A type that this program was not built with is named in a warning, once. Ends with `stop`, or with an
/// error of `each`.
pub fn tap(
    node: Node,
    wanted: &dyn Fn(&str, &str) -> bool,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Heard) -> Result<()>,
) -> Result<()> {
    let Node { mut inner, names, .. } = node;
    let mut streams: Vec<BoxStream<'static, Vec<u8>>> = Vec::new();
    let mut known = BTreeSet::new();
    let mut looked: Option<Instant> = None;
    let mut last_turns = LAST_TURNS;
    while 0 < last_turns {
        if looked.is_none_or(|at| LOOK <= at.elapsed()) {
            looked = Some(Instant::now());
            let topics = inner.get_topic_names_and_types().unwrap_or_default();
            for (name, kinds) in topics {
                let Some(kind) = kinds.into_iter().find(|kind| wanted(&name, kind)) else { continue };
                if known.contains(&name) {
                    continue;
                }
                let writers = Graph { node: &inner, names: &names }.writers(&name)?;
                if writers.is_empty() {
                    continue; // only somebody who listens
                }
                known.insert(name.clone());
                let offers: Vec<Offer> = writers.iter().map(|writer| offer(&writer.qos)).collect();
                match inner.subscribe_raw(&name, &kind, request(&offers)) {
                    Ok(stream) => {
                        streams.push(stream.boxed());
                        each(Heard::Topic(name, kind, offers))?;
                    }
                    Err(error) => tracing::warn!("{name} is not heard: {kind} is no type of this program ({error})"),
                }
            }
        }
        if streams.is_empty() {
            std::thread::sleep(LONGEST_WAIT); // there is nothing to wait for
        } else {
            inner.spin_once(LONGEST_WAIT);
        }
        let mut heard = false;
        for (topic, stream) in streams.iter_mut().enumerate() {
            while let Some(Some(data)) = stream.next().now_or_never() {
                each(Heard::Message(topic, time::wall_now_ns(), data))?;
                heard = true;
            }
        }
        if stop() {
            last_turns = if heard { last_turns - 1 } else { 0 };
        }
    }
    Ok(())
}

fn offer(qos: &Qos) -> Offer {
    Offer {
        reliable: qos.reliability != ReliabilityPolicy::BestEffort,
        transient_local: qos.durability == DurabilityPolicy::TransientLocal,
        depth: (qos.history != HistoryPolicy::KeepAll).then_some(qos.depth.max(1) as u64),
    }
}

/// The most that all offers allow.
fn request(offers: &[Offer]) -> Qos {
    let qos = Qos::default().keep_last(DEPTH);
    let qos = if offers.iter().all(|offer| offer.reliable) { qos.reliable() } else { qos.best_effort() };
    if offers.iter().all(|offer| offer.transient_local) { qos.transient_local() } else { qos.volatile() }
}

#[cfg(test)]
mod tests {
    use super::super::qos::{latched, newest, sensor};
    use super::*;

    #[test]
    fn what_is_asked_for_is_what_all_offer() {
        let offers = |all: &[Qos]| all.iter().map(offer).collect::<Vec<_>>();
        let asked = request(&offers(&[latched(), latched()]));
        assert_eq!(
            (asked.reliability, asked.durability),
            (ReliabilityPolicy::Reliable, DurabilityPolicy::TransientLocal)
        );
        let asked = request(&offers(&[latched(), newest()]));
        assert_eq!((asked.reliability, asked.durability), (ReliabilityPolicy::Reliable, DurabilityPolicy::Volatile));
        let asked = request(&offers(&[newest(), sensor()]));
        assert_eq!((asked.reliability, asked.durability), (ReliabilityPolicy::BestEffort, DurabilityPolicy::Volatile));
    }
}
