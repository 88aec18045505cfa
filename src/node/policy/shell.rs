//! The policy over channels.

use super::{Acts, Pilot, Status};
use crate::contract::Snapshot;
use crate::data::{Change, GoalPose, JointState, Moved, OptionState, Scene};
use crate::error::{Error, Result};
use crate::guard::Mode;
use crate::link::Command;
use crate::node::{Output, Shutdown, Told};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

/// Period of the status.
const STATUS: Duration = Duration::from_millis(200);
/// Longest that an arm takes to come to rest at the end.
const REST: Duration = Duration::from_secs(5);

/// What a person asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// Another stage.
    Change(Change),
    /// Command the arm; or bring it to rest.
    Arm(bool),
    /// The next step after the robot stopped itself; whether a person acknowledges that the way is clear.
    Recover(bool),
    /// Another share of the limits.
    Scale(f64),
}

/// What a policy hears.
pub struct Inputs {
    /// Joint states, in order.
    pub states: mpsc::Receiver<JointState>,
    /// Commands to the arm, whoever gave them.
    pub led: mpsc::Receiver<JointState>,
    /// The newest weights.
    pub weights: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The newest goal.
    pub goal: watch::Receiver<Option<GoalPose>>,
    /// A simulator's clock [s].
    pub clock: watch::Receiver<f64>,
    /// Publishers of the command topic.
    pub publishers: watch::Receiver<usize>,
    /// The robot's modes, where it tells them.
    pub modes: mpsc::Receiver<Mode>,
    /// What is asked, and where the answer goes.
    pub requests: mpsc::Receiver<(Request, SyncSender<Result<&'static str>>)>,
}

/// What a policy says.
pub struct Outputs {
    /// To the arm.
    pub commands: Output<Command>,
    /// Where the policy wants to go, before the guard.
    pub targets: Output<JointState>,
    /// What it decided.
    pub options: Output<OptionState>,
    /// For a person to look at.
    pub scenes: Output<Scene>,
    /// Where it was led; told before the answer to who asked for it.
    pub moves: Output<Moved>,
    /// How it goes.
    pub status: Output<Status>,
}

fn ask(pilot: &mut Pilot, request: Request, now_secs: f64) -> Result<&'static str> {
    let answer = match request {
        Request::Change(change) => pilot.change(change),
        Request::Arm(true) => pilot.arm(now_secs),
        Request::Arm(false) => Ok(pilot.disarm()),
        Request::Recover(acknowledged) => pilot.recover(acknowledged, now_secs),
        Request::Scale(scale) => pilot.set_scale(scale),
    };
    match &answer {
        Ok(done) => tracing::info!("{done}"),
        Err(error) => tracing::warn!("{error}"),
    }
    answer
}

/// Gives out what a state or a tick led to, the command first.
fn say(pilot: &mut Pilot, mut acts: Acts, told: &mut Told, outputs: &mut Outputs) {
    acts.command.iter().for_each(&mut outputs.commands);
    told.tell(pilot.value(&mut acts));
    acts.target.iter().for_each(&mut outputs.targets);
    acts.option.iter().for_each(&mut outputs.options);
    acts.scene.iter().for_each(&mut outputs.scenes);
    pilot.moves().iter().for_each(&mut outputs.moves);
}

/// Runs until `shutdown`, or until its inputs are gone; then brings the arm to rest.
pub async fn run(mut pilot: Pilot, mut inputs: Inputs, mut outputs: Outputs, mut shutdown: Shutdown) -> Result<()> {
    let start = Instant::now();
    let mut beat = tokio::time::interval(Duration::from_secs_f64(pilot.tick_secs()));
    // a late command is followed by the next a whole tick later: two in a row would be twice as fast
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Told::default();
    let mut said: Option<(Status, Instant)> = None;
    let mut ending: Option<Instant> = None;
    loop {
        let mut acts = Acts::default();
        tokio::select! {
            biased;
            () = shutdown.wait(), if ending.is_none() => {
                pilot.shutdown();
                ending = Some(Instant::now());
            }
            // before states, of which there may be too many
            _ = beat.tick() => acts.command = pilot.beat(start.elapsed().as_secs_f64()),
            Some((request, reply)) = inputs.requests.recv() => {
                // an arm is anchored where it is, not where it was: what waits comes first
                while request == Request::Arm(true) && let Ok(states) = inputs.states.try_recv() {
                    let acts = told.tell(pilot.states(&states, start.elapsed().as_secs_f64())).unwrap_or_default();
                    say(&mut pilot, acts, &mut told, &mut outputs);
                }
                let answer = ask(&mut pilot, request, start.elapsed().as_secs_f64());
                pilot.moves().iter().for_each(&mut outputs.moves);
                let armed = answer.is_ok() && request == Request::Arm(true);
                if reply.try_send(answer).is_err() && armed {
                    // who asked was told that there is no answer
                    let done = pilot.disarm();
                    tracing::warn!("who asked to arm no longer waits; {done}");
                }
            }
            Some(mode) = inputs.modes.recv() => pilot.mode(mode, start.elapsed().as_secs_f64()),
            Ok(()) = inputs.clock.changed() => {
                let clock = *inputs.clock.borrow_and_update();
                pilot.clock(clock, start.elapsed().as_secs_f64());
            }
            Some(command) = inputs.led.recv() => pilot.led(&command),
            states = inputs.states.recv() => {
                let Some(mut states) = states else { return Err(Error::invalid("the joint states have ended")) };
                // an arm in motion is answered by its newest state; dry, each counts, so that a bag played into the node is decided as it is analysed
                while !pilot.is_quiet() && let Ok(newer) = inputs.states.try_recv() {
                    states = newer;
                }
                acts = told.tell(pilot.states(&states, start.elapsed().as_secs_f64())).unwrap_or_default();
            }
            Ok(()) = inputs.publishers.changed() => pilot.publishers(*inputs.publishers.borrow_and_update()),
            Ok(()) = inputs.goal.changed() => {
                let goal = inputs.goal.borrow_and_update().clone();
                let beyond = goal.and_then(|goal| told.tell(pilot.goal(&goal)).flatten());
                beyond.iter().for_each(|sentence| tracing::warn!("{sentence}"));
            }
            Ok(()) = inputs.weights.changed() => {
                let weights = inputs.weights.borrow_and_update().clone();
                if let Some(weights) = weights { told.tell(pilot.weights(&weights)); }
            }
        }
        say(&mut pilot, acts, &mut told, &mut outputs);
        if ending.is_some_and(|since| pilot.is_quiet() || REST < since.elapsed()) {
            return Ok(());
        }
        if said.as_ref().is_none_or(|(_, at)| STATUS <= at.elapsed()) {
            let status = pilot.status(start.elapsed().as_secs_f64());
            if said.as_ref().is_none_or(|(before, _)| before.turned_to(&status)) {
                tracing::info!("{}", status.sentence);
            }
            (outputs.status)(&status);
            said = Some((status, Instant::now()));
        }
    }
}
