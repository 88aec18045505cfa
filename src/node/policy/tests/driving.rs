//! Decisions and commands.

use super::*;

#[test]
fn it_decides_dry_at_the_trained_rate_and_commands_nothing() {
    let mut world = World::new(Preset::Isaac);
    world.ticks(60);
    assert_eq!((world.pilot.stage(), world.options.len()), (Stage::Inactive, 0));
    world.pilot.change(Change::Activate).unwrap();
    world.ticks(60);
    assert_eq!(world.options.len(), 0, "no goal was heard");
    world.pilot.goal(&goal()).unwrap();
    world.ticks(60);
    assert_eq!((world.options.len(), world.commands.len()), (20, 0), "20 Hz of a second of 60 states");
    for pair in world.options.windows(2) {
        assert!((pair[1].stamp_secs - pair[0].stamp_secs - 0.05).abs() < 1e-9);
        let (before, after) = (pair[0].duration, pair[1].duration);
        assert!(after == before + 1 || after == 1, "{before} then {after}");
    }
    assert!(world.options[0].switched && world.options[0].option_probs.len() == 4);
    // dry, it wants to go one action from where the arm stands
    for target in &world.targets {
        for (position, ready) in target.position.iter().zip(&READY) {
            assert!((position - ready).abs() <= 0.05 + 1e-9);
        }
    }
}

#[test]
fn a_command_of_another_leads_from_the_first_state_on_that_is_younger() {
    // where commands are stamped, against the newest state that the policy knows when it hears them [s]; decisions until they lead
    for (ahead_secs, decisions) in [(TICK, 2), (-TICK, 1), (1000.0, 1), (-1000.0, 1)] {
        let mut world = World::new(Preset::Isaac);
        world.pilot.change(Change::Activate).unwrap();
        world.pilot.goal(&goal()).unwrap();
        while world.options.is_empty() {
            world.tick();
        }
        world.ticks(2); // the next state is due for a decision
        let mut command = world.state();
        command.stamp_secs = world.stamp + ahead_secs;
        command.position.iter_mut().for_each(|position| *position += 0.12);
        world.pilot.led(&command);
        let before = world.targets.len();
        world.ticks(4);
        let leads = |target: &JointState| (target.position[0] - READY[0] - 0.12).abs() <= 0.05 + 1e-9;
        let led: Vec<bool> = world.targets[before..].iter().map(leads).collect();
        assert_eq!(led, if decisions == 1 { [true, true] } else { [false, true] }, "{ahead_secs} s ahead");
    }
}

#[test]
fn armed_it_starts_at_rest_where_the_arm_stands_and_keeps_the_limits() {
    let mut world = World::armed();
    world.tick();
    assert_eq!(world.commands[0].position, READY);
    world.ticks(600);
    assert_eq!(world.commands.len(), 601, "one command for each state");
    let limits = Robot::Panda.limits();
    for pair in world.commands.windows(2) {
        for joint in 0..ARM_DOF {
            let speed = (pair[1].position[joint] - pair[0].position[joint]).abs() / TICK;
            assert!(speed <= limits.velocity_rad_per_sec[joint] + 1e-9, "joint {joint} at {speed} rad/s");
        }
    }
    let moved = (0..ARM_DOF).map(|joint| (world.position[joint] - READY[joint]).abs()).fold(0.0, f64::max);
    assert!(moved > 0.1, "the arm moved {moved} rad");
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn the_order_of_joints_more_joints_and_missing_velocities_change_little_or_nothing() {
    let run = |seen: &dyn Fn(JointState) -> JointState| {
        let mut world = World::new(Preset::Isaac);
        (0..2).for_each(|_| world.tick_with(seen)); // one position has no velocity
        world.pilot.goal(&goal()).unwrap();
        world.pilot.change(Change::Activate).unwrap();
        (0..60).for_each(|_| world.tick_with(seen));
        world.pilot.arm(world.now).unwrap();
        (0..120).for_each(|_| world.tick_with(seen));
        world.commands
    };
    let plain = run(&|state| state);
    let permuted = run(&|mut state| {
        state.names.reverse();
        state.position.reverse();
        state.velocity.reverse();
        state.names.insert(3, "panda_finger_joint1".into());
        state.position.insert(3, f64::NAN);
        state.velocity.insert(3, f64::NAN);
        state
    });
    assert_eq!(permuted, plain);
    let blind = run(&|state| JointState { velocity: vec![], ..state });
    for (blind, plain) in blind.iter().zip(&plain) {
        for joint in 0..ARM_DOF {
            assert!((blind.position[joint] - plain.position[joint]).abs() < 1e-3);
        }
    }
}

#[test]
fn states_slower_than_the_command_rate_are_refused_with_the_rate_that_would_be_right() {
    let mut slow = settings(Preset::Isaac);
    slow.guard.command_rate_hz = 120.0;
    let mut world = World::of(slow, &snapshot(1));
    world.pilot.goal(&goal()).unwrap();
    world.pilot.change(Change::Activate).unwrap();
    world.ticks(30);
    let said = refusal(world.pilot.arm(world.now));
    assert!(said.contains("guard.command_rate_hz: 60.0"), "{said}");
    assert!(said.ends_with(&world.pilot.status(world.now).unarmable.unwrap()), "its status says so, too");
}

#[test]
fn faster_states_get_no_more_commands_than_the_command_rate() {
    let mut slow = settings(Preset::Isaac);
    slow.guard.command_rate_hz = 20.0;
    let mut world = World::of(slow, &snapshot(1));
    world.decides();
    world.pilot.arm(world.now).unwrap();
    world.ticks(60);
    assert_eq!(world.commands.len(), 20);
}

#[test]
fn a_broken_state_is_refused_and_moves_nothing() {
    let mut world = World::armed();
    world.ticks(30);
    let before = world.commands.len();
    world.stamp += TICK;
    world.now += TICK;
    let mut broken = world.state();
    broken.position[2] = f64::NAN;
    assert!(world.pilot.states(&broken, world.now).is_err());
    assert_eq!((world.commands.len(), world.pilot.status(world.now).refused_states), (before, 1));
    assert_eq!(world.guard().counts.of(Reason::NonFinite), 1);
    world.ticks(30);
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn hardware_is_commanded_at_a_fixed_rate_within_a_fifth_of_the_limits() {
    let mut world = World::new(Preset::Crisp);
    world.decides();
    assert_eq!(world.commands.len(), 0);
    world.pilot.arm(world.now).unwrap();
    for step in 0..1000 {
        world.now += 0.01;
        world.stamp += 0.01;
        world.pilot.publishers(1);
        if step % 2 == 0 {
            let acts = world.pilot.states(&world.state(), world.now).unwrap();
            assert_eq!(acts.command, None, "states trigger no command");
        }
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    assert_eq!(world.commands.len(), 1000, "{}", world.guard().sentence);
    let limits = Robot::Panda.limits();
    for pair in world.commands.windows(2) {
        assert_eq!(pair[1].names, Robot::Panda.joint_names(), "crisp copies by place");
        for joint in 0..ARM_DOF {
            let speed = (pair[1].position[joint] - pair[0].position[joint]).abs() / 0.01;
            assert!(speed <= 0.2 * limits.velocity_rad_per_sec[joint] + 1e-9, "joint {joint} at {speed} rad/s");
        }
    }
}

#[test]
fn states_that_come_a_little_faster_make_no_arm_faster() {
    let mut world = World::new(Preset::Isaac);
    world.decides();
    world.pilot.arm(world.now).unwrap();
    for _ in 0..79 {
        world.stamp -= TICK - 1.0 / 79.0;
        world.tick();
    }
    // every second state: after each one the arm would move at 79/60 of its speed
    assert!((39..=40).contains(&world.commands.len()), "{} commands in a second", world.commands.len());
    for pair in world.commands.windows(2) {
        assert!(pair[1].stamp_secs - pair[0].stamp_secs >= 0.9 * TICK);
    }
}

#[test]
fn a_trajectory_controller_is_told_the_way_to_rest_with_each_command() {
    let both = snapshot_of(&Config { robot: Robot::Both, ..config() }, 1);
    let panda = Settings { arm: Robot::Panda, ..settings(Preset::FrankaFr3) };
    assert!(refusal(Pilot::new(panda)).contains("serves the fr3 only"));
    let mut world = World::of(Settings { arm: Robot::Fr3, ..settings(Preset::FrankaFr3) }, &both);
    world.pilot.goal(&GoalPose { frame: "fr3_link0".into(), ..goal() }).unwrap();
    world.pilot.change(Change::Activate).unwrap();
    world.ticks(60);
    world.pilot.arm(world.now).unwrap();
    for _ in 0..300 {
        world.now += 0.01;
        world.stamp += 0.01;
        world.pilot.publishers(1);
        assert_eq!(world.pilot.states(&world.state(), world.now).unwrap().command, None);
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    assert_eq!(world.trajectories.len(), 300, "{}", world.guard().sentence);
    let limits = Robot::Fr3.limits();
    for trajectory in &world.trajectories {
        assert_eq!(trajectory.names, Robot::Fr3.joint_names());
        assert!((trajectory.points[0].secs - 0.02).abs() < 1e-12, "two periods ahead");
        assert!(trajectory.points.last().unwrap().velocity.iter().all(|velocity| velocity.abs() < 1e-12));
        for pair in trajectory.points.windows(2) {
            assert!((pair[1].secs - pair[0].secs - 0.01).abs() < 1e-12);
            for joint in 0..ARM_DOF {
                let speed = (pair[1].position[joint] - pair[0].position[joint]).abs() / 0.01;
                let braking = (pair[1].velocity[joint] - pair[0].velocity[joint]).abs() / 0.01;
                assert!(speed <= 0.2 * limits.velocity_rad_per_sec[joint] + 1e-9, "joint {joint} at {speed} rad/s");
                assert!(braking <= 0.2 * limits.acceleration_rad_per_sec2[joint] + 1e-6, "joint {joint}: {braking}");
            }
        }
    }
    let moving = world.trajectories.iter().filter(|trajectory| 5 < trajectory.points.len()).count();
    assert!(moving > 100, "the arm moved in {moving} of 300 commands");
    // five periods late, it is met on its way to rest
    for _ in 0..500 {
        if 10 < world.trajectories.last().unwrap().points.len() {
            break;
        }
        let far = if world.position[0] < 0.1 { 0.3 } else { -0.3 };
        world.pilot.goal(&GoalPose { frame: "fr3_link0".into(), position: [0.45, far, 0.4], ..goal() }).unwrap();
        world.now += 0.01;
        world.stamp += 0.01;
        world.pilot.states(&world.state(), world.now).unwrap();
        let command = world.pilot.beat(world.now);
        world.obey(command);
    }
    let before = world.trajectories.last().unwrap().clone();
    world.now += 0.06;
    world.stamp += 0.06;
    world.pilot.states(&world.state(), world.now).unwrap();
    let Some(Command::Trajectory(met)) = world.pilot.beat(world.now) else { panic!("{}", world.guard().sentence) };
    for joint in 0..ARM_DOF {
        assert!((met.points[0].position[joint] - before.points[6].position[joint]).abs() < 1e-9, "joint {joint}");
    }
}

#[test]
fn a_person_sees_goal_trail_and_option() {
    let mut world = World::new(Preset::Isaac);
    world.pilot.goal(&goal()).unwrap();
    world.pilot.change(Change::Activate).unwrap();
    let mut scenes = vec![];
    for _ in 0..(3 * 210) {
        (world.stamp, world.now) = (world.stamp + TICK, world.now + TICK);
        scenes.extend(world.pilot.states(&world.state(), world.now).unwrap().scene);
    }
    assert_eq!((scenes.len(), scenes[9].trail.len()), (210, 10));
    let last = scenes.last().unwrap();
    assert_eq!((last.frame.as_str(), last.goal, last.options), ("panda_link0", goal().position, 4));
    assert_eq!(last.trail.len(), 200, "it is bounded");
    // the tip of the ready pose (Franka's documentation)
    let [x, y, z] = last.trail[0];
    assert!((x - 0.30689).abs() < 1e-4 && y.abs() < 1e-9 && (z - 0.48688).abs() < 1e-4, "{x} {y} {z}");
    world.stamp = 0.0;
    let cleared = world.pilot.states(&world.state(), world.now).unwrap().scene;
    assert!(cleared.is_none_or(|scene| scene.trail.len() <= 1), "a reset ends the trail");
}
