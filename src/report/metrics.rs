//! One record an update: a JSON line in `metrics.jsonl`, and scalars for TensorBoard (`tensorboard --logdir runs`).

use super::events;
use crate::error::{Error, Result};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the file in the run folder.
const METRICS: &str = "metrics.jsonl";

/// Scalar names that several rooms must agree on; those of `CleanRL` where it has one.
pub mod names {
    /// Mean undiscounted return of the last episodes.
    pub const RETURN: &str = "charts/episodic_return";
    /// Standard deviation of the return over the last episodes.
    pub const RETURN_STD: &str = "charts/episodic_return_std";
    /// Mean length of the last episodes [control ticks].
    pub const LENGTH: &str = "charts/episodic_length";
    /// Share of the last episodes that ended in success.
    pub const SUCCESS: &str = "charts/success";
    /// Share of the last episodes that ended in the task's stricter success.
    pub const SUCCESS_STRICT: &str = "charts/success_strict";
    /// Environment steps a second.
    pub const STEPS_PER_SEC: &str = "charts/SPS";
    /// Largest difference of a recorded log-probability from the learner's own for that version.
    pub const LOG_PROB_ERROR: &str = "check/log_prob_error";
}

/// Where a record stands on each of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Updates made.
    pub updates: u64,
    /// Transitions learned from; TensorBoard's step.
    pub env_steps: u64,
    /// Time trained, stops left out [s].
    pub wall_secs: f64,
}

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it stands.
    pub clock: Clock,
    /// Scalars by name, `life` among them; those that were not finite are left out.
    pub values: BTreeMap<String, f64>,
}

/// Writes records into a run folder.
#[derive(Debug)]
pub struct Recorder {
    metrics: File,
    metrics_path: PathBuf,
    events: File,
    events_path: PathBuf,
    life: u32,
}

impl Recorder {
    /// Opens `metrics.jsonl` at its end (a line that a kill cut is dropped) and a new event file. `env_steps` is the
    /// last record's that counts: where the checkpoint stands from which the run goes on, 0 for a new run. `life`: of the
    /// learner that writes; each line holds it.
    pub fn open(folder: &Path, life: u32, env_steps: u64) -> Result<Self> {
        let now = SystemTime::now();
        let metrics_path = folder.join(METRICS);
        let metrics = open_at_end(&metrics_path).map_err(Error::of_run(&metrics_path))?;
        // TensorBoard reads the files in the order of their names: a clock that was set back must not change it.
        let before = event_files(folder).max().map_or(0, |nanos| nanos + 1);
        let nanos = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()).max(before);
        let events_path = folder.join(format!("events.out.tfevents.{nanos}.{}", std::process::id()));
        let mut events = File::create_new(&events_path).map_err(Error::of_run(&events_path))?;
        events.write_all(&events::header(now, env_steps.saturating_add(1))).map_err(Error::of_run(&events_path))?;
        Ok(Self { metrics, metrics_path, events, events_path, life })
    }

    /// Writes one record; both files are complete for their readers when this returns. `null` stands for a value that is
    /// not finite. Refuses a name twice, and the names of the axes.
    pub fn record<N: AsRef<str>>(&mut self, clock: Clock, values: &[(N, f64)]) -> Result<()> {
        let mut seen: Vec<&str> = vec!["updates", "env_steps", "wall_secs", "life"];
        seen.extend(values.iter().map(|(name, _)| name.as_ref()));
        seen.sort_unstable();
        if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("a record holds `{}` twice", pair[0])));
        }
        let mut line = serde_json::to_vec(&Line { clock, life: self.life, values })
            .map_err(|error| Error::invalid(format!("a record cannot be written as JSON: {error}")))?;
        line.push(b'\n');
        self.metrics.write_all(&line).map_err(Error::of_run(&self.metrics_path))?;
        let values = values.iter().map(|(name, value)| (name.as_ref(), *value));
        let event = events::scalars(SystemTime::now(), clock.env_steps, values);
        self.events.write_all(&event).map_err(Error::of_run(&self.events_path))
    }
}

/// The times in the names of the event files of a run folder [ns since 1970].
fn event_files(folder: &Path) -> impl Iterator<Item = u128> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("events.out.tfevents.")?.split('.').next()?.parse().ok()
    })
}

fn open_at_end(path: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    file.set_len(whole(&text).len() as u64)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

struct Line<'a, N> {
    clock: Clock,
    life: u32,
    values: &'a [(N, f64)],
}

impl<N: AsRef<str>> Serialize for Line<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4 + self.values.len()))?;
        map.serialize_entry("updates", &self.clock.updates)?;
        map.serialize_entry("env_steps", &self.clock.env_steps)?;
        map.serialize_entry("wall_secs", &self.clock.wall_secs)?;
        map.serialize_entry("life", &self.life)?;
        for (name, value) in self.values {
            map.serialize_entry(name.as_ref(), value)?;
        }
        map.end()
    }
}

/// Reads a `metrics.jsonl`, or that of a run folder. Of what a killed life wrote after the point from which the next one
/// went on, the later life's rows stay. A last line without its end is left out.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    let path = if path.is_dir() { path.join(METRICS) } else { path.to_owned() };
    let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
    let whole = text.rfind('\n').map_or("", |last| &text[..last]);
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in whole.lines().enumerate() {
        let row = parse(line).ok_or_else(|| {
            Error::invalid(format!("{}:{}: this is no record of metrics", path.display(), number + 1))
        })?;
        while rows.last().is_some_and(|last| row.clock.updates <= last.clock.updates) {
            rows.pop();
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Follows a `metrics.jsonl` from where it ends now.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// Bytes up to the end of the last line that was read, or was there before.
    read: u64,
}

impl Tail {
    /// That of a run folder. What is in it now is left out; it may not be there yet.
    pub fn new(folder: &Path) -> Self {
        let path = folder.join(METRICS);
        let read = fs::read(&path).map_or(0, |bytes| whole(&bytes).len()) as u64;
        Self { path, read }
    }

    /// The last whole record of those that were added since the last call; reads no more than was added.
    pub fn newest(&mut self) -> Result<Option<Row>> {
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        if length <= self.read {
            return Ok(None);
        }
        let mut added = Vec::new();
        let mut read = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut added)
        };
        read().map_err(Error::io(&self.path))?;
        let lines = whole(&added);
        self.read += lines.len() as u64;
        let Some(last) = String::from_utf8_lossy(lines).lines().last().map(parse) else { return Ok(None) };
        let nonsense = || Error::invalid(format!("{}: its last line is no record of metrics", self.path.display()));
        last.ok_or_else(nonsense).map(Some)
    }
}

/// The lines that have their end.
fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)]
}

fn parse(line: &str) -> Option<Row> {
    let mut map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).ok()?;
    let clock = Clock {
        updates: map.remove("updates")?.as_u64()?,
        env_steps: map.remove("env_steps")?.as_u64()?,
        wall_secs: map.remove("wall_secs")?.as_f64()?,
    };
    let values = map.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect();
    Some(Row { clock, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn clock(updates: u64) -> Clock {
        Clock { updates, env_steps: updates * 2048, wall_secs: updates as f64 / 4.0 }
    }

    #[test]
    fn a_record_is_one_line_with_the_axes_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::open(folder.path(), 3, 0).unwrap();
        recorder.record(clock(1), &[("losses/value_loss", 0.5), ("charts/success", f64::NAN)]).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap(),
            "{\"updates\":1,\"env_steps\":2048,\"wall_secs\":0.25,\"life\":3,\"losses/value_loss\":0.5,\"charts/success\":null}\n"
        );
        let rows = read(folder.path()).unwrap();
        assert_eq!(
            rows,
            [Row { clock: clock(1), values: [("life".into(), 3.0), ("losses/value_loss".into(), 0.5)].into() }]
        );
    }

    #[test]
    fn a_name_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::open(folder.path(), 1, 0).unwrap();
        assert!(recorder.record(clock(1), &[("a", 0.0), ("b", 1.0), ("a", 2.0)]).is_err());
        let told = recorder.record(clock(1), &[("env_steps", 0.0)]).unwrap_err().to_string();
        assert_eq!(told, "a record holds `env_steps` twice");
        assert!(read(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn a_resumed_run_supersedes_what_it_repeats_and_drops_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |updates: std::ops::Range<u64>, value: f64| {
            let mut recorder = Recorder::open(folder.path(), 2, clock(updates.start - 1).env_steps).unwrap();
            updates.for_each(|update| recorder.record(clock(update), &[("v", value)]).unwrap());
        };
        write(1..5, 1.0);
        let path = folder.path().join("metrics.jsonl");
        let torn = fs::read_to_string(&path).unwrap() + "{\"updates\":5,\"env_st";
        fs::write(&path, torn).unwrap();
        assert_eq!(read(&path).unwrap().len(), 4);
        write(3..6, 2.0);
        let seen: Vec<_> = read(&path).unwrap().iter().map(|row| (row.clock.updates, row.values["v"])).collect();
        assert_eq!(seen, [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0), (5, 2.0)]);
    }

    #[test]
    fn what_follows_a_run_reads_what_was_added_alone_and_whole_lines_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(METRICS);
        let mut absent = Tail::new(folder.path());
        assert_eq!(absent.newest().unwrap(), None);
        let line = |update: u64| format!("{{\"updates\":{update},\"env_steps\":{},\"wall_secs\":0}}\n", 2048 * update);
        // Another life's, the last of them torn by its kill: none of it is parsed.
        fs::write(&path, "no record\n{\"upd").unwrap();
        let mut tail = Tail::new(folder.path());
        assert_eq!(tail.newest().unwrap(), None, "old rows say nothing");
        Recorder::open(folder.path(), 2, 0).unwrap();
        let append =
            |text: &str| OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        let mut newest = |text: &str| {
            append(text);
            tail.newest().unwrap().map(|row| row.clock.updates)
        };
        assert_eq!(newest(&line(1)), Some(1));
        assert_eq!(newest(""), None);
        assert_eq!(newest(&(line(2) + &line(3))), Some(3));
        let (head, rest) = (&line(4)[..9], &line(4)[9..]);
        assert_eq!(newest(head), None);
        assert_eq!(newest(rest), Some(4));
        // It is not read again: what stood there may be anything.
        let length = fs::metadata(&path).unwrap().len() as usize;
        fs::write(&path, "x".repeat(length) + &line(5)).unwrap();
        assert_eq!(newest(""), Some(5));
        append("{}\n");
        assert!(
            tail.newest().unwrap_err().to_string().ends_with("metrics.jsonl: its last line is no record of metrics")
        );
    }

    #[test]
    fn a_full_disk_is_told_in_a_sentence_that_ends_the_training() {
        let folder = tempfile::tempdir().unwrap();
        let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        for metrics_full in [true, false] {
            let mut recorder = Recorder::open(folder.path(), 1, 0).unwrap();
            *(if metrics_full { &mut recorder.metrics } else { &mut recorder.events }) = full();
            let error = recorder.record(clock(1), &[("a", 0.0)]).unwrap_err();
            let name = if metrics_full { "metrics.jsonl" } else { "events.out" };
            assert!(
                matches!(&error, Error::Invalid(told) if told.contains("no space left") && told.contains(name)),
                "{error}"
            );
        }
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_change_the_order_of_the_event_files() {
        let folder = tempfile::tempdir().unwrap();
        let in_an_hour = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() + 3_600_000_000_000;
        fs::write(folder.path().join(format!("events.out.tfevents.{in_an_hour}.7")), "").unwrap();
        Recorder::open(folder.path(), 2, 0).unwrap();
        let mut found: Vec<u128> = event_files(folder.path()).collect();
        found.sort_unstable();
        assert_eq!(found, [in_an_hour, in_an_hour + 1]);
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "{\"updates\":1,\"env_steps\":1,\"wall_secs\":1}\n{}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("metrics.jsonl:2: this is no record of metrics"));
    }

    #[test]
    fn tensorboard_itself_reads_the_events_back() {
        const READER: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0}, purge_orphaned_data=True)
events.Reload()
tags = events.Tags()['scalars']
print(json.dumps({tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in tags}))
";
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::open(folder.path(), 1, 0).unwrap();
        for update in 1..=3 {
            let values = [(names::RETURN, -1.5 * update as f64), ("losses/entropy", 0.0)];
            recorder.record(clock(update), &values).unwrap();
        }
        // killed after update 3, resumed after update 1
        let mut recorder = Recorder::open(folder.path(), 2, clock(1).env_steps).unwrap();
        recorder.record(clock(2), &[(names::RETURN, 7.0), ("losses/entropy", 0.25)]).unwrap();

        let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
        let output = Command::new(&python).arg("-c").arg(READER).arg(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "this test needs TensorBoard's reader: `{python} -m pip install tensorboard`, or HANDOFF_PYTHON naming a \
             Python that has it; it said:\n{stderr}"
        );
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = serde_json::json!({
            "charts/episodic_return": [[2048, -1.5], [4096, 7.0]],
            "losses/entropy": [[2048, 0.0], [4096, 0.25]],
        });
        assert_eq!(read, expected, "{stderr}");
    }
}
