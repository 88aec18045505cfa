//! What lies exactly at a threshold is still allowed. The numbers are exact in binary.

use super::*;

#[test]
fn a_state_may_be_as_old_as_its_time_out() {
    let mut bench = Bench::new(Config { state_timeout_secs: 0.125, ..Config::default() }, Robot::Panda, READY);
    bench.hear();
    assert_eq!(bench.guard.unarmable(bench.now + 0.125), None);
    assert!(bench.guard.unarmable(bench.now + 0.1251).is_some());
}

#[test]
fn a_target_may_be_as_old_as_its_time_out() {
    let config = Config { policy_timeout_secs: 0.25, late_secs: 1.0, ..Config::default() };
    let mut bench = Bench::new(config, Robot::Panda, READY);
    bench.arm();
    bench.to(&READY).unwrap();
    for (later, state) in [(0.25, State::Armed), (0.001, State::Holding)] {
        bench.now += later;
        bench.hear();
        assert!(bench.guard.tick(bench.now).is_some());
        assert_eq!(bench.state(), state, "{later}");
    }
    assert_eq!(bench.reasons(), [Reason::StalePolicy]);
}

#[test]
fn an_arm_may_be_off_by_twice_the_leash_and_a_first_target_by_once() {
    let mut bench = Bench::new(Config { leash_rad: 0.25, ..Config::default() }, Robot::Panda, READY);
    bench.arm();
    assert!(bench.to(&ready_with(0, -0.2501)).is_err());
    bench.to(&ready_with(0, -0.25)).unwrap();
    bench.follows = false;
    bench.arm = ready_with(0, 0.5);
    bench.tick();
    assert_eq!(bench.state(), State::Armed);
    bench.arm = ready_with(0, 0.5001);
    bench.tick();
    assert_eq!(bench.reasons(), [Reason::Deviation]);
}
