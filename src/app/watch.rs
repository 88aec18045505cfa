//! Follows a training by its metrics: what the progress line shows.

use crate::error::Result;
use crate::report::{Progress, Row, Status, Tail, names, stats::Rate};
use std::io::{IsTerminal as _, Stderr};
use std::path::Path;
use std::time::Instant;

/// Reads the metrics of a run as they grow from here on and shows them in one line.
pub(super) struct Watch {
    metrics: Tail,
    options: usize,
    start: Instant,
    rate: Rate,
    steps_per_sec: f64,
    first_update: Option<Instant>,
    newest: Option<Row>,
    progress: Progress<Stderr>,
    /// Said behind the line until the first update.
    note: String,
    /// Said behind the line while it lasts.
    trouble: String,
}

impl Watch {
    /// Of a run folder and K options.
    pub(super) fn new(folder: &Path, options: usize, note: &str) -> Self {
        let err = std::io::stderr();
        let terminal = err.is_terminal();
        Self {
            metrics: Tail::new(folder),
            options,
            start: Instant::now(),
            rate: Rate::new(10.0),
            steps_per_sec: 0.0,
            first_update: None,
            newest: None,
            progress: Progress::new(err, terminal),
            note: note.into(),
            trouble: String::new(),
        }
    }

    /// What a person should know for now, e.g. who is silent; empty: nothing.
    pub(super) fn trouble(&mut self, trouble: String) {
        self.trouble = trouble;
    }

    /// Shows the line, if it is time to.
    pub(super) fn show(&mut self) -> Result<()> {
        let now = self.start.elapsed().as_secs_f64();
        if let Some(row) = self.metrics.newest()? {
            self.first_update.get_or_insert_with(Instant::now);
            self.steps_per_sec = self.rate.update(now, row.clock.env_steps);
            self.newest = Some(row);
        }
        let status = self.status();
        let _closed = self.progress.update(now, &status);
        Ok(())
    }

    /// Wall time since the first update was seen.
    pub(super) fn trained_secs(&self) -> f64 {
        self.first_update.map_or(0.0, |first| first.elapsed().as_secs_f64())
    }

    /// Shows the last line.
    pub(super) fn finish(self) {
        let (now, status) = (self.start.elapsed().as_secs_f64(), self.status());
        let _closed = self.progress.finish(now, &status);
    }

    fn status(&self) -> Status {
        let value = |name: &str| self.newest.as_ref().and_then(|row| row.values.get(name).copied());
        let clock = self.newest.as_ref().map(|row| row.clock);
        let shares = (0..self.options).filter_map(|option| value(&format!("options/{option}/share"))).collect();
        let losses = [
            ("policy", "losses/policy_loss"),
            ("value", "losses/value_loss"),
            ("validation", "validation/policy_loss"),
        ];
        Status {
            wall_secs: clock.map_or(0.0, |clock| clock.wall_secs),
            steps_per_sec: self.steps_per_sec,
            env_steps: clock.map_or(0, |clock| clock.env_steps),
            updates: clock.map_or(0, |clock| clock.updates),
            success: value(names::SUCCESS),
            success_strict: value(names::SUCCESS_STRICT),
            episode_return: value(names::RETURN),
            option_shares: shares,
            lag: value("lag/max").filter(|&lag| 0.0 < lag).map(|lag| lag as u64),
            losses: losses.iter().filter_map(|(short, name)| Some(((*short).to_owned(), value(name)?))).collect(),
            note: match (self.trouble.is_empty(), &self.newest) {
                (false, _) => self.trouble.clone(),
                (true, None) => self.note.clone(),
                (true, Some(_)) => String::new(),
            },
        }
    }
}
