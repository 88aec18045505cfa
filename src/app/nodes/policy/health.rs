//! What a policy node says of itself in `/diagnostics`.

use crate::app::nodes::health::name_mismatches;
use crate::app::nodes::wire::Drops;
use crate::data::Stage;
use crate::error::Result;
use crate::guard::{Hand, Reason};
use crate::node::Output;
use crate::node::policy::Status;
use crate::ros::{Graph, Health, Level, Node, Qos};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Publishes the health of the newest status, and of the hand, where there is one.
pub(super) fn diagnose(
    node: &mut Node,
    subscriptions: Vec<(String, Qos)>,
    drops: Drops,
    hand: Option<watch::Receiver<Hand>>,
) -> Result<Output<Status>> {
    let newest: Arc<Mutex<Option<Status>>> = Arc::default();
    let shown = newest.clone();
    node.diagnose(move |graph: &Graph<'_>| {
        let newest = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let starting = || Health { level: Level::Ok, message: "starting".into(), values: vec![] };
        let mut health = newest.as_ref().map_or_else(starting, health_of);
        health.values.extend(drops.counts().into_iter().map(|(name, count)| (name, count.to_string())));
        if let Some(hand) = &hand {
            let Hand { holds, busy, failures, timeouts } = *hand.borrow();
            for (key, value) in [("holds", holds.to_string()), ("busy", busy.to_string())] {
                health.values.push((format!("hand/{key}"), value));
            }
            for (key, count) in [("failures", failures), ("timeouts", timeouts)] {
                health.values.push((format!("hand/{key}"), count.to_string()));
            }
        }
        name_mismatches(&mut health, graph, &subscriptions);
        health
    })?;
    Ok(Box::new(move |status: &Status| {
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
    }))
}

fn health_of(status: &Status) -> Health {
    let mut values: Vec<(String, String)> = [
        ("version", status.version.to_string()),
        ("weights_wait", status.weights_wait.to_string()),
        ("command_stamp", status.command_secs.map_or_else(|| "none".into(), |secs| format!("{secs:.9}"))),
        ("decisions", status.decisions.to_string()),
        ("missed", status.missed.to_string()),
        ("refused_states", status.refused_states.to_string()),
        ("refused_weights", status.refused_weights.to_string()),
        ("state_rate_hz", format!("{:.2}", status.state_rate_hz)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(report) = &status.guard {
        for (key, value) in [
            ("guard/state", report.state.name().to_owned()),
            ("guard/holds", report.holds.to_string()),
            ("guard/scale", format!("{:.3}", report.scale)),
            ("guard/saturation_ratio", format!("{:.4}", report.saturation_ratio)),
            ("guard/command_period_secs", format!("{:.5}", report.ticks.period_secs)),
            ("guard/command_period_worst_secs", format!("{:.5}", report.ticks.worst_secs)),
        ] {
            values.push((key.to_owned(), value));
        }
        let counts = Reason::ALL.into_iter().map(|reason| (reason, report.counts.of(reason)));
        let stepped_in = counts.filter(|(_, count)| 0 < *count);
        values.extend(stepped_in.map(|(reason, count)| (format!("guard/{}", reason.key()), count.to_string())));
    }
    let level = match status.stage {
        _ if status.is_trouble() => Level::Error,
        Stage::Unconfigured => Level::Warn,
        _ if status.unarmable.is_some() || 0 < status.refused_weights => Level::Warn,
        _ => Level::Ok,
    };
    Health { level, message: status.sentence.clone(), values }
}
