//! What a person sees of a bag.

use super::calm;
use crate::bag::{Purpose, Survey, TopicSurvey, Verdict};
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// Damages that are listed; all are counted.
const MAX_DAMAGES: usize = 10;

/// For a terminal: the bag, its topics, its policies, and what is wrong with it.
pub fn survey(survey: &Survey) -> String {
    let mut text = head(survey);
    let mut topics = calm(&["topic", "type", "messages", "rate", "longest gap", "offered"]);
    for topic in &survey.topics {
        topics.add_row([
            topic.name.clone(),
            topic.type_name.clone(),
            topic.messages.to_string(),
            topic.rate_hz.map_or("-".into(), |rate| format!("{rate:.2} Hz")),
            gap(topic),
            offers(topic),
        ]);
    }
    for column in [1, 5] {
        if let Some(column) = topics.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    let _ = write!(text, "{topics}");
    if !survey.weights.is_empty() {
        let mut weights = calm(&["weights", "run", "contract", "versions", "messages", "refused"]);
        for found in &survey.weights {
            weights.add_row([
                found.topic.clone(),
                found.run.clone(),
                found.contract.chars().take(8).collect(),
                format!("{}.{} to {}.{}", found.first.0, found.first.1, found.last.0, found.last.1),
                found.messages.to_string(),
                found.refused.to_string(),
            ]);
        }
        let _ = write!(text, "\n\n{weights}");
    }
    for line in notes(survey) {
        let _ = write!(text, "\n{line}");
    }
    text
}

/// For a terminal: fit or not, and why.
pub fn verdict(verdict: &Verdict) -> String {
    let mut text = String::new();
    for (purpose, name) in [(Purpose::Analysis, "analysis"), (Purpose::Learning, "learning")] {
        let fit = if verdict.fit(purpose) { "fit" } else { "not fit" };
        let _ = writeln!(text, "{fit} for {name}");
        for finding in verdict.findings.iter().filter(|finding| finding.purpose == purpose) {
            let _ = writeln!(text, "  {} {}", if finding.fit { "✓" } else { "✗" }, finding.sentence);
        }
    }
    text.trim_end().to_owned()
}

/// What was lost, a line each.
pub fn damage(survey: &Survey) -> Vec<String> {
    let mut lines: Vec<String> = survey.damage.iter().take(MAX_DAMAGES).map(ToString::to_string).collect();
    if let Some(more) = survey.damage.len().checked_sub(MAX_DAMAGES).filter(|&more| 0 < more) {
        lines.push(format!("... and {more} more places"));
    }
    if survey.damaged() {
        let messages = survey.lost_messages.map_or("an unknown number of".into(), |messages| messages.to_string());
        lines.push(format!("lost in all: {messages} messages, {} bytes", survey.lost_bytes));
    }
    lines
}

fn head(survey: &Survey) -> String {
    let storages: Vec<&str> = survey.storages.iter().copied().collect();
    let storages = if storages.is_empty() { "no file".to_owned() } else { storages.join(" and ") };
    let mut head = format!("{}: {storages}", survey.path.display());
    if 1 < survey.files {
        let _ = write!(head, ", {} files", survey.files);
    }
    if let Some(version) = survey.metadata_version {
        let _ = write!(head, ", metadata {version}");
    }
    if let Some(distro) = &survey.ros_distro {
        let _ = write!(head, ", {distro}");
    }
    let _ = write!(head, "\n{} messages, {}, {:.3} s", survey.messages, size(survey.bytes), survey.duration_secs);
    if let Some(start) = survey.start_ns {
        let _ = write!(head, " from {}.{:09}", start.div_euclid(1_000_000_000), start.rem_euclid(1_000_000_000));
    }
    head + "\n\n"
}

fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

fn gap(topic: &TopicSurvey) -> String {
    match (topic.gaps, topic.longest_interval_secs, topic.longest_interval_at_secs) {
        (1.., Some(longest), Some(at)) => format!("{longest:.3} s at {at:.1} s"),
        _ => "-".into(),
    }
}

fn offers(topic: &TopicSurvey) -> String {
    let mut offers: Vec<String> = topic.offers.iter().map(ToString::to_string).collect();
    offers.dedup();
    if offers.is_empty() { "-".into() } else { offers.join("; ") }
}

fn notes(survey: &Survey) -> Vec<String> {
    let mut notes = Vec::new();
    for (hash, contract) in &survey.contracts {
        notes.push(format!(
            "contract {}: {}, {} options, {:?}, {:.1} ms a step",
            &hash[..hash.len().min(8)],
            contract.task,
            contract.options.count,
            contract.robot,
            1e3 * contract.control_period_secs
        ));
    }
    let steps: u64 = survey.transitions.values().sum();
    if 0 < steps {
        notes.push(format!("{steps} transitions"));
    }
    if 0 < survey.untimed {
        notes.push(format!("{} messages came before there was a clock: their time is 0", survey.untimed));
    }
    for jump in survey.clock_jumps.iter().take(3) {
        notes.push(format!("the clock jumps back by {:.3} s at {:.3} s", jump.back_secs, jump.at_secs));
    }
    if 3 < survey.clock_jump_count {
        notes.push(format!("... and {} more times", survey.clock_jump_count - 3));
    }
    for pair in survey.topics.windows(2).filter(|pair| pair[0].name == pair[1].name) {
        notes.push(format!("{} has two types: {} and {}", pair[0].name, pair[0].type_name, pair[1].type_name));
    }
    for topic in &survey.topics {
        match &topic.problem {
            Some(problem) if 0 < topic.malformed => {
                notes.push(format!("{} messages of {} do not decode: {problem}", topic.malformed, topic.name));
            }
            Some(problem) if 0 < topic.messages => notes.push(format!("not decoded: {problem}")),
            _ => {}
        }
        if 0 < topic.stamps_back {
            notes.push(format!("the stamps of {} go back {} times", topic.name, topic.stamps_back));
        }
    }
    for found in &survey.weights {
        notes.extend(found.problem.as_ref().map(|problem| format!("{}: {problem}", found.topic)));
    }
    if !notes.is_empty() {
        notes.insert(0, String::new());
    }
    notes
}
