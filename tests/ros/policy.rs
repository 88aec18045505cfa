//! The policy node on the paced simulator, and on an arm that is told by rclpy alone.

use super::harness::{Process, Script, alone};
use handoff::config::{Config, Seed};
use handoff::contract::{Normaliser, Snapshot};
use handoff::robot::Robot;
use handoff::ros::{Node, everything, latched, msg};
use handoff::run::{self, Checkpoint, RunDir};
use rand::RngExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// It moves an arm in its own time, beside other tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// A policy that does something, and the configuration that it is of.
pub(super) fn a_policy(robot: Robot) -> (Snapshot, Config) {
    let config = Config { robot, hidden: vec![16], ..Config::default() };
    let contract = Arc::new(config.contract().unwrap());
    let mut rng = Seed::root(1).rng(0);
    let parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.3..0.3)).collect();
    let snapshot = Snapshot {
        run: Uuid::from_u128(1),
        life: 1,
        version: 1,
        updates: 1,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        contract,
        parameters: parameters.into(),
    };
    (snapshot, config)
}

/// A run with that policy.
pub(super) fn a_run(folder: &Path, robot: Robot) -> String {
    let (snapshot, config) = a_policy(robot);
    let run = RunDir::create_at(&folder.join("run"), "{}").unwrap();
    let (learner, state) = (serde_json::Value::Null, Default::default());
    run::save(&run, &Checkpoint { snapshot, config, score: None, learner, state, replay: None }, 1, &|| {}).unwrap();
    run.path().to_str().unwrap().to_owned()
}

pub(super) fn node(arguments: &[&str]) -> Process {
    Process(Command::new(env!("CARGO_BIN_EXE_handoff")).args(arguments).spawn().unwrap())
}

#[test]
fn the_paced_simulator_is_moved_once_armed_and_left_alone_after_a_reset() {
    alone("ros::policy::the_paced_simulator_is_moved_once_armed_and_left_alone_after_a_reset", &[], || {
        let folder = tempfile::tempdir().unwrap();
        let run = a_run(folder.path(), Robot::Panda);
        let _nodes = [node(&["sim", "--paced"]), node(&["policy", "--run", &run, "--link", "sim"])];
        Script::start("policy_sim.py", &[]).succeeded_within(PATIENCE);
    });
}

#[test]
fn joints_in_another_order_without_velocities_in_a_namespace_are_an_arm_too() {
    // and the weights are a learner's
    alone("ros::policy::joints_in_another_order_without_velocities_in_a_namespace_are_an_arm_too", &[], || {
        let mut learner = Node::start("learner").unwrap();
        let weights = learner.publish::<msg::PolicyWeights>("policy_weights", latched()).unwrap();
        let learner = learner.spin().unwrap();
        weights.send(&(&a_policy(Robot::Panda).0).into()).unwrap();
        let _node = node(&["policy", "--link", "isaac", "--ros-args", "-r", "__ns:=/arm_1"]);
        Script::start("policy_isaac.py", &["--ros-args", "-r", "__ns:=/arm_1"]).succeeded_within(PATIENCE);
        learner.stop().unwrap();
    });
}

#[test]
fn an_fr3_is_led_by_trajectories_and_rests_when_the_node_is_killed() {
    alone("ros::policy::an_fr3_is_led_by_trajectories_and_rests_when_the_node_is_killed", &[], || {
        let folder = tempfile::tempdir().unwrap();
        let run = a_run(folder.path(), Robot::Both);
        let parameters = ["-p", "robot:=fr3", "-p", "policy.robot_description:=robot_description"];
        let arguments = ["policy", "--run", &run, "--link", "franka_fr3", "--ros-args"];
        let node = node(&[&arguments[..], &parameters].concat());
        Script::start("policy_fr3.py", &[&node.0.id().to_string()]).succeeded_within(PATIENCE);
    });
}

#[test]
fn a_description_of_another_arm_is_refused() {
    alone("ros::policy::a_description_of_another_arm_is_refused", &[], || {
        let mut publisher = Node::start("robot_state_publisher").unwrap();
        let description = publisher.publish::<msg::String>("robot_description", latched()).unwrap();
        let publisher = publisher.spin().unwrap();
        description.send(&msg::String { data: r#"<robot name="a"><joint name="b"/></robot>"#.into() }).unwrap();
        let mut node = Command::new(env!("CARGO_BIN_EXE_handoff"));
        node.args(["policy", "--link", "isaac", "--ros-args", "-p", "policy.robot_description:=robot_description"]);
        let output = node.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("no panda_joint1; it has b"), "{said}");
        publisher.stop().unwrap();
    });
}

#[test]
#[cfg_attr(not(franka_msgs), ignore = "built without franka_msgs: scripts/test_optional.sh")]
fn an_fr3_is_moved_while_its_mode_allows_and_after_a_stop_once_recovered_and_armed() {
    alone("ros::policy::an_fr3_is_moved_while_its_mode_allows_and_after_a_stop_once_recovered_and_armed", &[], || {
        let folder = tempfile::tempdir().unwrap();
        let run = a_run(folder.path(), Robot::Both);
        let parameters = ["-p", "robot:=fr3", "-p", "guard.require_mode:=true"];
        let arguments = ["policy", "--run", &run, "--link", "franka_fr3", "--ros-args"];
        let _node = node(&[&arguments[..], &parameters].concat());
        Script::start("policy_franka.py", &[]).succeeded_within(PATIENCE);
    });
}

#[test]
fn a_mode_that_cannot_be_heard_cannot_be_required() {
    alone("ros::policy::a_mode_that_cannot_be_heard_cannot_be_required", &[], || {
        let mut links = vec![("isaac", "a simulator has no robot mode")];
        if !cfg!(franka_msgs) {
            links.push(("crisp", "this program was built without franka_msgs"));
        }
        for (link, why) in links {
            let mut node = Command::new(env!("CARGO_BIN_EXE_handoff"));
            node.args(["policy", "--link", link, "--ros-args", "-p", "guard.require_mode:=true"]);
            let output = node.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(&format!("guard.require_mode = true with policy.link = {link}: {why}")), "{said}");
        }
    });
}

#[test]
fn ros2_lifecycle_leads_it_as_any_managed_node() {
    alone("ros::policy::ros2_lifecycle_leads_it_as_any_managed_node", &[], || {
        let mut learner = Node::start("learner").unwrap();
        let weights = learner.publish::<msg::PolicyWeights>("policy_weights", latched()).unwrap();
        let send = move |_: msg::Clock| weights.send(&(&a_policy(Robot::Panda).0).into()).unwrap();
        learner.subscribe("ask_for_weights", everything(), send).unwrap();
        let learner = learner.spin().unwrap();
        let _node = node(&["policy", "--link", "isaac"]);
        Script::start("policy_lifecycle.py", &[]).succeeded_within(PATIENCE);
        learner.stop().unwrap();
    });
}
