//! A rollout that records numbered steps and follows the protocol.

use super::super::make::{RUN, fragment, origin, rollout_status};
use super::super::network::{Faults, Link};
use super::{ENVS, PERIOD};
use crate::data::{Ack, Act, Follow, Heard, Hold, LearnerStatus, Outbox, RolloutStatus, StreamId, Wait};
use std::time::Duration;

#[derive(Clone)]
pub(super) enum ToRollout {
    Status(LearnerStatus),
    Weights(u32, u64),
    Ack(Ack),
}

pub(super) struct Rollout {
    pub(super) id: StreamId,
    pub(super) follow: Follow,
    pub(super) outbox: Outbox,
    pub(super) inbox: Link<ToRollout>,
    pub(super) held: (u32, u64),
    /// Steps shipped, and steps of the open fragments, by environment.
    pub(super) shipped: [u64; ENVS],
    pub(super) open: [u64; ENVS],
    pub(super) phase: u64,
    pub(super) asleep_until: u64,
    pub(super) leaving: bool,
}

impl Rollout {
    pub(super) fn new(id: StreamId, faults: Faults, asleep_until: u64) -> Self {
        Self {
            follow: Follow::new(id.clone(), ENVS, None),
            outbox: Outbox::new(id.clone(), 4, Hold::Consumed),
            inbox: Link::new(faults),
            id,
            held: (0, 0),
            shipped: [0; ENVS],
            open: [0; ENVS],
            phase: 0,
            asleep_until,
            leaving: false,
        }
    }

    pub(super) fn flush(&mut self) {
        let (life, version) = self.held;
        let row = |env: usize| fragment(env as u32, self.shipped[env], self.open[env], PERIOD, version);
        let fragments = (0..ENVS).filter(|&env| self.open[env] != 0).map(row).collect();
        self.outbox.push(fragments, vec![], origin(life, self.phase));
        (0..ENVS).for_each(|env| self.shipped[env] += self.open[env]);
        self.open = [0; ENVS];
    }

    pub(super) fn hear(&mut self, message: ToRollout, now: Duration) {
        let heard = match message {
            ToRollout::Status(status) => self.follow.status(&status, now),
            ToRollout::Weights(life, version) => {
                let heard = self.follow.offered(RUN, life, now);
                if self.follow.wants(RUN, life, version) {
                    self.flush();
                    self.held = (life, version);
                    self.follow.holds(life, version, [version as u8; 32], now);
                }
                heard
            }
            ToRollout::Ack(ack) => return self.outbox.acknowledge(&ack),
        };
        if let Heard::Adopted { run, life } = heard {
            self.flush();
            self.outbox.adopt(run, life);
        }
    }

    pub(super) fn act(&mut self) {
        match self.follow.may_act(self.outbox.full()) {
            Act::Act(phase) => {
                if phase != self.phase {
                    self.flush();
                    self.phase = phase;
                }
                for env in 0..ENVS {
                    if self.follow.may_step(env) {
                        self.follow.stepped(env, phase);
                        self.open[env] += 1;
                    }
                }
                if self.open[0] == 4 {
                    self.flush();
                }
            }
            Act::Wait(Wait::Quota) => self.flush(),
            Act::Wait(_) => {}
        }
    }

    pub(super) fn status(&self) -> RolloutStatus {
        let steps = (0..ENVS).map(|env| self.shipped[env] + self.open[env]).sum();
        let (run, life) = self.follow.learner().map_or((None, 0), |(run, life)| (Some(run), life));
        let held = if self.held.0 == life { self.held.1 } else { 0 };
        RolloutStatus { run, leaving: self.leaving, ..rollout_status(&self.id, life, held, steps) }
    }
}
