//! How commands end.

use super::*;
use crate::guard::Mode;

#[test]
fn lost_states_bring_the_arm_to_rest_and_end_the_commands() {
    let mut world = World::armed();
    world.ticks(120);
    let armed = world.commands.len();
    for _ in 0..120 {
        world.now += TICK;
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    let report = world.guard();
    assert_eq!(report.state, State::Stopped, "{}", report.sentence);
    assert!(report.reasons.contains(Reason::StaleState), "{}", report.sentence);
    assert!(world.commands.len() > armed, "it is braked by commands");
    // the last step is within one tick's deceleration of rest
    let last = &world.commands[world.commands.len() - 2..];
    for (joint, most) in Robot::Panda.limits().acceleration_rad_per_sec2.iter().enumerate() {
        assert!((last[0].position[joint] - last[1].position[joint]).abs() <= most * TICK * TICK);
    }
    let before = world.commands.len();
    world.ticks(60);
    assert_eq!(world.commands.len(), before, "never again on its own");
}

#[test]
fn states_whose_time_stands_are_lost_states() {
    let mut world = World::armed();
    world.ticks(120);
    let frozen = world.state();
    for _ in 0..120 {
        world.now += TICK;
        let acts = world.pilot.states(&frozen, world.now).unwrap();
        assert_eq!(acts, Acts::default());
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    let report = world.guard();
    assert!(report.state == State::Stopped && report.reasons.contains(Reason::StaleState), "{}", report.sentence);
}

#[test]
fn a_robot_that_stopped_itself_is_moved_again_once_it_was_recovered_and_armed() {
    let mut world = World::armed();
    world.ticks(120);
    let before = world.commands.len();
    assert_ne!(world.pilot.running, Running::default());
    world.pilot.mode(Mode::Reflex, world.now);
    assert_eq!(world.pilot.running, Running::default(), "the option that ran is over");
    world.ticks(60);
    let status = world.pilot.status(world.now);
    assert!(status.is_trouble() && status.sentence.contains("the robot stopped itself"), "{}", status.sentence);
    world.pilot.mode(Mode::Idle, world.now);
    world.ticks(60);
    assert!(refusal(world.pilot.arm(world.now)).contains("recover"));
    world.pilot.mode(Mode::Idle, world.now);
    assert!(world.pilot.recover(false, world.now).unwrap().starts_with("recovered, disarmed"));
    world.ticks(60);
    assert_eq!((world.guard().state, world.commands.len()), (State::Disarmed, before), "it never moved");
    world.pilot.arm(world.now).unwrap();
    world.ticks(60);
    assert!(world.commands.len() > before);
}

#[test]
fn deactivation_brings_the_arm_to_rest_and_disarms() {
    let mut world = World::armed();
    world.ticks(120);
    world.pilot.change(Change::Deactivate).unwrap();
    world.ticks(60);
    assert_eq!((world.guard().state, world.pilot.stage()), (State::Disarmed, Stage::Inactive));
    let before = world.commands.len();
    world.ticks(10);
    assert_eq!(world.commands.len(), before);
}

#[test]
fn the_end_brings_the_arm_to_rest() {
    let mut world = World::armed();
    world.ticks(120);
    world.pilot.shutdown();
    assert!(!world.pilot.is_quiet());
    world.ticks(60);
    assert!(world.pilot.is_quiet());
    assert!(refusal(world.pilot.arm(world.now)).contains("not armed"));
}

#[test]
fn a_reset_simulator_ends_the_motion_and_the_option() {
    let mut world = World::armed();
    world.ticks(120);
    world.stamp = 0.0;
    world.position = READY;
    let before = world.commands.len();
    world.ticks(60);
    assert_eq!((world.guard().state, world.commands.len()), (State::Stopped, before));
    assert!(world.pilot.stage() == Stage::Active && world.options.last().unwrap().stamp_secs > 0.8, "it decides, dry");
    world.pilot.arm(world.now).unwrap();
    world.ticks(3);
    assert_eq!(world.commands[before].position, READY);
}
