//! What happened: episodes as they were recorded, and attempts at a goal as the task judges them from states and commands.

use super::trace::{Axis, Mean, Moment, Tally, Trace, Worst};
use crate::robot::{ARM_DOF, PerJoint};
use crate::task::{Arm, Judgement, Task};
use nalgebra::Isometry3;
use serde::Serialize;
use std::collections::BTreeMap;

/// One that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Its end, since the first message of the bag [s].
    pub at_secs: f64,
    /// Whose it was, in words.
    pub name: String,
    /// Undiscounted sum of rewards.
    pub episode_return: f64,
    /// Control ticks.
    pub length: u32,
    /// Why it ended.
    pub end: &'static str,
    /// The task's error at its end.
    pub error: f64,
    /// The task's success at its end.
    pub success: bool,
    /// The stricter one.
    pub success_strict: bool,
}

/// All that ended.
#[derive(Clone, Debug, Serialize)]
pub struct Episodes {
    /// How many.
    pub count: u64,
    /// Ended in success.
    pub success: u64,
    /// Ended in the stricter one.
    pub success_strict: u64,
    /// Of the return.
    pub episode_return: Option<Mean>,
    /// Of the length [control ticks].
    pub length: Option<Mean>,
    /// Of the error at the end.
    pub error: Option<Mean>,
    /// By why they ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// The lowest returns.
    pub worst: Vec<Moment>,
    /// Return over time.
    #[serde(skip)]
    pub returns: Trace,
    /// Success over time, 0 or 1.
    #[serde(skip)]
    pub successes: Trace,
}

/// Takes episodes in.
#[derive(Clone, Debug)]
pub struct Record {
    found: Episodes,
    tallies: [Tally; 3],
    worst: Worst,
}

impl Record {
    /// Empty.
    pub fn new(axis: Axis) -> Self {
        let found = Episodes {
            count: 0,
            success: 0,
            success_strict: 0,
            episode_return: None,
            length: None,
            error: None,
            ends: BTreeMap::new(),
            worst: Vec::new(),
            returns: Trace::new(axis),
            successes: Trace::new(axis),
        };
        Self { found, tallies: [Tally::default(); 3], worst: Worst::new(axis) }
    }

    /// One that ended.
    pub fn add(&mut self, episode: &Episode) {
        let found = &mut self.found;
        found.count += 1;
        found.success += u64::from(episode.success);
        found.success_strict += u64::from(episode.success_strict);
        *found.ends.entry(episode.end).or_default() += 1;
        found.returns.add(episode.at_secs, episode.episode_return);
        found.successes.add(episode.at_secs, f64::from(u8::from(episode.success)));
        let values = [episode.episode_return, f64::from(episode.length), episode.error];
        self.tallies.iter_mut().zip(values).for_each(|(tally, value)| tally.add(value));
        self.worst.add(episode.at_secs, -episode.episode_return, || {
            let Episode { name, episode_return, length, end, error, .. } = episode;
            format!("{name} ended with return {episode_return:.2} after {length} ticks ({end}), error {error:.3}")
        });
    }

    /// What was found; none without an episode.
    pub fn finish(mut self) -> Option<Episodes> {
        let [episode_return, length, error] = self.tallies.map(|tally| tally.mean());
        (self.found.episode_return, self.found.length, self.found.error) = (episode_return, length, error);
        self.found.worst = self.worst.finish();
        (0 < self.found.count).then_some(self.found)
    }
}

/// What an attempt holds while it goes on.
#[derive(Clone, Debug)]
struct Attempt {
    sum: f64,
    length: u32,
    last: Judgement,
    at_secs: f64,
}

/// Attempts of one arm at its goals, from its control ticks.
pub struct Attempts {
    task: &'static dyn Task,
    /// Largest change of the reference in one tick [rad].
    step_rad: f64,
    goal: Option<Isometry3<f64>>,
    before: Option<Arm>,
    attempt: Option<Attempt>,
    made: u64,
}

impl Attempts {
    /// At a task whose actions move the reference by up to `step_rad`.
    pub fn new(task: &'static dyn Task, step_rad: f64) -> Self {
        Self { task, step_rad, goal: None, before: None, attempt: None, made: 0 }
    }

    /// A goal; the same one again changes nothing.
    pub fn goal(&mut self, goal: Isometry3<f64>) -> Option<Episode> {
        if self.goal == Some(goal) {
            return None;
        }
        let ended = self.end("the next goal");
        self.goal = Some(goal);
        ended
    }

    /// The arm at the next control tick: the reward of the step that led here, if there was one.
    pub fn tick(&mut self, at_secs: f64, arm: &Arm) -> Option<f64> {
        let before = self.before.replace(arm.clone())?;
        let goal = self.goal?;
        let action = self.action(&before.reference, &arm.reference);
        let judged = self.task.judge(arm, &goal, &action.map(|action| action as f32));
        let attempt = self.attempt.get_or_insert(Attempt { sum: 0.0, length: 0, last: judged, at_secs });
        attempt.sum += judged.reward;
        attempt.length += 1;
        (attempt.last, attempt.at_secs) = (judged, at_secs);
        Some(judged.reward)
    }

    /// Ends what goes on: nothing pairs states before with states after.
    pub fn end(&mut self, end: &'static str) -> Option<Episode> {
        self.before = None;
        let Attempt { sum, length, last, at_secs } = self.attempt.take()?;
        self.made += 1;
        Some(Episode {
            at_secs,
            name: format!("attempt {}", self.made),
            episode_return: sum,
            length,
            end,
            error: last.error,
            success: last.success,
            success_strict: last.success_strict,
        })
    }

    /// The action that moved the reference, in [-1, 1].
    fn action(&self, before: &PerJoint, after: &PerJoint) -> [f64; ARM_DOF] {
        std::array::from_fn(|joint| ((after[joint] - before[joint]) / self.step_rad).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::READY;
    use crate::task::Reach;

    #[test]
    fn an_attempt_is_judged_as_the_task_judges() {
        let mut attempts = Attempts::new(&Reach, 0.08);
        let goal = Isometry3::translation(0.4, 0.1, 0.4);
        assert!(attempts.goal(goal).is_none());
        let arm = |lead: f64| Arm::new(READY, [0.0; ARM_DOF], READY.map(|joint| joint + lead));
        assert_eq!(attempts.tick(1.0, &arm(0.0)), None, "nothing led here");
        // the reference moved by half of the largest step
        let want = Reach.judge(&arm(0.04), &goal, &[0.5; ARM_DOF]);
        let found = attempts.tick(1.1, &arm(0.04)).unwrap();
        assert!((found - want.reward).abs() < 1e-7, "{found}");
        assert!(attempts.goal(goal).is_none(), "the same goal");
        let ended = attempts.goal(Isometry3::translation(0.5, 0.1, 0.4)).unwrap();
        assert_eq!((ended.length, ended.end, ended.at_secs), (1, "the next goal", 1.1));
        assert!((ended.episode_return - want.reward).abs() < 1e-7 && (ended.error - want.error).abs() < 1e-12);
        assert!(attempts.end("the end of the bag").is_none(), "the next has no step yet");
    }

    #[test]
    fn episodes_are_counted_by_their_ends() {
        let mut record = Record::new(Axis { secs: 10.0 });
        assert!(record.clone().finish().is_none());
        for (at, end, success) in [(1.0, "truncated", true), (2.0, "aborted", false), (9.0, "truncated", true)] {
            let (name, error) = ("env 0".into(), 0.1);
            record.add(&Episode {
                at_secs: at,
                name,
                episode_return: -at,
                length: 50,
                end,
                error,
                success,
                success_strict: false,
            });
        }
        let found = record.finish().unwrap();
        assert_eq!((found.count, found.success, found.ends["truncated"], found.ends["aborted"]), (3, 2, 2, 1));
        assert_eq!(found.episode_return.unwrap().mean, -4.0);
        assert_eq!((found.worst[0].at_secs, found.worst.len()), (9.0, 3));
    }
}
