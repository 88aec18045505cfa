//! What a node says of itself: in `/diagnostics` to everybody, and line by line to a parent that looks after it.

use super::wire::Drops;
use crate::app::watchdog::Beat;
use crate::error::{Error, Result};
use crate::node::trainer::Alarm;
use crate::node::{Output, Report, Times};
use crate::ros::{Graph, Health, Level, Node, Qos};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Counts that somebody should look at once they are not zero.
const TROUBLE: [&str; 9] = [
    "lost",
    "refused_malformed",
    "refused_nonfinite",
    "refused_stale",
    "refused_contract",
    "suspect_batches",
    "refused_weights",
    "refused_commands",
    "overflowed",
];

/// Publishes the newest report, with the shares of time and what the queues dropped, says what `alarm` says, and names
/// publishers whose QoS no subscription of this node hears. With `parent`, each report goes to standard output, too.
pub(super) fn diagnose(
    node: &mut Node,
    subscriptions: Vec<(String, Qos)>,
    times: Times,
    drops: Drops,
    alarm: Alarm,
    parent: bool,
) -> Result<Output<Report>> {
    let newest: Arc<Mutex<Option<Report>>> = Arc::default();
    let shown = newest.clone();
    node.diagnose(move |graph: &Graph<'_>| {
        let newest = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut health = of(newest.as_ref(), &drops.counts());
        health.values.extend(shares(&times));
        if let Some(sentence) = alarm.said() {
            (health.level, health.message) = (health.level.max(Level::Error), sentence.into());
        }
        name_mismatches(&mut health, graph, &subscriptions);
        health
    })?;
    let beats = if parent { Some(tell_parent()?) } else { None };
    Ok(Box::new(move |report: &Report| {
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
        if let Some(beats) = &beats {
            beats.send_replace(Some(Beat {
                phase: report.phase.clone(),
                waits: report.waits,
                progress: report.progress,
                waits_for: report.waits_for.clone(),
            }));
        }
    }))
}

/// Names publishers whose QoS a subscription does not hear.
pub(super) fn name_mismatches(health: &mut Health, graph: &Graph<'_>, subscriptions: &[(String, Qos)]) {
    for (topic, qos) in subscriptions {
        for sentence in graph.mismatches(topic, qos).unwrap_or_default() {
            health.level = health.level.max(Level::Error);
            health.message = sentence;
        }
    }
}

fn shares(times: &Times) -> impl Iterator<Item = (String, String)> + use<> {
    let shares = times.shares().into_iter();
    shares.map(|(activity, share)| (format!("time/{}_share", activity.name()), format!("{share:.4}")))
}

fn of(report: Option<&Report>, drops: &[(String, u64)]) -> Health {
    let Some(report) = report else {
        return Health { level: Level::Ok, message: "starting".into(), values: vec![] };
    };
    let counts = report.counts.iter().map(|(name, count)| ((*name).to_owned(), *count));
    let counts: Vec<(String, u64)> =
        counts.chain(drops.iter().cloned()).chain([("progress".to_owned(), report.progress)]).collect();
    let trouble =
        !drops.is_empty() || counts.iter().any(|(name, count)| 0 < *count && TROUBLE.contains(&name.as_str()));
    Health {
        level: if trouble { Level::Warn } else { Level::Ok },
        message: match report.waits_for.as_slice() {
            [] => report.phase.clone(),
            whom => format!("{}; {}", report.phase, whom.join(", ")),
        },
        values: counts.into_iter().map(|(name, count)| (name, count.to_string())).collect(),
    }
}

/// A thread of its own writes the newest beat: a parent that does not read stops nothing but it.
fn tell_parent() -> Result<watch::Sender<Option<Beat>>> {
    let (sender, mut newest) = watch::channel(None::<Beat>);
    let write = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
        while runtime.block_on(newest.changed()).is_ok() {
            let line = newest.borrow_and_update().as_ref().map(Beat::line).unwrap_or_default();
            let mut out = std::io::stdout().lock();
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("beat".into())
        .spawn(write)
        .map_err(|error| Error::invalid(format!("no thread can talk to the parent: {error}")))?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_shows_phase_progress_and_every_count_and_warns_of_drops() {
        let report = Report {
            phase: "acting".into(),
            waits: false,
            progress: 7,
            waits_for: vec![],
            counts: vec![("resent_batches", 3)],
        };
        let well = of(Some(&report), &[]);
        assert_eq!((well.level, well.message.as_str()), (Level::Ok, "acting"));
        assert_eq!(well.values, [("resent_batches".into(), "3".into()), ("progress".into(), "7".into())]);
        assert_eq!(of(Some(&report), &[("transitions_overflow".into(), 1)]).level, Level::Warn);
        let lossy = Report { counts: vec![("lost", 1)], ..report };
        assert_eq!(of(Some(&lossy), &[]).level, Level::Warn);
    }
}
