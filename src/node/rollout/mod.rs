//! The rollout: acts with the newest snapshot in N environments and records fragments.

mod agent;
mod episode;
pub mod on_link;
mod shell;
#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use episode::EpisodeState;
pub use shell::{Inputs, Outputs, run};

use crate::config::Seed;
use crate::contract::{Contract, Snapshot};
use crate::data::{ArmCommands, ArmStates, EpisodeStats, Fragment, HAND_DOF, Operation, STATE_DOF, StreamId, audit};
use crate::error::{Error, Result};
use crate::option::Running;
use crate::policy::{Decision, Policy, Sampling};
use crate::robot::{ARM_DOF, Limits};
use crate::task::Task;
use episode::{Arrival, Episode};
use nalgebra::Isometry3;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Fingers stay open [m]: the tasks so far fix the gripper.
const OPEN_FINGERS_M: [f64; HAND_DOF] = [0.04; HAND_DOF];

/// What the rollout may do at this tick.
#[derive(Clone, Copy)]
pub enum Permit<'a> {
    /// No time passes.
    Hold,
    /// The environments for which this is true may step.
    Act(&'a dyn Fn(usize) -> bool),
}

/// A snapshot that acts.
struct Acting {
    snapshot: Arc<Snapshot>,
    policy: Policy,
}

/// What a rollout has counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Valid steps recorded.
    pub steps: u64,
    /// Episodes that a fault ended.
    pub aborted_episodes: u64,
    /// Snapshots refused.
    pub refused_weights: u64,
    /// Ticks answered with HOLD in every environment.
    pub held_ticks: u64,
}

/// N environments, the policy that acts in them, and what they recorded. Pure but for the network's forward pass.
pub struct Rollout {
    contract: Arc<Contract>,
    task: &'static dyn Task,
    limits: &'static Limits,
    stream: StreamId,
    sampling: Sampling,
    leash_rad: f64,
    acting: Option<Acting>,
    sim_life: Option<u64>,
    answered: Option<ArmCommands>,
    /// Told from outside; never while transitions are recorded.
    goal: Option<Isometry3<f64>>,
    episodes: Vec<Episode>,
    finished: Vec<EpisodeStats>,
    counters: Counters,
    inference: Duration,
}

impl Rollout {
    /// `seed` is this process's: below run, rollout index and restart count.
    pub fn new(
        contract: Arc<Contract>,
        num_envs: usize,
        stream: StreamId,
        seed: Seed,
        sampling: Sampling,
    ) -> Result<Self> {
        let task = crate::task::find(&contract.task)?;
        Ok(Self {
            episodes: (0..num_envs as u32).map(|env| Episode::new(env, seed, &contract)).collect(),
            limits: contract.robot.limits(),
            contract,
            task,
            stream,
            sampling,
            leash_rad: f64::INFINITY,
            acting: None,
            sim_life: None,
            answered: None,
            goal: None,
            finished: Vec::new(),
            counters: Counters::default(),
            inference: Duration::ZERO,
        })
    }

    /// References keep within this distance of the measured position [rad], as a guard keeps them; none: they run ahead.
    pub fn leashed(self, leash_rad: Option<f64>) -> Self {
        Self { leash_rad: leash_rad.unwrap_or(f64::INFINITY), ..self }
    }

    /// Takes a snapshot that fits the contract; what does not is refused, and the last good one stays.
    pub fn install(&mut self, snapshot: Arc<Snapshot>) -> Result<()> {
        let policy = self
            .contract
            .require_same("this rollout", &snapshot.contract, "the learner's weights")
            .and_then(|()| Policy::new(&snapshot));
        match policy {
            Ok(policy) => {
                self.acting = Some(Acting { snapshot, policy });
                Ok(())
            }
            Err(error) => {
                self.counters.refused_weights += 1;
                Err(error)
            }
        }
    }

    /// The snapshot that acts.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.acting.as_ref().map(|acting| &acting.snapshot)
    }

    /// The goal of every environment from here on. Not for training: a transition's goal is that of its episode.
    pub fn set_goal(&mut self, base_from_goal: Isometry3<f64>) {
        self.goal = Some(base_from_goal);
        for episode in &mut self.episodes {
            episode.set_goal(base_from_goal);
        }
    }

    /// The environments' states between two updates, for [`Self::restore`]; refuses while a step is under way.
    pub fn state(&self) -> Result<Vec<EpisodeState>> {
        self.episodes.iter().map(Episode::state).collect()
    }

    /// Goes on exactly where [`Self::state`] was taken; the simulator must go on there, too.
    pub fn restore(&mut self, states: Vec<EpisodeState>) -> Result<()> {
        if states.len() != self.episodes.len() {
            let (found, want) = (states.len(), self.episodes.len());
            return Err(Error::invalid(format!("{found} environments were saved; this rollout has {want}")));
        }
        self.episodes.iter_mut().zip(states).try_for_each(|(episode, state)| episode.restore(state))
    }

    /// Time that the policy took so far; nothing depends on it.
    pub fn inference(&self) -> Duration {
        self.inference
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Environments.
    pub fn num_envs(&self) -> usize {
        self.episodes.len()
    }

    /// The newest step of an environment's open fragment.
    pub fn newest(&self, env: usize) -> Option<audit::Step> {
        self.episodes.get(env).and_then(Episode::newest)
    }

    /// Steps of the longest open fragment.
    pub fn open_steps(&self) -> usize {
        self.episodes.iter().map(Episode::open_steps).max().unwrap_or(0)
    }

    /// Takes what was recorded: one fragment an environment, and the episodes that ended.
    pub fn take(&mut self) -> (Vec<Fragment>, Vec<EpisodeStats>) {
        (self.episodes.iter_mut().filter_map(Episode::close).collect(), std::mem::take(&mut self.finished))
    }

    /// Takes the states of a tick: completes the pending steps and observes. Returns the environments that recorded a
    /// step. A tick that was answered already brings nothing.
    pub fn arrive(&mut self, states: &ArmStates) -> Result<Vec<usize>> {
        let num_envs = self.episodes.len();
        if states.position.len() != num_envs || states.velocity.len() != num_envs {
            return Err(Error::invalid(format!(
                "the sim has {} environments and this rollout {num_envs}: give both the same rollout.num_envs",
                states.position.len(),
            )));
        }
        if self.answer_to(states).is_some() {
            return Ok(Vec::new());
        }
        if self.sim_life.replace(states.sim_life).is_some_and(|life| life != states.sim_life) {
            self.abort_all(states.stamp_secs);
        }
        let mut recorded = Vec::new();
        let rows = states.position.iter().zip(&states.velocity);
        for (env, (episode, (position, velocity))) in self.episodes.iter_mut().zip(rows).enumerate() {
            let before = episode.recorded();
            match episode.arrive(self.task, states.stamp_secs, position, velocity, &self.stream.rollout) {
                Arrival::Quiet => {}
                Arrival::Ended(stats) => self.finished.push(stats),
                Arrival::Broken(stats) => {
                    self.counters.aborted_episodes += 1;
                    self.finished.extend(stats);
                }
            }
            if before < episode.recorded() {
                recorded.push(env);
            }
        }
        self.counters.steps += recorded.len() as u64;
        Ok(recorded)
    }

    /// Answers the states of a tick, after [`Self::arrive`]. A repeated tick gets the same answer, unless that was
    /// HOLD throughout.
    pub fn answer(&mut self, states: &ArmStates, permit: Permit<'_>) -> Result<ArmCommands> {
        if let Some(answer) = self.answer_to(states) {
            return Ok(answer.clone());
        }
        let mut commands = self.hold(states);
        if let (Permit::Act(may_step), true) = (permit, self.acting.is_some()) {
            self.reset_fresh(&mut commands);
            self.decide(states.stamp_secs, may_step, &mut commands)?;
        }
        if commands.operation.iter().all(|&operation| operation == Operation::Hold) {
            self.counters.held_ticks += 1;
        } else {
            self.answered = Some(commands.clone());
        }
        Ok(commands)
    }

    fn answer_to(&self, states: &ArmStates) -> Option<&ArmCommands> {
        self.answered.as_ref().filter(|answer| (answer.sim_life, answer.tick) == (states.sim_life, states.tick))
    }

    /// Where a guard leads the arm of an environment [rad]; before [`Self::arrive`]. The step that is under way then
    /// records the action that was carried out, and the next one begins from there.
    pub fn led(&mut self, env: usize, reference: &[f64; ARM_DOF]) {
        let step_rad = self.contract.action.step_rad(self.contract.control_period_secs);
        if let Some(episode) = self.episodes.get_mut(env) {
            episode.led(reference, step_rad);
        }
    }

    /// Whether an environment is in an episode with a valid step.
    pub fn under_way(&self) -> bool {
        self.episodes.iter().any(Episode::under_way)
    }

    /// Somebody else drives the simulator: every running episode ends as aborted.
    pub fn interrupt(&mut self, stamp_secs: f64) {
        self.answered = None;
        self.abort_all(stamp_secs);
    }

    /// A new simulator: every running episode ends as aborted.
    fn abort_all(&mut self, stamp_secs: f64) {
        for episode in &mut self.episodes {
            if let Some(stats) = episode.abort(stamp_secs, &self.stream.rollout) {
                self.counters.aborted_episodes += 1;
                self.finished.push(stats);
            }
        }
    }

    fn hold(&self, states: &ArmStates) -> ArmCommands {
        ArmCommands {
            sim_life: states.sim_life,
            tick: states.tick,
            stream: self.stream.clone(),
            operation: vec![Operation::Hold; self.episodes.len()],
            position: self.episodes.iter().map(|episode| with_fingers(episode.hold())).collect(),
            seed: vec![0; self.episodes.len()],
        }
    }

    fn reset_fresh(&mut self, commands: &mut ArmCommands) {
        for (env, episode) in self.episodes.iter_mut().enumerate().filter(|(_, episode)| episode.fresh()) {
            let (position, seed) = episode.reset(self.task, self.limits, self.goal);
            commands.operation[env] = Operation::Reset;
            commands.position[env] = with_fingers(position);
            commands.seed[env] = seed;
        }
    }

    /// One forward pass for every environment that waits and may step.
    fn decide(&mut self, stamp_secs: f64, may_step: &dyn Fn(usize) -> bool, commands: &mut ArmCommands) -> Result<()> {
        let Some(Acting { snapshot, policy }) = &self.acting else { return Ok(()) };
        let mut waiting: Vec<(usize, &mut Episode)> =
            self.episodes.iter_mut().enumerate().filter(|(env, episode)| episode.arrived() && may_step(*env)).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let observations: Vec<f32> = waiting.iter().flat_map(|(_, episode)| &episode.observation).copied().collect();
        let running: Vec<Running> = waiting.iter().map(|(_, episode)| episode.running).collect();
        let mut draws: Vec<_> =
            waiting.iter().map(|(_, episode)| episode.draw()).map(|(seed, n)| seed.rng(n)).collect();
        let begun = Instant::now();
        let decisions: Vec<Decision> = policy.decide(&observations, &running, &mut draws, self.sampling)?;
        self.inference += begun.elapsed();
        let step_rad = self.contract.action.step_rad(self.contract.control_period_secs);
        for ((env, episode), decision) in waiting.iter_mut().zip(decisions) {
            let target = episode.act(decision, snapshot.version, stamp_secs, step_rad, self.leash_rad, self.limits);
            commands.operation[*env] = Operation::Step;
            commands.position[*env] = with_fingers(target);
        }
        Ok(())
    }
}

fn with_fingers(arm: [f64; ARM_DOF]) -> [f64; STATE_DOF] {
    std::array::from_fn(|joint| if joint < ARM_DOF { arm[joint] } else { OPEN_FINGERS_M[joint - ARM_DOF] })
}
