//! What the limits take from a policy's wish.

use super::*;
use crate::robot::{floor_clearance, self_clearance, tcp};

fn simulated() -> Config {
    Config { require_mode: false, ..Config { use_sim_time: false, ..Config::simulation() } }
}

/// The fastest, hardest and most sudden of a stream, as shares of the tables; checked on the way.
fn run_checked(bench: &mut Bench, robot: Robot, share: f64, target: &PerJoint, secs: f64) -> f64 {
    let mut checker = Checker::new(robot, share, bench.dt, bench.arm);
    let from = bench.sent.len();
    bench.lead(target, secs);
    for command in &bench.sent[from..] {
        checker.check(&command.positions).unwrap();
    }
    checker.worst
}

#[test]
fn limits_start_at_a_fifth_on_hardware() {
    assert_eq!((Config::default().scale, Config::simulation().scale), (0.2, 1.0));
    let mut bench = Bench::armed();
    bench.lead(&READY, 0.02);
    bench.arm = READY;
    let worst = run_checked(&mut bench, Robot::Panda, 0.2, &ready_with(6, -1.0), 1.0);
    assert!(worst > 0.99, "the limits are used: {worst}");
    let fastest = bench.sent.iter().map(|command| command.velocities[6].abs()).fold(0.0, f64::max);
    assert!((fastest - 0.2 * 2.61 * 0.999).abs() < 1e-9, "{fastest}");
}

#[test]
fn a_lower_scale_slows_a_moving_arm() {
    let mut bench = Bench::new(simulated(), Robot::Panda, READY);
    bench.arm();
    let far = ready_with(6, -2.5);
    bench.lead(&ready_with(6, -0.1), 0.02);
    bench.lead(&far, 0.4);
    assert!(bench.sent.last().unwrap().velocities[6] < -2.0);
    let mut checker = Checker::new(Robot::Panda, 1.0, bench.dt, bench.sent[0].positions);
    bench.guard.set_scale(0.1).unwrap();
    assert_eq!(bench.guard.report().scale, 0.1);
    bench.lead(&far, 0.5);
    for command in &bench.sent {
        checker.check(&command.positions).unwrap();
    }
    let speed = bench.sent.last().unwrap().velocities[6];
    assert!((speed + 0.261 * 0.999).abs() < 1e-6, "{speed}");
    // and up again, at once
    bench.guard.set_scale(1.0).unwrap();
    bench.lead(&far, 0.1);
    assert!(bench.sent.last().unwrap().velocities[6] < -1.0);
    for scale in [0.0, 1.1, f64::NAN] {
        assert!(bench.guard.set_scale(scale).unwrap_err().to_string().contains("guard.scale"));
    }
    // before an arming too
    let mut bench = Bench::ready();
    bench.guard.set_scale(0.01).unwrap();
    bench.arm();
    bench.lead(&ready_with(0, 0.1), 0.5);
    assert!(bench.sent.last().unwrap().velocities[0] < 0.022);
}

#[test]
fn the_tighter_limits_win() {
    let mut described = *Robot::Fr3.limits();
    described.position_max_rad[0] = 0.5;
    described.position_max_rad[1] = 9.0;
    described.velocity_rad_per_sec = [f64::NAN; ARM_DOF];
    described.velocity_rad_per_sec[2] = 0.3;
    described.acceleration_rad_per_sec2 = [f64::NAN; ARM_DOF];
    let config =
        Config { floor_m: -2.0, workspace_min_m: [-2.0; 3], workspace_max_m: [2.0; 3], leash_rad: 1.0, ..simulated() };
    let new =
        |described: &Limits| Guard::new(config.clone(), &contract(Robot::Both), Robot::Fr3, None, Some(described));
    let mut bench = Bench::new(config.clone(), Robot::Both, READY);
    bench.guard = new(&described).unwrap();
    bench.arm();
    let mut goal = READY;
    (goal[0], goal[1], goal[2], goal[3]) = (0.9, 2.5, -0.9, -1.5);
    bench.lead(&READY, 0.02);
    bench.lead(&goal, 6.0);
    let [first, second, third, ..] = bench.sent.last().unwrap().positions;
    assert!((first - 0.4).abs() < 1e-6, "the description's, less the margin: {first}");
    // the Panda's 1.7628 less the margin, not the description's, nor the FR3's
    assert!((second - 1.6628).abs() < 1e-6, "{second}");
    assert!((third + 0.9).abs() < 1e-6, "{third}");
    let fastest = bench.sent.iter().map(|command| command.velocities[2].abs()).fold(0.0, f64::max);
    assert!((fastest - 0.2997).abs() < 1e-9, "{fastest}");
    // nothing left
    described.position_max_rad[0] = -2.6;
    let said = new(&described).unwrap_err().to_string();
    assert!(said.contains("joint 1 may not move between -2.7437 and -2.6 rad"), "{said}");
    described = *Robot::Fr3.limits();
    described.velocity_rad_per_sec[3] = 0.0;
    assert!(new(&described).unwrap_err().to_string().contains("joint 4"));
}

#[test]
fn a_target_beyond_the_margin_is_reached_at_the_margin() {
    for (robot, joint, target, end) in [
        (Robot::Panda, 6, 5.0, 2.8973 - 0.1),
        (Robot::Panda, 6, -5.0, -2.8973 + 0.1),
        (Robot::Fr3, 6, 5.0, 3.0159 - 0.1),
        (Robot::Fr3, 4, -5.0, -2.8065 + 0.1),
        (Robot::Both, 5, 9.0, 3.7525 - 0.1),
    ] {
        let config = Config { self_margin_m: 0.0, ..simulated() };
        let mut bench = Bench::new(config, robot, READY);
        bench.arm();
        bench.lead(&READY, 0.02);
        let mut goal = READY;
        goal[joint] = target;
        bench.arm = READY;
        run_checked(&mut bench, robot, 1.0, &goal, 4.0);
        let found = bench.sent.last().unwrap().positions[joint];
        assert!((found - end).abs() < 1e-6, "{robot:?} {found}");
        assert!(bench.says("beyond a joint's range"), "{}", bench.guard.report().sentence);
        assert!((bench.guard.reference()[joint] - end).abs() < 1e-9);
    }
}

#[test]
fn an_arm_found_in_the_margin_moves_inwards_only() {
    let mut at = READY;
    at[5] = 3.74; // the margin begins at 3.6525
    let config = Config { self_margin_m: 0.0, floor_m: -2.0, workspace_min_m: [-2.0; 3], ..simulated() };
    let mut bench = Bench::new(config, Robot::Panda, at);
    bench.arm();
    let mut outwards = at;
    outwards[5] = 3.75;
    bench.lead(&outwards, 0.5);
    assert_eq!(bench.sent.last().unwrap().positions, at);
    let mut inwards = at;
    inwards[5] = 3.70;
    bench.lead(&inwards, 1.0);
    assert!((bench.sent.last().unwrap().positions[5] - 3.70).abs() < 1e-6);
    bench.lead(&outwards, 0.5);
    assert!((bench.sent.last().unwrap().positions[5] - 3.70).abs() < 1e-6, "not out again");
}

#[test]
fn the_leash_draws_targets_to_the_arm() {
    let mut bench = Bench::armed();
    bench.lead(&READY, 0.02);
    bench.follows = false;
    bench.lead(&ready_with(0, 0.9), 2.0);
    let found = bench.sent.last().unwrap().positions[0];
    assert!((found - 0.2).abs() < 1e-6, "the arm stands at 0: {found}");
    assert!(bench.says("does not keep up"));
    assert!((bench.guard.reference()[0] - 0.2).abs() < 1e-12);
    assert_eq!(bench.state(), State::Armed);
    bench.lead(&ready_with(0, -0.9), 2.0);
    assert!((bench.sent.last().unwrap().positions[0] + 0.2).abs() < 1e-6);
    assert!(bench.count(Reason::Leash) > 1000);
}

#[test]
fn saturation_is_reported() {
    let mut bench = Bench::armed();
    bench.run(0.5);
    assert_eq!(bench.guard.report().saturation_ratio, 0.0);
    bench.lead(&READY, 0.02);
    bench.lead(&ready_with(0, 0.5), 0.5);
    // 500 of the last 1000 ticks, in a fading mean: 1 - exp(-1/2)
    let ratio = bench.guard.report().saturation_ratio;
    assert!((ratio - 0.3935).abs() < 0.02, "{ratio}");
    assert!((450..=500).contains(&bench.count(Reason::Rates)), "{}", bench.count(Reason::Rates));
    bench.lead(&bench.arm.clone(), 3.0);
    assert!(bench.guard.report().saturation_ratio < 0.1);
    assert!(bench.says("follows the policy"));
}

#[test]
fn steps_of_a_policy_become_a_steady_motion() {
    let mut bench = Bench::armed();
    let mut target = READY;
    for _ in 0..100 {
        target[0] += 0.004; // 0.2 rad/s at 50 Hz
        bench.to(&target).unwrap();
        bench.run(0.02);
    }
    let steady = &bench.sent[bench.sent.len() - 500..];
    let speeds = || steady.iter().map(|command| command.velocities[0]);
    let (slowest, fastest) = (speeds().fold(f64::INFINITY, f64::min), speeds().fold(0.0, f64::max));
    assert!(slowest > 0.18 && fastest < 0.22, "{slowest} to {fastest}: no stop and go");
    assert_eq!(bench.guard.reference(), target);
}

#[test]
fn velocities_move_the_reference() {
    let mut bench = Bench::armed();
    let mut speeds = [0.0; ARM_DOF];
    speeds[0] = 0.1;
    for _ in 0..50 {
        bench.guard.target(&Target { names: None, values: Values::Velocities(&speeds) }, bench.now).unwrap();
        bench.run(0.02);
    }
    // one second, less the first tick, which is the anchor
    assert!((bench.guard.reference()[0] - 0.1).abs() < 2e-4, "{:?}", bench.guard.reference());
    assert!((bench.sent.last().unwrap().velocities[0] - 0.1).abs() < 1e-3);
    // they end at the margin
    speeds[0] = 2.0;
    for _ in 0..500 {
        bench.guard.target(&Target { names: None, values: Values::Velocities(&speeds) }, bench.now).unwrap();
        bench.run(0.02);
    }
    assert!((bench.guard.reference()[0] - 2.7973).abs() < 1e-9, "{:?}", bench.guard.reference());
    assert!(bench.says("beyond a joint's range"));
}

/// Leads to a target far beyond a boundary; the last pose.
fn led_against(config: Config, target: &PerJoint, reason: Reason) -> PerJoint {
    let mut bench = Bench::new(Config { leash_rad: 1.0, ..config }, Robot::Panda, READY);
    bench.arm();
    bench.lead(&READY, 0.02);
    bench.lead(target, 6.0);
    let last = *bench.sent.last().unwrap();
    assert!(last.velocities.iter().all(|velocity| velocity.abs() < 1e-3), "{last:?}");
    assert!(bench.count(reason) > 0, "{:?}", bench.guard.report());
    last.positions
}

#[test]
fn the_workspace_ends_the_way() {
    // joint 1 turns the tip, 0.307 m from the axis, towards y = 0.2
    let config = Config { workspace_max_m: [0.85, 0.2, 1.2], ..simulated() };
    let pose = led_against(config, &ready_with(0, 0.99), Reason::Workspace);
    let y = tcp(&pose).translation.y;
    assert!((0.192..=0.2).contains(&y), "{y}");
}

#[test]
fn the_floor_ends_the_way() {
    // joint 2 leans the arm forward and down
    let config = Config { floor_m: 0.1, floor_margin_m: 0.05, workspace_min_m: [-2.0; 3], ..simulated() };
    let pose = led_against(config, &ready_with(1, 1.4), Reason::Floor);
    let above = floor_clearance(&pose, 0.1);
    assert!((0.05..0.058).contains(&above), "{above}");
}

#[test]
fn the_arm_does_not_touch_itself() {
    let mut folded = READY;
    (folded[1], folded[3], folded[5]) = (-1.6, -2.95, 0.6);
    let config = Config { self_margin_m: 0.05, workspace_min_m: [-2.0; 3], workspace_max_m: [2.0; 3], ..simulated() };
    let pose = led_against(config, &folded, Reason::SelfCollision);
    let clear = self_clearance(&pose);
    assert!((0.05..0.061).contains(&clear), "{clear}");
}

#[test]
fn an_arm_found_outside_may_come_in() {
    // the tip of the ready pose is at z = 0.487
    let config = Config { workspace_min_m: [-0.85, -0.85, 0.52], leash_rad: 1.0, ..simulated() };
    let mut bench = Bench::new(config, Robot::Panda, READY);
    bench.arm();
    bench.lead(&ready_with(1, 0.1), 0.5); // down
    assert!(tcp(&bench.arm).translation.z > 0.4868);
    assert!(bench.says("workspace"));
    bench.lead(&ready_with(1, -0.1), 1.0); // up
    assert!(tcp(&bench.arm).translation.z > 0.5, "{}", tcp(&bench.arm).translation.z);
}

#[test]
fn a_tip_at_its_speed_limit_is_told() {
    let config = Config { tcp_speed_m_per_sec: 0.05, leash_rad: 1.0, ..Config::default() };
    let mut bench = Bench::new(config, Robot::Panda, READY);
    bench.arm();
    bench.lead(&ready_with(0, 0.15), 0.3);
    bench.lead(&ready_with(0, 0.5), 0.2);
    assert!(bench.says("raise guard.tcp_speed_m_per_sec"), "{}", bench.guard.report().sentence);
    // 80 % of the cap, 0.30689 m from the axis
    let speed = bench.sent.last().unwrap().velocities[0] * 0.30689;
    assert!((0.0395..=0.0401).contains(&speed), "{speed}");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    Config::default().validate().unwrap();
    Config::simulation().validate().unwrap();
    let set = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        let said = config.validate().unwrap_err().to_string();
        assert!(Guard::new(config, &contract(Robot::Panda), Robot::Panda, None, None).is_err());
        said
    };
    for (change, key) in [
        ((|config| config.command_rate_hz = 9.0) as fn(&mut Config), "command_rate_hz"),
        (|config| config.command_rate_hz = 1001.0, "command_rate_hz"),
        (|config| config.scale = 0.0, "scale"),
        (|config| config.scale = 1.01, "scale"),
        (|config| config.position_margin_rad = 0.01, "position_margin_rad"),
        (|config| config.tcp_speed_m_per_sec = f64::NAN, "tcp_speed_m_per_sec"),
        (|config| config.leash_rad = 0.0, "leash_rad"),
        (|config| config.smoothing_periods = -1.0, "smoothing_periods"),
        (|config| config.workspace_min_m[2] = -3.0, "workspace_min_m (z)"),
        (|config| config.workspace_max_m[0] = 3.0, "workspace_max_m (x)"),
        (|config| config.workspace_max_m[1] = -0.85, "nothing is inside"),
        (|config| config.floor_m = 3.0, "floor_m"),
        (|config| config.floor_margin_m = -0.1, "floor_margin_m"),
        (|config| config.self_margin_m = 0.3, "self_margin_m"),
        (|config| config.state_timeout_secs = 2.0, "state_timeout_secs"),
        (|config| config.policy_timeout_secs = 6.0, "policy_timeout_secs"),
        (|config| config.mode_timeout_secs = 0.0, "mode_timeout_secs"),
        (|config| config.clock_timeout_secs = 0.0, "clock_timeout_secs"),
        (|config| config.late_secs = 0.0, "late_secs"),
        (|config| config.late_ratio = 0.0, "late_ratio"),
        (|config| config.rest_speed_rad_per_sec = 1.0, "rest_speed_rad_per_sec"),
        (|config| config.max_recoveries = 0, "max_recoveries"),
        (|config| config.recovery_window_secs = 0.0, "recovery_window_secs"),
    ] {
        let said = set(change);
        assert!(said.contains(key), "{key}: {said}");
    }
    let unknown = serde_json::from_str::<Config>(r#"{"speed": 1}"#).unwrap_err().to_string();
    assert!(unknown.contains("speed"));
}
