//! The same for a terminal.

use super::super::calm;
use super::{head, mean, millis, percent, short, use_of};
use crate::analysis::{Analysis, Urgency};
use std::fmt::Write as _;

/// What was found, in a few tables.
pub fn table(found: &Analysis) -> String {
    let mut text = String::new();
    for (name, value) in head(found) {
        let _ = writeln!(text, "{name:<14}{value}");
    }
    if !found.attention.is_empty() {
        let _ = writeln!(text, "\nlook first at");
        for attention in &found.attention {
            let mark = if attention.urgency == Urgency::Wrong { "✗" } else { "·" };
            let at = attention.at_secs.map_or(String::new(), |at_secs| format!(" ({at_secs:.2} s)"));
            let _ = writeln!(text, "  {mark} {}{at}", attention.sentence);
        }
    }
    if let Some(episodes) = &found.episodes {
        let ends: Vec<String> = episodes.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
        let _ = writeln!(
            text,
            "\nepisodes      {}: {} in success ({}), {} strictly; return {}; {}",
            episodes.count,
            episodes.success,
            percent(episodes.success as f64 / episodes.count as f64),
            episodes.success_strict,
            mean(episodes.episode_return),
            ends.join(", ")
        );
    }
    if let Some(options) = &found.options {
        let mut table =
            calm(&["option", "ticks", "share", "runs", "median", "mean", "d_max", "β", "KL actions", "KL options"]);
        for one in &options.options {
            let now = found.now.as_ref().and_then(|now| now.options.get(one.option));
            let divergence = [mean(now.and_then(|now| now.action)), mean(now.and_then(|now| now.transition))];
            table.add_row(use_of(one).into_iter().chain(divergence));
        }
        let _ = writeln!(text, "\n{table}");
        let (switching, between) = (mean(options.jerk_switching), mean(options.jerk_between));
        let _ = writeln!(text, "{} switches; jerk {switching} there, {between} elsewhere [rad/s³]", options.switches);
    }
    if let Some(between) = &found.between {
        let mut table = calm(&["option", "KL actions, policy || other", "KL options"]);
        for one in &between.options {
            table.add_row([one.option.to_string(), mean(one.action), mean(one.transition)]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    if let Some(critic) = &found.critic {
        let _ = writeln!(
            text,
            "\ncritic        values {}; TD errors {}",
            mean(Some(critic.values)),
            mean(critic.td_errors)
        );
    }
    let health = &found.health;
    if let Some(latency) = &health.latency {
        let (median, p99, longest) = (latency.median_secs, latency.p99_secs, latency.longest_secs);
        let _ = writeln!(
            text,
            "latency       state to command: median {}, 99 % within {}, longest {}",
            millis(median),
            millis(p99),
            millis(longest)
        );
    }
    if !health.tracking.is_empty() {
        let rms: Vec<String> = health.tracking.iter().map(|joint| short(1e3 * joint.error.rms)).collect();
        let _ = writeln!(text, "tracking      RMS by joint {} mrad", rms.join(" "));
    }
    for note in &found.notes {
        let _ = writeln!(text, "note          {note}");
    }
    text.trim_end().to_owned()
}
