//! The policy over channels.

use super::*;
use std::sync::mpsc::sync_channel;
use tokio::sync::{mpsc, watch};

/// Hears states and nothing else as long as what comes beside is kept.
fn hearing(states: mpsc::Receiver<JointState>) -> (Inputs, impl Sized) {
    let (told, led) = mpsc::channel(1);
    let (published, weights) = watch::channel(None);
    let (set, goal) = watch::channel(None);
    let (time, clock) = watch::channel(0.0);
    let (writers, publishers) = watch::channel(1);
    let (mode, modes) = mpsc::channel(1);
    let (ask, requests) = mpsc::channel(1);
    let inputs = Inputs { states, led, weights, goal, clock, publishers, modes, requests };
    (inputs, (told, published, set, time, writers, mode, ask))
}

fn silent() -> Outputs {
    Outputs {
        commands: Box::new(|_| ()),
        targets: Box::new(|_| ()),
        options: Box::new(|_| ()),
        scenes: Box::new(|_| ()),
        moves: Box::new(|_| ()),
        status: Box::new(|_| ()),
    }
}

/// Asks for an arming, tells a state, another after the first command, and ends. How many commands went out, and the answer.
fn armed(waits: bool) -> (usize, Option<Result<&'static str>>) {
    let mut world = World::new(Preset::Isaac);
    world.decides();
    let (ask, requests) = mpsc::channel(1);
    let (tell, states) = mpsc::channel(1);
    let (reply, answer) = sync_channel(1);
    let answer = Some(answer).filter(|_| waits);
    ask.try_send((Request::Arm(true), reply)).unwrap();
    world.stamp += TICK;
    tell.try_send(world.state()).unwrap();
    world.stamp += TICK;
    let mut next = Some((tell, world.state()));
    let (inputs, _kept) = hearing(states);
    let inputs = Inputs { requests, ..inputs };
    let (sent, commands) = std::sync::mpsc::channel();
    let outputs = Outputs {
        commands: Box::new(move |_| {
            sent.send(()).unwrap();
            if let Some((tell, state)) = next.take() {
                tell.try_send(state).unwrap();
            }
        }),
        ..silent()
    };
    let (_stopper, shutdown) = crate::node::Shutdown::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(run(world.pilot, inputs, outputs, shutdown)).is_err(), "its states have ended");
    (commands.into_iter().count(), answer.map(|answer| answer.try_recv().unwrap()))
}

#[test]
fn states_that_wait_are_each_decided_on_while_nothing_is_commanded() {
    let mut world = World::new(Preset::Isaac);
    world.pilot.goal(&goal()).unwrap();
    world.pilot.change(Change::Activate).unwrap();
    let (tell, states) = mpsc::channel(64);
    for _ in 0..60 {
        world.stamp += TICK;
        tell.try_send(world.state()).unwrap();
    }
    drop(tell);
    let decided = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = decided.clone();
    let options = Box::new(move |option: &OptionState| seen.lock().unwrap().push(option.stamp_secs));
    let outputs = Outputs { options, ..silent() };
    let ((inputs, _kept), (_stopper, shutdown)) = (hearing(states), crate::node::Shutdown::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(run(world.pilot, inputs, outputs, shutdown)).is_err(), "its states have ended");
    let decided = decided.lock().unwrap();
    // 20 Hz out of a second of 60 states: every third
    let want: Vec<f64> = (1..=20).map(|decision| f64::from(3 * decision) * TICK).collect();
    assert!(decided.len() == 20 && decided.iter().zip(want).all(|(at, want)| (at - want).abs() < 1e-9), "{decided:?}");
}

#[test]
fn an_arming_that_nobody_hears_of_is_undone() {
    let (commands, answer) = armed(true);
    assert_eq!((commands, answer.unwrap().unwrap()), (2, "armed: the arm follows the policy"));
    // one command, at rest
    let (commands, answer) = armed(false);
    assert!(commands == 1 && answer.is_none());
}
