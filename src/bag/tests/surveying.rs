//! What a survey finds, and what a verdict makes of it.

use super::hostile::crafted;
use super::make::{LAYOUTS, items, mcap};
use super::recording::{Cdr, Recording, batch as batch_bytes, trajectory, weights};
use crate::bag::{Bag, Cut, Purpose, Survey, Verdict, robots};
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use crate::robot::Robot;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn joint_state(stamp_ns: i64, names: &[&str]) -> Bytes {
    let cdr = Cdr::default().u32((stamp_ns / 1_000_000_000) as u32).u32((stamp_ns % 1_000_000_000) as u32).text("");
    let cdr = names.iter().fold(cdr.u32(names.len() as u32), |cdr, name| cdr.text(name));
    cdr.f64s(&vec![0.5; names.len()]).f64s(&[]).f64s(&[]).message()
}

fn contract() -> Contract {
    Contract {
        robot: Robot::Panda,
        joints: JOINTS.map(str::to_owned).to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }],
        action: ActionMeaning::JointDelta { scale_rad: 0.08 },
        control_period_secs: 1.0 / 30.0,
        options: Options { count: 2, min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![6] },
        told: Told::default(),
    }
}

fn snapshot(version: u64) -> Snapshot {
    let contract = contract();
    Snapshot {
        run: uuid::Uuid::from_u128(5),
        life: 1,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        parameters: vec![0.25; contract.layout().len()].into(),
        contract: Arc::new(contract),
    }
}

const JOINTS: [&str; 7] =
    ["panda_joint1", "panda_joint2", "panda_joint3", "panda_joint4", "panda_joint5", "panda_joint6", "panda_joint7"];

trait Recorded: Sized {
    fn states(self, name: &str, joints: &[&str], count: i64) -> Self;
    fn weights(self, versions: std::ops::RangeInclusive<u64>) -> Self;
    fn survey(&self) -> Survey;
}

impl Recorded for Recording {
    /// `count` states each millisecond from 1 s, with their stamps.
    fn states(mut self, name: &str, joints: &[&str], count: i64) -> Self {
        let topic = self.topic(name, "sensor_msgs/msg/JointState");
        for index in 0..count {
            let time = 1_000_000_000 + index * 1_000_000;
            self.add(topic, time, joint_state(time, joints));
        }
        self
    }

    fn weights(mut self, versions: std::ops::RangeInclusive<u64>) -> Self {
        let topic = self.topic("/policy_weights", "handoff/msg/PolicyWeights");
        for version in versions {
            self.add(topic, 1_000_000_000 + version as i64, weights(&snapshot(version)));
        }
        self
    }

    fn survey(&self) -> Survey {
        survey(&self.write())
    }
}

fn survey(path: &Path) -> Survey {
    Survey::take(&Bag::open(path).unwrap(), &[] as &[PathBuf], &mut |_| {}).unwrap()
}

/// Whether it is fit, and all sentences in one.
fn judge(survey: &Survey, purpose: Purpose, namespace: Option<&str>) -> (bool, String) {
    let verdict = Verdict::new(survey, namespace, None);
    let sentences: Vec<String> = verdict.findings.iter().map(|finding| finding.sentence.clone()).collect();
    (verdict.fit(purpose), sentences.join("\n"))
}

#[test]
fn rates_gaps_stamps_and_jumps_are_found() {
    let mut recording = Recording::new().states("/joint_states", &JOINTS, 1000);
    recording.add(0, 2_499_000_000, joint_state(1_999_000_000, &JOINTS)); // 0.5 s late, with the last stamp again
    recording.add(0, 1_100_000_000, joint_state(1_100_000_000, &JOINTS)); // back in time
    let survey = recording.survey();
    let topic = &survey.topics[0];
    assert_eq!((survey.messages, topic.messages, topic.malformed, topic.problem.as_deref()), (1002, 1002, 0, None));
    assert!((topic.median_interval_secs.unwrap() - 1e-3).abs() < 2e-5);
    assert_eq!((topic.gaps, topic.longest_interval_secs), (1, Some(0.5)));
    assert!((topic.longest_interval_at_secs.unwrap() - 0.999).abs() < 1e-9);
    assert_eq!((topic.repeated_stamps, topic.stamps_back, survey.clock_jump_count), (1, 1, 1));
    assert!(
        (survey.clock_jumps[0].at_secs - 1.499).abs() < 1e-9 && (survey.clock_jumps[0].back_secs - 1.399).abs() < 1e-9
    );
    assert!((survey.duration_secs - 1.499).abs() < 1e-9 && !survey.damaged());
    let (_, said) = judge(&survey, Purpose::Analysis, None);
    assert!(said.contains("the clock jumps back 1 time") && said.contains("repeats a stamp 1 times"), "{said}");
}

#[test]
fn contracts_and_versions_are_found_and_broken_weights_are_refused() {
    let mut recording = Recording::new().weights(3..=7);
    let mut broken = weights(&snapshot(8)).to_vec();
    let end = broken.len() - 40;
    broken[end] ^= 1;
    recording.add(0, 2_000_000_000, broken.into());
    let survey = recording.survey();
    let [found] = &survey.weights[..] else { panic!("{:?}", survey.weights) };
    assert_eq!((found.first, found.last, found.messages, found.refused), ((1, 3), (1, 8), 6, 1));
    assert!(found.problem.as_ref().unwrap().contains("hash is"));
    assert_eq!(survey.contracts.into_values().collect::<Vec<_>>(), [contract()]);
}

#[test]
fn a_bag_with_states_commands_and_weights_is_fit_for_analysis() {
    let survey = Recording::new()
        .states("/joint_states", &JOINTS, 5)
        .states("/joint_command", &JOINTS, 5)
        .weights(1..=1)
        .survey();
    let (fit, said) = judge(&survey, Purpose::Analysis, None);
    assert!(fit, "{said}");
    let (fit, said) = judge(&survey, Purpose::Learning, None);
    assert!(!fit && said.contains("it holds no transitions"), "{said}");
}

#[test]
fn transitions_of_a_known_contract_are_fit_for_learning() {
    let head = |hash: [u8; 32]| {
        let cdr = Cdr::default().text("run").u32(1).text("r0").u64(1).u64(0).u64(0).u64(0).u64(0).bytes(&hash);
        cdr.u32(0).u32(0).message()
    };
    let mut recording = Recording::new().weights(1..=1);
    let topic = recording.topic("/transitions", "handoff/msg/TransitionBatch");
    recording.add(topic, 5, head(contract().hash()));
    let mut survey = recording.survey();
    let hash = hex::encode(contract().hash());
    assert_eq!(survey.transitions.get(&hash), Some(&0));
    survey.transitions.insert(hash, 40);
    assert!(judge(&survey, Purpose::Learning, None).0);
    survey.transitions.insert("00".into(), 2);
    let (fit, said) = judge(&survey, Purpose::Learning, None);
    assert!(!fit && said.contains("2 transitions are of a contract that is not in it"), "{said}");
}

/// A batch of one step under the contract here, which observes this.
fn step(seq: u64, observed: f32) -> Bytes {
    let mut batch = crafted(seq, contract().obs_size());
    batch.contract_hash = contract().hash();
    let fragment = &mut batch.fragments[0];
    (fragment.steps[0].choice.proposal, fragment.steps[0].choice.action) = (vec![0.1; 7], vec![0.1; 7]);
    fragment.observations[3] = observed;
    batch_bytes(&batch)
}

#[test]
fn transitions_that_are_not_finite_or_malformed_are_not_fit_for_learning() {
    let judged = |steps: &[Bytes], given: Option<&Contract>| {
        let mut recording = if given.is_some() { Recording::new() } else { Recording::new().weights(1..=1) };
        let topic = recording.topic("/transitions", "handoff/msg/TransitionBatch");
        steps.iter().for_each(|step| recording.add(topic, 2_000_000_000, step.clone()));
        let path = recording.write();
        let mut survey = survey(&path);
        survey.check_transitions(&Bag::open(&path).unwrap(), given, &[]).unwrap();
        let verdict = Verdict::new(&survey, None, given);
        let learning = verdict.findings.iter().filter(|finding| finding.purpose == Purpose::Learning);
        let said: Vec<String> = learning.map(|finding| finding.sentence.clone()).collect();
        (verdict.fit(Purpose::Learning), said)
    };
    assert_eq!(judged(&[step(0, 1.0)], None), (true, vec!["it holds 1 transitions".into()]));
    let mut malformed = crafted(2, contract().obs_size());
    malformed.contract_hash = contract().hash(); // no action
    for given in [None, Some(&contract())] {
        let (fit, said) = judged(&[step(0, f32::NAN), step(0, f32::NAN), step(1, f32::INFINITY)], given);
        assert!(!fit && said[0] == "it holds 2 transitions", "{said:?}");
        assert!(said[1].starts_with("1 transitions would be left out: non-finite"), "{said:?}");
        let (fit, said) = judged(&[step(0, f32::NAN), step(1, 1.0), batch_bytes(&malformed)], given);
        assert!(fit && said.len() == 3 && said[0] == "it holds 3 transitions", "{said:?}");
    }
}

#[test]
fn of_a_given_contract_only_its_own_transitions_are_fit_for_learning() {
    let mut survey = Recording::new().weights(1..=1).survey();
    let own = hex::encode(contract().hash());
    let other = Contract { control_period_secs: 0.05, ..contract() };
    survey.transitions = [(own.clone(), 40), ("0123456789abcdef".into(), 2)].into();
    let judge = |survey: &Survey, contract: &Contract| {
        let verdict = Verdict::new(survey, None, Some(contract));
        let learning = verdict.findings.iter().filter(|finding| finding.purpose == Purpose::Learning);
        let said: Vec<String> = learning.map(|finding| finding.sentence.clone()).collect();
        (verdict.fit(Purpose::Learning), said)
    };
    let strange = |steps: u64, hash: &str, contract: &Contract| {
        let ours = &hex::encode(contract.hash())[..8];
        format!("{steps} transitions are of the contract {}, not of the run's ({ours})", &hash[..8])
    };
    let few = strange(2, "0123456789abcdef", &contract());
    assert_eq!(judge(&survey, &contract()), (false, vec![few, "it holds 40 transitions".into()]));
    survey.transitions.remove("0123456789abcdef");
    assert_eq!(judge(&survey, &contract()), (true, vec!["it holds 40 transitions".into()]));
    // the bag has the weights of these transitions, but another run is asked about
    assert_eq!(judge(&survey, &other), (false, vec![strange(40, &own, &other)]));
}

#[test]
fn a_folder_without_files_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = "rosbag2_bagfile_information: {version: 5, message_count: 0, relative_file_paths: []}";
    std::fs::write(folder.path().join("metadata.yaml"), text).unwrap();
    let said = crate::report::bag::survey(&survey(folder.path()));
    let head = format!("{}: no file, metadata 5\n0 messages", folder.path().display());
    assert!(said.starts_with(&head), "{said}");
}

#[test]
fn what_is_missing_or_foreign_is_said_in_a_sentence() {
    let refusal = |survey: &Survey, namespace: Option<&str>| {
        let (fit, said) = judge(survey, Purpose::Analysis, namespace);
        assert!(!fit, "{said}");
        said
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    std::fs::write(&path, mcap(&[], LAYOUTS[1])).unwrap();
    assert!(refusal(&survey(&path), None).contains("it holds no message"));
    std::fs::write(&path, mcap(&items(10), LAYOUTS[1])).unwrap();
    let said = refusal(&survey(&path), None);
    assert!(said.contains("no joint states of an arm") && said.contains("there is no JointState at all"), "{said}");
    assert!(said.contains("no contract (no weights are in it): give the run with --run RUN"), "{said}");

    let said = refusal(&Recording::new().states("/joint_states", &["wheel_left", "wheel_right"], 5).survey(), None);
    assert!(said.contains("/joint_states speaks of wheel_left wheel_right"), "{said}");
    let other = ["ur_joint1", "ur_joint2", "ur_joint3", "ur_joint4", "ur_joint5", "ur_joint6", "ur_joint7"];
    let said = refusal(&Recording::new().states("/joint_states", &other, 5).weights(1..=1).survey(), None);
    assert!(
        said.contains("/joint_states speaks of ur_joint1") && said.contains("the contract is for panda_joint1"),
        "{said}"
    );
    assert!(said.contains("/ has no commands"), "{said}");

    let two = Recording::new()
        .states("/a/joint_states", &JOINTS, 5)
        .states("/b/franka/joint_states", &JOINTS, 5)
        .weights(1..=1);
    let two = two.states("/a/joint_command", &JOINTS, 5).survey();
    assert!(refusal(&two, None).contains("2 robots are in it: say which with --namespace, one of /a, /b"));
    assert!(refusal(&two, Some("c")).contains("no robot in the namespace /c; there is /a, /b"));
    assert!(judge(&two, Purpose::Analysis, Some("a")).0);
    assert!(refusal(&two, Some("/b")).contains("/b has no commands"));

    let both: Vec<String> =
        ["left_", "right_"].iter().flat_map(|side| JOINTS.map(|joint| format!("{side}{joint}"))).collect();
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    let said = refusal(&Recording::new().states("/joint_states", &both, 5).weights(1..=1).survey(), None);
    assert!(said.contains("/joint_states speaks of 2 arms: left_panda_ right_panda_"), "{said}");
}

#[test]
fn a_policy_for_either_arm_takes_the_names_of_either() {
    let mut both = contract();
    both.robot = Robot::Both;
    let fr3 = Robot::Fr3.joint_names();
    let names: Vec<&str> = fr3.iter().map(String::as_str).collect();
    let survey = Recording::new().states("/joint_states", &names, 5).states("/joint_command", &names, 5).survey();
    assert!(Verdict::new(&survey, None, Some(&both)).fit(Purpose::Analysis));
    let panda = Contract { robot: Robot::Panda, ..both };
    assert!(!Verdict::new(&survey, None, Some(&panda)).fit(Purpose::Analysis));
}

#[test]
fn what_was_lost_is_counted_against_what_the_bag_says() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = mcap(&items(200), LAYOUTS[1]);
    std::fs::write(folder.path().join("a_0.mcap"), &bytes[..bytes.len() / 2]).unwrap();
    let text = "rosbag2_bagfile_information: {version: 5, message_count: 200, relative_file_paths: [a_0.mcap]}";
    std::fs::write(folder.path().join("metadata.yaml"), text).unwrap();
    let survey = survey(folder.path());
    assert!(survey.damaged() && 0 < survey.lost_bytes);
    assert_eq!(survey.lost_messages, Some(200 - survey.messages));
    let said = crate::report::bag::damage(&survey).join("\n");
    assert!(
        said.contains("still being written")
            && said.contains(&format!("lost in all: {} messages", 200 - survey.messages)),
        "{said}"
    );
    let table = crate::report::bag::survey(&survey);
    assert!(table.contains("/a") && table.contains("std_msgs/msg/String"), "{table}");
}

#[test]
fn a_topic_belongs_to_the_robot_whose_namespace_is_its_innermost() {
    let owned = |robots: &[&str], of: &str, topic: &str| {
        let states =
            |recording: Recording, robot: &&str| recording.states(&format!("{robot}/joint_states"), &JOINTS, 2);
        let survey = robots.iter().fold(Recording::new(), states).survey();
        robots::meant(&survey, Some(of)).unwrap().owns(topic)
    };
    assert!(owned(&["/panda", "/panda2"], "/panda", "/panda/goal_pose"));
    assert!(!owned(&["/panda", "/panda2"], "/panda", "/panda2/goal_pose"));
    assert!(!owned(&["/panda"], "/panda", "/panda2/goal_pose"), "whether that is a robot or not");
    assert!(owned(&["", "/b"], "/", "/goal_pose") && owned(&["", "/b"], "/", "/policy/option_state"));
    assert!(!owned(&["", "/b"], "/", "/b/goal_pose") && !owned(&["", "/b"], "/", "/b/policy/option_state"));
    assert!(owned(&["", "/b"], "/b", "/b/policy/option_state") && !owned(&["", "/b"], "/b", "/goal_pose"));
    assert!(owned(&["/a", "/a/b"], "/a/b", "/a/b/goal_pose") && !owned(&["/a", "/a/b"], "/a", "/a/b/goal_pose"));
}

#[test]
fn an_arm_of_franka_ros2_is_one_robot_and_what_it_wants_is_no_state() {
    for namespace in ["", "/left"] {
        let name = |topic: &str| format!("{namespace}/{topic}");
        let survey = Recording::new()
            .states(&name("joint_states"), &JOINTS, 2)
            .states(&name("franka/joint_states"), &JOINTS, 2)
            .states(&name("franka_robot_state_broadcaster/measured_joint_states"), &JOINTS, 2)
            .states(&name("franka_robot_state_broadcaster/desired_joint_states"), &JOINTS, 2)
            .states(&name("joint_command"), &JOINTS, 2)
            .survey();
        let robot = robots::meant(&survey, None).unwrap();
        assert_eq!(robot.namespace, if namespace.is_empty() { "/" } else { namespace });
        let states: Vec<&str> = robot.states.iter().map(|topic| topic.name.as_str()).collect();
        let measured = name("franka_robot_state_broadcaster/measured_joint_states");
        assert_eq!(states, [name("franka/joint_states"), measured, name("joint_states")]);
        assert_eq!(robot.commands.len(), 1);
    }
}

#[test]
fn trajectories_are_commands_of_the_robot_whose_controller_takes_them() {
    for namespace in ["", "/left"] {
        let name = |topic: &str| format!("{namespace}/{topic}");
        let mut recording = Recording::new().states(&name("franka/joint_states"), &JOINTS, 2).weights(1..=1);
        let topic =
            recording.topic(&name("fr3_arm_controller/joint_trajectory"), "trajectory_msgs/msg/JointTrajectory");
        recording.add(topic, 1_001_000_000, trajectory(&JOINTS, &[0.1; 7]));
        let survey = recording.survey();
        assert!(survey.topics.iter().all(|topic| topic.malformed == 0 && topic.problem.is_none()), "{survey:?}");
        let robot = robots::meant(&survey, None).unwrap();
        assert_eq!(robot.namespace, if namespace.is_empty() { "/" } else { namespace });
        assert_eq!(robot.commands.len(), 1);
        let (fit, said) = judge(&survey, Purpose::Analysis, None);
        assert!(fit, "{said}");
    }
}

#[test]
fn transitions_that_were_sent_again_count_once() {
    let mut recording = Recording::new();
    let topic = recording.topic("/transitions", "handoff/msg/TransitionBatch");
    for (at, seq) in [0, 1, 0, 2, 1].into_iter().enumerate() {
        recording.add(topic, at as i64, batch_bytes(&crafted(seq, 3)));
    }
    let mut other = crafted(0, 3);
    other.stream.incarnation = 2;
    recording.add(topic, 9, batch_bytes(&other));
    let survey = recording.survey();
    assert_eq!((survey.messages, survey.transitions.into_values().collect::<Vec<_>>()), (6, vec![4]));
}

#[test]
fn what_came_before_there_was_a_clock_is_in_no_length_and_no_rate() {
    let second = 1_000_000_000;
    let bag = |first: i64| {
        let mut recording = Recording::new();
        let topic = recording.topic("/joint_states", "sensor_msgs/msg/JointState");
        recording.add(topic, 0, joint_state(0, &JOINTS));
        // 61 states over 60 s
        (0..61).for_each(|at| recording.add(topic, first + at * second, joint_state(first + at * second, &JOINTS)));
        recording
    };
    let recording = bag(500 * second);
    let survey = recording.survey();
    assert_eq!((survey.untimed, survey.start_ns, survey.end_ns), (1, Some(500 * second), Some(560 * second)));
    assert!((survey.duration_secs - 60.0).abs() < 1e-9, "{}", survey.duration_secs);
    assert!((survey.topics[0].rate_hz.unwrap() - 1.0).abs() < 1e-9, "{:?}", survey.topics[0]);
    assert_eq!((survey.topics[0].gaps, survey.topics[0].messages), (0, 62));
    assert!(crate::report::bag::survey(&survey).contains("1 messages came before there was a clock"));
    let folder = tempfile::tempdir().unwrap();
    let cut = Cut { from_secs: Some(58.5), ..Cut::default() };
    let cutting = cut.write(&Bag::open(&recording.write()).unwrap(), &folder.path().join("out"), &mut |_| {}).unwrap();
    assert_eq!(cutting.messages, 2, "559 s and 560 s");
    // a simulation that begins at 0 does count
    let survey = bag(second).survey();
    assert_eq!((survey.untimed, survey.start_ns), (0, Some(0)));
    assert!((survey.duration_secs - 61.0).abs() < 1e-9);
}

#[test]
fn a_clock_that_stands_while_messages_come_makes_no_gaps() {
    let mut recording = Recording::new();
    let topic = recording.topic("/joint_states", "sensor_msgs/msg/JointState");
    for at in 0..300 {
        let time = 1_000_000_000 + at / 3 * 10_000_000; // three at each time
        recording.add(topic, time, joint_state(time, &JOINTS));
    }
    let topic = &recording.survey().topics[0];
    assert!((topic.median_interval_secs.unwrap() - 0.01).abs() < 2e-4 && topic.gaps == 0, "{topic:?}");
}

#[test]
fn transitions_of_other_networks_are_fit_for_learning() {
    let mut survey = Recording::new().weights(1..=1).survey();
    let own = contract();
    let network = |architecture, width| Network { architecture, hidden: vec![width] };
    let judge = |survey: &Survey, network: Network| {
        Verdict::new(survey, None, Some(&Contract { network, ..own.clone() })).fit(Purpose::Learning)
    };
    survey.transitions = [(hex::encode(own.hash()), 40)].into();
    assert!(judge(&survey, network(Architecture::OnPolicy, 64)), "the bag has their contract");
    survey.contracts.clear();
    assert!(judge(&survey, network(Architecture::OffPolicy, 6)), "it is ours but for the family");
    assert!(!judge(&survey, network(Architecture::OnPolicy, 64)), "whose are they?");
}
