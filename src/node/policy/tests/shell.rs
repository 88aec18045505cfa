//! The policy over channels.

use super::*;
use std::sync::mpsc::sync_channel;
use tokio::sync::{mpsc, watch};

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
    let (_led, led) = mpsc::channel(1);
    let (_weights, weights) = watch::channel(None);
    let (_goal, goal) = watch::channel(None);
    let (_clock, clock) = watch::channel(0.0);
    let (_writers, publishers) = watch::channel(1);
    let inputs = Inputs { states, led, weights, goal, clock, publishers, requests };
    let (sent, commands) = std::sync::mpsc::channel();
    let outputs = Outputs {
        commands: Box::new(move |_| {
            sent.send(()).unwrap();
            if let Some((tell, state)) = next.take() {
                tell.try_send(state).unwrap();
            }
        }),
        targets: Box::new(|_| ()),
        options: Box::new(|_| ()),
        scenes: Box::new(|_| ()),
        moves: Box::new(|_| ()),
        status: Box::new(|_| ()),
    };
    let (_stopper, shutdown) = crate::node::Shutdown::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(run(world.pilot, inputs, outputs, shutdown)).is_err(), "its states have ended");
    (commands.into_iter().count(), answer.map(|answer| answer.try_recv().unwrap()))
}

#[test]
fn an_arming_that_nobody_hears_of_is_undone() {
    let (commands, answer) = armed(true);
    assert_eq!((commands, answer.unwrap().unwrap()), (2, "armed: the arm follows the policy"));
    // one command, at rest
    let (commands, answer) = armed(false);
    assert!(commands == 1 && answer.is_none());
}
