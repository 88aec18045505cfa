//! The learner's coordinator of the synchronous mode: who takes part in a phase, when it opens, and how it ends.

use super::{Accept, Batch, RolloutStatus, StreamId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

/// A stream lives if its status came within this time.
const LIVE: Duration = Duration::from_secs(2);
/// A stream that is not ready this long after a publish does not count until it is.
const READY: Duration = Duration::from_secs(5);
/// A member short of its quota whose steps stand still for this long is out.
const STILL: Duration = Duration::from_secs(5);
/// The first phase waits this long for `min_rollouts`, then goes on with one or more.
const MIN_ROLLOUTS: Duration = Duration::from_secs(30);
/// Time between two ticks beyond this is time in which the learner was stopped.
const TICK_MAX: Duration = Duration::from_millis(500);

/// Why a member is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// Its steps stood still.
    Still,
    /// It said that it leaves.
    Leaving,
    /// Its rollout id came back with a new incarnation.
    Replaced,
}

/// What happened to the phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhaseEvent {
    /// Announce it at once: it is open.
    Opened {
        /// Its number.
        phase: u64,
        /// A sentence if fewer rollouts take part than were asked for.
        short: Option<String>,
    },
    /// Drop the member's data of the phase ([`super::Gather::drop_stream`]) and announce the phase without it.
    Out {
        /// The former member.
        stream: StreamId,
        /// Why.
        reason: Out,
        /// The same for people.
        sentence: String,
    },
    /// All members filled their quota: update, then publish.
    Complete {
        /// Its number.
        phase: u64,
    },
    /// No member is left: publish the same parameters as the next version.
    Empty {
        /// Its number.
        phase: u64,
    },
}

struct Rollout {
    status: RolloutStatus,
    /// On the coordinator's clock.
    heard: Duration,
}

struct Member {
    num_envs: u32,
    /// Valid steps that were admitted in this phase, by environment.
    admitted: BTreeMap<u32, u64>,
    /// (steps that it reported, steps admitted), and when one of them last grew.
    progress: (u64, u64),
    moved: Duration,
}

impl Member {
    /// Valid steps of the slowest environment.
    fn slowest(&self) -> u64 {
        let silent = self.admitted.len() < self.num_envs as usize;
        if silent { 0 } else { self.admitted.values().min().copied().unwrap_or(0) }
    }

    fn progressed(&mut self, progress: (u64, u64), clock: Duration) {
        if self.progress.0 < progress.0 || self.progress.1 < progress.1 {
            self.progress = (progress.0.max(self.progress.0), progress.1);
            self.moved = clock;
        }
    }
}

struct Open {
    phase: u64,
    members: BTreeMap<StreamId, Member>,
}

/// The learner's coordinator. Its clock stands while the learner is paused or stopped.
pub struct Coordinator {
    run: Uuid,
    life: u32,
    quota: u64,
    min_rollouts: usize,
    clock: Duration,
    ticked: Option<Duration>,
    paused: bool,
    /// Newest version and when it was published; `None` while nothing is to be opened.
    published: Option<(u64, Duration)>,
    /// `min_rollouts` were there once, or were waited for.
    gathered: bool,
    last_phase: u64,
    open: Option<Open>,
    rollouts: BTreeMap<StreamId, Rollout>,
    replaced: BTreeSet<StreamId>,
    events: Vec<PhaseEvent>,
}

impl Coordinator {
    /// No phase is open until a version is published. `quota`: valid steps of each environment.
    pub fn new(run: Uuid, life: u32, quota: u64, min_rollouts: usize) -> Self {
        Self {
            run,
            life,
            quota,
            min_rollouts: min_rollouts.max(1),
            clock: Duration::ZERO,
            ticked: None,
            paused: false,
            published: None,
            gathered: false,
            last_phase: 0,
            open: None,
            rollouts: BTreeMap::new(),
            replaced: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// A version went out; a phase for it opens when the rollouts are ready.
    pub fn published(&mut self, version: u64) {
        self.published = Some((version, self.clock));
    }

    /// The learner is paused or goes on.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// A rollout's status. A new incarnation of an id takes the old one's place; the old one is not heard any more.
    pub fn status(&mut self, status: RolloutStatus) {
        let stream = status.stream.clone();
        if self.replaced.contains(&stream) {
            return;
        }
        let old: Vec<StreamId> = self
            .rollouts
            .keys()
            .filter(|known| known.rollout == stream.rollout && known.incarnation != stream.incarnation)
            .cloned()
            .collect();
        for old in old {
            self.rollouts.remove(&old);
            self.out(&old, Out::Replaced);
            self.replaced.insert(old);
        }
        if status.leaving {
            self.out(&stream, Out::Leaving);
        }
        if let Some(member) = self.open.as_mut().and_then(|open| open.members.get_mut(&stream)) {
            member.progressed((status.steps, member.progress.1), self.clock);
        }
        self.rollouts.insert(stream, Rollout { status, heard: self.clock });
    }

    /// A batch was admitted.
    pub fn admitted(&mut self, batch: &Batch) {
        let Some(open) = self.open.as_mut().filter(|open| open.phase == batch.phase) else { return };
        let Some(member) = open.members.get_mut(&batch.stream) else { return };
        for fragment in &batch.fragments {
            if fragment.env < member.num_envs {
                *member.admitted.entry(fragment.env).or_default() += fragment.steps.len() as u64;
            }
        }
        member.progressed((member.progress.0, member.progress.1 + batch.steps()), self.clock);
    }

    /// Moves time on; call it at 5 Hz or faster, and after each status or batch. Returns what happened, in order.
    pub fn tick(&mut self, now: Duration) -> Vec<PhaseEvent> {
        let passed = self.ticked.map_or(Duration::ZERO, |ticked| now.saturating_sub(ticked)).min(TICK_MAX);
        self.ticked = Some(self.ticked.map_or(now, |ticked| ticked.max(now)));
        if !self.paused {
            self.clock += passed;
        }
        self.try_open();
        self.try_close();
        std::mem::take(&mut self.events)
    }

    /// What is in time from this stream.
    pub fn accept(&self, stream: &StreamId) -> Accept {
        let open = self.open.as_ref().filter(|open| open.members.contains_key(stream));
        Accept::Phase(open.map_or(0, |open| open.phase))
    }

    /// Number of the open phase; 0: none.
    pub fn phase(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.phase)
    }

    /// Valid steps of each environment.
    pub fn quota(&self) -> u64 {
        self.quota
    }

    /// Members of the open phase, in order.
    pub fn members(&self) -> Vec<StreamId> {
        self.open.as_ref().map_or_else(Vec::new, |open| open.members.keys().cloned().collect())
    }

    /// Members of the open phase that are short of their quota and silent or still for a while, each in a few words.
    pub fn laggards(&self) -> Vec<String> {
        let Some(open) = &self.open else { return Vec::new() };
        let late = |(stream, member): (&StreamId, &Member)| {
            let heard = self.rollouts.get(stream).map_or(Duration::ZERO, |rollout| rollout.heard);
            let (silent, still) = (self.clock.saturating_sub(heard), self.clock.saturating_sub(member.moved));
            match (silent, still) {
                _ if self.quota <= member.slowest() => None,
                (silent, _) if LIVE <= silent => Some(format!("{stream} is silent for {} s", silent.as_secs())),
                (_, still) if LIVE <= still => Some(format!("{stream} stands still for {} s", still.as_secs())),
                _ => None,
            }
        };
        open.members.iter().filter_map(late).collect()
    }

    /// Live rollouts, for people.
    pub fn live(&self) -> usize {
        self.rollouts.values().filter(|rollout| self.is_live(rollout)).count()
    }

    /// Whether a phase waits for it: it is there, and does not follow another run.
    fn is_live(&self, Rollout { status, heard }: &Rollout) -> bool {
        let ours = status.run.is_none_or(|run| run == self.run);
        ours && !status.leaving && self.clock.saturating_sub(*heard) <= LIVE
    }

    fn is_ready(&self, Rollout { status, .. }: &Rollout, version: u64) -> bool {
        status.run == Some(self.run) && status.life == self.life && status.version == version && 0 < status.num_envs
    }

    fn try_open(&mut self) {
        let Some((version, published)) = self.published else { return };
        if self.paused || self.open.is_some() {
            return;
        }
        let late = READY < self.clock.saturating_sub(published);
        let live = || self.rollouts.iter().filter(|(_, rollout)| self.is_live(rollout));
        let ready: Vec<_> = live().filter(|(_, rollout)| self.is_ready(rollout, version)).collect();
        let all_ready = late || ready.len() == live().count();
        let waited = MIN_ROLLOUTS <= self.clock.saturating_sub(published);
        let enough = self.min_rollouts <= ready.len() || self.gathered || waited;
        if ready.is_empty() || !all_ready || !enough {
            return;
        }
        let short = (!self.gathered && ready.len() < self.min_rollouts).then(|| {
            format!(
                "after {} s phase {} opens with {} of {} rollouts",
                MIN_ROLLOUTS.as_secs(),
                self.last_phase + 1,
                ready.len(),
                self.min_rollouts
            )
        });
        let member = |rollout: &Rollout| Member {
            num_envs: rollout.status.num_envs,
            admitted: BTreeMap::new(),
            progress: (rollout.status.steps, 0),
            moved: self.clock,
        };
        let members = ready.into_iter().map(|(stream, rollout)| (stream.clone(), member(rollout))).collect();
        self.gathered = true;
        self.last_phase += 1;
        self.open = Some(Open { phase: self.last_phase, members });
        self.events.push(PhaseEvent::Opened { phase: self.last_phase, short });
    }

    fn try_close(&mut self) {
        let Some(open) = &self.open else { return };
        let (phase, quota, clock) = (open.phase, self.quota, self.clock);
        let still = |member: &Member| member.slowest() < quota && STILL <= clock.saturating_sub(member.moved);
        let out: Vec<StreamId> =
            open.members.iter().filter(|(_, member)| still(member)).map(|(stream, _)| stream.clone()).collect();
        for stream in out {
            self.out(&stream, Out::Still);
        }
        let Some(open) = &self.open else { return };
        let event = if open.members.is_empty() {
            PhaseEvent::Empty { phase }
        } else if open.members.values().all(|member| quota <= member.slowest()) {
            PhaseEvent::Complete { phase }
        } else {
            return;
        };
        self.events.push(event);
        self.open = None;
        self.published = None;
    }

    fn out(&mut self, stream: &StreamId, reason: Out) {
        let Some(open) = &mut self.open else { return };
        let Some(member) = open.members.remove(stream) else { return };
        let slowest = member.slowest();
        let why = match reason {
            Out::Still => format!("its steps stood still for {} s", STILL.as_secs()),
            Out::Leaving => "it leaves".into(),
            Out::Replaced => "it came back with a new incarnation".into(),
        };
        let sentence = format!("{stream} is out of phase {} at {slowest} of {} steps: {why}", open.phase, self.quota);
        self.events.push(PhaseEvent::Out { stream: stream.clone(), reason, sentence });
    }
}
