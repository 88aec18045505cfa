//! The rollout over channels.

use super::Agent;
use crate::contract::Snapshot;
use crate::data::{
    Ack, ArmCommands, ArmStates, Batch, EpisodeStats, GoalPose, LearnerStatus, Operation, RolloutStatus,
};
use crate::error::Result;
use crate::node::{Activity, Notes, Output, Report, Shutdown, Stopwatch, Times};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Period of the status.
const STATUS: Duration = Duration::from_millis(200);
/// Period of resends and pulls.
const BEAT: Duration = Duration::from_millis(20);
/// Without states for this long, it waits for them.
const NO_STATES: Duration = Duration::from_secs(1);

/// What a rollout hears; `S`: what its arms say.
pub struct Inputs<S = ArmStates> {
    /// States of the arms.
    pub states: mpsc::Receiver<S>,
    /// The newest weights.
    pub weights: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The learner's acknowledgements of this stream.
    pub acks: mpsc::Receiver<Ack>,
    /// The learner's status.
    pub learner: mpsc::Receiver<LearnerStatus>,
    /// The newest goal from outside.
    pub goal: watch::Receiver<Option<GoalPose>>,
}

/// What a rollout says; `C`: what its arms hear.
pub struct Outputs<C = ArmCommands> {
    /// Answers to the states.
    pub commands: Output<C>,
    /// Numbered transitions.
    pub batches: Output<Batch>,
    /// Its status.
    pub status: Output<RolloutStatus>,
    /// Episodes that ended, for people.
    pub episodes: Output<EpisodeStats>,
    /// Where it stands, for whoever looks after it.
    pub report: Output<Report>,
    /// The fate of its transitions, if it is to be noted; nothing is sent if this fails.
    pub audit: Option<Notes>,
    /// Asks for the newest weights; they come by [`Inputs::weights`].
    pub pull: Box<dyn FnMut() + Send>,
    /// Where its time goes.
    pub times: Times,
}

/// Something that a learner or a person said.
pub(super) enum News {
    Status(LearnerStatus),
    Weights(Option<Arc<Snapshot>>),
    Ack(Ack),
    Goal(Option<GoalPose>),
}

impl News {
    pub(super) fn tell(self, agent: &mut Agent, now: Duration) {
        match self {
            Self::Status(status) => agent.learner_status(&status, now),
            Self::Weights(Some(snapshot)) => agent.weights(&snapshot, now),
            Self::Ack(ack) => agent.ack(&ack),
            Self::Goal(Some(goal)) => {
                if let Err(error) = agent.goal(&goal) {
                    tracing::error!("{error}");
                }
            }
            Self::Weights(None) | Self::Goal(None) => {}
        }
    }
}

/// The ears for learner and people.
pub(super) struct Ears {
    weights: watch::Receiver<Option<Arc<Snapshot>>>,
    acks: mpsc::Receiver<Ack>,
    learner: mpsc::Receiver<LearnerStatus>,
    goal: watch::Receiver<Option<GoalPose>>,
}

impl<S> Inputs<S> {
    pub(super) fn split(self) -> (mpsc::Receiver<S>, Ears) {
        let Self { states, weights, acks, learner, goal } = self;
        (states, Ears { weights, acks, learner, goal })
    }
}

impl Ears {
    /// The next of everything, newer weights only if they may be `taken`; none once nobody speaks any more. Nothing is lost
    /// where this is dropped while it waits.
    pub(super) async fn next(&mut self, taken: bool) -> Option<News> {
        tokio::select! {
            biased;
            status = self.learner.recv() => status.map(News::Status),
            changed = self.weights.changed(), if taken => {
                changed.ok().map(|()| News::Weights(self.weights.borrow_and_update().clone()))
            }
            ack = self.acks.recv() => ack.map(News::Ack),
            Ok(()) = self.goal.changed() => Some(News::Goal(self.goal.borrow_and_update().clone())),
        }
    }
}

/// What was said last, and when.
pub(super) struct Said {
    status: RolloutStatus,
    at: Instant,
}

impl Said {
    /// Says the first status.
    pub(super) fn first<C>(agent: &mut Agent, outputs: &mut Outputs<C>) -> Self {
        if outputs.audit.is_some() {
            agent.audit();
        }
        let said = Self { status: agent.status(), at: Instant::now() };
        (outputs.status)(&said.status);
        said
    }

    /// Sends what is due after a turn: notes, batches, episodes, pulls, the status. `report` is asked for with the status.
    pub(super) fn say<C>(&mut self, agent: &mut Agent, outputs: &mut Outputs<C>, now: Duration) -> Result<bool> {
        write(agent, outputs)?;
        agent.due(now).iter().for_each(&mut outputs.batches);
        agent.episodes().iter().for_each(&mut outputs.episodes);
        if agent.pull_due(now) {
            (outputs.pull)();
        }
        let status = agent.status();
        let said = &self.status;
        let news = (&status.state, status.version, status.life, status.phase)
            != (&said.state, said.version, said.life, said.phase);
        let due = news || STATUS <= self.at.elapsed();
        if due {
            (outputs.status)(&status);
            (self.status, self.at) = (status, Instant::now());
        }
        Ok(due)
    }

    /// Sends what is left and says goodbye, after [`Agent::leave`].
    pub(super) fn last<C>(agent: &mut Agent, outputs: &mut Outputs<C>, now: Duration) -> Result<()> {
        write(agent, outputs)?;
        agent.due(now).iter().for_each(&mut outputs.batches);
        agent.episodes().iter().for_each(&mut outputs.episodes);
        let status = agent.status();
        (outputs.status)(&status);
        tracing::info!(recorded = status.steps, "{} recorded {} steps", status.stream, status.steps);
        Ok(())
    }
}

/// Runs until `shutdown`, or until its inputs are gone. Fails if simulator and rollout do not fit.
pub async fn run(mut agent: Agent, inputs: Inputs, mut outputs: Outputs, mut shutdown: Shutdown) -> Result<()> {
    let start = Instant::now();
    let (mut arms, mut ears) = inputs.split();
    let mut beat = tokio::time::interval(BEAT);
    let mut held: Option<ArmStates> = None;
    let mut heard = start;
    let mut said = Said::first(&mut agent, &mut outputs);
    let mut watch = Stopwatch::new(&outputs.times);
    loop {
        watch.turn_to(Activity::Waiting);
        let mut states = tokio::select! {
            biased;
            () = shutdown.wait() => break,
            news = ears.next(true) => match news {
                Some(news) => {
                    if matches!(news, News::Weights(_)) { watch.turn_to(Activity::Task); }
                    news.tell(&mut agent, start.elapsed());
                    None
                }
                None => break,
            },
            states = arms.recv() => match states {
                Some(states) => Some(states),
                None => break,
            },
            _ = beat.tick() => None,
        };
        // Only the newest states count; what was held is answered as soon as it may be.
        while let Ok(newer) = arms.try_recv() {
            states = Some(newer);
        }
        let fresh = states.is_some();
        if fresh {
            heard = Instant::now();
        }
        agent.aside((NO_STATES <= heard.elapsed()).then(|| "waiting for states".into()));
        if let Some(states) = states.or_else(|| held.take()) {
            watch.turn_to(Activity::Task);
            let before = agent.inference();
            let commands = agent.states(&states)?;
            let holds = commands.operation.iter().all(|&operation| operation == Operation::Hold);
            watch.turn_from(agent.inference() - before, Activity::Inference, Activity::Transport);
            if fresh || !holds {
                (outputs.commands)(&commands);
            }
            if !holds {
                watch.start();
            }
            held = holds.then_some(states);
        }
        watch.turn_to(Activity::Transport);
        if said.say(&mut agent, &mut outputs, start.elapsed())? {
            (outputs.report)(&agent.report());
        }
    }
    watch.turn_to(Activity::Waiting);
    agent.leave();
    Said::last(&mut agent, &mut outputs, start.elapsed())
}

fn write<C>(agent: &mut Agent, outputs: &mut Outputs<C>) -> Result<()> {
    match &mut outputs.audit {
        Some(write) => write(agent.notes()),
        None => Ok(()),
    }
}
