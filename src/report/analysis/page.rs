//! One page of HTML with all plots in it: opens from a file, without a network, on a phone, light and dark.

use super::html::{Page, escape};
use super::plots;
use super::{head, mean, millis, or_dash, percent, short, use_of};
use crate::analysis::options::Use;
use crate::analysis::trace::Trace;
use crate::analysis::{Analysis, Attention, Divergence, Urgency};
use crate::error::Result;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
/// Anchors and titles of the parts.
const PARTS: [(&str, &str); 6] = [
    ("first", "Look first at"),
    ("episodes", "What happened"),
    ("options", "What the policy did"),
    ("divergence", "Is it what it would do now"),
    ("critic", "How good the critic thinks it was"),
    ("health", "Was the system healthy"),
];

/// The page.
pub fn page(found: &Analysis) -> Result<String> {
    let mut page =
        Page { text: String::new(), secs: found.survey.duration_secs, bag: found.survey.path.display().to_string() };
    let title = format!("Analysis of {}", escape(&page.bag));
    let _ = write!(
        page.text,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><title>{title}</title><style>\n{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    let rows: Vec<[String; 2]> = head(found).into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    page.facts(&rows[1..]);
    let links: Vec<String> = PARTS.iter().map(|(anchor, title)| format!("<a href=\"#{anchor}\">{title}</a>")).collect();
    let _ = writeln!(page.text, "<nav>{}</nav>", links.join(" "));
    page.part(PARTS[0]);
    attention(&mut page, &found.attention);
    for note in &found.notes {
        page.soft(note);
    }
    page.part(PARTS[1]);
    episodes(&mut page, found)?;
    page.part(PARTS[2]);
    options(&mut page, found)?;
    page.part(PARTS[3]);
    for (compared, name, words) in [
        (&found.now, "now", "the recorded policy || the present one"),
        (&found.between, "between", "the present policy || the other"),
    ] {
        match compared {
            Some(compared) => divergence(&mut page, compared, name, words)?,
            None if name == "now" => page.soft(
                "nothing to compare: it needs a policy, and what it decided at the time (transitions or option_state)",
            ),
            None => {}
        }
    }
    page.part(PARTS[4]);
    critic(&mut page, found)?;
    page.part(PARTS[5]);
    health(&mut page, found)?;
    let _ = writeln!(page.text, "<p class=\"soft\">handoff {}</p>\n</body></html>", env!("CARGO_PKG_VERSION"));
    Ok(page.text)
}

fn attention(page: &mut Page, all: &[Attention]) {
    if all.is_empty() {
        return page.soft("nothing stands out");
    }
    page.text += "<ul>\n";
    for Attention { urgency, sentence, at_secs, section } in all {
        let class = if *urgency == Urgency::Wrong { " class=\"wrong\"" } else { "" };
        let at = at_secs.map_or(String::new(), |at_secs| format!(", at {at_secs:.2} s"));
        let _ = writeln!(page.text, "<li{class}>{}{at} <a href=\"#{section}\">more</a></li>", escape(sentence));
    }
    page.text += "</ul>\n";
}

fn divergence(page: &mut Page, found: &Divergence, name: &str, words: &str) -> Result<()> {
    let rows: Vec<Vec<String>> =
        found.options.iter().map(|one| vec![one.option.to_string(), mean(one.action), mean(one.transition)]).collect();
    page.soft(&format!("KL [nat a tick], {words}; means with 95 % intervals."));
    page.table(&["option", "actions", "option transition"], &rows);
    if let Some(agreement) = found.agreement {
        page.soft(&format!("both took the same option at {} of the ticks", percent(agreement)));
    }
    page.lines(
        "KL [nat]",
        &format!("KL of action and option together over time [s]: {words}"),
        &[("KL", &found.trace)],
        (name, &found.worst),
    )?;
    page.moments(name, &found.worst);
    Ok(())
}

fn episodes(page: &mut Page, found: &Analysis) -> Result<()> {
    let Some(episodes) = &found.episodes else {
        page.soft("no episode was recorded, and no goal was attempted");
        return Ok(());
    };
    let ends: Vec<String> = episodes.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
    let rate =
        |count: u64| format!("{count} of {} ({})", episodes.count, percent(count as f64 / episodes.count as f64));
    page.facts(&[
        ["success".into(), rate(episodes.success)],
        ["strict success".into(), rate(episodes.success_strict)],
        ["return".into(), mean(episodes.episode_return)],
        ["length [ticks]".into(), mean(episodes.length)],
        ["error at the end".into(), mean(episodes.error)],
        ["ended".into(), ends.join(", ")],
    ]);
    page.lines(
        "return",
        "return of episodes over time [s]",
        &[("return", &episodes.returns)],
        ("episode", &episodes.worst),
    )?;
    page.lines("success", "success of episodes over time [s]", &[("success", &episodes.successes)], ("success", &[]))?;
    page.soft("Lowest returns:");
    page.moments("episode", &episodes.worst);
    Ok(())
}

fn options(page: &mut Page, found: &Analysis) -> Result<()> {
    let Some(options) = &found.options else {
        page.soft("no decision was recorded");
        return Ok(());
    };
    let row = |one: &Use| use_of(one).into_iter().chain([one.switches.to_string()]).collect();
    let rows: Vec<Vec<String>> = options.options.iter().map(row).collect();
    let header =
        ["option", "ticks", "share", "runs", "median length", "mean length", "ended by d_max", "β", "taken over"];
    page.table(&header, &rows);
    page.facts(&[
        ["switches".into(), options.switches.to_string()],
        ["jerk at switches [rad/s³]".into(), mean(options.jerk_switching)],
        ["jerk elsewhere [rad/s³]".into(), mean(options.jerk_between)],
    ]);
    let names: Vec<String> = options.options.iter().map(|one| format!("option {}", one.option)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    page.figure(
        &plots::timeline(page.secs, options, ("option", &[]))?,
        "which option ran when, in the first environment [s]",
        &[],
    );
    if options.options.iter().any(|one| !one.durations.is_empty()) {
        page.figure(&plots::durations(options)?, "lengths of runs [ticks]", &names);
    }
    Ok(())
}

fn critic(page: &mut Page, found: &Analysis) -> Result<()> {
    let Some(critic) = &found.critic else {
        page.soft("no values: they need a policy whose critic is at hand, and states or transitions to judge");
        return Ok(());
    };
    page.facts(&[
        ["Q of the option that acted".into(), mean(Some(critic.values))],
        ["TD error".into(), mean(critic.td_errors)],
        ["root mean square of it".into(), critic.td_errors.map_or("-".into(), |errors| short(errors.rms))],
    ]);
    page.lines(
        "Q",
        "value of the option that acted over time [s], in scaled rewards",
        &[("Q", &critic.trace)],
        ("value", &[]),
    )?;
    page.lines("TD error", "TD errors over time [s]", &[("TD error", &critic.td_trace)], ("td", &critic.worst))?;
    page.moments("td", &critic.worst);
    Ok(())
}

fn health(page: &mut Page, found: &Analysis) -> Result<()> {
    let (survey, health) = (&found.survey, &found.health);
    let rows: Vec<Vec<String>> = survey
        .topics
        .iter()
        .map(|topic| {
            vec![
                topic.name.clone(),
                topic.messages.to_string(),
                or_dash(topic.rate_hz),
                topic.gaps.to_string(),
                topic.longest_interval_secs.map_or("-".into(), |secs| format!("{secs:.3} s")),
                topic.malformed.to_string(),
            ]
        })
        .collect();
    page.table(&["topic", "messages", "rate [Hz]", "gaps", "longest interval", "malformed"], &rows);
    if let Some(latency) = &health.latency {
        page.facts(&[
            ["state to command, median".into(), millis(latency.median_secs)],
            ["99 % within".into(), millis(latency.p99_secs)],
            ["longest".into(), format!("{} at {:.2} s", millis(latency.longest_secs), latency.longest_at_secs)],
        ]);
        page.lines(
            "latency [s]",
            "from a state to its command over time [s]",
            &[("latency", &latency.trace)],
            ("latency", &[]),
        )?;
    }
    if !health.tracking.is_empty() {
        let rows: Vec<Vec<String>> = health
            .tracking
            .iter()
            .enumerate()
            .map(|(joint, one)| {
                vec![
                    (joint + 1).to_string(),
                    short(1e3 * one.error.mean),
                    short(1e3 * one.error.rms),
                    short(1e3 * one.largest_rad),
                ]
            })
            .collect();
        page.table(&["joint", "mean error [mrad]", "RMS [mrad]", "largest [mrad]"], &rows);
        let trace: &Trace = &health.tracking_trace;
        page.lines(
            "error [rad]",
            "largest distance of a joint from its command over time [s]",
            &[("error", trace)],
            ("tracking", &health.worst_tracking),
        )?;
        page.moments("tracking", &health.worst_tracking);
    }
    let mut rows = vec![];
    rows.extend(health.weights_lag.map(|lag| ["weights, versions behind".to_owned(), mean(Some(lag))]));
    rows.push(["steps changed by a safety layer".into(), health.filtered.to_string()]);
    rows.push(["steps of a person".into(), health.intervened.to_string()]);
    for one in &health.interventions {
        rows.push([format!("guard: {}", one.reason), format!("{} times, first at {:.2} s", one.count, one.at_secs)]);
    }
    for moment in &health.guard_states {
        rows.push([format!("{:.2} s", moment.at_secs), moment.what.clone()]);
    }
    for one in &health.complaints {
        let kind = if one.error { "error" } else { "warning" };
        rows.push([
            format!("{kind} of {}", one.name),
            format!("{} ({} times, first at {:.2} s)", one.message, one.count, one.at_secs),
        ]);
    }
    page.facts(&rows);
    page.lines("versions", "versions behind the newest over time [s]", &[("lag", &health.lag_trace)], ("lag", &[]))
}
