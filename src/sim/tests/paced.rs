//! The paced arm against what Isaac Sim's bridge does.

use crate::config;
use crate::data::JointState;
use crate::robot::{READY, Robot};
use crate::sim::Paced;

fn paced() -> Paced {
    Paced::new(Robot::Panda, &config::Sim::default()).unwrap()
}

fn command(joints: &[(&str, f64)]) -> JointState {
    JointState {
        stamp_secs: 0.0,
        names: joints.iter().map(|(name, _)| (*name).to_owned()).collect(),
        position: joints.iter().map(|(_, value)| *value).collect(),
        velocity: vec![],
    }
}

/// What is wrong with a command.
fn sentence(command: JointState) -> String {
    let mut paced = paced();
    paced.push(command).unwrap();
    paced.step().unwrap().1.map_or_else(String::new, |error| error.to_string())
}

/// Position of a joint after some ticks.
fn after(paced: &mut Paced, ticks: usize, joint: usize) -> f64 {
    (0..ticks).for_each(|_| drop(paced.step().unwrap()));
    paced.state().position[joint]
}

#[test]
fn it_stands_in_its_own_time_and_tells_arm_and_fingers() {
    let mut paced = paced();
    for tick in 1..=60 {
        let (state, wrong) = paced.step().unwrap();
        assert!(wrong.is_none());
        assert!((state.stamp_secs - f64::from(tick) / 60.0).abs() < 1e-12);
        assert_eq!((state.names.len(), state.position.len(), state.velocity.len()), (9, 9, 9));
        assert!((0..7).all(|joint| (state.position[joint] - READY[joint]).abs() < 1e-4));
    }
    assert_eq!(paced.state().names[8], "panda_finger_joint2");
}

#[test]
fn the_last_command_is_held_and_nan_leaves_a_joint_as_it_is() {
    let mut paced = paced();
    paced
        .push(command(&[("panda_joint7", READY[6] + 0.1), ("panda_joint1", 0.1), ("panda_finger_joint1", 0.02)]))
        .unwrap();
    assert!((after(&mut paced, 120, 0) - 0.1).abs() < 1e-3);
    paced.push(command(&[("panda_joint1", f64::NAN), ("panda_joint2", READY[1] + 0.1)])).unwrap();
    assert!((after(&mut paced, 120, 1) - READY[1] - 0.1).abs() < 1e-3);
    let state = paced.state();
    assert!((state.position[0] - 0.1).abs() < 1e-3 && (state.position[6] - READY[6] - 0.1).abs() < 1e-3);
    assert!((state.position[7] - 0.02).abs() < 1e-3, "fingers are joints, too");
}

#[test]
fn one_command_a_tick_leaves_a_queue_of_ten_that_drops_its_oldest() {
    let mut paced = paced();
    for index in 0..12 {
        paced.push(command(&[("panda_joint1", 0.01 * f64::from(index))])).unwrap();
    }
    assert_eq!(paced.dropped(), 2);
    let wrong: Vec<bool> = (0..10).map(|_| paced.step().unwrap().1.is_some()).collect();
    assert_eq!(wrong, [false; 10]);
    assert!((after(&mut paced, 120, 0) - 0.11).abs() < 1e-3, "the newest comes last");
    // ten ticks of lag: the eleventh command acts only after those before it
    let mut lagging = self::paced();
    for _ in 0..9 {
        lagging.push(command(&[("panda_joint1", 0.0)])).unwrap();
    }
    lagging.push(command(&[("panda_joint1", 0.5)])).unwrap();
    assert!(after(&mut lagging, 9, 0).abs() < 1e-4);
    assert!(after(&mut lagging, 10, 0) > 0.05);
}

#[test]
fn commands_of_the_wrong_form_are_not_obeyed() {
    assert!(sentence(command(&[])).contains("no joints found"));
    let mut short = command(&[("panda_joint1", 0.1), ("panda_joint2", 0.1)]);
    short.position.pop();
    assert!(sentence(short.clone()).contains("2 names, 1 positions"));
    short.velocity = vec![0.0; 2];
    assert_eq!(sentence(short), "", "of one right length, the others are NaN");
    assert!(sentence(command(&[("fr3_joint1", 0.1)])).contains("fr3_joint1"));
    assert!(sentence(command(&[("panda_joint1", f64::INFINITY)])).contains("inf"));
}

#[test]
fn a_reset_goes_back_to_time_0_and_forgets_commands() {
    let mut paced = paced();
    paced.push(command(&[("panda_joint1", 0.3)])).unwrap();
    assert!(after(&mut paced, 60, 0) > 0.2);
    paced.push(command(&[("panda_joint1", 0.9)])).unwrap();
    paced.reset().unwrap();
    let state = paced.state();
    assert_eq!((state.stamp_secs, paced.clock_secs()), (0.0, 0.0));
    assert!((state.position[0] - READY[0]).abs() < 1e-6);
    assert!(after(&mut paced, 60, 0).abs() < 1e-3);
}

#[test]
fn a_command_from_before_a_reset_is_refused() {
    let mut paced = paced();
    let stamped = |stamp_secs| JointState { stamp_secs, ..command(&[("panda_joint1", 0.5)]) };
    assert!(after(&mut paced, 411, 0).abs() < 1e-3);
    paced.push(stamped(6.85)).unwrap(); // its own time
    paced.reset().unwrap();
    assert!(after(&mut paced, 3, 0).abs() < 1e-3);
    let said = paced.push(stamped(6.85)).unwrap_err().to_string();
    assert!(said.contains("6.850 s") && said.contains("0.050 s"), "{said}");
    paced.push(stamped(0.05 + 1.1 / 60.0)).unwrap_err();
    assert!(after(&mut paced, 60, 0).abs() < 1e-3, "it stays where the reset left it");
    assert_eq!(paced.untimely(), 2);
    // up to a tick ahead, late, or without a stamp: taken
    for stamp_secs in [63.9 / 60.0, 0.5, 0.0] {
        paced.reset().unwrap();
        after(&mut paced, 63, 0);
        paced.push(stamped(stamp_secs)).unwrap();
        assert!(after(&mut paced, 120, 0) > 0.49, "stamped {stamp_secs}");
    }
}

#[test]
fn values_are_rounded_as_isaac_sim_does_it() {
    let mut paced = Paced::new(Robot::Panda, &config::Sim { rounding: 1e-4, ..config::Sim::default() }).unwrap();
    paced.push(command(&[("panda_joint1", 0.123_456_789)])).unwrap();
    for _ in 0..20 {
        let (state, _) = paced.step().unwrap();
        for value in state.position.iter().chain(&state.velocity) {
            assert!((value * 1e4 - (value * 1e4).round()).abs() < 1e-6, "{value}");
        }
    }
}
