//! The outcome of a benchmark of weights.

use super::calm;
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

#[cfg(test)]
mod tests {
    use super::*;

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
