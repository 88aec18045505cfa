//! The benchmarks run, and their figures are of one piece. How large they are is not for a test to say.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn bench(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoff"));
    command.arg("bench").args(arguments).arg("--json").current_dir(folder).env_remove("ROS_DOMAIN_ID");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn training_is_measured_over_ros_and_over_channels() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["hidden=[32,32]", "learner.num_steps_per_env=50", "train.envs=6"];
    let mut arguments = vec!["train", "--minutes", "0.05"];
    small.iter().for_each(|assignment| arguments.extend(["--set", assignment]));
    let report = bench(folder.path(), &arguments);
    for way in ["ros", "channels"] {
        let speed = &report[way];
        let rate = number(&speed["env_steps"]) / number(&speed["secs"]);
        assert!((number(&speed["env_steps_per_sec"]) / rate - 1.0).abs() < 1e-9, "{speed}");
        let count = |name: &str| {
            let all = speed["transitions"].as_array().unwrap();
            all.iter().find(|pair| pair[0] == name).and_then(|pair| pair[1].as_u64()).unwrap()
        };
        assert_eq!((count("lost"), count("doubled")), (0, 0), "{speed}");
        assert_eq!(count("recorded"), count("learned") + count("refused") + count("under way at the stop"), "{speed}");
        assert!(0 < count("learned"));
        for actor in ["learner", "rollout", "sim", "trainer"] {
            let shares = speed["time"][actor].as_object().unwrap();
            assert!((shares.values().map(number).sum::<f64>() - 1.0).abs() < 1e-9, "{actor} in {speed}");
        }
        assert!(0.0 < number(&speed["time"]["sim"]["physics"]) && 0.0 < number(&speed["time"]["trainer"]["learning"]));
        assert!(0.0 < number(&speed["memory_bytes"]) && 0.0 < number(&speed["descriptors"]));
    }
    let rate = |way: &str| number(&report[way]["env_steps_per_sec"]);
    assert!((number(&report["price_of_ros"]) - (1.0 - rate("ros") / rate("channels"))).abs() < 1e-9);
    let kept = std::fs::read_to_string(Path::new(report["folder"].as_str().unwrap()).join("bench.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), report);
}

#[test]
fn weights_of_all_sizes_reach_a_rollout_that_acts_and_one_that_was_stalled() {
    let folder = tempfile::tempdir().unwrap();
    let report = bench(folder.path(), &["weights", "--versions", "5"]);
    let sizes = report.as_array().unwrap();
    assert_eq!(sizes.len(), 3);
    for (found, least) in sizes.iter().zip([300_000.0, 1_000_000.0, 5_000_000.0]) {
        assert!((least..1.05 * least).contains(&number(&found["bytes"])), "{found}");
        let millis = ["p50_millis", "p99_millis", "most_millis"].map(|name| number(&found[name]));
        assert!(0.0 < millis[0] && millis.is_sorted(), "{found}");
        // It ends only once the newest of those that were missed is acted with.
        assert!(0.0 < number(&found["after_stall_millis"]));
    }
}

#[test]
fn learners_take_gradient_steps() {
    let folder = tempfile::tempdir().unwrap();
    let report = bench(folder.path(), &["learner", "--steps", "10"]);
    let names: Vec<&str> = report.as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["handoff sac", "handoff osac, 4 options"]);
    let rates: Vec<f64> = report.as_array().unwrap().iter().map(|found| number(&found["steps_per_sec"])).collect();
    // Four options evaluate four times as many actions, and never cost nothing.
    assert!(0.0 < rates[1] && rates[1] < rates[0] && rates[0] < 1e4, "{rates:?}");
}

#[test]
fn an_armed_policy_node_answers_joint_states() {
    let folder = tempfile::tempdir().unwrap();
    let report = bench(folder.path(), &["latency", "--states", "100"]);
    assert_eq!(report["loaded"], false);
    let [node] = report["nodes"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&node["name"], &node["states"]), (&"handoff".into(), &100.into()));
    let millis = ["p50_millis", "p99_millis", "most_millis"].map(|name| number(&node[name]));
    assert!(0.0 < millis[0] && millis.is_sorted(), "{node}");
    // half of them in time, beside other tests
    assert!((0.0..0.5).contains(&number(&node["missed_ratio"])), "{node}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (["train", "--minutes", "0"], "--minutes 0"),
        (["weights", "--versions", "0"], "--versions 0"),
        (["learner", "--steps", "4"], "--steps 4"),
        (["latency", "--states", "0"], "--states 0"),
        (["train", "--peers", "--json"], "HANDOFF_PEER"),
        (["latency", "--peers", "--json"], "HANDOFF_PEER"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_handoff"));
        command.arg("bench").args(arguments).current_dir(folder.path()).env_remove("HANDOFF_PEER");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
