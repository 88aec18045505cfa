//! The rollout and its side of the protocol: whom it follows, when it may act, what it ships. No clock, no network.

use super::{EpisodeState, Permit, Rollout};
use crate::contract::{Hash, Snapshot};
use crate::data::audit::{Note, Trail};
use crate::data::{
    Ack, Act, ArmCommands, ArmStates, Batch, EpisodeStats, Follow, GoalPose, Heard, LearnerStatus, Origin, Outbox,
    RolloutStatus, Wait,
};
use crate::error::{Error, Result};
use crate::node::Report;
use nalgebra::{Isometry3, Quaternion, UnitQuaternion};
use std::sync::Arc;
use std::time::Duration;

/// A rollout that follows a learner.
pub struct Agent {
    pub(super) rollout: Rollout,
    follow: Follow,
    outbox: Outbox,
    contract_hash: Hash,
    fragment_steps: usize,
    /// Of the steps that are recorded and not pushed.
    origin: Option<Origin>,
    held: Hash,
    state: String,
    leaving: bool,
    evaluates: bool,
    /// The sim serves another stream: this one takes no part in a phase.
    unserved: bool,
    /// It said that it waits for a learner.
    waited: bool,
    /// Episodes that ended since the last look, for people.
    episodes: Vec<EpisodeStats>,
    /// What keeps it besides the protocol.
    aside: Option<String>,
    /// Hardware does not wait for a window: it acts on, and what does not fit is counted.
    waits: bool,
    trail: Trail,
    /// The last sentence that was told about a learner that is not followed, or weights that were refused.
    told: String,
}

impl Agent {
    /// `fragment_steps`: steps that are recorded before they are shipped.
    pub fn new(rollout: Rollout, follow: Follow, outbox: Outbox, fragment_steps: usize) -> Self {
        let contract_hash = rollout.contract.hash();
        let state = Wait::Learner.to_string();
        Self {
            rollout,
            follow,
            outbox,
            contract_hash,
            fragment_steps,
            origin: None,
            held: Hash::default(),
            state,
            leaving: false,
            evaluates: false,
            unserved: false,
            waited: false,
            episodes: Vec::new(),
            aside: None,
            waits: true,
            trail: Trail::default(),
            told: String::new(),
        }
    }

    /// The same, but it ships nothing, waits for nothing but weights, and takes goals from outside.
    pub fn evaluating(rollout: Rollout, follow: Follow, outbox: Outbox) -> Self {
        Self { evaluates: true, ..Self::new(rollout, follow, outbox, usize::MAX) }
    }

    /// The same on hardware, which does not wait for a full window: it acts on.
    pub fn unstoppable(self) -> Self {
        Self { waits: false, ..self }
    }

    /// A goal was told; refused while transitions are recorded, and in another frame than the arm's base.
    pub fn goal(&mut self, goal: &GoalPose) -> Result<()> {
        if !self.evaluates {
            return Err(Error::invalid(
                "goal_pose was heard by a rollout that trains: its goals are drawn by the task",
            ));
        }
        let base = format!("{}_link0", self.rollout.contract.robot.prefix());
        if goal.frame != base {
            return Err(Error::invalid(format!("goal_pose is in frame {:?}; it must be in {base:?}", goal.frame)));
        }
        let [qw, qx, qy, qz] = goal.orientation;
        let rotation = UnitQuaternion::from_quaternion(Quaternion::new(qw, qx, qy, qz));
        self.rollout.set_goal(Isometry3::from_parts(goal.position.into(), rotation));
        Ok(())
    }

    /// A learner's status was heard.
    pub fn learner_status(&mut self, status: &LearnerStatus, now: Duration) {
        let heard = self.follow.status(status, now);
        self.heard(heard);
    }

    /// Weights were offered, latched or pulled. What does not fit is refused; the last good snapshot stays.
    pub fn weights(&mut self, snapshot: &Arc<Snapshot>, now: Duration) {
        let heard = self.follow.offered(snapshot.run, snapshot.life, now);
        self.heard(heard);
        if !self.follow.wants(snapshot.run, snapshot.life, snapshot.version) {
            return;
        }
        match self.rollout.install(snapshot.clone()) {
            Ok(()) => {
                self.held = snapshot.hash();
                self.follow.holds(snapshot.life, snapshot.version, self.held, now);
            }
            Err(error) => self.tell(error.to_string()),
        }
    }

    /// The learner acknowledged.
    pub fn ack(&mut self, ack: &Ack) {
        self.outbox.acknowledge(ack);
    }

    /// Answers the states of a tick.
    pub fn states(&mut self, states: &ArmStates) -> Result<ArmCommands> {
        self.unserved = states.bound.as_ref().is_some_and(|bound| bound != self.outbox.stream());
        if self.unserved {
            return self.wait_for_sim(states);
        }
        if self.evaluates {
            return self.evaluate(states);
        }
        let recorded = self.rollout.arrive(states)?;
        for &env in &recorded {
            self.follow.stepped(env, self.origin.map_or(0, |origin| origin.phase));
        }
        if self.trail.wanted() && !recorded.is_empty() {
            let steps = recorded.iter().filter_map(|&env| self.rollout.newest(env)).collect();
            self.trail.note(|| Note::Recorded { stream: self.outbox.stream().clone(), steps });
        }
        if self.fragment_steps <= self.rollout.open_steps() {
            self.flush();
        }
        let mut act = self.follow.may_act(self.waits && self.outbox.full());
        // what was recorded for another learner or phase is shipped as that
        let turned =
            |origin: Origin| Act::Act(origin.phase) != act || self.follow.learner() != Some((origin.run, origin.life));
        if matches!(act, Act::Wait(_)) || self.origin.is_some_and(turned) {
            self.flush();
            act = self.follow.may_act(self.waits && self.outbox.full());
        }
        match act {
            Act::Wait(wait) => {
                let state = wait.to_string();
                if wait == Wait::Learner && !self.waited {
                    tracing::info!("{state}");
                    self.waited = true;
                }
                self.state = state;
                self.rollout.answer(states, Permit::Hold)
            }
            Act::Act(phase) => {
                self.state.clear();
                self.state.push_str("acting");
                self.origin = self.follow.learner().map(|(run, life)| Origin {
                    run,
                    life,
                    phase,
                    contract_hash: self.contract_hash,
                });
                let follow = &self.follow;
                self.rollout.answer(states, Permit::Act(&|env| follow.may_step(env)))
            }
        }
    }

    /// Time that the policy took so far.
    pub fn inference(&self) -> Duration {
        self.rollout.inference()
    }

    /// See [`Rollout::state`].
    pub fn state(&self) -> Result<Vec<EpisodeState>> {
        self.rollout.state()
    }

    /// See [`Rollout::restore`].
    pub fn restore(&mut self, states: Vec<EpisodeState>) -> Result<()> {
        self.rollout.restore(states)
    }

    /// From now on the fate of every transition is noted, see [`Self::notes`].
    pub fn audit(&mut self) {
        self.trail.start();
        self.outbox.audit();
    }

    /// What was noted since the last call; written down before anything is sent.
    pub fn notes(&mut self) -> Vec<Note> {
        let mut notes = self.trail.take();
        notes.extend(self.outbox.notes());
        notes
    }

    /// What keeps it from acting besides the protocol, in a few words; none if nothing does.
    pub fn aside(&mut self, words: Option<String>) {
        self.aside = words;
    }

    /// Whether another run may be followed once the followed one is silent.
    pub fn may_adopt(&mut self, may: bool) {
        self.follow.allow_switch(may);
    }

    /// What happens to the arms is nothing that this one has done: its episodes end as aborted, and are shipped.
    pub fn interrupt(&mut self, stamp_secs: f64) {
        self.rollout.interrupt(stamp_secs);
        self.flush();
    }

    /// What it says to whoever looks after it.
    pub fn report(&self) -> Report {
        let (status, outbox, counters) = (self.status(), self.outbox.counters(), self.rollout.counters());
        Report {
            waits: !["acting", "evaluating"].contains(&status.state.as_str()),
            phase: status.state,
            progress: counters.steps,
            waits_for: Vec::new(),
            counts: vec![
                ("version", status.version),
                ("steps", counters.steps),
                ("in_flight", u64::from(status.in_flight)),
                ("queue_batches", u64::from(status.queue_batches)),
                ("held_batches", self.outbox.held() as u64),
                ("resent_batches", outbox.resent),
                ("voided", outbox.voided),
                ("overflowed", outbox.overflowed),
                ("aborted_episodes", counters.aborted_episodes),
                ("refused_weights", counters.refused_weights),
                ("held_ticks", counters.held_ticks),
            ],
        }
    }

    /// Batches to send now.
    pub fn due(&mut self, now: Duration) -> Vec<Batch> {
        self.outbox.due(now)
    }

    /// Whether to pull the newest weights now.
    pub fn pull_due(&mut self, now: Duration) -> bool {
        self.follow.pull_due(now)
    }

    /// Says goodbye: [`Self::status`] tells it from now on.
    pub fn leave(&mut self) {
        self.flush();
        self.leaving = true;
        self.state = "leaving".into();
    }

    /// Episodes that ended since the last call.
    pub fn episodes(&mut self) -> Vec<EpisodeStats> {
        std::mem::take(&mut self.episodes)
    }

    /// What it tells the learner and people.
    pub fn status(&self) -> RolloutStatus {
        let counters = self.rollout.counters();
        let learner = self.follow.learner();
        RolloutStatus {
            run: self.follow.run(),
            life: learner.map_or(0, |(_, life)| life),
            stream: self.outbox.stream().clone(),
            version: self.rollout.snapshot().map_or(0, |snapshot| snapshot.version),
            hash: self.held,
            phase: self.origin.map_or(0, |origin| origin.phase),
            steps: counters.steps,
            phase_steps: self.follow.phase_steps(),
            num_envs: self.rollout.num_envs() as u32,
            leaving: self.leaving || self.unserved,
            state: self.aside.as_ref().unwrap_or(&self.state).clone(),
            in_flight: self.outbox.in_flight() as u32,
            queue_batches: self.outbox.queued() as u32,
            aborted_episodes: counters.aborted_episodes,
            refused_weights: counters.refused_weights,
            held_ticks: counters.held_ticks,
        }
    }

    /// What the sim does for another stream is nothing that this one has done: its episodes end as aborted. HOLD is
    /// refused while the other lives, and takes over when it is silent.
    fn wait_for_sim(&mut self, states: &ArmStates) -> Result<ArmCommands> {
        if let Some(bound) = &states.bound {
            self.tell(format!("the sim serves {bound}, not {}: it waits for its turn", self.outbox.stream()));
        }
        self.interrupt(states.stamp_secs);
        self.state = "waiting for the sim".into();
        self.rollout.answer(states, Permit::Hold)
    }

    fn evaluate(&mut self, states: &ArmStates) -> Result<ArmCommands> {
        self.rollout.arrive(states)?;
        let (_not_shipped, episodes) = self.rollout.take();
        self.episodes.extend(episodes);
        let acts = self.rollout.snapshot().is_some();
        self.state = if acts { "evaluating".into() } else { Wait::Weights.to_string() };
        self.rollout.answer(states, if acts { Permit::Act(&|_| true) } else { Permit::Hold })
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Adopted { run, life } => {
                self.flush();
                self.outbox.adopt(run, life);
                tracing::info!("follows run {run}, life {life} of its learner");
            }
            Heard::Other(sentence) => self.tell(sentence),
            Heard::Same | Heard::Old => {}
        }
    }

    /// Ships what is recorded, under the weights and phase that it was recorded with.
    fn flush(&mut self) {
        let (fragments, episodes) = self.rollout.take();
        self.episodes.extend_from_slice(&episodes);
        if let Some(origin) = self.origin
            && !fragments.is_empty()
        {
            self.outbox.push(fragments, episodes, origin);
        }
    }

    fn tell(&mut self, sentence: String) {
        if self.told != sentence {
            tracing::error!("{sentence}");
            self.told = sentence;
        }
    }
}
