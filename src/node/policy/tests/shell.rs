//! The policy over channels.

use super::*;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
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

/// Asks for an arming while the states `waiting` wait, tells another when it was heard and another after the first command, and
/// ends. The commands that went out, and the answer.
fn armed(mut world: World, waiting: &[JointState], waits: bool) -> (Vec<Command>, Option<Result<&'static str>>) {
    let (ask, requests) = mpsc::channel(1);
    let (tell, states) = mpsc::channel(waiting.len() + 1);
    let (reply, answer) = sync_channel(1);
    let answer = Some(answer).filter(|_| waits);
    ask.try_send((Request::Arm(true), reply)).unwrap();
    waiting.iter().for_each(|state| tell.try_send(state.clone()).unwrap());
    let mut later = || {
        world.stamp += TICK;
        world.state()
    };
    let (first, second) = (later(), later());
    let (inputs, _kept) = hearing(states);
    let inputs = Inputs { requests, ..inputs };
    let (sent, commands) = std::sync::mpsc::channel();
    let mut next = Some((tell.clone(), second));
    let outputs = Outputs {
        commands: Box::new(move |command: &Command| {
            sent.send(command.clone()).unwrap();
            if let Some((tell, state)) = next.take() {
                tell.try_send(state).unwrap();
            }
        }),
        ..silent()
    };
    let (_stopper, shutdown) = crate::node::Shutdown::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let arm = async move {
        ask.reserve().await.unwrap();
        tell.try_send(first).unwrap();
    };
    let both = async { tokio::join!(run(world.pilot, inputs, outputs, shutdown), arm) };
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), both).await });
    assert!(ended.is_ok_and(|(ended, ())| ended.is_err()), "no command, or its states have not ended");
    (commands.into_iter().collect(), answer.map(|answer| answer.try_recv().unwrap()))
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

/// A world whose policy decides.
fn deciding() -> World {
    let mut world = World::new(Preset::Isaac);
    world.decides();
    world
}

/// States that wait: the arm's first joint goes by `step` [rad] a tick.
fn waiting(world: &mut World, ticks: usize, step: f64) -> Vec<JointState> {
    let next = |_| {
        world.stamp += TICK;
        world.position[0] += step;
        world.velocity[0] = step / TICK;
        world.state()
    };
    (0..ticks).map(next).collect()
}

#[test]
fn an_arm_is_anchored_where_it_is_after_the_states_that_waited() {
    let mut world = deciding();
    let states = [waiting(&mut world, 20, 5e-3), waiting(&mut world, 20, 0.0)].concat();
    let here = world.position;
    let (commands, answer) = armed(world, &states, true);
    assert_eq!(answer.unwrap().unwrap(), "armed: the arm follows the policy");
    let Command::Positions(first) = &commands[0] else { panic!("{commands:?}") };
    // 0.1 rad from where the first of them was
    assert!((first.position[0] - here[0]).abs() < 5e-3, "{} rad, and it is at {}", first.position[0], here[0]);
}

#[test]
fn what_waits_before_an_arming_is_decided_on_and_told() {
    let mut world = deciding();
    let waiting = waiting(&mut world, 20, 5e-3);
    let decided = std::sync::Arc::new(std::sync::Mutex::new(0));
    let seen = decided.clone();
    let (tell, states) = mpsc::channel(32);
    waiting.into_iter().for_each(|state| tell.try_send(state).unwrap());
    let (ask, requests) = mpsc::channel(1);
    let (reply, answer) = sync_channel(1);
    ask.try_send((Request::Arm(true), reply)).unwrap();
    drop(tell);
    let (inputs, _kept) = hearing(states);
    let outputs = Outputs { options: Box::new(move |_| *seen.lock().unwrap() += 1), ..silent() };
    let (_stopper, shutdown) = crate::node::Shutdown::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(run(world.pilot, Inputs { requests, ..inputs }, outputs, shutdown)).is_err());
    // so does the newest of them say
    assert!(refusal(answer.try_recv().unwrap()).contains("the arm moves; wait until it rests"));
    // 20 Hz out of a third of a second of 60 states: every third
    assert!((6..=7).contains(&*decided.lock().unwrap()), "{decided:?}");
}

#[test]
fn an_arming_that_nobody_hears_of_is_undone() {
    let mut world = deciding();
    let states = waiting(&mut world, 1, 0.0);
    let (commands, answer) = armed(world, &states, true);
    assert_eq!((commands.len(), answer.unwrap().unwrap()), (2, "armed: the arm follows the policy"));
    let mut world = deciding();
    let states = waiting(&mut world, 1, 0.0);
    // one command, at rest
    let (commands, answer) = armed(world, &states, false);
    assert!(commands.len() == 1 && answer.is_none());
}
