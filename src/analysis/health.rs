//! Whether the system was healthy: latency from state to command, tracking, the guard, complaints, the lag of weights.

use super::trace::{Axis, Mean, Moment, Tally, Trace, Worst};
use crate::bag::Intervals;
use crate::bag::message::DiagnosticArray;
use crate::robot::{ARM_DOF, PerJoint};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// States that a command may answer.
const STATES: usize = 4096;
/// What was commanded this long ago is no measure of where the arm should be [ns].
const COMMAND_NS: i64 = 1_000_000_000;
/// Complaints, and states of the guard, that are told apart.
const MAX_KINDS: usize = 50;

/// From the receipt of a state to that of the command with its stamp.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Commands that answer a state.
    pub commands: u64,
    /// Median [s].
    pub median_secs: f64,
    /// 99 % are not longer [s].
    pub p99_secs: f64,
    /// The longest [s].
    pub longest_secs: f64,
    /// When it was.
    pub longest_at_secs: f64,
    /// Over time [s].
    #[serde(skip)]
    pub trace: Trace,
}

/// How far a joint is from where it is told to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tracking {
    /// Command less measurement [rad].
    pub error: Mean,
    /// Largest distance [rad].
    pub largest_rad: f64,
}

/// Somebody complained on /diagnostics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Complaint {
    /// Who.
    pub name: String,
    /// What.
    pub message: String,
    /// An error; else a warning.
    pub error: bool,
    /// Messages that say so.
    pub count: u64,
    /// The first of them, since the first message of the bag [s].
    pub at_secs: f64,
}

/// What the guard did for a reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Intervention {
    /// As in `/diagnostics`.
    pub reason: String,
    /// Times.
    pub count: u64,
    /// The first, since the first message of the bag [s].
    pub at_secs: f64,
}

/// All that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Health {
    /// State to command.
    pub latency: Option<Latency>,
    /// By joint; empty without commands.
    pub tracking: Vec<Tracking>,
    /// Times of the largest tracking errors.
    pub worst_tracking: Vec<Moment>,
    /// By reason.
    pub interventions: Vec<Intervention>,
    /// States that the guard came into.
    pub guard_states: Vec<Moment>,
    /// Warnings and errors.
    pub complaints: Vec<Complaint>,
    /// Versions behind the newest that was published, at the step.
    pub weights_lag: Option<Mean>,
    /// Steps whose action a safety layer changed.
    pub filtered: u64,
    /// Steps in which a person acted.
    pub intervened: u64,
    /// Largest tracking error of a joint over time [rad].
    #[serde(skip)]
    pub tracking_trace: Trace,
    /// Versions behind, over time.
    #[serde(skip)]
    pub lag_trace: Trace,
}

/// Watches one arm and the diagnostics.
#[derive(Clone, Debug)]
pub struct Watch {
    found: Health,
    states: VecDeque<(i64, i64)>,
    answered_ns: Option<i64>,
    latencies: Intervals,
    latency: Trace,
    /// The last command, and its receipt [ns].
    command: Option<(PerJoint, i64)>,
    tracking: [(Tally, f64); ARM_DOF],
    worst: Worst,
    lag: Tally,
    counts: BTreeMap<(String, String), u64>,
    /// Who has spoken on /diagnostics.
    heard: BTreeSet<String>,
}

impl Watch {
    /// Nothing seen.
    pub fn new(axis: Axis) -> Self {
        let (tracking_trace, lag_trace) = (Trace::new(axis), Trace::new(axis));
        Self {
            found: Health { tracking_trace, lag_trace, ..Health::default() },
            states: VecDeque::new(),
            answered_ns: None,
            latencies: Intervals::default(),
            latency: Trace::new(axis),
            command: None,
            tracking: [(Tally::default(), 0.0); ARM_DOF],
            worst: Worst::new(axis),
            lag: Tally::default(),
            counts: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }

    /// A state: its stamp, its receipt, its positions.
    pub fn state(&mut self, stamp_ns: i64, time_ns: i64, at_secs: f64, position: &PerJoint) {
        if self.states.len() == STATES {
            self.states.pop_front();
        }
        self.states.push_back((stamp_ns, time_ns));
        if let Some((command, told_ns)) = self.command
            && time_ns.saturating_sub(told_ns) <= COMMAND_NS
        {
            self.tracked(at_secs, &std::array::from_fn(|joint| command[joint] - position[joint]));
        }
    }

    /// How far each joint is behind [rad].
    pub fn tracked(&mut self, at_secs: f64, error: &PerJoint) {
        let mut most = 0.0_f64;
        for ((tally, largest), error) in self.tracking.iter_mut().zip(error) {
            tally.add(*error);
            *largest = largest.max(error.abs());
            most = most.max(error.abs());
        }
        self.found.tracking_trace.add(at_secs, most);
        self.worst.add(at_secs, most, || format!("a joint is {most:.3} rad from its command"));
    }

    /// Whether one of the last states has this stamp.
    pub fn knows(&self, stamp_ns: i64) -> bool {
        self.states.iter().rev().any(|(stamp, _)| *stamp == stamp_ns)
    }

    /// A command: its stamp, its receipt, its positions where it has all. The first one with a state's stamp answers it.
    pub fn command(&mut self, stamp_ns: i64, time_ns: i64, at_secs: f64, position: Option<PerJoint>) {
        self.command = position.map(|position| (position, time_ns)).or(self.command);
        let state = self.states.iter().rev().find(|(stamp, _)| *stamp == stamp_ns);
        if let (Some((_, received_ns)), true) = (state, self.answered_ns != Some(stamp_ns)) {
            self.answered_ns = Some(stamp_ns);
            self.latencies.add(*received_ns, time_ns);
            self.latency.add(at_secs, time_ns.saturating_sub(*received_ns) as f64 * 1e-9);
        }
    }

    /// The arm was placed elsewhere, or time was set back: the last command is void.
    pub fn void(&mut self) {
        self.command = None;
        self.states.clear();
    }

    /// A step of `version` while `newest` was published.
    pub fn lag(&mut self, at_secs: f64, version: u64, newest: u64) {
        let behind = newest.saturating_sub(version) as f64;
        self.lag.add(behind);
        self.found.lag_trace.add(at_secs, behind);
    }

    /// A step that was not the policy's own.
    pub fn interference(&mut self, filtered: bool, intervened: bool) {
        self.found.filtered += u64::from(filtered);
        self.found.intervened += u64::from(intervened);
    }

    /// What /diagnostics says.
    pub fn diagnostics(&mut self, at_secs: f64, array: &DiagnosticArray<'_>) {
        for status in &array.status {
            if (1..=2).contains(&status.level) {
                self.complain(at_secs, status.name, status.message, status.level == 2);
            }
            for entry in &status.values {
                match entry.key.strip_prefix("guard/") {
                    Some("state") => self.guard_state(at_secs, status.name, entry.value),
                    Some(reason) if entry.value.bytes().all(|digit| digit.is_ascii_digit()) => {
                        if let Ok(count) = entry.value.parse() {
                            self.guard_count(at_secs, status.name, reason, count);
                        }
                    }
                    _ => {}
                }
            }
            if !self.heard.contains(status.name) {
                self.heard.insert(status.name.to_owned());
            }
        }
    }

    fn complain(&mut self, at_secs: f64, name: &str, message: &str, error: bool) {
        let found = &mut self.found.complaints;
        let mut known = found.iter_mut();
        if let Some(known) = known.find(|known| (known.name.as_str(), known.message.as_str()) == (name, message)) {
            known.count += 1;
        } else if found.len() < MAX_KINDS {
            let (name, message) = (name.to_owned(), message.to_owned());
            found.push(Complaint { name, message, error, count: 1, at_secs });
        }
    }

    fn guard_state(&mut self, at_secs: f64, name: &str, state: &str) {
        let found = &mut self.found.guard_states;
        let what = format!("the guard of {name} is {state}");
        let before = found.iter().rev().find(|moment| moment.what.starts_with(&format!("the guard of {name} is ")));
        if found.len() < MAX_KINDS && before.is_none_or(|moment| moment.what != what) {
            found.push(Moment { at_secs, score: f64::from(u8::from(state == "stopped")), what });
        }
    }

    /// Counts only grow within a life of a node; what its first message in the bag has may be older than the bag.
    fn guard_count(&mut self, at_secs: f64, name: &str, reason: &str, count: u64) {
        let known = self.counts.insert((name.to_owned(), reason.to_owned()), count);
        let new = match known {
            Some(known) => count.saturating_sub(known),
            None if self.heard.contains(name) => count,
            None => 0,
        };
        if new == 0 {
            return;
        }
        let found = &mut self.found.interventions;
        match found.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += new,
            None => found.push(Intervention { reason: reason.to_owned(), count: new, at_secs }),
        }
    }

    /// What was found.
    pub fn finish(self) -> Health {
        let Self { mut found, latencies, latency, tracking, worst, lag, .. } = self;
        if let (Some(median), Some(p99), Some((longest, _))) =
            (latencies.quantile_ns(0.5), latencies.quantile_ns(0.99), latencies.longest())
        {
            let high = latency.columns().max_by(|(_, a), (_, b)| a.high.total_cmp(&b.high));
            found.latency = Some(Latency {
                commands: latencies.count(),
                median_secs: median * 1e-9,
                p99_secs: p99 * 1e-9,
                longest_secs: longest as f64 * 1e-9,
                longest_at_secs: high.map_or(0.0, |(at_secs, _)| at_secs),
                trace: latency,
            });
        }
        let tracked =
            tracking.iter().map(|(tally, largest)| Some(Tracking { error: tally.mean()?, largest_rad: *largest }));
        found.tracking = tracked.collect::<Option<_>>().unwrap_or_default();
        found.worst_tracking = worst.finish();
        found.weights_lag = lag.mean();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bag::message::{DiagnosticStatus, Header, KeyValue};

    fn watch() -> Watch {
        Watch::new(Axis { secs: 10.0 })
    }

    #[test]
    fn latency_runs_from_a_state_to_the_first_command_with_its_stamp() {
        let mut watch = watch();
        for tick in 0..100 {
            let (stamp, received) = (tick * 10_000_000, 5_000_000 + tick * 10_000_000);
            watch.state(stamp, received, 0.01 * tick as f64, &[0.0; ARM_DOF]);
            let late = if tick == 50 { 8_000_000 } else { 2_000_000 };
            watch.command(stamp, received + late, 0.01 * tick as f64, None);
            watch.command(stamp, received + 9_000_000, 0.01 * tick as f64, None); // the same answer again
        }
        watch.command(77, 0, 0.0, None); // answers nothing
        let latency = watch.finish().latency.unwrap();
        assert_eq!(latency.commands, 100);
        assert!((latency.median_secs - 0.002).abs() < 5e-5 && (latency.longest_secs - 0.008).abs() < 1e-12);
        assert!((latency.longest_at_secs - 0.5).abs() < 0.02);
    }

    #[test]
    fn tracking_is_command_less_measurement_by_joint() {
        let mut watch = watch();
        watch.state(0, 0, 0.0, &[9.0; ARM_DOF]); // nothing was commanded yet
        watch.command(0, 0, 0.0, Some([1.0; ARM_DOF]));
        let mut position = [1.0; ARM_DOF];
        position[3] = 0.5;
        watch.state(1, 1, 5.0, &position);
        watch.void();
        watch.state(2, 2, 6.0, &[9.0; ARM_DOF]);
        let found = watch.finish();
        assert_eq!(
            (found.tracking[3].largest_rad, found.tracking[3].error.mean, found.tracking[0].largest_rad),
            (0.5, 0.5, 0.0)
        );
        assert_eq!((found.worst_tracking[0].at_secs, found.worst_tracking[0].score), (5.0, 0.5));
    }

    #[test]
    fn a_command_of_long_ago_is_no_measure_of_tracking() {
        let mut watch = watch();
        watch.command(0, 0, 0.0, Some([0.5; ARM_DOF]));
        watch.state(1, 1_000_000_000, 1.0, &[0.4; ARM_DOF]);
        watch.state(2, 1_000_000_001, 1.0, &[9.0; ARM_DOF]);
        watch.state(3, 60_000_000_000, 60.0, &[9.0; ARM_DOF]);
        let found = watch.finish();
        assert_eq!(found.tracking[0].error.count, 1);
        assert!((found.tracking[0].largest_rad - 0.1).abs() < 1e-12);
    }

    #[test]
    fn interventions_are_what_the_guards_counts_grew_by() {
        let mut watch = watch();
        let mut say =
            |at_secs: f64, state: &'static str, leash: &'static str, more: &[(&'static str, &'static str)]| {
                let values = [("guard/state", state), ("guard/scale", "1.000"), ("guard/leash", leash)];
                let values = values.iter().chain(more).map(|&(key, value)| KeyValue { key, value }).collect();
                let level = u8::from(state == "stopped") * 2;
                let status = vec![DiagnosticStatus { level, name: "/policy", message: "why", values }];
                watch.diagnostics(at_secs, &DiagnosticArray { header: Header::default(), status });
            };
        say(1.0, "armed", "3", &[]);
        say(2.0, "armed", "5", &[]);
        say(3.0, "stopped", "6", &[("guard/stale_state", "1")]);
        let found = watch.finish();
        let counts: Vec<_> =
            found.interventions.iter().map(|one| (one.reason.as_str(), one.count, one.at_secs)).collect();
        assert_eq!(counts, [("leash", 3, 2.0), ("stale_state", 1, 3.0)]);
        let states: Vec<_> = found.guard_states.iter().map(|moment| (moment.at_secs, moment.score)).collect();
        assert_eq!(states, [(1.0, 0.0), (3.0, 1.0)]);
        assert_eq!((found.complaints[0].count, found.complaints[0].error, found.complaints[0].at_secs), (1, true, 3.0));
    }
}
