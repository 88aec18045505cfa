//! One environment: the episode that runs in it and the fragment that is being recorded.

mod state;

pub use state::EpisodeState;

use crate::config::{Purpose, Seed};
use crate::contract::Contract;
use crate::data::{End, EpisodeStats, Final, Forced, Fragment, STATE_DOF, Transition, audit};
use crate::defect::defect;
use crate::option::Running;
use crate::policy::Decision;
use crate::robot::{ARM_DOF, Limits};
use crate::task::{Arm, Start, Task};
use nalgebra::Isometry3;

/// References that differ by less are the same [rad].
const LED_RAD: f64 = 1e-9;
/// No arm has a position or velocity beyond this [rad, m, rad/s, m/s]: a simulator that tells one is broken, and one such number would
/// stay in the statistics of the observation.
const MOST: f64 = 1e3;

/// Where an environment stands between two ticks.
enum Stage {
    /// Its next command is a reset.
    Fresh,
    /// Reset was commanded; the next states show the start.
    Starting(Start),
    /// Observed, not decided yet.
    Arrived,
    /// Decided; the next states show where it led.
    Pending(Box<Pending>),
}

struct Pending {
    decision: Decision,
    version: u64,
    stamp_secs: f64,
    /// Where the reference was before the action [rad].
    from: [f64; ARM_DOF],
    /// A guard changed the action.
    filtered: bool,
}

/// Sums over the running episode.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sums {
    episode_return: f64,
    /// The task's error at the last valid step.
    error: f64,
    first_success: Option<u32>,
    option_steps: Vec<u32>,
    option_runs: Vec<u32>,
    forced_ends: u32,
}

impl Sums {
    fn new(options: usize) -> Self {
        Self {
            episode_return: 0.0,
            error: 0.0,
            first_success: None,
            option_steps: vec![0; options],
            option_runs: vec![0; options],
            forced_ends: 0,
        }
    }
}

/// One environment of a rollout.
pub(super) struct Episode {
    env: u32,
    seed: Seed,
    /// Number of the running episode.
    number: u64,
    t: u32,
    /// Decisions made in this environment: the key of the next draw.
    decisions: u64,
    base_from_goal: Isometry3<f64>,
    /// Measured [rad].
    position: [f64; ARM_DOF],
    reference: [f64; ARM_DOF],
    pub(super) running: Running,
    /// Raw observation of the newest states.
    pub(super) observation: Vec<f32>,
    stage: Stage,
    sums: Sums,
    open: Fragment,
    /// Steps recorded in this environment of this stream.
    recorded: u64,
}

/// What the states of a tick brought.
pub(super) enum Arrival {
    /// Nothing to tell.
    Quiet,
    /// The episode ended by the task or its time limit.
    Ended(EpisodeStats),
    /// A state that no arm has: the episode was aborted; its outcome if it had a valid step.
    Broken(Option<EpisodeStats>),
}

impl Episode {
    pub(super) fn new(env: u32, seed: Seed, contract: &Contract) -> Self {
        let obs_size = contract.obs_size();
        Self {
            env,
            seed: seed.child(u64::from(env)),
            number: 0,
            t: 0,
            decisions: 0,
            base_from_goal: Isometry3::identity(),
            position: [0.0; ARM_DOF],
            reference: [0.0; ARM_DOF],
            running: Running::default(),
            observation: Vec::with_capacity(obs_size),
            stage: Stage::Fresh,
            sums: Sums::new(contract.options.count),
            open: Fragment { env, first: 0, obs_size, steps: vec![], observations: vec![], finals: vec![] },
            recorded: 0,
        }
    }

    /// Whether it waits for a decision.
    pub(super) fn arrived(&self) -> bool {
        matches!(self.stage, Stage::Arrived)
    }

    /// Whether its next command is a reset.
    pub(super) fn fresh(&self) -> bool {
        matches!(self.stage, Stage::Fresh)
    }

    /// Steps recorded in this environment of this stream.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// The newest step of the open fragment.
    pub(super) fn newest(&self) -> Option<audit::Step> {
        let step = self.open.steps.last()?;
        let index = self.recorded.checked_sub(1)?;
        Some(audit::Step { env: self.env, index, episode: step.episode, t: step.t })
    }

    /// Steps in the open fragment.
    pub(super) fn open_steps(&self) -> usize {
        self.open.steps.len()
    }

    /// The key of the next decision's draws.
    pub(super) fn draw(&self) -> (Seed, u64) {
        (self.seed.of(Purpose::Decisions), self.decisions)
    }

    /// Takes the states of a tick: completes the pending step, or observes the start.
    pub(super) fn arrive(
        &mut self,
        task: &dyn Task,
        stamp_secs: f64,
        position: &[f64; STATE_DOF],
        velocity: &[f64; STATE_DOF],
        rollout: &str,
    ) -> Arrival {
        if matches!(self.stage, Stage::Fresh) {
            return Arrival::Quiet;
        }
        if !position.iter().chain(velocity).all(|value| value.abs() <= MOST) {
            return Arrival::Broken(self.abort(stamp_secs, rollout));
        }
        if let Stage::Starting(start) = &self.stage {
            self.reference = start.position;
            self.base_from_goal = start.base_from_goal;
        }
        self.position = std::array::from_fn(|joint| position[joint]);
        let arm = Arm::new(self.position, std::array::from_fn(|joint| velocity[joint]), self.reference);
        let answered = std::mem::take(&mut self.observation);
        task.observe(&arm, &self.base_from_goal, &mut self.observation);
        match std::mem::replace(&mut self.stage, Stage::Arrived) {
            Stage::Pending(pending) => self.complete(task, &arm, *pending, &answered, stamp_secs, rollout),
            _ => Arrival::Quiet,
        }
    }

    /// Draws the next episode and gives the reset: joint positions and the episode's seed.
    /// A goal takes the place of the drawn one.
    pub(super) fn reset(
        &mut self,
        task: &dyn Task,
        limits: &Limits,
        goal: Option<Isometry3<f64>>,
    ) -> ([f64; ARM_DOF], u64) {
        let mut start = task.start(limits, &mut self.seed.of(Purpose::Episodes).rng(self.number));
        start.base_from_goal = goal.unwrap_or(start.base_from_goal);
        let position = start.position;
        self.stage = Stage::Starting(start);
        (position, self.seed.of(Purpose::Simulator).child(self.number).number())
    }

    /// The goal from here on, in the middle of an episode too.
    pub(super) fn set_goal(&mut self, base_from_goal: Isometry3<f64>) {
        self.base_from_goal = base_from_goal;
        if let Stage::Starting(start) = &mut self.stage {
            start.base_from_goal = base_from_goal;
        }
    }

    /// Takes a decision and gives the joint targets: the reference moved by the action, inside the limits, and no farther than
    /// the leash from where the arm was measured.
    pub(super) fn act(
        &mut self,
        decision: Decision,
        version: u64,
        stamp_secs: f64,
        step_rad: f64,
        leash_rad: f64,
        limits: &Limits,
    ) -> [f64; ARM_DOF] {
        let from = self.reference;
        for (joint, action) in decision.choice.action.iter().enumerate().take(ARM_DOF) {
            self.reference[joint] = (self.reference[joint] + step_rad * f64::from(*action))
                .clamp(limits.position_min_rad[joint], limits.position_max_rad[joint])
                .clamp(self.position[joint] - leash_rad, self.position[joint] + leash_rad);
        }
        self.running = decision.next;
        self.decisions += 1;
        self.stage = Stage::Pending(Box::new(Pending { decision, version, stamp_secs, from, filtered: false }));
        self.reference
    }

    /// Where a guard leads the arm instead [rad]: the step that is under way then records what was carried out.
    pub(super) fn led(&mut self, reference: &[f64; ARM_DOF], step_rad: f64) {
        match &mut self.stage {
            Stage::Starting(start) => start.position = *reference,
            Stage::Pending(pending) => {
                for joint in (0..ARM_DOF).filter(|&joint| LED_RAD < (reference[joint] - self.reference[joint]).abs()) {
                    let carried_out = (reference[joint] - pending.from[joint]) / step_rad;
                    pending.decision.choice.action[joint] = carried_out.clamp(-1.0, 1.0) as f32;
                    pending.filtered = true;
                }
            }
            Stage::Fresh | Stage::Arrived => {}
        }
        self.reference = *reference;
    }

    /// Whether an episode has a valid step, and goes on.
    pub(super) fn under_way(&self) -> bool {
        0 < self.t
    }

    /// Joint targets that change nothing.
    pub(super) fn hold(&self) -> [f64; ARM_DOF] {
        self.reference
    }

    /// Ends the episode by a fault: the pending step is dropped, the last recorded one becomes the last.
    pub(super) fn abort(&mut self, stamp_secs: f64, rollout: &str) -> Option<EpisodeStats> {
        let begun = !matches!(self.stage, Stage::Fresh);
        let valid = self.t;
        if let Some(last) = self.open.steps.last_mut()
            && last.end == End::None
            && last.episode == self.number
        {
            last.end = End::Aborted;
            self.open.finals.push(Final { step: self.open.steps.len() - 1, observation: self.observation.clone() });
        }
        let stats = (begun && 0 < valid).then(|| self.outcome(End::Aborted, (false, false), stamp_secs, rollout));
        self.next_episode();
        stats
    }

    /// Takes the open fragment, if it holds a step.
    pub(super) fn close(&mut self) -> Option<Fragment> {
        let last = self.open.steps.last()?;
        match (last.end, self.open.finals.last()) {
            (End::None, _) | (_, None) => self.open.observations.extend_from_slice(&self.observation),
            (_, Some(last)) => self.open.observations.extend_from_slice(&last.observation),
        }
        let empty = Fragment {
            env: self.env,
            first: self.recorded,
            obs_size: self.open.obs_size,
            steps: vec![],
            observations: vec![],
            finals: vec![],
        };
        Some(std::mem::replace(&mut self.open, empty))
    }

    fn complete(
        &mut self,
        task: &dyn Task,
        arm: &Arm,
        pending: Pending,
        answered: &[f32],
        stamp_secs: f64,
        rollout: &str,
    ) -> Arrival {
        let Pending { decision, version, stamp_secs: decided_secs, filtered, .. } = pending;
        let judgement = task.judge(arm, &self.base_from_goal, &decision.choice.action);
        self.count(&decision, &judgement);
        let end = match self.t + 1 {
            _ if judgement.terminated => End::Terminated,
            length if task.episode_steps() <= length && defect("time_limit_recorded_as_terminal") => End::Terminated,
            length if task.episode_steps() <= length => End::Truncated,
            _ => End::None,
        };
        self.open.observations.extend_from_slice(answered);
        if end != End::None {
            self.open.finals.push(Final { step: self.open.steps.len(), observation: self.observation.clone() });
        }
        self.open.steps.push(Transition {
            version,
            episode: self.number,
            t: self.t,
            stamp_secs: decided_secs,
            choice: decision.choice,
            filtered,
            intervened: false,
            reward: judgement.reward as f32,
            end,
        });
        self.t += 1;
        self.recorded += 1;
        if end == End::None {
            return Arrival::Quiet;
        }
        let success = (judgement.success, judgement.success_strict);
        let stats = self.outcome(end, success, stamp_secs, rollout);
        self.next_episode();
        Arrival::Ended(stats)
    }

    fn count(&mut self, decision: &Decision, judgement: &crate::task::Judgement) {
        let sums = &mut self.sums;
        sums.option_steps[usize::from(decision.choice.option)] += 1;
        if decision.choice.option_terminated && decision.choice.forced != Forced::Init {
            sums.option_runs[usize::from(decision.choice.option_prev)] += 1;
            sums.forced_ends += u32::from(decision.choice.forced == Forced::MaxSteps);
        }
        sums.episode_return += judgement.reward;
        sums.error = judgement.error;
        if judgement.success && sums.first_success.is_none() {
            sums.first_success = Some(self.t + 1);
        }
    }

    fn outcome(
        &self,
        end: End,
        (success, success_strict): (bool, bool),
        stamp_secs: f64,
        rollout: &str,
    ) -> EpisodeStats {
        EpisodeStats {
            stamp_secs,
            rollout: rollout.to_owned(),
            env: self.env,
            episode: self.number,
            version: self.open.steps.last().map_or(0, |step| step.version),
            episode_return: self.sums.episode_return as f32,
            length: self.t,
            end,
            final_error: self.sums.error as f32,
            success,
            success_strict,
            first_success_step: self.sums.first_success.unwrap_or(self.t),
            option_steps: self.sums.option_steps.clone(),
            option_runs: self.sums.option_runs.clone(),
            forced_ends: self.sums.forced_ends,
        }
    }

    fn next_episode(&mut self) {
        self.number += 1;
        self.t = 0;
        self.running = Running::default();
        self.sums = Sums::new(self.sums.option_steps.len());
        self.stage = Stage::Fresh;
    }
}
