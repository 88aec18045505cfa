//! Where an actor's time goes: one look at the clock for each change of activity.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What an actor spends time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Stepping the simulated arms.
    Physics,
    /// The network's forward pass and the draws on it.
    Inference,
    /// Observing, judging, recording, cutting batches.
    Task,
    /// Giving batches their verdict, gathering, coordinating phases.
    Admission,
    /// Converting and publishing what goes out. Receiving is another thread's.
    Transport,
    /// Updates.
    Learning,
    /// Checkpoints and metrics.
    Saving,
    /// For another actor.
    Waiting,
}

impl Activity {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Physics,
        Self::Inference,
        Self::Task,
        Self::Admission,
        Self::Transport,
        Self::Learning,
        Self::Saving,
        Self::Waiting,
    ];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Physics => "physics",
            Self::Inference => "inference",
            Self::Task => "task",
            Self::Admission => "admission",
            Self::Transport => "transport",
            Self::Learning => "learning",
            Self::Saving => "saving",
            Self::Waiting => "waiting",
        }
    }
}

/// Time by activity, readable from any thread while the actor adds to it.
#[derive(Clone, Debug, Default)]
pub struct Times(Arc<[AtomicU64; Activity::ALL.len()]>);

impl Times {
    /// Spent on an activity so far [s].
    pub fn secs(&self, activity: Activity) -> f64 {
        Duration::from_nanos(self.0[activity as usize].load(Ordering::Relaxed)).as_secs_f64()
    }

    /// Activities that time was spent on, with their shares of all of it.
    pub fn shares(&self) -> Vec<(Activity, f64)> {
        let total: f64 = Activity::ALL.iter().map(|&activity| self.secs(activity)).sum();
        let spent = Activity::ALL.into_iter().map(|activity| (activity, self.secs(activity)));
        spent.filter(|(_, secs)| 0.0 < *secs).map(|(activity, secs)| (activity, secs / total)).collect()
    }

    /// The same in seconds, as a JSON object.
    pub fn to_json(&self) -> serde_json::Value {
        let spent = self.shares().into_iter();
        spent.map(|(activity, _)| (activity.name().to_owned(), serde_json::Value::from(self.secs(activity)))).collect()
    }

    fn add(&self, activity: Activity, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0[activity as usize].fetch_add(nanos, Ordering::Relaxed);
    }

    fn take(&self, activity: Activity, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0[activity as usize].fetch_sub(nanos, Ordering::Relaxed);
    }
}

impl Display for Times {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let shares =
            self.shares().into_iter().map(|(activity, share)| format!("{} {:.1} %", activity.name(), 100.0 * share));
        write!(formatter, "{}", shares.collect::<Vec<_>>().join(", "))
    }
}

/// Measures one thread. What comes before [`Self::start`] does not count.
#[derive(Debug)]
pub struct Stopwatch {
    times: Times,
    doing: Activity,
    since: Instant,
    started: bool,
}

impl Stopwatch {
    /// Adds to `times`.
    pub fn new(times: &Times) -> Self {
        Self { times: times.clone(), doing: Activity::Waiting, since: Instant::now(), started: false }
    }

    /// From now on it counts; once is enough.
    pub fn start(&mut self) {
        if !self.started {
            (self.started, self.since) = (true, Instant::now());
        }
    }

    /// Something else begins.
    pub fn turn_to(&mut self, activity: Activity) {
        let now = Instant::now();
        if self.started {
            self.times.add(self.doing, now - self.since);
        }
        (self.doing, self.since) = (activity, now);
    }

    /// As [`Self::turn_to`], where `part` of what ends now was another activity.
    pub fn turn_from(&mut self, part: Duration, of: Activity, activity: Activity) {
        let doing = self.doing;
        self.turn_to(activity);
        if self.started {
            self.times.add(of, part);
            self.times.take(doing, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some time, by the same clock.
    fn pass(millis: u64) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(millis) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn time_is_counted_from_the_start_and_to_what_was_done() {
        let times = Times::default();
        let mut watch = Stopwatch::new(&times);
        watch.turn_to(Activity::Task);
        pass(2);
        watch.turn_to(Activity::Waiting);
        assert_eq!(times.shares(), []);
        let begun = Instant::now();
        watch.start();
        watch.turn_to(Activity::Physics);
        pass(3);
        watch.turn_to(Activity::Waiting);
        pass(1);
        watch.turn_to(Activity::Waiting);
        let all = begun.elapsed().as_secs_f64();
        assert!(0.003 <= times.secs(Activity::Physics) && 0.001 <= times.secs(Activity::Waiting));
        assert_eq!(times.secs(Activity::Task), 0.0);
        assert!(times.secs(Activity::Physics) + times.secs(Activity::Waiting) <= all);
        let shares = times.shares();
        assert_eq!(shares.iter().map(|(activity, _)| activity.name()).collect::<Vec<_>>(), ["physics", "waiting"]);
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_part_goes_to_its_own_activity_and_the_sum_stays() {
        let times = Times::default();
        let mut watch = Stopwatch::new(&times);
        watch.start();
        watch.turn_to(Activity::Task);
        pass(4);
        watch.turn_from(Duration::from_millis(3), Activity::Inference, Activity::Waiting);
        assert_eq!(times.secs(Activity::Inference), 0.003);
        assert!(0.001 <= times.secs(Activity::Task));
    }
}
