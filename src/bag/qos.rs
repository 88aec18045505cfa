//! Quality of service as bags write it: integers in a string (metadata 4 to 8), words in a list or a string (9).

use serde::{Deserialize, Serialize};
use std::fmt;

/// One publisher's offer, as far as a reader of bags cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Qos {
    /// Every message is asked for again until it is there.
    pub reliable: Option<bool>,
    /// Late subscribers get the last messages.
    pub transient_local: Option<bool>,
    /// Messages kept; none: all of them.
    pub depth: Option<u64>,
}

/// An enumerator, as an integer or a word.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(i64),
    Word(String),
}

impl Code {
    fn is(&self, number: i64, word: &str) -> bool {
        match self {
            Self::Number(value) => *value == number,
            Self::Word(value) => value.eq_ignore_ascii_case(word),
        }
    }
}

/// What a bag may say; all of it may be missing.
#[derive(Deserialize)]
pub(super) struct Profile {
    history: Option<Code>,
    depth: Option<i64>,
    reliability: Option<Code>,
    durability: Option<Code>,
}

impl From<Profile> for Qos {
    /// Numbers of the enumerators: rmw/types.h.
    fn from(profile: Profile) -> Self {
        let one_of = |code: &Option<Code>, yes: (i64, &str), no: (i64, &str)| {
            let code = code.as_ref()?;
            if code.is(yes.0, yes.1) { Some(true) } else { code.is(no.0, no.1).then_some(false) }
        };
        let keep_all = profile.history.as_ref().is_some_and(|history| history.is(2, "keep_all"));
        let depth = profile.depth.and_then(|depth| u64::try_from(depth).ok()).unwrap_or(1);
        Self {
            reliable: one_of(&profile.reliability, (1, "reliable"), (2, "best_effort")),
            transient_local: one_of(&profile.durability, (1, "transient_local"), (2, "volatile")),
            depth: (!keep_all).then_some(depth),
        }
    }
}

/// From the text of a list; empty if it cannot be understood, as a profile is never worth refusing a bag for.
pub(super) fn parse(text: &str) -> Vec<Qos> {
    let profiles: Option<Vec<Profile>> = serde_saphyr::from_str(text).ok();
    profiles.into_iter().flatten().map(Qos::from).collect()
}

/// The text with integers, which every rosbag2 since Foxy reads.
pub(super) fn write(profiles: &[Qos]) -> String {
    let mut text = String::new();
    let code = |value: Option<bool>| match value {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    };
    const INFINITE: &str = "{sec: 9223372036, nsec: 854775807}";
    for qos in profiles {
        text += &format!(
            "- history: {}\n  depth: {}\n  reliability: {}\n  durability: {}\n  deadline: {INFINITE}\n  lifespan: {INFINITE}\n  \
             liveliness: 1\n  liveliness_lease_duration: {INFINITE}\n  avoid_ros_namespace_conventions: false\n",
            if qos.depth.is_some() { 1 } else { 2 },
            qos.depth.unwrap_or(0),
            code(qos.reliable),
            code(qos.transient_local),
        );
    }
    text
}

impl fmt::Display for Qos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: Option<bool>, yes: &'static str, no: &'static str| match value {
            None => "?",
            Some(true) => yes,
            Some(false) => no,
        };
        let reliability = word(self.reliable, "reliable", "best effort");
        write!(out, "{reliability}, {}", word(self.transient_local, "latched", "volatile"))?;
        match self.depth {
            Some(depth) => write!(out, ", {depth}"),
            None => write!(out, ", all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATCHED: Qos = Qos { reliable: Some(true), transient_local: Some(true), depth: Some(3) };

    #[test]
    fn integers_and_words_mean_the_same() {
        let integers = "- {history: 1, depth: 3, reliability: 1, durability: 1, deadline: {sec: 1, nsec: 2}}";
        let words = "- {history: keep_last, depth: 3, reliability: reliable, durability: transient_local}";
        assert_eq!(parse(integers), [LATCHED]);
        assert_eq!(parse(words), [LATCHED]);
    }

    #[test]
    fn unknown_values_stay_unknown_and_bad_text_gives_nothing() {
        let unknown = Qos { reliable: None, transient_local: Some(false), depth: None };
        assert_eq!(parse("- {history: keep_all, depth: 0, reliability: 0, durability: volatile}"), [unknown]);
        assert_eq!(parse(": ["), []);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let all = Qos { reliable: Some(false), transient_local: Some(false), depth: None };
        assert_eq!(parse(&write(&[LATCHED, all])), [LATCHED, all]);
    }
}
