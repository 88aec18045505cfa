//! Whether a process still gets on, from what it says of itself. Pure: the time is an argument.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time between two looks beyond this is time in which the one who looks was stopped.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// What a process says, a JSON line five times a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Beat {
    /// What it does, or what it waits for.
    pub(super) phase: String,
    /// It waits for others.
    pub(super) waits: bool,
    /// Moves on as long as work gets done.
    pub(super) progress: u64,
    /// Whom it waits for longer than usual, each in a few words.
    #[serde(default)]
    pub(super) waits_for: Vec<String>,
}

impl Beat {
    /// One line, without its end.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What [`Self::line`] wrote; anything else that a library may print is none.
    pub(super) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// Looks after one life of one process.
#[derive(Debug)]
pub(super) struct Watchdog {
    limit: Option<Duration>,
    clock: Duration,
    looked: Option<Duration>,
    beat: Option<Beat>,
    heard: Duration,
    moved: Duration,
}

impl Watchdog {
    /// Barks after `limit`; `None`: never.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        let zero = Duration::ZERO;
        Self { limit, clock: zero, looked: None, beat: None, heard: zero, moved: zero }
    }

    /// Moves time on and takes what was said since. Returns a sentence if the process is stuck.
    pub(super) fn look(&mut self, now: Duration, said: Option<Beat>) -> Option<String> {
        let passed = self.looked.map_or(Duration::ZERO, |looked| now.saturating_sub(looked));
        self.looked = Some(now);
        self.clock += passed.min(LOOK_MAX);
        if let Some(beat) = said {
            self.heard = self.clock;
            let before = self.beat.as_ref();
            if beat.waits || before.is_none_or(|before| before.progress != beat.progress || before.waits) {
                self.moved = self.clock;
            }
            self.beat = Some(beat);
        }
        let limit = self.limit?;
        let (silent, still) = (self.silent(), self.clock - self.moved);
        let phase = self.beat.as_ref().map_or("starting", |beat| beat.phase.as_str());
        let progress = self.beat.as_ref().map_or(0, |beat| beat.progress);
        if limit <= silent {
            Some(format!("says nothing for {} s; its last phase was \"{phase}\" at {progress}", silent.as_secs()))
        } else if limit <= still {
            Some(format!("makes no progress for {} s: stuck in \"{phase}\" at {progress}", still.as_secs()))
        } else {
            None
        }
    }

    /// How long nothing was said.
    pub(super) fn silent(&self) -> Duration {
        self.clock - self.heard
    }

    /// What was said last.
    pub(super) fn beat(&self) -> Option<&Beat> {
        self.beat.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Option<Duration> = Some(Duration::from_secs(5));

    fn beat(phase: &str, waits: bool, progress: u64) -> Option<Beat> {
        Some(Beat { phase: phase.into(), waits, progress, waits_for: Vec::new() })
    }

    /// Looks every 200 ms from `from_secs` on for `secs`; the first sentence, and when.
    fn watch(
        dog: &mut Watchdog,
        from_secs: u64,
        secs: u64,
        said: impl Fn(u64) -> Option<Beat>,
    ) -> Option<(u64, String)> {
        (from_secs * 5..=(from_secs + secs) * 5).find_map(|look| {
            let sentence = dog.look(Duration::from_millis(200 * look), said(look))?;
            Some((look / 5, sentence))
        })
    }

    #[test]
    fn silence_is_named_with_the_last_phase() {
        let mut dog = Watchdog::new(LIMIT);
        assert_eq!(watch(&mut dog, 0, 60, |look| beat("serving r0", true, look)), None);
        let (secs, sentence) = watch(&mut dog, 60, 60, |_| None).unwrap();
        assert_eq!(secs, 65);
        assert_eq!(sentence, "says nothing for 5 s; its last phase was \"serving r0\" at 300");
        assert_eq!(watch(&mut Watchdog::new(LIMIT), 0, 60, |_| None).unwrap().0, 5, "nor does one that never starts");
    }

    #[test]
    fn work_that_does_not_move_is_named_and_waiting_never_is() {
        let mut dog = Watchdog::new(LIMIT);
        for phase in ["waiting for a learner", "waiting for a phase", "waiting for the window"] {
            assert_eq!(watch(&mut dog, 0, 3600, |_| beat(phase, true, 7)), None);
        }
        let mut dog = Watchdog::new(LIMIT);
        assert_eq!(watch(&mut dog, 0, 100, |_| beat("waiting for a phase", true, 7)), None);
        // What waited long and now works has its time from here on.
        let (secs, sentence) = watch(&mut dog, 100, 60, |_| beat("acting", false, 7)).unwrap();
        assert_eq!((secs, sentence.as_str()), (105, "makes no progress for 5 s: stuck in \"acting\" at 7"));
        let mut dog = Watchdog::new(LIMIT);
        assert_eq!(watch(&mut dog, 0, 3600, |look| beat("acting", false, look / 20)), None, "slow is not stuck");
    }

    #[test]
    fn time_in_which_the_one_who_looks_was_stopped_does_not_count() {
        let mut dog = Watchdog::new(LIMIT);
        dog.look(Duration::ZERO, beat("acting", false, 1));
        assert_eq!(dog.look(Duration::from_secs(3600), None), None);
        assert_eq!(dog.silent(), LOOK_MAX);
    }

    #[test]
    fn without_a_limit_it_never_barks() {
        assert_eq!(watch(&mut Watchdog::new(None), 0, 3600, |_| None), None);
    }

    #[test]
    fn a_line_is_read_back_and_other_output_is_none() {
        let said = beat("acting; \"r0\"", false, 3).unwrap();
        assert_eq!(Beat::parse(&said.line()), Some(said));
        assert_eq!(Beat::parse("WARNING: Unknown warning type Time = 0.0."), None);
    }
}
