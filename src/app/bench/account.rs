//! What a run folder says of a training: its rate, its lag, where time went, what became of every transition.

use crate::error::{Error, Result};
use crate::report::{self, Row, names};
use crate::run::{self, RunDir, Which};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The shares that count as learned, of the last 100 episodes with sampled actions: at 5 cm, at 1 cm.
const LEARNED: [f64; 2] = [0.99, 0.97];

/// How fast it learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rate {
    /// Environment steps a second, from the first update to the last.
    pub(super) env_steps_per_sec: f64,
    /// Steps and seconds behind that.
    pub(super) env_steps: u64,
    /// Steps and seconds behind that.
    pub(super) secs: f64,
    /// Updates made.
    pub(super) updates: u64,
    /// Versions between acting and learning: least, mean, most.
    pub(super) lag: [f64; 3],
}

/// When a share of successes was reached first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Reached {
    /// Environment steps until then.
    pub(super) env_steps: u64,
    /// Time until then [s].
    pub(super) secs: f64,
}

/// What became of the transitions that the rollouts recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Transitions {
    /// By the rollouts, as they say at their end.
    pub(super) recorded: u64,
    /// Learned from.
    pub(super) learned: u64,
    /// Refused by the learner, or dropped by it unlearned.
    pub(super) refused: u64,
    /// Counted as lost, or without any verdict among later ones that have theirs.
    pub(super) lost: u64,
    /// Given a verdict, or learned from, more often than they were recorded.
    pub(super) doubled: u64,
    /// At the stop: on their way, or gathered for an update that was not made.
    pub(super) under_way: u64,
}

/// Time by activity [s] of each kind of actor.
pub(super) type Times = BTreeMap<String, BTreeMap<String, f64>>;

/// The rate of a run.
pub(super) fn rate(folder: &Path) -> Result<Rate> {
    rate_of(&report::read(folder)?).ok_or_else(|| {
        Error::invalid(format!("{} has fewer than two updates: there is nothing to measure", folder.display()))
    })
}

fn rate_of(rows: &[Row]) -> Option<Rate> {
    let (first, last) = (rows.first()?.clock, rows.last()?.clock);
    let (env_steps, secs) = (last.env_steps - first.env_steps, last.wall_secs - first.wall_secs);
    let values = |name: &str| rows.iter().filter_map(|row| row.values.get(name).copied()).collect::<Vec<_>>();
    (0.0 < secs).then(|| Rate {
        env_steps_per_sec: env_steps as f64 / secs,
        env_steps,
        secs,
        updates: last.updates - first.updates,
        lag: [
            values("lag/min").into_iter().fold(f64::INFINITY, f64::min),
            report::stats::mean(&values("lag/mean")).unwrap_or(f64::NAN),
            values("lag/max").into_iter().fold(0.0, f64::max),
        ],
    })
}

/// When the shares of [`LEARNED`] were reached, at 5 cm and at 1 cm.
pub(super) fn learned(folder: &Path) -> Result<[Option<Reached>; 2]> {
    let rows = report::read(folder)?;
    let first = |name: &str, share: f64| {
        let row = rows.iter().find(|row| row.values.get(name).is_some_and(|found| share <= *found))?;
        Some(Reached { env_steps: row.clock.env_steps, secs: row.clock.wall_secs })
    };
    Ok([first(names::SUCCESS, LEARNED[0]), first(names::SUCCESS_STRICT, LEARNED[1])])
}

/// The accounts of the newest checkpoint. `recorded` is what the rollouts say.
pub(super) fn transitions(folder: &Path, recorded: u64) -> Result<Transitions> {
    let path = RunDir::resolve(folder, Which::Newest)?;
    let checkpoint = run::load(&path, None)?;
    let dropped = report::read(folder)?.last().and_then(|row| row.values.get("stream/dropped").copied());
    let learned = checkpoint.snapshot.env_steps;
    settle(&checkpoint.learner["streams"], recorded, learned, dropped.unwrap_or(0.0) as u64)
        .ok_or_else(|| Error::invalid(format!("the streams of {} cannot be read", path.display())))
}

/// A stream's `position` counts its transitions by the rollout's own numbering, each once.
fn settle(table: &Value, recorded: u64, learned: u64, dropped: u64) -> Option<Transitions> {
    let mut sum = Transitions { recorded, learned, refused: dropped, ..Transitions::default() };
    let mut all_admitted = 0;
    for stream in table["streams"].as_array()? {
        let ledger = &stream[1];
        let number = |value: &Value| value.as_u64();
        let reasons = ledger["refused"].as_object()?.values().map(number).sum::<Option<u64>>()?;
        let (admitted, lost) = (number(&ledger["admitted"])?, number(&ledger["lost"])?);
        let (here, settled) = (number(&ledger["position"])?, admitted + reasons + lost);
        all_admitted += admitted;
        sum.refused += reasons;
        sum.lost += lost + here.saturating_sub(settled);
        sum.doubled += settled.saturating_sub(here);
    }
    sum.doubled += (learned + dropped).saturating_sub(all_admitted);
    sum.under_way = recorded.saturating_sub(learned + sum.refused + sum.lost);
    Some(sum)
}

/// Time by actor, and transitions that rollouts recorded, from the last words of the nodes in their logs.
pub(super) fn last_words(logs: &Path) -> Result<(Times, u64)> {
    let (mut times, mut recorded) = (Times::new(), 0);
    for entry in fs::read_dir(logs).map_err(Error::io(logs))? {
        let path = entry.map_err(Error::io(logs))?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
            text.lines().for_each(|line| hear(line, &mut times, &mut recorded));
        }
    }
    Ok((times, recorded))
}

fn hear(line: &str, times: &mut Times, recorded: &mut u64) {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return };
    let fields = &line["fields"];
    if let (Some(actor), Some(secs)) = (fields["actor"].as_str(), fields["secs"].as_str()) {
        let secs: BTreeMap<String, f64> = serde_json::from_str(secs).unwrap_or_default();
        let sum = times.entry(actor.to_owned()).or_default();
        secs.into_iter().for_each(|(activity, secs)| *sum.entry(activity).or_default() += secs);
    }
    *recorded += fields["recorded"].as_u64().unwrap_or(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Clock;
    use serde_json::json;

    fn row(updates: u64, wall_secs: f64, values: &[(&str, f64)]) -> Row {
        let clock = Clock { updates, env_steps: 2048 * updates, wall_secs };
        Row { clock, values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect() }
    }

    #[test]
    fn the_rate_leaves_out_what_came_before_the_first_update() {
        let lag = |min, mean, max| [("lag/min", min), ("lag/mean", mean), ("lag/max", max)];
        let rows =
            [row(1, 3.0, &lag(1.0, 1.0, 1.0)), row(2, 3.5, &lag(0.0, 2.0, 4.0)), row(3, 4.0, &lag(1.0, 3.0, 3.0))];
        let rate = rate_of(&rows).unwrap();
        assert_eq!((rate.env_steps, rate.secs, rate.updates, rate.env_steps_per_sec), (4096, 1.0, 2, 4096.0));
        assert_eq!(rate.lag, [0.0, 2.0, 4.0]);
        assert_eq!(rate_of(&rows[..1]), None);
    }

    #[test]
    fn every_transition_is_in_one_account() {
        let stream = |position, admitted, lost, stale| {
            let refused = json!({"malformed": 0, "nonfinite": 1, "stale": stale, "contract": 0});
            json!([{"rollout": "r"}, {"position": position, "admitted": admitted, "lost": lost, "refused": refused}])
        };
        let table = json!({"streams": [stream(100, 90, 4, 5), stream(50, 49, 0, 0)]});
        let found = settle(&table, 160, 130, 9).unwrap();
        // 139 admitted = 130 learned + 9 dropped; 1 and 6 refused; 160 recorded
        let want = Transitions { recorded: 160, learned: 130, refused: 16, lost: 4, doubled: 0, under_way: 10 };
        assert_eq!(found, want);
        let twice = json!({"streams": [stream(100, 97, 0, 5)]});
        assert_eq!(settle(&twice, 100, 97, 0).unwrap().doubled, 3);
        assert_eq!(settle(&table, 160, 135, 9).unwrap().doubled, 5);
        let gone = json!({"streams": [stream(100, 90, 0, 5)]});
        assert_eq!(settle(&gone, 100, 90, 0).unwrap().lost, 4);
        assert_eq!(settle(&json!({"streams": [[{}, {}]]}), 0, 0, 0), None);
    }

    #[test]
    fn last_words_of_nodes_are_summed_by_actor() {
        let (mut times, mut recorded) = (Times::new(), 0);
        for line in [
            r#"{"fields": {"actor": "sim", "secs": "{\"physics\":2.0,\"waiting\":1.0}"}}"#,
            r#"{"fields": {"actor": "sim", "secs": "{\"physics\":0.5}"}}"#,
            r#"{"fields": {"recorded": 70}}"#,
            r#"{"fields": {"recorded": 30}}"#,
            "torn {",
        ] {
            hear(line, &mut times, &mut recorded);
        }
        assert_eq!(recorded, 100);
        assert_eq!(times["sim"], [("physics".to_owned(), 2.5), ("waiting".to_owned(), 1.0)].into());
    }
}
