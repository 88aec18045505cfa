//! Recordings of arms, armed and dry, and what they are fit for.

use super::*;
use crate::bag::{Purpose as Wanted, Verdict};

#[test]
fn what_an_armed_node_decided_is_decided_again() {
    let (bag, said) = moved(true);
    let (found, decided) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    assert_eq!(decided.len(), said.len());
    // the reference is where the guard let the policy lead the arm: up to its leash that is where the policy wanted to go
    let same = decided
        .iter()
        .zip(&said)
        .filter(|(a, b)| (a.stamp_secs, a.option, a.duration) == (b.stamp_secs, b.option, b.duration));
    assert!(same.count() as f64 > 0.95 * said.len() as f64);
    let now = found.now.unwrap();
    assert!(now.agreement.unwrap() > 0.95);
    let ran: Vec<_> = now.options.iter().filter(|one| one.action.is_some()).collect();
    assert!(ran.len() > 1);
    for one in ran {
        assert!(one.action.unwrap().mean.abs() < 1e-9, "the same weights on the same states: {one:?}");
        assert!(one.transition.unwrap().mean < 0.01, "{one:?}");
    }
    assert!(found.notes.iter().any(|note| note.contains("--run RUN")), "{:?}", found.notes);
    let health = found.health;
    let latency = health.latency.unwrap();
    assert!((latency.median_secs - 0.003).abs() < 1e-4 && latency.commands > 500);
    // the arm is where it was told one tick ago
    assert!(health.tracking.iter().all(|joint| joint.largest_rad < 1e-9), "{:?}", health.tracking);
    assert_eq!(health.weights_lag.unwrap().mean, 0.0);
    let options = found.options.unwrap();
    assert_eq!(options.steps, said.len() as u64);
    let switches = said.iter().skip(1).filter(|option| option.switched).count() as u64;
    assert_eq!(options.switches, switches);
    let episodes = found.episodes.unwrap();
    assert_eq!((episodes.count, episodes.ends["the end of the bag"]), (1, 1));
    assert_eq!(episodes.length.unwrap().mean, said.len() as f64 - 1.0);
}

#[test]
fn states_and_commands_alone_with_a_run_and_a_goal_are_enough() {
    let (whole, _) = moved(false);
    let run = snapshot(9, 0.1);
    let setup = Setup { present: present(&run), goal: Some(GOAL), ..Setup::default() };
    let alone = whole.only(&["/joint_states", "/joint_command"]);
    let (found, decided) = analysed(&alone, &setup);
    let (with_goal, same) = analysed(&whole.only(&["/joint_states", "/joint_command", "/goal_pose"]), &setup);
    assert_eq!(decided, same);
    assert_eq!((found.decisions, with_goal.decisions), (decided.len() as u64, same.len() as u64));
    assert!(decided.len() > 190 && decided.iter().all(|decision| decision.version == 9));
    assert!(found.now.is_none() && found.critic.unwrap().td_errors.is_none());
    assert!(found.notes.iter().any(|note| note.contains("no option_state")), "{:?}", found.notes);
    let far = |goal| analysed(&alone, &Setup { goal: Some(goal), ..setup.clone() }).0.notes;
    let (near, far) = (far(GOAL), far([9.0, 9.0, 9.0]));
    assert!(!near.iter().any(|note| note.contains("out of reach")), "{near:?}");
    // √(9² + 9² + 8.667²) = 15.40
    assert!(far.iter().any(|note| note.contains("--goal 9,9,9 is out of reach: it lies 15.40 m")), "{far:?}");
    let (without, _) = analysed(&alone, &Setup { goal: None, ..setup });
    assert_eq!(without.decisions, 0);
    assert!(without.notes.iter().any(|note| note.contains("--goal X,Y,Z")), "{:?}", without.notes);
}

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

#[test]
fn a_recording_that_is_made_twice_over_the_same_times_is_two_recordings() {
    let (mut bag, said) = moved(true);
    let (once, _) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    bag.again();
    let (twice, decided) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    assert_eq!(twice.survey.clock_jump_count, 1);
    let count = decided.len().abs_diff(2 * said.len());
    assert!(count <= 1, "{} of {}", decided.len(), 2 * said.len());
    let (one, two) = (once.health, twice.health);
    assert!(two.tracking.iter().all(|joint| joint.largest_rad < 1e-9), "{:?}", two.tracking);
    let (one, two) = (one.latency.unwrap(), two.latency.unwrap());
    assert_eq!((two.commands, two.longest_secs), (2 * one.commands, one.longest_secs));
    let (one, two) = (once.options.unwrap(), twice.options.unwrap());
    assert_eq!((two.steps, two.switches), (2 * one.steps, 2 * one.switches));
    assert!(twice.now.unwrap().agreement.unwrap() > 0.95);
    let episodes = twice.episodes.unwrap();
    assert_eq!((episodes.count, episodes.ends["time was set back"], episodes.ends["the end of the bag"]), (2, 1, 1));
}
