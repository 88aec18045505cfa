//! What a person asks: stages, arming, limits.

use super::*;

#[test]
fn arming_is_refused_with_what_is_missing() {
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    assert!(refusal(pilot.change(Change::Configure)).contains("no policy"));
    assert!(refusal(pilot.arm(0.0)).contains("no policy"));
    let mut world = World::new(Preset::Isaac);
    assert!(refusal(world.pilot.arm(world.now)).contains("the node is inactive; activate it first"));
    world.pilot.change(Change::Activate).unwrap();
    world.ticks(9);
    assert!(refusal(world.pilot.arm(world.now)).contains("goal_pose"));
    world.pilot.goal(&goal()).unwrap();
    assert!(refusal(world.pilot.arm(world.now)).contains("has not decided"));
    world.ticks(9);
    world.pilot.publishers(2);
    assert!(refusal(world.pilot.arm(world.now)).contains("not armed"));
    world.pilot.publishers(1);
    world.pilot.arm(world.now).unwrap();
}

#[test]
fn its_status_says_what_arming_would_be_refused_with() {
    let mut world = World::new(Preset::Isaac);
    assert_eq!(world.pilot.status(world.now).unarmable, None, "nobody asked it to be ready");
    world.decides();
    let well = world.pilot.status(world.now);
    assert!(well.unarmable.is_none() && !well.sentence.contains("refused"), "{}", well.sentence);
    world.now += 5.0; // the simulator was killed
    let silent = world.pilot.status(world.now);
    let why = silent.unarmable.unwrap();
    assert!(why.contains("no joint states come") && silent.sentence.ends_with(&why), "{}", silent.sentence);
    assert_eq!(refusal(world.pilot.arm(world.now)), format!("not armed: {why}"));
    world.ticks(30);
    world.pilot.publishers(2); // the guard's own refusal
    let why = world.pilot.status(world.now).unarmable.unwrap();
    assert_eq!(refusal(world.pilot.arm(world.now)), format!("not armed: {why}"));
    world.tick();
    world.pilot.arm(world.now).unwrap();
    assert_eq!(world.pilot.status(world.now).unarmable, None, "it is armed");
}

#[test]
fn a_goal_outside_of_the_workspace_is_taken_with_a_warning() {
    let mut world = World::new(Preset::Isaac);
    assert_eq!(world.pilot.goal(&goal()).unwrap(), None);
    let far = GoalPose { position: [5.0, 5.0, 5.0], ..goal() };
    let said = world.pilot.goal(&far).unwrap().unwrap();
    assert!(said.contains("[5.0, 5.0, 5.0]") && said.contains("[-0.85, -0.85, 0.0] to [0.85, 0.85, 1.2]"), "{said}");
    assert_eq!(world.pilot.goal(&far).unwrap(), None, "told once");
    let below = GoalPose { position: [0.5, 0.0, -0.01], ..goal() };
    assert!(world.pilot.goal(&below).unwrap().is_some());
    world.pilot.goal(&far).unwrap();
    world.pilot.change(Change::Activate).unwrap();
    world.ticks(60);
    assert_eq!(world.options.len(), 20, "the policy decides for it");
}

#[test]
fn stages_follow_one_another_and_nothing_else_leads_anywhere() {
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    pilot.weights(&snapshot(1)).unwrap();
    assert_eq!(pilot.stage(), Stage::Unconfigured, "nothing starts by itself");
    assert!(pilot.status(0.0).sentence.contains("configure to load it"));
    use Change::{Activate, CleanUp, Configure, Deactivate, Shutdown};
    for (change, to) in [
        (Configure, Stage::Inactive),
        (CleanUp, Stage::Unconfigured),
        (Configure, Stage::Inactive),
        (Activate, Stage::Active),
        (Deactivate, Stage::Inactive),
        (Activate, Stage::Active),
        (Shutdown, Stage::Finalized),
    ] {
        let from = pilot.stage();
        for other in Change::ALL.into_iter().filter(|other| other.leads(from).is_none()) {
            assert!(refusal(pilot.change(other)).contains("leads nowhere"), "{other} from {from}");
        }
        pilot.change(change).unwrap();
        assert_eq!(pilot.stage(), to);
        assert_eq!(pilot.moves(), [Moved { change, from, to }]);
    }
    assert!(Change::ALL.into_iter().all(|change| pilot.change(change).is_err()), "nothing leads back");
    pilot.weights(&snapshot(2)).unwrap();
    assert_eq!((pilot.stage(), pilot.moves()), (Stage::Finalized, vec![]));
}

#[test]
fn it_starts_by_itself_once_if_it_may() {
    let mut pilot = Pilot::new(Settings { autostart: true, ..settings(Preset::Isaac) }).unwrap();
    let fr3 = snapshot_of(&Config { robot: Robot::Fr3, ..config() }, 1);
    assert!(refusal(pilot.weights(&fr3)).contains("Fr3"));
    assert_eq!(pilot.stage(), Stage::Unconfigured);
    pilot.weights(&snapshot(1)).unwrap();
    assert_eq!((pilot.stage(), pilot.moves().len()), (Stage::Active, 2));
    pilot.change(Change::Deactivate).unwrap();
    pilot.change(Change::CleanUp).unwrap();
    pilot.weights(&snapshot(2)).unwrap();
    assert_eq!(pilot.stage(), Stage::Unconfigured, "a person led it there");
    pilot.change(Change::Configure).unwrap();
    assert_eq!(pilot.status(0.0).version, 2, "the newest that was heard");
}

#[test]
fn a_policy_in_motion_is_not_cleaned_up() {
    let mut world = World::armed();
    world.ticks(120);
    world.pilot.change(Change::Deactivate).unwrap();
    assert!(refusal(world.pilot.change(Change::CleanUp)).contains("coming to rest"));
    world.ticks(60);
    world.pilot.change(Change::CleanUp).unwrap();
    let before = world.commands.len();
    world.ticks(10);
    assert_eq!((world.pilot.stage(), world.commands.len()), (Stage::Unconfigured, before));
    // and back: it is not armed
    world.pilot.change(Change::Configure).unwrap();
    world.decides();
    assert_eq!(world.commands.len(), before);
    world.pilot.arm(world.now).unwrap();
    world.tick();
    assert_eq!(world.commands.len(), before + 1);
}

#[test]
fn the_share_of_the_limits_changes_at_any_time() {
    let fastest = |commands: &[JointState]| {
        let speed = |pair: &[JointState]| {
            let step = |joint: usize| (pair[1].position[joint] - pair[0].position[joint]).abs();
            (0..ARM_DOF).map(step).fold(0.0, f64::max) / TICK
        };
        commands.windows(2).map(speed).fold(0.0, f64::max)
    };
    let mut pilot = Pilot::new(settings(Preset::Isaac)).unwrap();
    pilot.set_scale(0.05).unwrap();
    for wrong in [0.0, 1.01, f64::NAN] {
        assert!(refusal(pilot.set_scale(wrong)).contains("guard.scale"));
    }
    pilot.weights(&snapshot(1)).unwrap();
    pilot.change(Change::Configure).unwrap();
    assert_eq!(pilot.status(0.0).guard.unwrap().scale, 0.05, "it was set before there was a policy");
    let mut world = World { pilot, ..World::new(Preset::Isaac) };
    world.decides();
    world.pilot.arm(world.now).unwrap();
    world.ticks(120);
    let slow = fastest(&world.commands);
    assert!(slow <= 0.05 * 2.61, "{slow}");
    world.pilot.set_scale(1.0).unwrap();
    let before = world.commands.len();
    world.ticks(240);
    assert!(fastest(&world.commands[before..]) > 2.0 * slow);
    world.pilot.set_scale(0.05).unwrap();
    world.ticks(120);
    let before = world.commands.len();
    world.ticks(120);
    assert!(fastest(&world.commands[before..]) <= 0.05 * 2.61);
}
