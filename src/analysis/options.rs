//! What the option process did: who ran when and for how long, what ended it, and how rough the changes were.

use super::trace::{Axis, COLUMNS, Mean, Tally};
use crate::robot::{ARM_DOF, PerJoint};
use serde::Serialize;
use std::collections::BTreeMap;

/// Options that are told apart; more are counted with the last.
const MAX_OPTIONS: usize = 32;

/// One control tick of one environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Since the first message of the bag [s].
    pub at_secs: f64,
    /// The environment, as a number of the bag's.
    pub env: usize,
    /// An episode begins.
    pub begins: bool,
    /// The option that acts.
    pub option: u8,
    /// It was chosen at this tick, of the same option too.
    pub chosen: bool,
    /// d_max ended the one before.
    pub forced: bool,
    /// Termination probability of the one that was running.
    pub termination_prob: f64,
    /// Joint velocities on arrival [rad/s].
    pub velocity: Option<PerJoint>,
}

/// One option.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Use {
    /// Its number.
    pub option: usize,
    /// Control ticks.
    pub steps: u64,
    /// Of all.
    pub share: f64,
    /// Runs that were seen to begin and to end.
    pub runs: u64,
    /// Of these, by d_max.
    pub forced: u64,
    /// Mean length of a run [control ticks].
    pub mean_duration: Option<f64>,
    /// Half of the runs are not longer [control ticks].
    pub median_duration: Option<u32>,
    /// Mean probability of its end, where it was running.
    pub termination_prob: Option<f64>,
    /// Times that it took over from another.
    pub switches: u64,
    /// Runs by their length [control ticks].
    #[serde(skip)]
    pub durations: BTreeMap<u32, u64>,
}

/// What happened to the options.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OptionUse {
    /// Control ticks.
    pub steps: u64,
    /// Changes of option.
    pub switches: u64,
    /// By number.
    pub options: Vec<Use>,
    /// Largest joint jerk where the option changed, by differences of velocity over control ticks [rad/s³].
    pub jerk_switching: Option<Mean>,
    /// The same everywhere else.
    pub jerk_between: Option<Mean>,
    /// For each option whether it ran in a column of the plot, in the first environment.
    #[serde(skip)]
    pub timeline: Vec<Vec<bool>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Env {
    /// The option, and how long it has run where its beginning was seen.
    running: Option<(u8, Option<u32>)>,
    /// Of the last tick but one, and of the last with whether it switched there.
    velocities: [Option<PerJoint>; 2],
    switched: bool,
}

/// Takes the ticks in, each environment's in order.
#[derive(Clone, Debug)]
pub struct Process {
    axis: Axis,
    period_secs: f64,
    envs: Vec<Env>,
    found: OptionUse,
    termination: Vec<Tally>,
    jerk: [Tally; 2],
    /// Column of the first environment's last tick.
    column: Option<usize>,
}

impl Process {
    /// `period_secs` lies between two ticks. `options` are known to be there, used or not; more may be met.
    pub fn new(axis: Axis, period_secs: f64, options: usize) -> Self {
        let (found, jerk) = (OptionUse::default(), [Tally::default(); 2]);
        let mut process =
            Self { axis, period_secs, envs: Vec::new(), found, termination: Vec::new(), jerk, column: None };
        process.know(options.min(MAX_OPTIONS));
        process
    }

    fn know(&mut self, options: usize) {
        while self.found.options.len() < options {
            self.found.options.push(Use { option: self.found.options.len(), ..Use::default() });
            self.found.timeline.push(vec![false; COLUMNS]);
            self.termination.push(Tally::default());
        }
    }

    /// Nothing goes on: what ran is not seen to end.
    pub fn split(&mut self) {
        (self.envs, self.column) = (Vec::new(), None);
    }

    /// Ticks of an environment are missing: nothing goes on over them.
    pub fn part(&mut self, env: usize) {
        if let Some(env) = self.envs.get_mut(env) {
            *env = Env::default();
        }
        if env == 0 {
            self.column = None;
        }
    }

    /// One tick.
    pub fn add(&mut self, step: &Step) {
        let option = usize::from(step.option).min(MAX_OPTIONS - 1);
        self.know(option + 1);
        if self.envs.len() <= step.env {
            self.envs.resize(step.env + 1, Env::default());
        }
        if step.begins {
            self.envs[step.env] = Env::default();
        }
        let mut env = self.envs[step.env];
        self.rough(&mut env, step);
        let found = &mut self.found;
        found.steps += 1;
        found.options[option].steps += 1;
        if step.env == 0 {
            let column = self.axis.column(step.at_secs);
            let since = env.running.and(self.column).unwrap_or(column);
            let before = env.running.map_or(option, |(before, _)| usize::from(before).min(MAX_OPTIONS - 1));
            found.timeline[before][since.min(column)..column].fill(true); // it ran until now
            found.timeline[option][column] = true;
            self.column = Some(column);
        }
        if let Some((before, age)) = env.running {
            let other = usize::from(before).min(MAX_OPTIONS - 1);
            self.termination[other].add(step.termination_prob);
            if let (true, Some(age)) = (step.chosen, age) {
                let before = &mut found.options[other];
                before.runs += 1;
                before.forced += u64::from(step.forced);
                *before.durations.entry(age).or_default() += 1;
            }
            if other != option {
                found.switches += 1;
                found.options[option].switches += 1;
            }
            env.switched = other != option;
        }
        let age = if step.chosen { Some(1) } else { env.running.and_then(|(_, age)| Some(age? + 1)) };
        env.running = Some((step.option, age));
        self.envs[step.env] = env;
    }

    /// Control ticks that the option of an environment has run.
    pub fn age(&self, env: usize) -> Option<u32> {
        self.envs.get(env)?.running?.1
    }

    /// The change of acceleration over the tick before this one.
    fn rough(&mut self, env: &mut Env, step: &Step) {
        if let ([Some(first), Some(second)], Some(third)) = (env.velocities, step.velocity) {
            let bend = |joint: usize| (third[joint] - 2.0 * second[joint] + first[joint]).abs();
            let most = (0..ARM_DOF).map(bend).fold(0.0, f64::max);
            self.jerk[usize::from(!env.switched)].add(most / self.period_secs.powi(2));
        }
        env.velocities = [env.velocities[1], step.velocity];
        env.switched = false;
    }

    /// What was found; none without a tick.
    pub fn finish(mut self) -> Option<OptionUse> {
        let found = &mut self.found;
        for (option, termination) in found.options.iter_mut().zip(&self.termination) {
            option.share = option.steps as f64 / found.steps as f64;
            option.termination_prob = termination.mean().map(|mean| mean.mean);
            let total: u64 = option.durations.iter().map(|(&steps, &runs)| u64::from(steps) * runs).sum();
            option.mean_duration = (0 < option.runs).then(|| total as f64 / option.runs as f64);
            let mut below = 0;
            option.median_duration = option.durations.iter().find_map(|(&steps, &runs)| {
                below += runs;
                (option.runs <= 2 * below).then_some(steps)
            });
        }
        found.jerk_switching = self.jerk[0].mean();
        found.jerk_between = self.jerk[1].mean();
        (0 < self.found.steps).then_some(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: usize, option: u8, chosen: bool, speed: f64) -> Step {
        Step {
            at_secs: at as f64 * 0.1,
            env: 0,
            begins: at == 0,
            option,
            chosen,
            forced: at == 5,
            termination_prob: 0.5,
            velocity: Some([speed; ARM_DOF]),
        }
    }

    #[test]
    fn runs_shares_and_jerk_are_as_counted_by_hand() {
        let mut process = Process::new(Axis { secs: 64.0 }, 0.1, 0);
        // 0 0 0 | 1 1 | 1 | 0, and the velocity bends where 1 takes over
        let speeds = [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0];
        let options = [(0, true), (0, false), (0, false), (1, true), (1, false), (1, true), (0, true)];
        for (at, ((option, chosen), speed)) in options.into_iter().zip(speeds).enumerate() {
            process.add(&step(at, option, chosen, speed));
        }
        let found = process.finish().unwrap();
        assert_eq!((found.steps, found.switches), (7, 2));
        let (first, second) = (&found.options[0], &found.options[1]);
        assert_eq!((first.steps, first.runs, first.median_duration, first.switches), (4, 1, Some(3), 1));
        assert_eq!((second.steps, second.runs, second.forced), (3, 2, 1));
        assert_eq!((second.mean_duration, second.median_duration), (Some(1.5), Some(1)));
        // at tick 3: |1 - 0 - (0 - 0)| / 0.01 = 100; ticks 1, 2, 4, 5: nothing bends
        let (switching, between) = (found.jerk_switching.unwrap(), found.jerk_between.unwrap());
        assert!((switching.mean - 100.0).abs() < 1e-9 && switching.count == 1);
        assert!(between.mean.abs() < 1e-9 && between.count == 4);
        assert!(found.timeline[1][3] && found.timeline[0][6] && !found.timeline[1][6]);
    }

    #[test]
    fn an_episode_ends_what_ran_without_a_termination() {
        let mut process = Process::new(Axis { secs: 1.0 }, 0.1, 0);
        process.add(&step(1, 0, true, 0.0));
        process.add(&Step { begins: true, ..step(2, 1, true, 9.0) });
        let found = process.finish().unwrap();
        assert_eq!((found.switches, found.options[0].runs), (0, 0));
        assert!(Process::new(Axis::default(), 0.1, 0).finish().is_none());
    }
}
