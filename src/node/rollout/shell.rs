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

/// What a rollout hears.
pub struct Inputs {
    /// States of the arms.
    pub states: mpsc::Receiver<ArmStates>,
    /// The newest weights.
    pub weights: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The learner's acknowledgements of this stream.
    pub acks: mpsc::Receiver<Ack>,
    /// The learner's status.
    pub learner: mpsc::Receiver<LearnerStatus>,
    /// The newest goal from outside.
    pub goal: watch::Receiver<Option<GoalPose>>,
}

/// What a rollout says.
pub struct Outputs {
    /// Answers to the states.
    pub commands: Output<ArmCommands>,
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

/// Runs until `shutdown`, or until its inputs are gone. Fails if simulator and rollout do not fit.
pub async fn run(mut agent: Agent, mut inputs: Inputs, mut outputs: Outputs, mut shutdown: Shutdown) -> Result<()> {
    let start = Instant::now();
    let mut beat = tokio::time::interval(BEAT);
    let mut held: Option<ArmStates> = None;
    let mut heard = start;
    if outputs.audit.is_some() {
        agent.audit();
    }
    let mut said = (agent.status(), Instant::now());
    (outputs.status)(&said.0);
    let mut watch = Stopwatch::new(&outputs.times);
    loop {
        watch.turn_to(Activity::Waiting);
        let mut states = tokio::select! {
            biased;
            () = shutdown.wait() => break,
            status = inputs.learner.recv() => match status {
                Some(status) => { agent.learner_status(&status, start.elapsed()); None }
                None => break,
            },
            changed = inputs.weights.changed() => match changed {
                Ok(()) => {
                    watch.turn_to(Activity::Task);
                    let snapshot = inputs.weights.borrow_and_update().clone();
                    if let Some(snapshot) = snapshot { agent.weights(&snapshot, start.elapsed()); }
                    None
                }
                Err(_) => break,
            },
            ack = inputs.acks.recv() => match ack {
                Some(ack) => { agent.ack(&ack); None }
                None => break,
            },
            Ok(()) = inputs.goal.changed() => {
                let goal = inputs.goal.borrow_and_update().clone();
                if let Some(Err(error)) = goal.map(|goal| agent.goal(&goal)) { tracing::error!("{error}"); }
                None
            }
            states = inputs.states.recv() => match states {
                Some(states) => Some(states),
                None => break,
            },
            _ = beat.tick() => None,
        };
        // Only the newest states count; what was held is answered as soon as it may be.
        while let Ok(newer) = inputs.states.try_recv() {
            states = Some(newer);
        }
        let fresh = states.is_some();
        if fresh {
            heard = Instant::now();
        }
        agent.served(heard.elapsed() < NO_STATES);
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
        write(&mut agent, &mut outputs)?;
        let now = start.elapsed();
        watch.turn_to(Activity::Transport);
        agent.due(now).iter().for_each(&mut outputs.batches);
        agent.episodes().iter().for_each(&mut outputs.episodes);
        if agent.pull_due(now) {
            (outputs.pull)();
        }
        let status = agent.status();
        let news = (&status.state, status.version, status.life, status.phase)
            != (&said.0.state, said.0.version, said.0.life, said.0.phase);
        if news || STATUS <= said.1.elapsed() {
            (outputs.status)(&status);
            (outputs.report)(&agent.report());
            said = (status, Instant::now());
        }
    }
    watch.turn_to(Activity::Waiting);
    agent.leave();
    write(&mut agent, &mut outputs)?;
    let status = agent.status();
    (outputs.status)(&status);
    tracing::info!(recorded = status.steps, "{} recorded {} steps", status.stream, status.steps);
    Ok(())
}

fn write(agent: &mut Agent, outputs: &mut Outputs) -> Result<()> {
    match &mut outputs.audit {
        Some(write) => write(agent.notes()),
        None => Ok(()),
    }
}
