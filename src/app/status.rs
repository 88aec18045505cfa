//! `handoff status`: what the metrics of a run say, while it goes on and afterwards.

use super::cli;
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::report::{
    Row, read,
    verdict::{Verdict, table, verdicts},
};
use crate::run::RunDir;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where runs are, unless told otherwise.
const RUNS: &str = "runs";
const METRICS: &str = "metrics.jsonl";

/// A run as it stands.
struct Standing {
    folder: PathBuf,
    rows: Vec<Row>,
    /// Of the last record [s]; none without one.
    age_secs: Option<f64>,
    verdicts: Vec<Verdict>,
}

/// The words of `handoff status`.
pub fn status(arguments: &cli::Status) -> Result<String> {
    let folder = match &arguments.run {
        Some(run) => run.clone(),
        None => newest(Path::new(RUNS))?,
    };
    let standing = Standing::of(&folder)?;
    Ok(if arguments.json { standing.to_json().to_string() } else { standing.words() })
}

/// The verdicts of a run alone, for a terminal.
pub fn judged(folder: &Path) -> Result<String> {
    Ok(table(&Standing::of(folder)?.verdicts))
}

impl Standing {
    fn of(folder: &Path) -> Result<Self> {
        let config = config_of(&RunDir::open(folder)?)?;
        let metrics = folder.join(METRICS);
        let rows = if metrics.exists() { read(&metrics)? } else { Vec::new() };
        let written = std::fs::metadata(&metrics).and_then(|found| found.modified()).ok();
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        Ok(Self {
            folder: folder.to_owned(),
            age_secs: age.map(|age| age.as_secs_f64()).filter(|_| !rows.is_empty()),
            verdicts: verdicts(&rows, &config),
            rows,
        })
    }

    fn words(&self) -> String {
        let folder = self.folder.display();
        let head = match (self.rows.last(), self.age_secs) {
            (Some(last), age) => format!(
                "{folder}: {} updates, {} steps, {} trained; the last record is {} old",
                last.clock.updates,
                last.clock.env_steps,
                duration(last.clock.wall_secs),
                duration(age.unwrap_or(0.0))
            ),
            (None, _) => format!("{folder}: no update yet"),
        };
        format!("{head}\n\n{}", table(&self.verdicts))
    }

    fn to_json(&self) -> serde_json::Value {
        let clock = self.rows.last().map(|row| row.clock);
        json!({
            "run": self.folder,
            "updates": clock.map_or(0, |clock| clock.updates),
            "env_steps": clock.map_or(0, |clock| clock.env_steps),
            "wall_secs": clock.map_or(0.0, |clock| clock.wall_secs),
            "age_secs": self.age_secs,
            "verdicts": self.verdicts,
        })
    }
}

fn config_of(run: &RunDir) -> Result<Config> {
    let text = run.config_yaml()?;
    let parameters = config::parameters_of(&text).map(serde_json::Value::Object);
    parameters
        .and_then(config::from_parameters)
        .map_err(|error| Error::invalid(format!("{}/config.yaml: {error}", run.path().display())))
}

/// The run below `parent` that recorded last; one that recorded nothing yet counts by its folder.
fn newest(parent: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let runs = entries.map(|entry| entry.path()).filter(|path| RunDir::open(path).is_ok());
    let changed = |path: &PathBuf| {
        let found = std::fs::metadata(path.join(METRICS)).or_else(|_| std::fs::metadata(path));
        found.and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    runs.max_by_key(changed).ok_or_else(|| {
        Error::invalid(format!("there is no run below {}/: name its folder, or train first", parent.display()))
    })
}

/// `12 s`, `3 min`, `2.5 h`.
fn duration(secs: f64) -> String {
    match secs {
        ..90.0 => format!("{secs:.0} s"),
        ..5400.0 => format!("{:.0} min", secs / 60.0),
        _ => format!("{:.1} h", secs / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Clock, Recorder};

    fn run(path: &Path, updates: u64) {
        RunDir::create_at(path, &config::to_yaml(&Config::default()).unwrap()).unwrap();
        if 0 < updates {
            let mut recorder = Recorder::open(path, 1, 0).unwrap();
            for update in 1..=updates {
                let clock = Clock { updates: update, env_steps: 100 * update, wall_secs: 30.0 * update as f64 };
                recorder.record(clock, &[("charts/episodic_return", update as f64)]).unwrap();
            }
        }
    }

    fn told(run: &Path, json: bool) -> Result<String> {
        status(&cli::Status { run: Some(run.to_owned()), json })
    }

    #[test]
    fn a_run_is_judged_as_it_stands_with_a_line_half_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        run(&path, 20);
        let metrics = path.join(METRICS);
        let torn = std::fs::read_to_string(&metrics).unwrap() + "{\"updates\":21,";
        std::fs::write(&metrics, torn).unwrap();
        let words = told(&path, false).unwrap();
        assert!(words.contains("a: 20 updates, 2000 steps, 10 min trained; the last record is 0 s old"), "{words}");
        assert!(words.contains("Learning: the return rose from 2.50 to 18.50."), "{words}");
        let json: serde_json::Value = serde_json::from_str(&told(&path, true).unwrap()).unwrap();
        assert_eq!((&json["updates"], &json["verdicts"][0]["level"]), (&json!(20), &json!("good")));
    }

    #[test]
    fn a_run_without_a_record_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        run(&path, 0);
        let words = told(&path, false).unwrap();
        assert!(words.contains("no update yet") && words.contains("Too early to say"), "{words}");
    }

    #[test]
    fn the_newest_run_is_the_one_that_recorded_last() {
        let folder = tempfile::tempdir().unwrap();
        let sentence = newest(folder.path()).unwrap_err().to_string();
        assert!(sentence.contains("no run below"), "{sentence}");
        for name in ["a", "b", "c"] {
            run(&folder.path().join(name), 1);
        }
        std::fs::create_dir(folder.path().join("d")).unwrap();
        let now = SystemTime::now();
        for (name, age_secs) in [("a", 30), ("b", 10), ("c", 20)] {
            let file = std::fs::File::options().append(true).open(folder.path().join(name).join(METRICS)).unwrap();
            file.set_modified(now - std::time::Duration::from_secs(age_secs)).unwrap();
        }
        assert_eq!(newest(folder.path()).unwrap(), folder.path().join("b"));
    }

    #[test]
    fn what_is_no_run_is_refused_as_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(told(&folder.path().join("none"), false), Err(Error::Invalid(_))));
        assert!(matches!(told(folder.path(), false), Err(Error::Invalid(_))));
        let path = folder.path().join("a");
        run(&path, 1);
        std::fs::write(path.join(METRICS), "{\"updates\":1}\n").unwrap();
        assert!(told(&path, false).unwrap_err().to_string().contains("metrics.jsonl:1: this is no record"));
        std::fs::write(path.join("config.yaml"), "/**: {ros__parameters: {sed: 5}}").unwrap();
        assert!(told(&path, false).unwrap_err().to_string().contains("config.yaml"));
    }
}
