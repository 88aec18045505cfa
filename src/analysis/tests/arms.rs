//! Recordings of arms, armed and dry, and what they are fit for.

use super::*;
use crate::bag::{Purpose as Wanted, Verdict};

#[test]
fn a_recording_that_begins_dry_is_decided_as_the_node_decided_dry_and_armed() {
    for another in [false, true] {
        let scene = Scene { targets: true, dry_secs: 3.0, another, disarmed_secs: Some(9.0) };
        let (bag, said) = recorded_arm(scene);
        let (_, decided) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
        // an option's probabilities tell the reference that it was decided from
        let apart = |(a, b): &(&OptionState, &OptionState)| {
            a.option_probs.iter().zip(&b.option_probs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        let pairs: Vec<_> = decided.iter().zip(&said).collect();
        assert_eq!(decided.len(), said.len());
        assert!(pairs.iter().all(|(a, b)| (a.stamp_secs - b.stamp_secs).abs() < 1e-6));
        for phase in [0.0..4.0, 4.0..9.0, 9.0..14.1] {
            let here = pairs.iter().filter(|(_, b)| phase.contains(&b.stamp_secs));
            let (count, other) =
                here.fold((0, 0), |(count, other), pair| (count + 1, other + u32::from(1e-6 < apart(pair))));
            // the guard may draw the policy's lead back; coming to rest is the guard's
            assert!(
                50 < count && other <= if phase.start == 0.0 { 1 } else { 5 },
                "{another}, {phase:?}: {other} of {count}"
            );
        }
    }
}

#[test]
fn a_bag_is_fit_for_analysis_where_an_analysis_says_what_was_decided() {
    let acting = snapshot(4, 0.0);
    let (arm, _) = moved(false);
    let lockstep = |mut bag: Recording| {
        let topic = bag.topic("/arm_states", "handoff/msg/ArmStates");
        bag.add(topic, ns(0.0), recording::arm_states());
        bag
    };
    let two = |mut bag: Recording| {
        for name in ["/a/joint_states", "/b/joint_states"] {
            let topic = bag.topic(name, "sensor_msgs/msg/JointState");
            let names = Robot::Panda.joint_names().to_vec();
            let state = JointState { stamp_secs: 1.0, names, position: READY.to_vec(), velocity: vec![0.0; ARM_DOF] };
            bag.add(topic, ns(1.0), recording::joints(&state));
        }
        bag
    };
    let fr3 = Arc::new(Config { hidden: vec![8], robot: Robot::Fr3, ..Config::default() }.contract().unwrap());
    let fr3 = Arc::new(Snapshot {
        contract: fr3.clone(),
        parameters: vec![0.0; fr3.layout().len()].into(),
        ..(*acting).clone()
    });
    let batch = || recorded(&transitions(&acting, 50));
    let everything = ["/joint_states", "/joint_command", "/goal_pose"];
    let kinds = [
        ("an arm", arm.only(&["/joint_states", "/joint_command", "/goal_pose", "/policy_weights"]), None, true),
        ("an arm of a run", arm.only(&everything), Some(&acting), true),
        ("an arm without a policy", arm.only(&everything), None, false),
        ("an arm of another robot's run", arm.only(&everything), Some(&fr3), false),
        ("a goal alone", arm.only(&["/goal_pose"]), Some(&acting), false),
        ("a lockstep simulator's states", lockstep(Recording::new()), Some(&acting), false),
        ("transitions", batch(), Some(&acting), true),
        ("transitions without a policy", batch(), None, true),
        ("transitions beside a lockstep simulator", lockstep(batch()), Some(&acting), true),
        ("two arms", two(Recording::new()), Some(&acting), false),
        ("transitions beside two arms", two(batch()), Some(&acting), true),
    ];
    for (kind, bag, run, fit) in kinds {
        let path = bag.write();
        let contract = run.map(|run| &*run.contract);
        let survey = Survey::take(&Bag::open(&path).unwrap(), &[], &mut |_| ()).unwrap();
        let verdict = Verdict::new(&survey, None, contract);
        assert_eq!(verdict.fit(Wanted::Analysis), fit, "{kind}: {verdict:?}");
        let setup = Setup { present: run.and_then(present), ..Setup::default() };
        let found = analyse(&Bag::open(&path).unwrap(), &setup, &mut |_| {}, &mut |_| {});
        let says = found.is_ok_and(|found| 0 < found.decisions || found.options.is_some());
        assert_eq!(says, fit, "{kind}");
    }
}

#[test]
fn an_fr3_is_fit_and_has_latency_and_tracking_by_its_trajectories() {
    let contract = Arc::new(Config { hidden: vec![8], robot: Robot::Fr3, ..Config::default() }.contract().unwrap());
    let run =
        Snapshot { parameters: vec![0.01; contract.layout().len()].into(), contract, ..(*snapshot(4, 0.0)).clone() };
    let mut bag = Recording::new();
    let weights = bag.topic("/policy/policy_weights", "handoff/msg/PolicyWeights");
    let goals = bag.topic("/goal_pose", "geometry_msgs/msg/PoseStamped");
    let states = bag.topic("/franka/joint_states", "sensor_msgs/msg/JointState");
    let commands = bag.topic("/fr3_arm_controller/joint_trajectory", "trajectory_msgs/msg/JointTrajectory");
    bag.add(weights, ns(0.0), recording::weights(&run));
    bag.add(goals, ns(0.0), recording::goal("fr3_link0", GOAL));
    let names = Robot::Fr3.joint_names();
    let mut ahead = READY;
    ahead[2] += 0.02;
    for tick in 1..=200 {
        let stamp = f64::from(tick) * 0.01;
        let state =
            JointState { stamp_secs: stamp, names: names.to_vec(), position: READY.to_vec(), velocity: vec![0.0; 7] };
        bag.add(states, ns(stamp), recording::joints(&state));
        bag.add(commands, ns(stamp + 0.002), recording::trajectory(&names.each_ref().map(String::as_str), &ahead));
    }
    let survey = Survey::take(&Bag::open(&bag.write()).unwrap(), &[], &mut |_| ()).unwrap();
    let verdict = Verdict::new(&survey, None, None);
    assert!(verdict.fit(Wanted::Analysis), "{verdict:?}");
    let (found, decided) = analysed(&bag, &Setup::default());
    assert!(30 < decided.len(), "{}", decided.len());
    let latency = found.health.latency.unwrap();
    assert!(latency.commands == 200 && (latency.median_secs - 0.002).abs() < 1e-4, "{latency:?}");
    let largest: Vec<f64> = found.health.tracking.iter().map(|joint| joint.largest_rad).collect();
    assert!(
        largest.iter().zip([0.0, 0.0, 0.02, 0.0, 0.0, 0.0, 0.0]).all(|(found, want)| (found - want).abs() < 1e-9),
        "{largest:?}"
    );
}
