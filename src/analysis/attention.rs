//! What to look at first: thresholds on what was found, each with its sentence.

use super::Analysis;
use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Something went wrong.
    Wrong,
    /// Worth a look.
    Look,
}

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attention {
    /// How much it matters.
    pub urgency: Urgency,
    /// What was seen.
    pub sentence: String,
    /// When, since the first message of the bag [s].
    pub at_secs: Option<f64>,
    /// The part of the report that has more.
    pub section: &'static str,
}

/// Messages that are missing for this many of their medians are a gap worth telling, and at least this long [s].
const GAP_SECS: f64 = 0.1;
/// A share of control ticks in one option beyond which the others are hardly used.
const CROWDED: f64 = 0.9;
/// KL of a step beyond which a policy acts otherwise than it did [nat].
const OTHERWISE: f64 = 0.1;
/// A largest tracking error worth telling: the guard's leash where nothing else is said [rad].
const FAR_RAD: f64 = 0.1;
/// Jerk at changes of option, relative to the rest.
const ROUGH: f64 = 3.0;

/// Everything worth telling, the most urgent first.
pub fn attention(found: &Analysis) -> Vec<Attention> {
    let mut all = Vec::new();
    let mut say = |urgency, section, at_secs, sentence: String| {
        all.push(Attention { urgency, sentence, at_secs, section });
    };
    let (survey, health) = (&found.survey, &found.health);
    if survey.damaged() {
        let messages = survey.lost_messages.map_or("an unknown number of".into(), |messages| messages.to_string());
        let bytes = survey.lost_bytes;
        say(
            Urgency::Wrong,
            "health",
            None,
            format!("the bag is damaged: {messages} messages and {bytes} bytes are lost"),
        );
    }
    for moment in health.guard_states.iter().filter(|moment| 0.0 < moment.score) {
        say(Urgency::Wrong, "health", Some(moment.at_secs), moment.what.clone());
    }
    for complaint in &health.complaints {
        let urgency = if complaint.error { Urgency::Wrong } else { Urgency::Look };
        say(urgency, "health", Some(complaint.at_secs), format!("{} says: {}", complaint.name, complaint.message));
    }
    for jump in survey.clock_jumps.iter().take(3) {
        let sentence = format!("the clock jumps back by {:.3} s", jump.back_secs);
        say(Urgency::Wrong, "health", Some(jump.at_secs), sentence);
    }
    for topic in &survey.topics {
        if let (1.., Some(longest), Some(at)) =
            (topic.gaps, topic.longest_interval_secs, topic.longest_interval_at_secs)
            && GAP_SECS <= longest
            && topic.median_interval_secs.is_some_and(|median| median <= GAP_SECS)
        {
            let sentence = format!("{} is silent for {longest:.3} s; it has {} gaps", topic.name, topic.gaps);
            say(Urgency::Look, "health", Some(at), sentence);
        }
    }
    for intervention in &health.interventions {
        let times = if intervention.count == 1 { "once".into() } else { format!("{} times", intervention.count) };
        let sentence = format!("the guard stepped in {times}: {}", intervention.reason);
        say(Urgency::Look, "health", Some(intervention.at_secs), sentence);
    }
    if let Some(worst) = health.worst_tracking.first().filter(|moment| FAR_RAD < moment.score) {
        say(Urgency::Look, "health", Some(worst.at_secs), worst.what.clone());
    }
    if let Some(episodes) = &found.episodes {
        let rate = episodes.success as f64 / episodes.count as f64;
        if rate < 0.5 {
            let (success, count) = (episodes.success, episodes.count);
            say(Urgency::Look, "episodes", None, format!("{success} of {count} episodes ended in success"));
        }
        if let Some(aborted) = episodes.ends.get("aborted") {
            say(Urgency::Wrong, "episodes", None, format!("{aborted} episodes were aborted by a fault"));
        }
    }
    if let Some(options) = &found.options {
        if let Some(one) = options.options.iter().find(|one| CROWDED < one.share && 1 < options.options.len()) {
            let share = 100.0 * one.share;
            say(Urgency::Look, "options", None, format!("option {} has {share:.0} % of the ticks", one.option));
        }
        if let (Some(switching), Some(between)) = (options.jerk_switching, options.jerk_between)
            && ROUGH * between.mean < switching.mean
        {
            let times = switching.mean / between.mean;
            say(Urgency::Look, "options", None, format!("changes of option are {times:.1} times as jerky as the rest"));
        }
    }
    for (divergence, what) in [(&found.now, "was recorded"), (&found.between, "the other policy does")] {
        let Some(divergence) = divergence else { continue };
        let most = divergence
            .options
            .iter()
            .filter_map(|option| Some((option.option, option.action?)))
            .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        if let Some((option, mean)) = most.filter(|(_, mean)| OTHERWISE < mean.mean - mean.margin) {
            let sentence =
                format!("in option {option} the policy acts otherwise than {what}: KL {:.2} nat a step", mean.mean);
            say(Urgency::Look, "divergence", divergence.worst.first().map(|moment| moment.at_secs), sentence);
        }
    }
    if let Some(moment) = found.critic.as_ref().and_then(|critic| critic.worst.first()) {
        say(
            Urgency::Look,
            "critic",
            Some(moment.at_secs),
            format!("the critic was most surprised here: {}", moment.what),
        );
    }
    all.sort_by_key(|attention| attention.urgency);
    all
}
