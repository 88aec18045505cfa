//! What a node says of itself in `/diagnostics`.

use crate::data::{LearnerStatus, RolloutStatus};
use crate::error::Result;
use crate::node::trainer::Alarm;
use crate::node::{Output, Times};
use crate::ros::{Graph, Health, Level, Node, Qos};
use std::sync::{Arc, Mutex, PoisonError};

/// A status that has something to say about health.
pub(super) trait Told: Clone + Send + 'static {
    /// Level, sentence and numbers.
    fn health(&self) -> Health;
}

/// Publishes the health of the newest status with the shares of time, and names publishers whose QoS no subscription of
/// this node hears, and says what `alarm` says.
/// Returns `output`, which from now on remembers what it says.
pub(super) fn diagnose<S: Told>(
    node: &mut Node,
    subscriptions: Vec<(String, Qos)>,
    times: Times,
    alarm: Alarm,
    mut output: Output<S>,
) -> Result<Output<S>> {
    let newest: Arc<Mutex<Option<S>>> = Arc::default();
    let shown = newest.clone();
    node.diagnose(move |graph: &Graph<'_>| {
        let newest = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let starting = || Health { level: Level::Ok, message: "starting".into(), values: vec![] };
        let mut health = newest.as_ref().map_or_else(starting, Told::health);
        health.values.extend(shares(&times));
        if let Some(sentence) = alarm.said() {
            (health.level, health.message) = (health.level.max(Level::Error), sentence.into());
        }
        for (topic, qos) in &subscriptions {
            for sentence in graph.mismatches(topic, qos).unwrap_or_default() {
                health.level = health.level.max(Level::Error);
                health.message = sentence;
            }
        }
        health
    })?;
    Ok(Box::new(move |status: &S| {
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
        output(status);
    }))
}

/// The health of a node without a status: where its time goes.
pub(super) fn diagnose_times(node: &mut Node, times: Times) -> Result<()> {
    node.diagnose(move |_: &Graph<'_>| Health {
        level: Level::Ok,
        message: "running".into(),
        values: shares(&times).collect(),
    })
}

fn shares(times: &Times) -> impl Iterator<Item = (String, String)> + use<> {
    let shares = times.shares().into_iter();
    shares.map(|(activity, share)| (format!("time/{}_share", activity.name()), format!("{share:.4}")))
}

fn numbers<const N: usize>(values: [(&str, u64); N]) -> Vec<(String, String)> {
    values.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec()
}

impl Told for RolloutStatus {
    fn health(&self) -> Health {
        Health {
            level: if 0 < self.refused_weights { Level::Warn } else { Level::Ok },
            message: self.state.clone(),
            values: numbers([
                ("version", self.version),
                ("steps", self.steps),
                ("in_flight", u64::from(self.in_flight)),
                ("queue_batches", u64::from(self.queue_batches)),
                ("aborted_episodes", self.aborted_episodes),
                ("refused_weights", self.refused_weights),
                ("held_ticks", self.held_ticks),
            ]),
        }
    }
}

impl Told for LearnerStatus {
    fn health(&self) -> Health {
        let trouble = 0 < self.lost + self.refused;
        Health {
            level: if trouble { Level::Warn } else { Level::Ok },
            message: self.activity.clone(),
            values: numbers([
                ("version", self.version),
                ("updates", self.updates),
                ("env_steps", self.env_steps),
                ("admitted", self.admitted),
                ("lost", self.lost),
                ("refused", self.refused),
                ("dropped", self.dropped),
                ("queue_batches", u64::from(self.queue_batches)),
            ]),
        }
    }
}
