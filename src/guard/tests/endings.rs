//! How a motion is interrupted, how it ends, and what it takes to go on.

use super::*;

/// Asserts that the arm was brought to rest before the guard fell silent for this reason.
fn ended_at_rest(bench: &mut Bench, reason: Reason) {
    let (ticks, last) = until_quiet(bench);
    assert!(ticks > 20, "no time to brake: {ticks}");
    assert_eq!(last.velocities, [0.0; ARM_DOF]);
    assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![reason]));
    assert!(bench.count(reason) > 0);
    assert!(bench.to(&READY).is_err(), "a stopped guard takes no targets");
}

#[test]
fn a_stale_state_ends_the_motion() {
    let mut bench = moving();
    bench.states = false;
    // not before the time-out of 0.1 s
    bench.to(&ready_with(0, 0.5)).unwrap();
    bench.run(0.099);
    assert_eq!(bench.state(), State::Armed);
    ended_at_rest(&mut bench, Reason::StaleState);
    assert!(bench.says("driver and network"));
    bench.states = true;
    assert_eq!(bench.run(0.1), None, "it does not go on by itself");
    bench.arm();
    assert!(bench.tick().is_some());
}

#[test]
fn a_stale_policy_leads_to_a_hold_until_the_next_target() {
    let mut bench = moving();
    bench.to(&ready_with(0, 0.5)).unwrap();
    bench.run(0.199);
    assert_eq!(bench.state(), State::Armed);
    let held = bench.run(1.0).unwrap();
    assert_eq!((bench.state(), bench.reasons()), (State::Holding, vec![Reason::StalePolicy]));
    assert!(bench.says("until the next one"));
    assert_eq!(held.velocities, [0.0; ARM_DOF]);
    bench.lead(&ready_with(0, 0.5), 0.1);
    assert_eq!(bench.state(), State::Armed);
    assert!(bench.says("farther"), "{}", bench.guard.report().sentence);
    assert!(bench.sent.last().unwrap().positions[0] > held.positions[0]);
    assert_eq!(bench.guard.report().holds, 1, "however long");
    bench.run(1.0);
    assert_eq!(bench.guard.report().holds, 2);
}

#[test]
fn a_policy_that_has_not_begun_is_not_stale() {
    let mut bench = Bench::armed();
    bench.run(1.0);
    assert_eq!(bench.state(), State::Armed);
}

#[test]
fn a_hold_keeps_the_last_command_not_the_measured_position() {
    let mut bench = moving();
    bench.follows = false;
    bench.run(0.4);
    let held = bench.tick().unwrap();
    bench.arm = bench.arm.map(|position| position - 0.05);
    assert_eq!(bench.run(0.5).unwrap().positions, held.positions);
}

#[test]
fn a_second_writer_ends_the_motion() {
    let mut bench = moving();
    bench.publishers = 2;
    ended_at_rest(&mut bench, Reason::SecondWriter);
    bench.hear();
    assert!(bench.guard.arm(bench.now).is_err());
}

#[test]
fn a_second_writer_between_two_ticks_ends_the_motion_too() {
    let mut bench = moving();
    bench.guard.observe_publishers(2);
    ended_at_rest(&mut bench, Reason::SecondWriter);
}

#[test]
fn states_that_come_late_are_as_old_as_their_stamps() {
    let mut bench = moving();
    bench.stamp_offset -= 0.035; // as far back as messages out of order are
    bench.lead(&ready_with(0, 0.5), 0.1);
    assert_eq!(bench.state(), State::Armed, "{}", bench.guard.report().sentence);
    // time-out of 0.1 s: each state comes in time, and each is 0.15 s old
    let mut late = 0.035;
    while bench.state() == State::Armed && late < 1.0 {
        (late, bench.stamp_offset) = (late + 0.0009, bench.stamp_offset - 0.0009);
        bench.tick();
    }
    assert!((0.1..0.102).contains(&late), "{late}");
    ended_at_rest(&mut bench, Reason::StaleState);
    (bench.now, bench.stamp_offset) = (bench.now + 0.05, bench.stamp_offset - 0.0499);
    bench.hear();
    assert!(bench.guard.arm(bench.now).unwrap_err().to_string().contains("no fresh joint state"));
    // a simulator is as slow as it is
    let config = Config { use_sim_time: true, require_mode: false, ..Config::default() };
    let mut bench = Bench::new(config, Robot::Panda, READY);
    bench.guard.observe_clock(50.0, bench.now);
    bench.arm();
    for _ in 0..1000 {
        bench.stamp_offset -= 0.0005;
        bench.tick();
    }
    assert_eq!(bench.state(), State::Armed);
}

#[test]
fn an_arm_that_does_not_follow_is_stopped() {
    let mut bench = moving();
    bench.follows = false;
    bench.arm = bench.sent.last().unwrap().positions;
    bench.arm[4] -= 0.399;
    bench.tick();
    assert_eq!(bench.state(), State::Armed);
    bench.arm[4] -= 0.002;
    ended_at_rest(&mut bench, Reason::Deviation);
}

#[test]
fn time_that_goes_back_ends_the_motion() {
    // on hardware only a stamp can: the arm is brought to rest
    let mut bench = moving();
    bench.stamp_offset -= 0.1;
    ended_at_rest(&mut bench, Reason::ClockJump);
    // a simulation that is reset has forgotten the motion: nothing is sent
    for by_clock in [true, false] {
        let config = Config { use_sim_time: true, require_mode: false, ..Config::default() };
        let mut bench = Bench::new(config, Robot::Panda, READY);
        bench.guard.observe_clock(50.0, bench.now);
        bench.arm();
        bench.lead(&ready_with(0, 0.1), 0.1);
        let resets = bench.guard.report().resets;
        if by_clock {
            bench.guard.observe_clock(0.0, bench.now);
        } else {
            bench.stamp_offset = -bench.now;
        }
        assert_eq!(bench.tick(), None);
        assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![Reason::ClockJump]));
        assert!(bench.says("new episode"));
        assert_eq!((bench.guard.report().resets, bench.count(Reason::ClockJump)), (resets + 1, 1));
        // it goes on with the new time
        bench.guard.observe_clock(0.1, bench.now);
        bench.arm();
        assert!(bench.tick().is_some());
    }
}

#[test]
fn a_reset_while_disarmed_is_told() {
    let mut bench = Bench::ready();
    bench.run(0.1);
    bench.stamp_offset -= 50.0;
    bench.run(0.1);
    let report = bench.guard.report();
    assert_eq!((report.state, report.resets), (State::Disarmed, 1));
}

#[test]
fn messages_out_of_order_are_ignored() {
    let mut bench = moving();
    let (state, now) = (bench.arm, bench.now);
    let names = bench.names.clone();
    for stamp_secs in [now + 1000.0, now + 999.97] {
        let far = state.map(|position| position + 1.0);
        let states = JointStates { names: &names, positions: &far, velocities: &[], stamp_secs };
        bench.guard.observe(&states, now).unwrap();
    }
    assert_eq!(bench.count(Reason::OldStamp), 2);
    bench.guard.tick(now + 1e-4);
    assert_eq!(bench.state(), State::Armed, "their positions would be far off");
    // ticks too
    for late in [now + 1e-4, now, f64::NAN] {
        assert_eq!(bench.guard.tick(late), None);
    }
    assert_eq!(bench.count(Reason::OldStamp), 5);
    bench.guard.observe_clock(5.0, now);
    bench.guard.observe_clock(5.0, now);
    assert_eq!(bench.count(Reason::OldStamp), 6);
}

#[test]
fn sim_time_needs_a_clock() {
    let config = Config { use_sim_time: true, require_mode: false, ..Config::default() };
    let mut bench = Bench::new(config, Robot::Panda, READY);
    bench.hear();
    assert!(bench.guard.arm(bench.now).unwrap_err().to_string().contains("no clock is heard"));
    bench.guard.observe_clock(1.0, bench.now);
    bench.arm();
    bench.run(1.99);
    assert_eq!(bench.state(), State::Armed);
    // one that stands still is none
    bench.guard.observe_clock(1.0, bench.now);
    bench.run(0.02);
    assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![Reason::NoClock]));
}

#[test]
fn late_ticks_lead_to_a_hold() {
    let mut bench = moving();
    bench.now += 0.0195;
    bench.tick();
    assert_eq!(bench.state(), State::Armed);
    bench.now += 0.0205;
    bench.tick();
    assert_eq!((bench.state(), bench.reasons()), (State::Holding, vec![Reason::Overrun]));
    // it goes on after a rest
    let rested = bench.sent.len() + bench.lead_until_armed(&ready_with(0, 0.5));
    assert_eq!(bench.sent[rested - 2].velocities, [0.0; ARM_DOF]);
    // many ticks that are a little late
    for _ in 0..40 {
        let _ = bench.to(&ready_with(0, 0.5));
        bench.now += 0.0006;
        bench.tick();
    }
    assert_eq!((bench.state(), bench.reasons()), (State::Holding, vec![Reason::Overrun]));
    assert!(bench.guard.report().ticks.late_ratio > 0.2);
    bench.lead_until_armed(&ready_with(0, 0.5));
    let ratio = bench.guard.report().ticks.late_ratio;
    assert!((0.09..=0.1).contains(&ratio), "{ratio}");
}

impl Bench {
    /// Ticks that it takes until the guard is armed again.
    fn lead_until_armed(&mut self, target: &PerJoint) -> usize {
        for ticks in 1..2000 {
            self.to(target).unwrap();
            self.tick();
            if self.state() == State::Armed {
                return ticks;
            }
        }
        panic!("it holds for ever: {}", self.guard.report().sentence);
    }
}

#[test]
fn the_pace_is_reported() {
    let mut bench = moving();
    bench.lead(&ready_with(0, 0.5), 0.1);
    let report = bench.guard.report();
    assert!((report.ticks.period_secs - 1e-3).abs() < 1e-9, "{report:?}");
    assert!((report.decisions.period_secs - 0.02).abs() < 1e-3, "{report:?}");
    // a new arming measures anew
    bench.guard.disarm();
    until_quiet(&mut bench);
    bench.run(0.2);
    bench.arm();
    bench.run(0.01);
    assert!(bench.guard.report().ticks.worst_secs < 2e-3);
}

#[test]
fn disarming_brings_the_arm_to_rest() {
    let mut bench = moving();
    bench.guard.disarm();
    assert!(bench.tick().is_some());
    assert_eq!((bench.state(), bench.reasons()), (State::Holding, vec![Reason::Disarmed]));
    assert!(bench.to(&READY).is_err(), "no target is taken on the way");
    let (ticks, last) = until_quiet(&mut bench);
    assert!(ticks > 20 && last.velocities == [0.0; ARM_DOF]);
    assert_eq!((bench.state(), bench.reasons()), (State::Disarmed, vec![Reason::Disarmed]));
    bench.arm();
    assert_eq!(bench.run(0.1).unwrap().positions, last.positions);
    // out of a stop too
    bench.publishers = 2;
    until_quiet(&mut bench);
    assert_eq!(bench.state(), State::Stopped);
    bench.guard.disarm();
    assert_eq!(bench.state(), State::Disarmed);
}

#[test]
fn an_end_for_two_reasons_is_a_stop() {
    let mut bench = moving();
    bench.guard.disarm();
    bench.publishers = 2;
    until_quiet(&mut bench);
    assert_eq!((bench.state(), bench.reasons()), (State::Stopped, vec![Reason::SecondWriter, Reason::Disarmed]));
}

#[test]
fn the_way_to_rest_is_the_way_that_a_disarmed_arm_takes() {
    let mut bench = moving();
    let way = bench.guard.way_to_rest();
    bench.guard.disarm();
    let from = bench.sent.len();
    until_quiet(&mut bench);
    let taken = &bench.sent[from..];
    assert!(way.len().abs_diff(taken.len()) <= 1 && way.len() > 20, "{} and {}", way.len(), taken.len());
    for (way, taken) in way.iter().zip(taken) {
        for joint in 0..ARM_DOF {
            assert!((way.positions[joint] - taken.positions[joint]).abs() < 1e-9);
            assert!((way.velocities[joint] - taken.velocities[joint]).abs() < 1e-6);
        }
    }
    assert_eq!(way.last().unwrap().velocities, [0.0; ARM_DOF]);
    assert_eq!(bench.guard.way_to_rest(), []);
}

#[test]
fn shutdown_brings_the_arm_to_rest() {
    let mut bench = moving();
    bench.guard.shutdown();
    assert!(!bench.guard.is_quiet());
    let (ticks, last) = until_quiet(&mut bench);
    assert!(ticks > 20 && last.velocities == [0.0; ARM_DOF]);
    assert!(bench.guard.is_quiet());
    assert_eq!((bench.state(), bench.reasons()), (State::Disarmed, vec![Reason::Shutdown]));
    assert!(bench.guard.arm(bench.now).unwrap_err().to_string().contains("the program ends"));
    // at once where nothing moves
    let mut bench = Bench::ready();
    bench.guard.shutdown();
    assert!(bench.guard.is_quiet());
}
