//! What each message says.

use super::{Decision, Walk};
use crate::analysis::episodes::Episode;
use crate::analysis::lead::Leads;
use crate::analysis::logged::steps;
use crate::analysis::options::Step;
use crate::analysis::replay::{self, joint_state};
use crate::analysis::rows::{self, Block};
use crate::analysis::topics::Role;
use crate::bag::{Message, Schema, decode, jump_back, message};
use crate::contract::{PolicyWeights, Snapshot};
use crate::data::wire::{EpisodeMessage, Stamp};
use crate::data::{Batch, EpisodeStats, Forced};
use crate::error::Result;
use crate::robot::PerJoint;
use std::sync::Arc;

impl Walk<'_> {
    pub(super) fn message(
        &mut self,
        role: Role,
        schema: &Schema,
        message: &Message,
        each: &mut dyn FnMut(&Decision),
    ) -> Result<()> {
        let at_secs = (message.time_ns.saturating_sub(self.start_ns)).max(0) as f64 * 1e-9;
        if let Some(back_ns) = jump_back(self.last_ns, message.time_ns) {
            self.split(back_ns as f64 * 1e-9);
        }
        self.last_ns = message.time_ns;
        // what does not decode was counted by the survey
        match role {
            Role::States => {
                if let Ok(state) = decode::<message::JointState<'_>>(schema, &message.data) {
                    self.state(&state, message.time_ns, at_secs, each)?;
                }
            }
            Role::Commands => {
                if let Ok(command) = decode::<message::JointState<'_>>(schema, &message.data) {
                    self.command(role, &command, message.time_ns, at_secs);
                }
            }
            Role::Trajectories => {
                if let Ok(trajectory) = decode::<message::JointTrajectory<'_>>(schema, &message.data)
                    && let Some(mut command) = trajectory.first()
                {
                    if command.header.stamp == Stamp::default() {
                        // it begins when it is received: what it answers is the newest state
                        command.header.stamp = self.last_stamp;
                    }
                    self.command(role, &command, message.time_ns, at_secs);
                }
            }
            Role::Target => {
                if let (Ok(target), Some(lead)) =
                    (decode::<message::JointState<'_>>(schema, &message.data), &mut self.lead)
                {
                    let leads = lead.target(joint_state(&target));
                    self.led(leads);
                }
            }
            Role::Goal => {
                if let Ok(pose) = decode::<message::PoseStamped<'_>>(schema, &message.data)
                    && let Some(replay) = &mut self.replay
                    && let Ok(goal) = replay::goal(&pose)
                {
                    let ended = replay.goal(&goal);
                    ended.iter().for_each(|episode| self.record.add(episode));
                }
            }
            Role::Options => {
                if let Ok(option) = decode::<message::OptionState<'_>>(schema, &message.data) {
                    self.option(&option, at_secs);
                }
            }
            Role::Diagnostics => {
                if let Ok(array) = decode::<message::DiagnosticArray<'_>>(schema, &message.data) {
                    self.watch.diagnostics(at_secs, &array);
                }
            }
            Role::Weights => {
                let snapshot = decode::<PolicyWeights>(schema, &message.data).and_then(Snapshot::try_from);
                if let Ok(snapshot) = snapshot {
                    self.weights(&Arc::new(snapshot));
                }
            }
            Role::Transitions => {
                let batch = decode::<message::BatchMessage>(schema, &message.data).and_then(Batch::try_from);
                match batch {
                    Ok(batch) => self.batch(&batch, at_secs)?,
                    Err(error) => *self.refused.entry(error.to_string()).or_default() += steps(schema, message),
                }
            }
            Role::Episodes => {
                let stats = decode::<EpisodeMessage>(schema, &message.data).and_then(EpisodeStats::try_from);
                // attempts at goals are the same episodes
                if let (Ok(stats), None | Some(0)) = (stats, self.replay.as_ref().map(|replay| replay.decisions)) {
                    self.episode(&stats, at_secs);
                }
            }
        }
        Ok(())
    }

    /// The clock was set back: nothing from before goes on.
    fn split(&mut self, back_secs: f64) {
        self.watch.void();
        self.process.split();
        self.received.clear();
        if let Some(replay) = &mut self.replay {
            replay.split(back_secs).iter().for_each(|episode| self.record.add(episode));
        }
    }

    fn weights(&mut self, snapshot: &Arc<Snapshot>) {
        self.recent = Some((snapshot.run, snapshot.life));
        let newest = self.newest.entry((snapshot.run, snapshot.life)).or_default();
        *newest = (*newest).max(snapshot.version);
        if let Some(judge) = &mut self.judge {
            judge.keep(snapshot);
        }
        if let (Some(replay), None) = (&mut self.replay, &self.setup.present) {
            replay.weights(snapshot);
        }
    }

    fn state(
        &mut self,
        state: &message::JointState<'_>,
        time_ns: i64,
        at_secs: f64,
        each: &mut dyn FnMut(&Decision),
    ) -> Result<()> {
        let stamp_ns = state.header.stamp.nanoseconds();
        if stamp_ns < self.last_stamp.nanoseconds() {
            self.watch.void();
        }
        self.last_stamp = state.header.stamp;
        let Some(joints) = &self.joints else { return Ok(()) };
        if let Some(position) = self.places[0].position(joints, state) {
            self.watch.state(stamp_ns, time_ns, at_secs, &position);
        }
        let state = joint_state(state);
        let leads = self.lead.as_mut().and_then(|lead| lead.state(state.stamp_secs));
        self.led(leads);
        let Some(replay) = &mut self.replay else { return Ok(()) };
        let (decision, ended) = replay.state(&state, at_secs);
        if let Some(episode) = ended {
            self.record.add(&episode);
        }
        if let Some((decision, velocity)) = decision {
            each(&decision);
            if !self.published {
                self.process.add(&Step {
                    at_secs,
                    env: 0,
                    begins: false,
                    option: decision.option,
                    chosen: decision.duration == 1,
                    forced: false,
                    termination_prob: f64::from(decision.termination_prob),
                    velocity: Some(velocity),
                });
            }
            while let Some(block) = self.replay.as_mut().and_then(|replay| replay.block(false)) {
                self.judge(&block)?;
            }
        }
        Ok(())
    }

    fn command(&mut self, role: Role, command: &message::JointState<'_>, time_ns: i64, at_secs: f64) {
        let Some(joints) = &self.joints else { return };
        let stamp_ns = command.header.stamp.nanoseconds();
        let position = self.places[1].position(joints, command);
        self.watch.command(stamp_ns, time_ns, at_secs, position);
        let (command, heard) = (joint_state(command), role == Role::Commands);
        let answers = self.watch.knows(stamp_ns).then_some(command.stamp_secs);
        let leads = match &mut self.lead {
            Some(lead) => lead.command(command, answers, heard),
            None => heard.then_some(Leads::By(command)),
        };
        self.led(leads);
    }

    fn led(&mut self, leads: Option<Leads>) {
        if let (Some(replay), Some(leads)) = (&mut self.replay, leads) {
            replay.led(&leads);
        }
    }

    fn option(&mut self, option: &message::OptionState<'_>, at_secs: f64) {
        let by = self.judge.as_ref().and_then(|judge| judge.heard(option.version));
        let (begins, velocity) = match &mut self.replay {
            Some(replay) => replay.published(option, by),
            None => (false, None),
        };
        let most = self.contract.as_ref().map_or(u32::MAX, |contract| contract.options.max_steps);
        self.process.add(&Step {
            at_secs,
            env: 0,
            begins,
            option: option.option,
            chosen: option.duration == 1,
            forced: option.duration == 1 && self.process.age(0) == Some(most),
            termination_prob: f64::from(option.termination_prob),
            velocity,
        });
        let life = by.map(|(run, life, _)| (run, life)).or(self.recent);
        if let Some(newest) = life.and_then(|life| self.newest.get(&life)) {
            self.watch.lag(at_secs, option.version, *newest);
        }
    }

    fn episode(&mut self, stats: &EpisodeStats, at_secs: f64) {
        self.record.add(&Episode {
            at_secs,
            name: format!("episode {} of {} environment {}", stats.episode, stats.rollout, stats.env),
            episode_return: f64::from(stats.episode_return),
            length: stats.length,
            end: rows::end(stats.end),
            error: f64::from(stats.final_error),
            success: stats.success,
            success_strict: stats.success_strict,
        });
    }

    fn batch(&mut self, batch: &Batch, at_secs: f64) -> Result<()> {
        let fits = match (&self.contract, self.contracts.get(&batch.contract_hash)) {
            (None, _) => Ok(()),
            (Some(_), Some(theirs)) => crate::data::check(batch, theirs, &batch.contract_hash),
            (Some(ours), None) => crate::data::check(batch, ours, &ours.hash()),
        };
        let (run, stream) = (batch.run.to_string(), &batch.stream);
        if !self.met[usize::from(fits.is_ok())].first(&run, &stream.rollout, stream.incarnation, batch.seq) {
            return Ok(()); // sent again
        }
        if let Err(refusal) = fits {
            *self.refused.entry(refusal.to_string()).or_default() += batch.steps();
            return Ok(());
        }
        batch.episodes.iter().for_each(|stats| self.episode(stats, at_secs));
        let newest = self.newest.get(&(batch.run, batch.life)).copied();
        let mut heard = Vec::new();
        for fragment in &batch.fragments {
            let count = self.envs.len();
            let env = *self.envs.entry((batch.run, stream.to_string(), fragment.env)).or_insert(count);
            let expected = self.expected.get(&env).copied().unwrap_or(fragment.first);
            let late = fragment.first < expected;
            if fragment.first != expected {
                self.process.part(env);
            }
            let since_secs = self.received.get(&env).copied().unwrap_or(at_secs);
            heard.push(env);
            let at = rows::times(fragment, at_secs, since_secs, self.start_ns);
            let place = |name| self.contract.as_ref().and_then(|contract| rows::field(contract, name));
            let (velocities, leads) = (place("joint_velocity_rad_per_sec"), place("reference_minus_position_rad"));
            for (t, step) in fragment.steps.iter().enumerate() {
                let observed = |range: &std::ops::Range<usize>| -> Option<PerJoint> {
                    let floats = fragment.observation(t).get(range.clone())?;
                    floats.iter().map(|&float| f64::from(float)).collect::<Vec<_>>().try_into().ok()
                };
                self.process.add(&Step {
                    at_secs: at(t),
                    env,
                    begins: step.choice.forced == Forced::Init,
                    option: step.choice.option,
                    chosen: step.choice.option_terminated,
                    forced: step.choice.forced == Forced::MaxSteps,
                    termination_prob: f64::from(step.choice.termination_prob),
                    velocity: velocities.as_ref().and_then(observed),
                });
                self.watch.interference(step.filtered, step.intervened);
                if let Some(newest) = newest {
                    self.watch.lag(at(t), step.version, newest);
                }
                if let Some(lead) = leads.as_ref().and_then(observed) {
                    self.watch.tracked(at(t), &lead);
                }
            }
            let (steps, life) = (fragment.steps.len() as u64, (batch.run, batch.life));
            self.transitions += steps;
            self.judge(&Block::of(fragment, life, env, at))?;
            if late {
                self.process.part(env);
                self.late += 1;
            } else {
                self.expected.insert(env, fragment.first + steps);
            }
        }
        self.received.extend(heard.into_iter().map(|env| (env, at_secs)));
        Ok(())
    }
}
