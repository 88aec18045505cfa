//! What the metrics of a training mean: what was seen, with the number, and what to change, with the key. Rows in,
//! verdicts out; nothing here reads a clock or a file.

mod flow;
mod learning;
mod options;
#[cfg(test)]
mod tests;

pub use flow::{LOG_PROB_CAUSES, LOG_PROB_LIMIT};

use super::{Row, calm, stats};
use crate::config::{Config, UpdateMode};
use comfy_table::{CellAlignment, ContentArrangement};
use serde::Serialize;

/// Width of the table [characters].
const WIDTH: u16 = 110;
/// Rows that are "lately": the last fifth, and at least these.
const RECENT: usize = 5;

/// How it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Good,
    /// Works, but somebody should look.
    Look,
    /// Does not work.
    Bad,
}

impl Level {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Look => "look",
            Self::Bad => "bad",
        }
    }
}

/// One thing that the metrics say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What it is about, in a word or two.
    pub about: &'static str,
    /// How it goes.
    pub level: Level,
    /// What was seen, in a sentence with its number.
    pub seen: String,
    /// What to change, with keys and their present values; empty: nothing.
    pub change: String,
}

/// Judges a training by its records, oldest first. The first verdict is on learning and is always there; the others speak
/// where something stands out.
pub fn verdicts(rows: &[Row], config: &Config) -> Vec<Verdict> {
    let seen = Seen { rows, config };
    let mut all = vec![learning::learning(&seen)];
    all.extend(options::verdicts(&seen));
    all.extend(flow::verdicts(&seen));
    all
}

/// For a terminal.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut table = calm(&["training", "", "seen, and what to change"]);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for Verdict { about, level, seen, change } in verdicts {
        let change = if change.is_empty() { String::new() } else { format!("\n→ {change}") };
        table.add_row([(*about).to_owned(), level.name().to_owned(), format!("{seen}{change}")]);
    }
    table.trim_fmt()
}

/// The rows and what they were trained with.
struct Seen<'a> {
    rows: &'a [Row],
    config: &'a Config,
}

impl Seen<'_> {
    /// The last fifth of the rows.
    fn recent(&self) -> &[Row] {
        let count = (self.rows.len() / 5).max(RECENT).min(self.rows.len());
        &self.rows[self.rows.len() - count..]
    }

    /// Mean of what the recent rows have of a metric.
    fn mean(&self, name: &str) -> Option<f64> {
        stats::mean(&values(self.recent(), name))
    }

    /// The newest value of a metric.
    fn newest(&self, name: &str) -> Option<f64> {
        self.rows.iter().rev().find_map(|row| row.values.get(name).copied())
    }

    /// How much a counter grew over the recent rows; a counter of another life starts at 0.
    fn grown(&self, name: &str) -> f64 {
        let before = self.rows.len() - self.recent().len();
        let counts = values(&self.rows[before.saturating_sub(1)..], name);
        counts.windows(2).map(|pair| if pair[1] < pair[0] { pair[1] } else { pair[1] - pair[0] }).sum::<f64>()
            + if before == 0 { counts.first().copied().unwrap_or(0.0) } else { 0.0 }
    }

    /// Whether the task was still to be learned lately.
    fn unsolved(&self) -> bool {
        self.mean(super::names::SUCCESS).is_none_or(|success| success < 0.9)
    }

    fn off_policy(&self) -> bool {
        self.config.algo.off_policy()
    }

    fn asynchronous(&self) -> bool {
        self.config.learner.update_mode == UpdateMode::Async
    }
}

fn values(rows: &[Row], name: &str) -> Vec<f64> {
    rows.iter().filter_map(|row| row.values.get(name).copied()).collect()
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if 0.0 < percent && percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.0} %") }
}

/// `option 2`, `options 0 and 3`.
fn name_options(options: &[usize]) -> String {
    let names: Vec<String> = options.iter().map(usize::to_string).collect();
    match names.as_slice() {
        [one] => format!("option {one}"),
        [first @ .., last] => format!("options {} and {last}", first.join(", ")),
        [] => "no option".into(),
    }
}
