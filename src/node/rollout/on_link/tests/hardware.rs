//! On a robot: it waits for a person, and obeys its mode.

use super::*;

#[test]
fn hardware_waits_to_be_armed_and_changes_weights_between_episodes() {
    let mut world = World::of(settings(Preset::Crisp));
    world.ticks(120);
    assert_eq!((world.commands.len(), world.on_link.agent().status().steps), (0, 0));
    assert!(world.on_link.agent().status().state.contains("~/arm"), "{:?}", world.on_link.agent().status().state);
    world.on_link.arm(true, world.now).unwrap();
    world.steps(20);
    assert!(!world.on_link.may_swap());
    world.learner(2);
    assert_eq!(world.on_link.agent().status().version, 1);
    world.on_link.arm(false, world.now).unwrap();
    world.ticks(120);
    assert!(world.on_link.is_quiet());
    assert_eq!(world.episodes.last().unwrap().end, End::Aborted);
    let before = world.commands.len();
    world.ticks(120);
    assert_eq!(world.commands.len(), before, "never again on its own");
    world.learner(2);
    assert_eq!(world.on_link.agent().status().version, 2);
}

#[test]
fn a_robot_that_stops_itself_ends_the_episode_and_waits_for_a_person() {
    let mut world = World::of(settings(Preset::Crisp));
    world.ticks(60);
    world.on_link.mode(Mode::Reflex, world.now);
    let refused = world.on_link.arm(true, world.now).unwrap_err().to_string();
    assert!(refused.contains("the robot stopped itself"), "{refused}");
    world.on_link.mode(Mode::Idle, world.now);
    world.on_link.arm(true, world.now).unwrap();
    world.on_link.mode(Mode::Move, world.now);
    world.steps(20);

    world.on_link.mode(Mode::Reflex, world.now);
    assert!(world.on_link.is_quiet(), "at once");
    let (commands, steps) = (world.commands.len(), world.on_link.agent().status().steps);
    world.ticks(60);
    assert_eq!(world.episodes.last().unwrap().end, End::Aborted);
    world.on_link.mode(Mode::Idle, world.now);
    world.ticks(60);
    let refused = world.on_link.arm(true, world.now).unwrap_err().to_string();
    assert!(refused.contains("recover, then arm again"), "{refused}");
    assert!(world.on_link.recover(false, world.now).unwrap().contains("~/arm"));
    world.ticks(60);
    assert_eq!((world.commands.len(), world.on_link.agent().status().steps), (commands, steps), "not by itself");
    world.on_link.arm(true, world.now).unwrap();
    world.steps(20);
}
