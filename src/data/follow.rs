//! The rollout's side of run, life, version and phase: whom it follows, and when it may act.

use super::{LearnerStatus, StreamId};
use crate::config::UpdateMode;
use crate::contract::Hash;
use std::fmt;
use std::time::Duration;
use uuid::Uuid;

/// Another run is adopted when the followed one was silent for this long.
const SILENCE: Duration = Duration::from_secs(5);
/// A greater life of the followed run is adopted when the followed one was silent for this long: a learner that is
/// started again follows one that is gone, and one that is heard on is no former one.
const GONE: Duration = Duration::from_secs(1);
/// Weights are pulled when the rollout is behind for this long.
const BEHIND: Duration = Duration::from_millis(500);

/// What hearing a learner means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The one that is followed.
    Same,
    /// From now on this run and life are followed: call [`super::Outbox::adopt`], and end open fragments.
    Adopted {
        /// The run.
        run: Uuid,
        /// Its learner's life.
        life: u32,
    },
    /// An older message, or a life that is over.
    Old,
    /// Another run than the one that is followed, with the sentence to report.
    Other(String),
}

/// Why a rollout waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No learner was heard yet.
    Learner,
    /// No weights of this life, or not those of the phase.
    Weights,
    /// No phase lists its stream.
    Phase,
    /// Every environment has its quota: flush what is recorded.
    Quota,
    /// The learner is paused.
    Paused,
    /// The window is full.
    Window,
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Learner => "waiting for a learner",
            Self::Weights => "waiting for weights",
            Self::Phase => "waiting for a phase",
            Self::Quota => "waiting for the update",
            Self::Paused => "paused",
            Self::Window => "waiting for the window",
        })
    }
}

/// Whether a rollout may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// In this phase; 0 in the asynchronous mode. See [`Follow::may_step`] for each environment.
    Act(u64),
    /// Not now.
    Wait(Wait),
}

struct Learner {
    run: Uuid,
    life: u32,
    heard: Duration,
    status: Option<LearnerStatus>,
}

/// Whom a rollout follows, and when it may act.
pub struct Follow {
    stream: StreamId,
    told: Option<Uuid>,
    may_switch: bool,
    learner: Option<Learner>,
    held: Option<(u32, u64, Hash)>,
    behind: Option<Duration>,
    phase: u64,
    stepped: Vec<u64>,
}

impl Follow {
    /// Follows nobody yet. `told`: the only run to follow; `None`: the first one heard.
    pub fn new(stream: StreamId, num_envs: usize, told: Option<Uuid>) -> Self {
        Self {
            stream,
            told,
            may_switch: true,
            learner: None,
            held: None,
            behind: None,
            phase: 0,
            stepped: vec![0; num_envs],
        }
    }

    /// Whether another run may be adopted; hardware forbids it while armed.
    pub fn allow_switch(&mut self, allow: bool) {
        self.may_switch = allow;
    }

    /// A learner's status was heard.
    pub fn status(&mut self, status: &LearnerStatus, now: Duration) -> Heard {
        let heard = self.hear(status.run, status.life, now);
        let Some(learner) = self.learner.as_mut().filter(|_| matches!(heard, Heard::Same | Heard::Adopted { .. }))
        else {
            return heard;
        };
        // Each phase has a version of its own, so that an older version is an older phase, too.
        if learner.status.as_ref().is_some_and(|known| status.version < known.version) {
            return Heard::Old;
        }
        if self.phase < status.phase {
            self.phase = status.phase;
            self.stepped.fill(0);
        }
        learner.status = Some(status.clone());
        self.compare(now);
        heard
    }

    /// A snapshot was offered, latched or pulled. Check and load it if [`Self::wants`] says so afterwards.
    pub fn offered(&mut self, run: Uuid, life: u32, now: Duration) -> Heard {
        self.hear(run, life, now)
    }

    /// Whether a snapshot of the followed run and life is newer than the one held, or replaces one whose hash is not the
    /// learner's.
    pub fn wants(&self, run: Uuid, life: u32, version: u64) -> bool {
        let followed = self.learner.as_ref().is_some_and(|learner| learner.run == run && learner.life == life);
        let newer = self.held.is_none_or(|(held_life, held, _)| (held_life, held) < (life, version));
        let wrong =
            self.behind.is_some() && self.held.is_some_and(|(held_life, held, _)| (held_life, held) == (life, version));
        followed && (newer || wrong)
    }

    /// A snapshot was checked, and acts from now on.
    pub fn holds(&mut self, life: u32, version: u64, hash: Hash, now: Duration) {
        self.held = Some((life, version, hash));
        self.compare(now);
    }

    /// Whether to pull the newest weights now: behind for 0.5 s, and every 0.5 s from then on.
    pub fn pull_due(&mut self, now: Duration) -> bool {
        let due = self.behind.is_some_and(|since| since + BEHIND <= now);
        if due {
            self.behind = Some(now);
        }
        due
    }

    /// Whether to act. `window_full`: [`super::Outbox::full`] in simulation; hardware passes false and acts on.
    pub fn may_act(&self, window_full: bool) -> Act {
        let Some(Learner { life, status: Some(status), .. }) = &self.learner else { return Act::Wait(Wait::Learner) };
        if status.paused {
            return Act::Wait(Wait::Paused);
        }
        let Some((_, version, _)) = self.held.filter(|(held, ..)| held == life) else {
            return Act::Wait(Wait::Weights);
        };
        if status.update_mode == UpdateMode::Sync {
            if status.phase == 0 || !status.members.contains(&self.stream) {
                return Act::Wait(Wait::Phase);
            }
            if version != status.version {
                return Act::Wait(Wait::Weights);
            }
            if self.stepped.iter().all(|&steps| status.quota <= steps) {
                return Act::Wait(Wait::Quota);
            }
        }
        if window_full {
            return Act::Wait(Wait::Window);
        }
        Act::Act(status.phase)
    }

    /// Whether the environment is still short of its quota. Ask only while [`Self::may_act`] allows to act.
    pub fn may_step(&self, env: usize) -> bool {
        match self.learner.as_ref().and_then(|learner| learner.status.as_ref()) {
            Some(status) if status.update_mode == UpdateMode::Sync => {
                self.stepped.get(env).is_some_and(|&steps| steps < status.quota)
            }
            Some(_) => true,
            None => false,
        }
    }

    /// A valid step of the environment was recorded, decided in `phase` (what [`Self::may_act`] said then): one that was
    /// under way when its phase ended counts for none. An aborted step is none either: it is made up.
    pub fn stepped(&mut self, env: usize, phase: u64) {
        if let Some(steps) = self.stepped.get_mut(env).filter(|_| phase == self.phase) {
            *steps += 1;
        }
    }

    /// Valid steps of the slowest environment in the newest phase.
    pub fn phase_steps(&self) -> u64 {
        self.stepped.iter().min().copied().unwrap_or(0)
    }

    /// The run that is followed, or will be once it is heard.
    pub fn run(&self) -> Option<Uuid> {
        self.learner.as_ref().map(|learner| learner.run).or(self.told)
    }

    /// Run and life that are followed.
    pub fn learner(&self) -> Option<(Uuid, u32)> {
        self.learner.as_ref().map(|learner| (learner.run, learner.life))
    }

    fn hear(&mut self, run: Uuid, life: u32, now: Duration) -> Heard {
        if self.told.is_some_and(|told| told != run) {
            return Heard::Other(format!("run {run} was heard; this rollout was told to follow another"));
        }
        match &mut self.learner {
            Some(learner) if learner.run == run => {
                if life < learner.life {
                    return Heard::Old;
                }
                if life == learner.life {
                    learner.heard = now;
                    return Heard::Same;
                }
                if now < learner.heard + GONE {
                    return Heard::Other(format!(
                        "life {life} of the learner was heard while life {} still speaks; it is followed once that is gone",
                        learner.life
                    ));
                }
            }
            Some(learner) if now < learner.heard + SILENCE || !self.may_switch => {
                return Heard::Other(format!("run {run} was heard; this rollout follows {}", learner.run));
            }
            Some(_) => self.held = None,
            None => {}
        }
        self.learner = Some(Learner { run, life, heard: now, status: None });
        self.behind = None;
        self.phase = 0;
        self.stepped.fill(0);
        Heard::Adopted { run, life }
    }

    fn compare(&mut self, now: Duration) {
        let Some(Learner { life, status: Some(status), .. }) = &self.learner else { return };
        let held = self.held.map_or((0, 0), |(life, version, _)| (life, version));
        let newest = self.held == Some((*life, status.version, status.hash)) || (*life, status.version) < held;
        if newest || status.version == 0 {
            self.behind = None;
        } else if self.behind.is_none() {
            self.behind = Some(now);
        }
    }
}
