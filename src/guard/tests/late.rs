//! Ticks that come late, where the receiver of the commands was told the way to rest and has gone it.

use super::*;

/// Joint 1 at full speed, and where it would go to rest.
fn on_its_way(tells_way: bool) -> (Bench, Vec<Command>) {
    let mut bench = moving();
    bench.guard = bench.guard.telling_the_way(tells_way);
    let way = bench.guard.way_to_rest();
    (bench, way)
}

/// The command of a tick that is late by so many ticks.
fn late(bench: &mut Bench, ticks: f64) -> Command {
    bench.now += ticks * bench.dt;
    bench.tick().unwrap()
}

#[test]
fn an_arm_that_went_towards_rest_is_led_on_from_there() {
    let (mut bench, way) = on_its_way(true);
    let found = late(&mut bench, 50.0);
    assert_eq!(bench.reasons(), [Reason::Overrun]);
    // 50 ticks on, and one more to come
    for (index, want) in way.iter().enumerate().skip(50) {
        let found = if index == 50 { found } else { bench.tick().unwrap() };
        assert!((found.positions[0] - want.positions[0]).abs() < 1e-9, "{index}");
        assert!((found.velocities[0] - want.velocities[0]).abs() < 1e-6, "{index}");
    }
    assert!(way.len() > 60 && bench.sent.last().unwrap().velocities == [0.0; ARM_DOF]);
}

#[test]
fn a_tick_that_is_a_little_late_is_made_up_for_too() {
    let (mut bench, way) = on_its_way(true);
    let found = late(&mut bench, 10.0);
    assert_eq!(bench.state(), State::Armed);
    // it speeds up again: by 1 tick of jerk at most, 20 % of 7500 rad/s³ to either side
    let more = found.positions[0] - way[10].positions[0];
    assert!((0.0..=1500.0 * 1e-9 / 3.0 + 1e-12).contains(&more), "{more}");
    // by less than half a tick it is on time
    let (mut bench, way) = on_its_way(true);
    let found = late(&mut bench, 0.49);
    assert!((found.positions[0] - way[0].positions[0]).abs() < 1e-6);
    let (mut bench, way) = on_its_way(true);
    let found = late(&mut bench, 0.51);
    let half_on = way[0].positions[0] + 0.51 * (way[1].positions[0] - way[0].positions[0]);
    assert!((found.positions[0] - half_on).abs() < 1e-6);
}

#[test]
fn an_arm_that_was_told_one_position_has_stayed_there() {
    let (mut bench, way) = on_its_way(false);
    let found = late(&mut bench, 50.0);
    assert!((found.positions[0] - way[0].positions[0]).abs() < 1e-9, "a tick further: {found:?}");
}

#[test]
fn a_simulation_has_a_clock_of_its_own_and_may_be_late() {
    let mut bench = Bench::new(Config::simulation(), Robot::Panda, READY);
    bench.hear();
    assert!(bench.guard.unarmable(bench.now).unwrap().contains("no clock is heard"));
    bench.guard.observe_clock(1.0, bench.now);
    bench.arm();
    bench.tick();
    // by 0.2 s
    late(&mut bench, 199.5);
    assert_eq!(bench.state(), State::Armed);
    late(&mut bench, 200.5);
    assert_eq!(bench.reasons(), [Reason::Overrun]);
}
