//! What a person sees of an [`Analysis`]: a page that needs nothing but itself, and a table.

mod html;
mod page;
mod plots;
mod table;

pub use page::page;
pub use table::table;

use crate::analysis::options::Use;
use crate::analysis::trace::Mean;
use crate::analysis::{Analysis, PolicyName};

/// A number with three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.001.. => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

fn mean(mean: Option<Mean>) -> String {
    mean.map_or("-".into(), |mean| format!("{} ± {}", short(mean.mean), short(mean.margin)))
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".into(), short)
}

fn millis(secs: f64) -> String {
    format!("{} ms", short(1e3 * secs))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn policy(name: &PolicyName) -> String {
    let (life, version) = name.version;
    let run: String = name.run.chars().take(8).collect();
    format!("version {life}.{version} of run {run}, from {}", name.from)
}

/// An option: number, ticks, share, runs, median and mean length, ends by d_max, β.
fn use_of(option: &Use) -> [String; 8] {
    [
        option.option.to_string(),
        option.steps.to_string(),
        percent(option.share),
        option.runs.to_string(),
        option.median_duration.map_or("-".into(), |steps| steps.to_string()),
        or_dash(option.mean_duration),
        option.forced.to_string(),
        or_dash(option.termination_prob),
    ]
}

/// Rows of words and values that both page and terminal begin with.
fn head(found: &Analysis) -> Vec<(&'static str, String)> {
    let survey = &found.survey;
    let mut rows = vec![
        ("bag", survey.path.display().to_string()),
        ("length", format!("{:.2} s, {} messages", survey.duration_secs, survey.messages)),
        ("analysed", found.source.clone()),
    ];
    rows.extend(found.present.as_ref().map(|name| ("policy", policy(name))));
    rows.extend(found.against.as_ref().map(|name| ("compared with", policy(name))));
    rows
}
