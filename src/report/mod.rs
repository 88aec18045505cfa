//! What a person sees: metrics, verdicts, statistics, evaluation, progress, learning curves, bags, logs.

#[cfg(feature = "torch")]
pub mod analysis;
pub mod audit;
pub mod bag;
mod curve;
mod evaluation;
mod events;
mod latency;
pub mod logs;
mod metrics;
mod paired;
mod progress;
mod speed;
pub mod stats;
pub mod verdict;

pub use curve::{Curve, draw};
pub use evaluation::{Evaluation, OptionUse};
pub use latency::{Answers, Latency, answers, latencies};
pub use metrics::{Clock, Recorder, Row, Tail, names, read};
pub use paired::{Pairs, Rehearsal};
pub use progress::{Progress, Status, line};
pub use speed::{Speed, busy, speeds, times};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// A table with one line, numbers to the right.
fn calm(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'))).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
