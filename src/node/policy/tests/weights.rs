//! Which policies are taken, and when.

use super::*;

#[test]
fn weights_change_at_the_end_of_an_option() {
    let mut world = World::armed();
    world.ticks(30);
    let mut offered = false;
    let first = world.options.len();
    for _ in 0..600 {
        world.tick();
        if !offered && world.options.last().unwrap().duration == 1 {
            world.pilot.weights(&snapshot(2)).unwrap();
            assert!(world.pilot.status(world.now).weights_wait);
            offered = true;
        }
    }
    let at = world.options.iter().position(|option| option.version == 2).expect("the weights are taken");
    assert!(at > first);
    assert_eq!(world.options[at].duration, 1, "an option begins with them");
    assert!(world.options[at..].iter().all(|option| option.version == 2));
    assert_eq!(world.guard().state, State::Armed);
}

#[test]
fn unarmed_weights_change_at_once_and_wrong_ones_leave_the_good_ones() {
    let mut world = World::new(Preset::Isaac);
    world.pilot.weights(&snapshot(2)).unwrap();
    assert_eq!(world.pilot.status(world.now).version, 2);
    world.pilot.weights(&snapshot(2)).unwrap(); // latched, heard again
    assert!(refusal(world.pilot.weights(&snapshot(1))).contains("newer"));
    let other = snapshot_of(&Config { hidden: vec![9], ..Config::default() }, 3);
    assert!(refusal(world.pilot.weights(&other)).contains("[9]"));
    let mut broken = (*snapshot(4)).clone();
    broken.parameters = broken.parameters.iter().map(|_| f32::NAN).collect();
    assert!(world.pilot.weights(&Arc::new(broken)).is_err());
    assert_eq!((world.pilot.status(world.now).version, world.pilot.status(world.now).refused_weights), (2, 3));
}

#[test]
fn a_flat_policy_changes_at_a_new_goal() {
    let flat = Config { algo: crate::config::Algo::Ppo, hidden: vec![8], ..Config::default() };
    let mut world = World::of(settings(Preset::Isaac), &snapshot_of(&flat, 1));
    world.decides();
    world.pilot.arm(world.now).unwrap();
    world.ticks(60);
    world.pilot.weights(&snapshot_of(&flat, 2)).unwrap();
    world.ticks(300);
    assert_eq!(world.options.last().unwrap().version, 1);
    world.pilot.goal(&goal()).unwrap();
    world.ticks(6);
    assert_eq!(world.options.last().unwrap().version, 1, "the same goal told again");
    world.pilot.goal(&GoalPose { position: [0.4, 0.15, 0.4], ..goal() }).unwrap();
    world.ticks(6);
    assert_eq!(world.options.last().unwrap().version, 2);
}

#[test]
fn policies_and_settings_that_do_not_fit_are_refused() {
    let fr3 = snapshot_of(&Config { robot: Robot::Fr3, ..config() }, 1);
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    pilot.weights(&fr3).unwrap();
    assert!(refusal(pilot.change(Change::Configure)).contains("Fr3"));
    assert_eq!(pilot.stage(), Stage::Unconfigured);
    let both = snapshot_of(&Config { robot: Robot::Both, ..config() }, 1);
    pilot.weights(&both).unwrap();
    pilot.change(Change::Configure).unwrap();
    assert_eq!(pilot.stage(), Stage::Inactive);
    let mut short = settings(Preset::Isaac);
    short.guard.leash_rad = 0.03;
    let mut strict = Pilot::new(short).unwrap();
    strict.weights(&snapshot(1)).unwrap();
    let said = refusal(strict.change(Change::Configure));
    assert!(said.contains("0.05") && said.contains("0.03"), "{said}");
    let mut still = *Robot::Panda.limits();
    still.position_max_rad[2] = -2.8;
    let mut described = Pilot::new(Settings { described: Some(still), ..settings(Preset::Isaac) }).unwrap();
    described.weights(&snapshot(1)).unwrap();
    let said = refusal(described.change(Change::Configure));
    assert!(said.contains("joint 3 may not move between -2.8973 and -2.8 rad"), "{said}");
    let no_arm = Settings { arm: Robot::Both, ..settings(Preset::Isaac) };
    assert!(refusal(Pilot::new(no_arm)).contains("robot: fr3"));
    let no_clock = Settings { guard: Preset::Crisp.guard(), ..settings(Preset::Isaac) };
    assert!(refusal(Pilot::new(no_clock)).contains("guard.use_sim_time"));
    let said = refusal(pilot.goal(&GoalPose { frame: "world".into(), ..goal() }));
    assert!(said.contains("world") && said.contains("panda_link0"), "{said}");
}
