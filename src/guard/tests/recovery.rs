//! A robot that stops itself, and what it takes to go on.

use super::*;

#[test]
fn a_robot_that_stopped_gets_no_more_commands() {
    for mode in [Mode::Reflex, Mode::UserStopped, Mode::Guiding, Mode::AutomaticErrorRecovery, Mode::Other] {
        let mut bench = moving();
        let resets = bench.guard.report().resets;
        bench.mode = Some(mode);
        assert_eq!(bench.tick(), None);
        let report = bench.guard.report();
        assert_eq!((report.state, bench.reasons()), (State::Stopped, vec![Reason::RobotMode]));
        assert!(report.needs_recovery);
        assert_eq!(report.resets, resets + 1, "option and pending commands are void");
        assert_eq!(report.counts.of(Reason::RobotMode), 1);
        // nor when it is ready again
        bench.mode = Some(Mode::Idle);
        assert_eq!(bench.run(0.1), None);
        bench.guard.disarm();
        let said = bench.guard.arm(bench.now).unwrap_err().to_string();
        assert!(said.contains("recover"), "{said}");
    }
}

#[test]
fn a_required_mode_that_is_not_heard_ends_the_motion() {
    let mut bench = moving();
    bench.mode = None;
    for _ in 0..49 {
        bench.to(&ready_with(0, 0.5)).unwrap();
        bench.run(0.02);
    }
    assert_eq!(bench.state(), State::Armed);
    bench.lead(&ready_with(0, -0.5), 0.02);
    let _ = until_quiet(&mut bench);
    assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![Reason::NoMode]));
    // where none is required none is missed
    let mut bench = Bench::new(Config { require_mode: false, ..Config::default() }, Robot::Panda, READY);
    bench.mode = None;
    bench.arm();
    bench.run(2.0);
    assert_eq!(bench.state(), State::Armed);
}

#[test]
fn recovery_never_moves_the_arm() {
    let mut bench = moving();
    assert!(bench.guard.recover(false, bench.now).is_err(), "nothing to recover from");
    bench.mode = Some(Mode::Reflex);
    bench.tick();
    assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::AskRobot);
    assert!(bench.guard.report().needs_recovery);
    for (mode, says) in
        [(Mode::AutomaticErrorRecovery, "wait"), (Mode::UserStopped, "user stop"), (Mode::Guiding, "by hand")]
    {
        bench.mode = Some(mode);
        assert_eq!(bench.tick(), None);
        assert!(bench.guard.recover(true, bench.now).unwrap_err().to_string().contains(says));
    }
    bench.now += 1.1;
    assert!(bench.guard.recover(false, bench.now).unwrap_err().to_string().contains("not heard"));
    bench.mode = Some(Mode::Idle);
    assert_eq!(bench.tick(), None);
    // pushed meanwhile
    bench.arm = ready_with(1, 0.3);
    assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::Recovered);
    assert_eq!(bench.run(0.2), None);
    assert_eq!(bench.state(), State::Disarmed);
    bench.arm();
    assert_eq!(bench.run(0.1).unwrap().positions, ready_with(1, 0.3), "anchored anew, and no old target");
}

#[test]
fn a_person_is_told_what_comes_next() {
    assert!(Recovery::AskRobot.advice().contains("then recover again"));
    assert!(Recovery::Recovered.advice().contains("call ~/arm"));
}

#[test]
fn recoveries_are_limited() {
    let mut bench = moving();
    bench.mode = Some(Mode::Reflex);
    bench.tick();
    let start = bench.now;
    let recover = |bench: &mut Bench, after: f64, acknowledged| {
        bench.guard.observe_mode(Mode::Reflex, start + after);
        bench.guard.recover(acknowledged, start + after).map_err(|error| error.to_string())
    };
    for after in [0.0, 1.0, 2.0] {
        assert_eq!(recover(&mut bench, after, false), Ok(Recovery::AskRobot));
    }
    assert!(recover(&mut bench, 59.9, false).unwrap_err().contains("acknowledged"));
    // the first is 60 s ago
    assert_eq!(recover(&mut bench, 60.0, false), Ok(Recovery::AskRobot));
    assert!(recover(&mut bench, 60.5, false).is_err());
    assert_eq!(recover(&mut bench, 60.6, true), Ok(Recovery::AskRobot));
    assert_eq!(recover(&mut bench, 60.7, false), Ok(Recovery::AskRobot));
}

#[test]
fn what_the_robot_was_recovered_from_by_other_means_counts_too() {
    let mut bench = moving();
    let stop = |bench: &mut Bench| {
        bench.mode = Some(Mode::Reflex);
        bench.tick();
        bench.mode = Some(Mode::Idle);
        bench.tick();
    };
    for _ in 0..3 {
        stop(&mut bench);
        assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::Recovered);
        bench.arm();
    }
    stop(&mut bench);
    let said = bench.guard.recover(false, bench.now).unwrap_err().to_string();
    assert!(said.contains("3 recoveries within 60 s"), "{said}");
    assert!(bench.guard.report().needs_recovery && bench.guard.arm(bench.now).is_err());
    // a person acknowledges, and then arms
    assert_eq!(bench.guard.recover(true, bench.now).unwrap(), Recovery::Recovered);
    assert_eq!(bench.run(0.1), None);
    bench.arm();
    // one that was asked for is one
    stop(&mut bench);
    bench.mode = Some(Mode::Reflex);
    bench.tick();
    assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::AskRobot);
    bench.mode = Some(Mode::Move);
    bench.tick();
    assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::Recovered);
    bench.arm();
    stop(&mut bench);
    assert_eq!(bench.guard.recover(false, bench.now).unwrap(), Recovery::Recovered, "the third since then");
    bench.arm();
    stop(&mut bench);
    assert!(bench.guard.recover(false, bench.now).is_err());
}

#[test]
fn a_stop_of_the_robot_between_two_ticks_is_a_stop() {
    let mut bench = moving();
    bench.guard.observe_mode(Mode::Reflex, bench.now);
    bench.guard.observe_mode(Mode::Move, bench.now);
    assert_eq!(bench.tick(), None);
    assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![Reason::RobotMode]));
}

#[test]
fn a_mode_that_forbids_commands_does_so_until_another_is_heard() {
    let mut bench = Bench::new(Config { require_mode: false, ..Config::default() }, Robot::Panda, READY);
    bench.mode = Some(Mode::UserStopped);
    bench.hear();
    bench.mode = None;
    bench.run(5.0);
    assert!(bench.guard.arm(bench.now).unwrap_err().to_string().contains("user stop"));
    bench.mode = Some(Mode::Idle);
    bench.arm();
}
