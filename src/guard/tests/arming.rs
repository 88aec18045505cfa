//! How a motion begins.

use super::*;

fn refusal(bench: &mut Bench) -> String {
    let now = bench.now;
    let why = bench.guard.unarmable(now).unwrap();
    let said = bench.guard.arm(now).unwrap_err().to_string();
    assert_eq!(said, format!("not armed: {why}"));
    said
}

#[test]
fn it_starts_disarmed_and_arms_on_request() {
    let mut bench = Bench::ready();
    assert_eq!(bench.run(0.05), None);
    assert_eq!(bench.state(), State::Disarmed);
    assert!(bench.says("arm to begin"));
    assert!(bench.to(&READY).unwrap_err().to_string().contains("disarmed"));
    assert_eq!(bench.count(Reason::NotArmed), 1);
    assert!(bench.guard.is_quiet());
    assert_eq!((bench.guard.unarmable(bench.now), bench.guard.resets()), (None, 0));
    bench.arm();
    assert_eq!(bench.guard.resets(), 1, "what came before is void");
    assert!(bench.tick().is_some());
    assert_eq!(bench.state(), State::Armed);
    assert!(bench.says("waits for a target"));
    assert!(!bench.guard.is_quiet());
    assert!(refusal(&mut bench).contains("it is armed"));
}

#[test]
fn the_first_command_is_the_anchor_at_rest() {
    let at = ready_with(2, 0.3);
    let mut bench = Bench::new(Config::default(), Robot::Panda, at);
    bench.arm();
    bench.to(&ready_with(2, 0.4)).unwrap();
    assert_eq!(bench.tick(), Some(Command { positions: at, velocities: [0.0; ARM_DOF] }));
    // then a tick of jerk: 20 % of 5000 rad/s³ (less 0.1 %) for 1 ms is 999 * 1e-9 / 6 rad
    let moved = bench.tick().unwrap().positions[2] - at[2];
    assert!((moved - 999e-9 / 6.0).abs() < 1e-13, "{moved}");
}

/// Armed and disarmed; then the arm sags by so much, `then` happens, and it is armed again. The last and the next command.
fn armed_again(sag: f64, then: impl Fn(&mut Bench)) -> (PerJoint, PerJoint) {
    let mut bench = Bench::armed();
    bench.run(0.003);
    bench.guard.disarm();
    let (_, last) = until_quiet(&mut bench);
    bench.arm[3] -= sag;
    bench.run(0.01);
    then(&mut bench);
    bench.run(0.01);
    bench.arm();
    (last.positions, bench.tick().unwrap().positions)
}

#[test]
fn the_last_command_is_the_anchor_of_the_next_arming() {
    // half of the leash of 0.2 rad
    let (last, next) = armed_again(0.099, |_| ());
    assert_eq!(last, next, "no step for who still holds the last command");
    type Meanwhile = fn(&mut Bench);
    let others: [(f64, Meanwhile); 6] = [
        (0.101, |_| ()),
        (0.01, |bench| bench.stamp_offset -= 50.0),
        (0.01, |bench| bench.guard.observe_publishers(2)),
        (0.01, |bench| bench.guard.observe_mode(Mode::Guiding, bench.now)),
        (0.01, |bench| {
            // a writer that ended the motion has commanded since
            bench.arm();
            bench.run(0.01);
            bench.publishers = 2;
            until_quiet(bench);
            bench.publishers = 1;
            bench.arm[3] -= 0.01;
        }),
        (0.01, |bench| {
            // the driver went, and its controller came back at the measured position
            bench.arm();
            bench.run(0.01);
            bench.states = false;
            until_quiet(bench);
            bench.states = true;
            bench.arm[3] -= 0.01;
        }),
    ];
    for (index, (sag, then)) in others.into_iter().enumerate() {
        let (mut last, next) = armed_again(sag, then);
        last[3] -= sag;
        assert_eq!(last, next, "measured: {index}");
    }
}

#[test]
fn arming_is_refused_with_what_is_missing() {
    let mut bench = Bench::ready();
    assert!(refusal(&mut bench).contains("no fresh joint state"));
    bench.hear();
    bench.now += 0.101;
    assert!(refusal(&mut bench).contains("no fresh joint state"), "it is old");
    bench.observe(&READY, &[0.0, 0.0, 0.0, 0.0, 0.0, -0.021, 0.0]).unwrap();
    assert!(refusal(&mut bench).contains("the arm moves"));
    bench.now += 0.01;
    bench.arm = ready_with(5, 4.0);
    bench.hear();
    assert!(refusal(&mut bench).contains("panda_joint6 stands at 5.5708 rad"));
    bench.arm = READY;
    bench.publishers = 2;
    bench.now += 0.01;
    bench.hear();
    assert!(refusal(&mut bench).contains("another node"));
    bench.publishers = 0;
    for (mode, says) in [
        (Mode::Reflex, "stopped itself"),
        (Mode::UserStopped, "user stop"),
        (Mode::Guiding, "by hand"),
        (Mode::AutomaticErrorRecovery, "wait"),
        (Mode::Other, "recover"),
    ] {
        bench.mode = Some(mode);
        bench.hear();
        assert!(refusal(&mut bench).contains(says), "{mode:?}");
    }
    bench.mode = Some(Mode::Idle);
    bench.arm();
    assert_eq!(bench.state(), State::Armed);
}

#[test]
fn arming_waits_for_discovery_and_mode() {
    let mut bench = Bench::ready();
    bench.observe(&READY, &[0.0; ARM_DOF]).unwrap();
    assert!(refusal(&mut bench).contains("not known yet"));
    bench.guard.observe_publishers(1);
    assert!(refusal(&mut bench).contains("mode is not heard"));
    bench.guard.observe_mode(Mode::Idle, bench.now);
    bench.now += 1.01;
    bench.observe(&READY, &[0.0; ARM_DOF]).unwrap();
    assert!(refusal(&mut bench).contains("mode is not heard"), "it is old");
}

#[test]
fn without_velocities_rest_is_seen_in_positions() {
    let mut bench = Bench::ready();
    bench.guard.observe_mode(Mode::Idle, bench.now);
    bench.guard.observe_publishers(1);
    let mut seen = |tenth_mrad: f64| {
        bench.now += 0.04;
        bench.observe(&ready_with(1, 1e-4 * tenth_mrad), &[]).unwrap();
        bench.guard.arm(bench.now).map_err(|error| error.to_string())
    };
    // 0.1 rad/s, then rest with Isaac Sim's rounding
    for moved in [0.0, 40.0, 80.0, 120.0, 160.0, 161.0, 160.0] {
        assert!(seen(moved).unwrap_err().contains("the arm moves"), "{moved}");
    }
    seen(160.0).unwrap();
}

#[test]
fn the_first_target_must_be_near() {
    let mut bench = Bench::armed();
    let said = bench.to(&ready_with(4, -0.21)).unwrap_err().to_string();
    assert!(said.contains("panda_joint5") && said.contains("-0.210"), "{said}");
    assert_eq!(bench.count(Reason::FarTarget), 1);
    bench.to(&ready_with(4, -0.19)).unwrap();
    bench.to(&ready_with(4, 0.5)).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_and_counted() {
    let mut bench = Bench::armed();
    bench.to(&READY).unwrap();
    bench.run(0.01);
    let ours = bench.names.to_vec();
    let other: Vec<String> = Robot::Fr3.joint_names().to_vec();
    let twice: Vec<String> = ours[..6].iter().chain([&ours[0]]).cloned().collect();
    let short = &ours[..6];
    let mut nan = READY;
    nan[3] = f64::NAN;
    for (names, values, reason) in [
        (Some(&ours[..]), &nan[..], Reason::NonFinite),
        (None, &READY[..6], Reason::WrongLength),
        (Some(&ours[..]), &READY[..6], Reason::WrongLength),
        (Some(&other[..]), &READY[..], Reason::UnknownName),
        (Some(&twice[..]), &READY[..], Reason::DuplicateName),
        (Some(short), &READY[..6], Reason::MissingName),
    ] {
        let before = bench.count(reason);
        for values in [Values::Positions(values), Values::Velocities(values)] {
            bench.guard.target(&Target { names, values }, bench.now).unwrap_err();
        }
        assert_eq!(bench.count(reason), before + 2);
    }
    // states: other joints may come too, nothing else
    bench.now += 1e-3;
    let before = bench.count(Reason::NonFinite);
    bench.observe(&nan, &[]).unwrap_err();
    bench.observe(&READY, &nan).unwrap_err();
    bench.observe(&READY, &READY[..3]).unwrap_err();
    bench.stamp_offset = f64::NAN;
    bench.observe(&READY, &[]).unwrap_err();
    assert_eq!((bench.count(Reason::NonFinite) - before, bench.count(Reason::WrongLength)), (3, 5));
    bench.stamp_offset = 1000.0;
    // nothing of it went out
    let last = bench.run(0.05).unwrap();
    assert_eq!(last.positions, READY);
}

#[test]
fn names_may_come_in_any_order() {
    let mut bench = Bench::armed();
    let names: Vec<String> = bench.names.iter().rev().cloned().collect();
    let goal = ready_with(0, 0.05);
    let reversed: Vec<f64> = goal.iter().rev().copied().collect();
    for _ in 0..50 {
        let target = Target { names: Some(&names), values: Values::Positions(&reversed) };
        bench.guard.target(&target, bench.now).unwrap();
        bench.run(0.02);
    }
    let found = bench.tick().unwrap().positions;
    assert!((0..ARM_DOF).all(|joint| (found[joint] - goal[joint]).abs() < 1e-6), "{found:?}");
    assert_eq!(bench.guard.reference(), goal);
}

#[test]
fn a_policy_for_another_arm_or_rate_is_refused() {
    let new = |config: Config, policy, arm| {
        Guard::new(config, &contract(policy), arm, None, None).map_err(|error| error.to_string())
    };
    let said = |result: Result<Guard, String>| result.unwrap_err();
    assert!(said(new(Config::default(), Robot::Panda, Robot::Fr3)).contains("made for Panda"));
    assert!(new(Config::default(), Robot::Both, Robot::Fr3).is_ok());
    assert!(new(Config::default(), Robot::Both, Robot::Panda).is_ok());
    // 50 Hz of decisions
    let slow = Config { policy_timeout_secs: 0.029, ..Config::default() };
    assert!(said(new(slow, Robot::Panda, Robot::Panda)).contains("1.5 control periods"));
    assert!(new(Config { policy_timeout_secs: 0.03, ..Config::default() }, Robot::Panda, Robot::Panda).is_ok());
    let rare = Config { command_rate_hz: 49.0, ..Config::default() };
    assert!(said(new(rare, Robot::Panda, Robot::Panda)).contains("passed over"));
    assert!(new(Config { command_rate_hz: 50.0, ..Config::default() }, Robot::Panda, Robot::Panda).is_ok());
    let mut odd = contract(Robot::Panda);
    odd.joints.swap(0, 1);
    assert!(Guard::new(Config::default(), &odd, Robot::Panda, None, None).unwrap_err().to_string().contains("joints"));
}

#[test]
fn the_wire_may_have_its_own_names() {
    let names: [String; ARM_DOF] = std::array::from_fn(|joint| format!("left_{joint}"));
    let guard =
        Guard::new(Config::default(), &contract(Robot::Panda), Robot::Panda, Some(names.clone()), None).unwrap();
    assert_eq!(guard.names(), &names);
}

#[test]
fn modes_have_the_numbers_of_the_message() {
    let modes = [0, 1, 2, 3, 4, 5, 6, 7].map(Mode::from_code);
    use Mode::{AutomaticErrorRecovery, Guiding, Idle, Move, Other, Reflex, UserStopped};
    assert_eq!(modes, [Other, Idle, Move, Guiding, Reflex, UserStopped, AutomaticErrorRecovery, Other]);
}
