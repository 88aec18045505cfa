//! Parameters of the command line and of files, as the node gets them and as `ros2 param` sees them.

use super::harness::{Script, alone};
use handoff::ros::Node;
use serde_json::json;

#[test]
fn nested_parameters_arrive_and_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.yaml");
    let text = "/**:\n  ros__parameters:\n    seed: 3\n    hidden: [64, 32]\n    learner: {run: abc, hs_ppo: {gamma: 0.9}}\n\
                other:\n  ros__parameters: {seed: 99}\n";
    std::fs::write(&file, text).unwrap();
    let args =
        ["--params-file", file.to_str().unwrap(), "-p", "seed:=7", "-r", "__node:=learner_1", "-r", "__ns:=/cell"];
    alone("ros::parameters::nested_parameters_arrive_and_are_shown", &args, || {
        let mut node = Node::start("learner").unwrap();
        assert_eq!(node.full_name().unwrap(), "/cell/learner_1");
        let mut parameters = node.parameters().unwrap();
        let want = json!({"seed": 7, "hidden": [64, 32], "learner": {"run": "abc", "hs_ppo": {"gamma": 0.9}}});
        assert_eq!(parameters, want);
        parameters["train"] = json!({"minutes": 6.0});
        node.show_parameters(&parameters);
        let running = node.spin().unwrap();
        Script::start("parameters.py", &[]).succeeded();
        running.stop().unwrap();
    });
}

#[test]
fn arguments_that_ros_refuses_are_an_error() {
    alone("ros::parameters::arguments_that_ros_refuses_are_an_error", &["--params-file", "/nowhere.yaml"], || {
        let error = Node::start("learner").err().unwrap().to_string();
        assert!(error.starts_with("ROS does not start: "), "{error}");
        assert!(error.contains("/nowhere.yaml"), "{error}");
    });
}
