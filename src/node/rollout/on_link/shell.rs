//! A rollout on a link, over channels.

use super::{Acts, OnLink};
use crate::data::JointState;
use crate::error::{Error, Result};
use crate::guard::Mode;
use crate::link::Command;
use crate::node::rollout::shell::Said;
use crate::node::{Activity, Shutdown, Stopwatch, Told};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

/// Longest that an arm takes to come to rest at the end.
const REST: Duration = Duration::from_secs(5);

/// What a person asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Command the arm; or bring it to rest.
    Arm(bool),
    /// The next step after the robot stopped itself; whether a person acknowledges that the way is clear.
    Recover(bool),
}

/// What a rollout on a link hears besides its learner.
pub struct Inputs {
    /// The arm's states, and the learner.
    pub rollout: crate::node::rollout::Inputs<JointState>,
    /// Name of the states' topic, for people.
    pub topic: String,
    /// A simulator's clock [s].
    pub clock: watch::Receiver<f64>,
    /// Publishers of the command topic.
    pub publishers: watch::Receiver<usize>,
    /// The robot's modes, where it tells them.
    pub modes: mpsc::Receiver<Mode>,
    /// Resets that were asked for and are done, or were refused.
    pub resets: mpsc::Receiver<()>,
    /// What is asked, and where the answer goes.
    pub requests: mpsc::Receiver<(Request, SyncSender<Result<&'static str>>)>,
}

/// What a rollout on a link says.
pub struct Outputs {
    /// To the arm and the learner.
    pub rollout: crate::node::rollout::Outputs<Command>,
    /// Asks for a reset of the simulator.
    pub reset: Box<dyn FnMut() + Send>,
}

/// Of the states that wait.
fn newest(states: &mut mpsc::Receiver<JointState>) -> Option<JointState> {
    std::iter::from_fn(|| states.try_recv().ok()).last()
}

/// Runs until `shutdown`, or until its inputs are gone; then brings the arm to rest.
pub async fn run(mut arm: OnLink, inputs: Inputs, outputs: Outputs, mut shutdown: Shutdown) -> Result<()> {
    let start = Instant::now();
    let Inputs { rollout, topic, mut clock, mut publishers, mut modes, mut resets, mut requests } = inputs;
    let Outputs { rollout: mut outputs, mut reset } = outputs;
    let (mut states, mut ears) = rollout.split();
    let mut beat = tokio::time::interval(Duration::from_secs_f64(arm.tick_secs()));
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut said = Said::first(arm.agent(), &mut outputs);
    let mut watch = Stopwatch::new(&outputs.times);
    let (mut told, mut ending) = (Told::default(), None::<Instant>);
    loop {
        watch.turn_to(Activity::Waiting);
        let mut acts = Acts::default();
        let taken = arm.may_swap();
        tokio::select! {
            biased;
            () = shutdown.wait(), if ending.is_none() => {
                arm.shutdown();
                ending = Some(Instant::now());
            }
            Some((request, reply)) = requests.recv() => {
                // an arm is anchored where it is, not where it was: what waits comes first
                if let (Request::Arm(true), Some(state)) = (request, newest(&mut states)) {
                    acts = told.tell(arm.states(&state, start.elapsed().as_secs_f64())).unwrap_or_default();
                }
                let now_secs = start.elapsed().as_secs_f64();
                let answer = match request {
                    Request::Arm(armed) => arm.arm(armed, now_secs),
                    Request::Recover(acknowledged) => arm.recover(acknowledged, now_secs),
                };
                match &answer {
                    Ok(done) => tracing::info!("{done}"),
                    Err(error) => tracing::warn!("{error}"),
                }
                let _nobody_waits = reply.try_send(answer);
            }
            Some(mode) = modes.recv() => arm.mode(mode, start.elapsed().as_secs_f64()),
            Some(()) = resets.recv() => arm.reset_answered(start.elapsed().as_secs_f64()),
            Ok(()) = clock.changed() => {
                let clock = *clock.borrow_and_update();
                arm.clock(clock, start.elapsed().as_secs_f64());
            }
            state = states.recv() => {
                let Some(mut state) = state else { return Err(Error::invalid("the joint states have ended")) };
                watch.turn_to(Activity::Task);
                if let Some(newer) = newest(&mut states) {
                    state = newer;
                }
                let before = arm.agent().inference();
                acts = told.tell(arm.states(&state, start.elapsed().as_secs_f64())).unwrap_or_default();
                watch.turn_from(arm.agent().inference() - before, Activity::Inference, Activity::Transport);
                watch.start();
            }
            _ = beat.tick() => acts.command = arm.beat(start.elapsed().as_secs_f64()),
            Ok(()) = publishers.changed() => arm.publishers(*publishers.borrow_and_update()),
            news = ears.next(taken) => match news {
                Some(news) => news.tell(arm.agent(), start.elapsed()),
                None => return Err(Error::invalid("the learner's topics have ended")),
            },
        }
        watch.turn_to(Activity::Transport);
        acts.command.iter().for_each(&mut outputs.commands);
        if acts.reset {
            reset();
        }
        let now = start.elapsed();
        arm.look(&topic, now.as_secs_f64());
        if said.say(arm.agent(), &mut outputs, now)? {
            let report = arm.report(&topic, now.as_secs_f64());
            if let Some(silence) = report.waits_for.first() {
                told.warn(silence);
            }
            (outputs.report)(&report);
        }
        if ending.is_some_and(|since| arm.is_quiet() || REST < since.elapsed()) {
            return Said::last(arm.agent(), &mut outputs, start.elapsed());
        }
    }
}
