//! The recorded states, commands and goals of one robot through the node that would run the policy, dry.

use super::episodes::{Attempts, Episode};
use super::lead::Leads;
use super::rows::{Block, Name, Published, Row};
use crate::bag::message;
use crate::config::Seed;
use crate::contract::{Contract, Snapshot};
use crate::data::{GoalPose, JointState, OptionState};
use crate::error::Result;
use crate::link::Preset;
use crate::node::policy::{Decided, Pilot, Settings};
use crate::option::Running;
use crate::policy::{Sampling, running};
use crate::robot::{ARM_DOF, PerJoint, Robot};
use nalgebra::{Isometry3, Quaternion, UnitQuaternion};
use std::collections::VecDeque;
use std::sync::Arc;

/// Decisions that are judged together.
const BLOCK: usize = 512;
/// Decisions that a published option may answer late.
const LATE: usize = 128;
/// Stamps this close are the same [s].
const SAME_SECS: f64 = 1e-6;

struct Waiting {
    row: Row,
    stamp_secs: f64,
    observation: Vec<f32>,
    velocity: PerJoint,
}

/// One robot's replay.
pub(super) struct Replay {
    pilot: Pilot,
    attempts: Attempts,
    period_secs: f64,
    waiting: VecDeque<Waiting>,
    /// The recorded process: stamp, option, steps that it has run.
    recorded: Option<(f64, u8, u32)>,
    last_stamp_secs: f64,
    /// What the clock of recording was set back by in all: the node's own clock never was [s].
    back_secs: f64,
    /// Attempts begun.
    begun: u64,
    ticks: u32,
    pub(super) decisions: u64,
    pub(super) refused: u64,
    pub(super) refusal: Option<String>,
}

impl Replay {
    /// Of an arm whose joints have a prefix.
    pub(super) fn new(contract: &Contract, arm: Robot, prefix: &str, seed: u64, sampling: Sampling) -> Result<Self> {
        let step_rad = contract.action.step_rad(contract.control_period_secs);
        let mut guard = Preset::Isaac.guard();
        guard.leash_rad = guard.leash_rad.max(step_rad).min(1.0);
        guard.policy_timeout_secs = guard.policy_timeout_secs.max(2.0 * contract.control_period_secs);
        let (preset, prefix, seed, described) = (Preset::Isaac, prefix.to_owned(), Seed::root(seed), None);
        let pilot = Pilot::new(Settings { arm, preset, prefix, described, guard, seed, sampling, autostart: true })?;
        Ok(Self {
            pilot,
            attempts: Attempts::new(crate::task::find(&contract.task)?, step_rad),
            period_secs: contract.control_period_secs,
            waiting: VecDeque::new(),
            recorded: None,
            last_stamp_secs: f64::NEG_INFINITY,
            back_secs: 0.0,
            begun: 0,
            ticks: 0,
            decisions: 0,
            refused: 0,
            refusal: None,
        })
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome
            .map_err(|error| {
                self.refused += 1;
                self.refusal.get_or_insert(error.to_string());
            })
            .ok()
    }

    /// Weights that the node would hear. The first ones activate it.
    pub(super) fn weights(&mut self, snapshot: &Arc<Snapshot>) {
        let taken = self.pilot.weights(snapshot);
        self.note(taken);
    }

    /// A goal. What was going on ends.
    pub(super) fn goal(&mut self, goal: &GoalPose) -> Option<Episode> {
        let taken = self.pilot.goal(goal);
        self.note(taken)?;
        let [qw, qx, qy, qz] = goal.orientation;
        let rotation = UnitQuaternion::from_quaternion(Quaternion::new(qw, qx, qy, qz));
        self.attempts.goal(Isometry3::from_parts(goal.position.into(), rotation))
    }

    /// The clock of recording was set back: the attempt ends, and what was published before has no successor.
    pub(super) fn split(&mut self, back_secs: f64) -> Option<Episode> {
        self.back_secs += back_secs;
        self.recorded = None;
        self.attempts.end("time was set back")
    }

    /// What leads the arm.
    pub(super) fn led(&mut self, leads: &Leads) {
        match leads {
            Leads::By(command) => self.pilot.led(command),
            Leads::Nobody => self.pilot.unled(),
        }
    }

    /// A state, received at `at_secs`: a decision where one was due, with the joints' velocities, and the attempt that ended before.
    pub(super) fn state(
        &mut self,
        state: &JointState,
        at_secs: f64,
    ) -> (Option<(OptionState, PerJoint)>, Option<Episode>) {
        let acts = self.pilot.states(state, at_secs + self.back_secs);
        let Some(acts) = self.note(acts) else { return (None, None) };
        let (Some(decided), Some(option)) = (acts.decided, acts.option) else { return (None, None) };
        let stamp_secs = option.stamp_secs;
        let passed = stamp_secs - self.last_stamp_secs;
        self.last_stamp_secs = stamp_secs;
        let ended = match passed {
            ..0.0 => self.attempts.end("time was set back"),
            passed if 10.0 * self.period_secs < passed => self.attempts.end("states were missing"),
            _ => None,
        };
        self.decisions += 1;
        let Decided { decision, arm, observation } = decided;
        let reward = self.attempts.tick(at_secs, &arm);
        match reward {
            Some(_) => self.ticks += 1,
            None => (self.begun, self.ticks) = (self.begun + 1, 0),
        }
        if let (Some(last), Some(_)) = (self.waiting.back_mut(), reward) {
            (last.row.reward, last.row.next) = (reward, Some(usize::MAX)); // the next one, wherever it comes to lie
        }
        let running = running(&decision.choice);
        let row = Row {
            at_secs,
            place: (0, self.begun, self.ticks),
            running,
            option: decision.choice.option,
            after: decision.next,
            sampled: None,
            published: None,
            decided: Some(decision.choice.option),
            reward: None,
            terminated: false,
            next: None,
        };
        self.waiting.push_back(Waiting { row, stamp_secs, observation, velocity: arm.velocity });
        (Some((option, arm.velocity)), ended)
    }

    /// What the node published at the time: whether it began anew, how long the former option had run, and the velocities.
    /// `by`: the weights that it decided by.
    pub(super) fn published(
        &mut self,
        option: &message::OptionState<'_>,
        by: Option<Name>,
    ) -> (bool, Option<PerJoint>) {
        let stamp_secs = secs(option.header.stamp);
        let before = self.recorded.replace((stamp_secs, option.option, option.duration));
        let follows = |(stamp, ..): &(f64, u8, u32)| (0.0..1.5 * self.period_secs).contains(&(stamp_secs - stamp));
        let before = before.filter(follows);
        let found =
            self.waiting.iter_mut().rev().take(LATE).find(|one| (one.stamp_secs - stamp_secs).abs() < SAME_SECS);
        let velocity = found.map(|found| {
            let row = &mut found.row;
            row.running =
                before.map_or_else(Running::default, |(_, option, age)| Running { option: Some(option), age });
            row.option = option.option;
            row.after = Running { option: Some(option.option), age: option.duration };
            row.published = Some(Published {
                by,
                over_options: option.option_probs.iter().map(|&share| f64::from(share)).collect(),
                termination_prob: f64::from(option.termination_prob),
            });
            found.velocity
        });
        (before.is_none(), velocity)
    }

    /// Decisions whose turn has come; at the end all of them.
    pub(super) fn block(&mut self, end: bool) -> Option<Block> {
        if !end && self.waiting.len() < BLOCK + LATE {
            return None;
        }
        let count = if end { self.waiting.len() } else { BLOCK };
        let mut block = Block::default();
        for (at, Waiting { mut row, observation, .. }) in self.waiting.drain(..count).enumerate() {
            row.next = row.next.map(|_| at + 1);
            block.rows.push(row);
            block.observations.extend(observation);
        }
        if let Some(next) = self.waiting.front() {
            block.observations.extend(&next.observation);
        }
        (!block.rows.is_empty()).then_some(block)
    }

    /// The attempt that the bag's end cuts off.
    pub(super) fn end(&mut self) -> Option<Episode> {
        self.attempts.end("the end of the bag")
    }
}

/// A recorded state or command in plain numbers.
pub(super) fn joint_state(message: &message::JointState<'_>) -> JointState {
    JointState {
        stamp_secs: secs(message.header.stamp),
        names: message.name.iter().map(|name| (*name).to_owned()).collect(),
        position: message.position.clone(),
        velocity: message.velocity.clone(),
    }
}

/// As nodes read stamps, so that the same stamp is the same number.
pub(super) fn secs(stamp: message::Stamp) -> f64 {
    stamp.secs().unwrap_or(f64::NAN)
}

/// A recorded goal in plain numbers.
pub(super) fn goal(message: &message::PoseStamped<'_>) -> Result<GoalPose> {
    let (at, turned) = (message.pose.position, message.pose.orientation);
    let quaternion = [turned.w, turned.x, turned.y, turned.z];
    GoalPose::new(secs(message.header.stamp), message.header.frame_id.to_owned(), [at.x, at.y, at.z], quaternion)
}

/// Where an arm's joints lie in messages: looked up again only where the names change.
#[derive(Default)]
pub(super) struct Places {
    names: Vec<String>,
    places: Option<[usize; ARM_DOF]>,
}

impl Places {
    /// The arm's positions in a message; none where it has not all of them.
    pub(super) fn position(
        &mut self,
        joints: &[String; ARM_DOF],
        message: &message::JointState<'_>,
    ) -> Option<PerJoint> {
        if !self.names.iter().eq(message.name.iter()) {
            self.names = message.name.iter().map(|name| (*name).to_owned()).collect();
            let place = |joint: &String| self.names.iter().position(|name| name == joint);
            let places: Vec<usize> = joints.iter().filter_map(place).collect();
            self.places = places.try_into().ok();
        }
        let places = self.places?;
        let position = places.map(|place| message.position.get(place).copied().unwrap_or(f64::NAN));
        position.iter().all(|value| value.is_finite()).then_some(position)
    }
}
