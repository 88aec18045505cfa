//! What each message says.

use super::{Decision, Walk};
use crate::analysis::episodes::Episode;
use crate::analysis::logged::steps;
use crate::analysis::options::Step;
use crate::analysis::replay::{self, joint_state};
use crate::analysis::rows::{self, Block};
use crate::analysis::topics::Role;
use crate::bag::{Message, Schema, decode, jump_back, message};
use crate::contract::{PolicyWeights, Snapshot};
use crate::data::wire::EpisodeMessage;
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
            Role::Commands | Role::Target => {
                if let Ok(command) = decode::<message::JointState<'_>>(schema, &message.data) {
                    self.command(role, &command, message.time_ns, at_secs);
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
        self.newest = self.newest.max(snapshot.version);
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
        if stamp_ns < self.last_stamp_ns {
            self.watch.void();
        }
        self.last_stamp_ns = stamp_ns;
        let Some(joints) = &self.joints else { return Ok(()) };
        if let Some(position) = self.places[0].position(joints, state) {
            self.watch.state(stamp_ns, time_ns, at_secs, &position);
        }
        let Some(replay) = &mut self.replay else { return Ok(()) };
        let (decision, ended) = replay.state(&joint_state(state), at_secs);
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
        if role == Role::Commands {
            let position = self.places[1].position(joints, command);
            self.watch.command(command.header.stamp.nanoseconds(), time_ns, at_secs, position);
        }
        if let (Some(replay), true) = (&mut self.replay, self.target_leads == (role == Role::Target)) {
            replay.led(&joint_state(command));
        }
    }

    fn option(&mut self, option: &message::OptionState<'_>, at_secs: f64) {
        let (begins, velocity) = match &mut self.replay {
            Some(replay) => replay.published(option),
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
        if 0 < self.newest {
            self.watch.lag(at_secs, option.version, self.newest);
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
        let fits = match &self.contract {
            Some(contract) => crate::data::check(batch, contract, &contract.hash()),
            None => Ok(()),
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
        let mut heard = Vec::new();
        for fragment in &batch.fragments {
            let count = self.envs.len();
            let env = *self.envs.entry((stream.to_string(), fragment.env)).or_insert(count);
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
                if 0 < self.newest {
                    self.watch.lag(at(t), step.version, self.newest);
                }
                if let Some(lead) = leads.as_ref().and_then(observed) {
                    self.watch.tracked(at(t), &lead);
                }
            }
            self.transitions += fragment.steps.len() as u64;
            self.judge(&Block::of(fragment, env, at))?;
        }
        self.received.extend(heard.into_iter().map(|env| (env, at_secs)));
        Ok(())
    }
}
