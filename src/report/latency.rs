//! The outcome of the benchmarks of latency: weights, and a policy node's answers.

use super::{calm, stats};
use crate::error::{Error, Result};
use serde::Serialize;

/// From publishing weights of one size to acting with them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Of the flat parameters.
    pub bytes: usize,
    /// Versions measured.
    pub versions: usize,
    /// Median [ms].
    pub p50_millis: f64,
    /// 99th percentile [ms].
    pub p99_millis: f64,
    /// Longest [ms].
    pub most_millis: f64,
    /// From the end of a stall of the reader to its acting with the newest version [ms].
    pub after_stall_millis: f64,
    /// Older versions among those missed that it acted with first.
    pub older_after_stall: u64,
}

/// For a terminal.
pub fn latencies(found: &[Latency]) -> String {
    let mut table = calm(&["weights", "versions", "p50", "p99", "most", "after a stall", "older ones first"]);
    let millis = |millis: f64| format!("{millis:.1} ms");
    for latency in found {
        table.add_row([
            format!("{:.1} MB", latency.bytes as f64 / 1e6),
            latency.versions.to_string(),
            millis(latency.p50_millis),
            millis(latency.p99_millis),
            millis(latency.most_millis),
            millis(latency.after_stall_millis),
            latency.older_after_stall.to_string(),
        ]);
    }
    format!("publish to acted with\n{}", table.trim_fmt())
}

/// How a policy node answered joint states with commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answers {
    /// Whose.
    pub name: String,
    /// States that were sent.
    pub states: usize,
    /// Median from a state to its command [ms].
    pub p50_millis: f64,
    /// 99th percentile [ms].
    pub p99_millis: f64,
    /// Longest [ms].
    pub most_millis: f64,
    /// Share of the states whose command came too late, or never.
    pub missed_ratio: f64,
}

impl Answers {
    /// From what each state's command took, none for one that never came [s]; it is due within `due_secs`.
    pub fn new(name: String, took_secs: &[Option<f64>], due_secs: f64) -> Result<Self> {
        let millis: Vec<f64> = took_secs.iter().flatten().map(|secs| 1e3 * secs).collect();
        let in_time = took_secs.iter().flatten().filter(|secs| **secs <= due_secs).count();
        let states = took_secs.len();
        let percentile = |percent| {
            stats::percentile(&millis, percent)
                .ok_or_else(|| Error::invalid(format!("{name} answered none of {states} states")))
        };
        Ok(Self {
            states,
            p50_millis: percentile(50.0)?,
            p99_millis: percentile(99.0)?,
            most_millis: percentile(100.0)?,
            missed_ratio: (states - in_time) as f64 / states as f64,
            name,
        })
    }
}

/// For a terminal.
pub fn answers(found: &[Answers]) -> String {
    let mut table = calm(&["joint state to command", "states", "p50", "p99", "most", "late or missing"]);
    let millis = |millis: f64| format!("{millis:.2} ms");
    for node in found {
        table.add_row([
            node.name.clone(),
            node.states.to_string(),
            millis(node.p50_millis),
            millis(node.p99_millis),
            millis(node.most_millis),
            format!("{:.2} %", 100.0 * node.missed_ratio),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_late_or_missing_is_missed_and_a_late_one_has_its_time() {
        let mut took: Vec<Option<f64>> = (1..=97).map(|index| Some(1e-5 * f64::from(index))).collect();
        took.extend([Some(0.01), Some(0.011), None]);
        let found = Answers::new("ours".into(), &took, 0.01).unwrap();
        assert_eq!((found.states, found.missed_ratio), (100, 0.02));
        assert!((found.p50_millis - 0.5).abs() < 1e-9 && found.most_millis == 11.0, "{found:?}");
        let table = answers(&[found]);
        let line = table.lines().last().unwrap();
        assert!(line.trim().starts_with("ours") && line.contains("0.50 ms") && line.contains("2.00 %"), "{table}");
        let none = Answers::new("ours".into(), &[None], 0.01).unwrap_err().to_string();
        assert!(none.contains("ours answered none of 1 states"), "{none}");
    }

    #[test]
    fn one_size_is_one_line() {
        let latency = Latency {
            bytes: 1_000_500,
            versions: 200,
            p50_millis: 3.25,
            p99_millis: 9.96,
            most_millis: 20.0,
            after_stall_millis: 12.0,
            older_after_stall: 1,
        };
        let table = latencies(&[latency]);
        let words: Vec<&str> =
            table.lines().last().unwrap().split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
        assert_eq!(words, ["1.0 MB", "200", "3.2 ms", "10.0 ms", "20.0 ms", "12.0 ms", "1"]);
    }
}
