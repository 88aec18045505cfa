//! Recording what rclpy publishes, and playing a bag into a running policy.

use super::harness::{PATIENCE, Process, Script, alone, wait_for};
use super::policy::{a_run, node};
use handoff::analysis::{Present, Setup, analyse};
use handoff::bag::message::{JointState, PoseStamped};
use handoff::bag::{Bag, Schema, Select, decode};
use handoff::robot::Robot;
use handoff::run::{RunDir, Which, load_snapshot};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A script with what other readers of bags need.
fn peer(name: &str, arguments: &[&Path]) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bags").join(name);
    let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

#[test]
fn what_is_published_is_recorded_and_every_file_has_the_weights() {
    alone("ros::bags::what_is_published_is_recorded_and_every_file_has_the_weights", &[], || {
        let folder = tempfile::tempdir().unwrap();
        let (out, said) = (folder.path().join("bag"), folder.path().join("said.json"));
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_handoff"));
        recorder.args(["bag", "record", "--split-mb", "1", "--until-stdin-closes"]).arg(&out);
        let mut recorder = Process(recorder.stdin(Stdio::piped()).spawn().unwrap());
        Script::start("publish.py", &[said.to_str().unwrap()]).succeeded_within(3 * PATIENCE);
        drop(recorder.0.stdin.take());
        let ended = wait_for("the recorder's end", || recorder.0.try_wait().unwrap());
        assert!(ended.success());
        let said: Value = serde_json::from_str(&std::fs::read_to_string(said).unwrap()).unwrap();
        let read = peer("read.py", &[&out]);
        assert_eq!(read["topics"]["/arm/joint_states"], said["/arm/joint_states"]);
        let files = read["files"].as_array().unwrap();
        assert!(3 <= files.len(), "{files:?}");
        for file in files {
            assert_eq!(file["/policy_weights"], said["/policy_weights"], "each file has the weights");
            assert_eq!(file.get("/chatter"), None, "nobody asked for it");
        }
        assert_eq!(read["durability"], json!({"/arm/joint_states": "VOLATILE", "/policy_weights": "TRANSIENT_LOCAL"}));
    });
}

/// The bag's messages for whoever plays them, in order.
fn messages(bag: &Bag) -> Vec<Value> {
    let schemas: Vec<Schema> = bag.topics().iter().map(|topic| Schema::of(topic, &[]).unwrap()).collect();
    let each = bag.read(&Select::default()).unwrap().map(|message| {
        let message = message.unwrap();
        let (topic, schema) = (&bag.topics()[message.topic], &schemas[message.topic]);
        if topic.type_name == "geometry_msgs/msg/PoseStamped" {
            let goal: PoseStamped<'_> = decode(schema, &message.data).unwrap();
            let at = goal.pose.position;
            return json!({"topic": topic.name, "frame": goal.header.frame_id, "goal": [at.x, at.y, at.z]});
        }
        let state: JointState<'_> = decode(schema, &message.data).unwrap();
        json!({
            "topic": topic.name, "stamp": state.header.stamp.nanoseconds(), "name": state.name,
            "position": state.position, "velocity": state.velocity,
        })
    });
    each.collect()
}

#[test]
fn a_bag_that_is_played_into_a_dry_policy_is_decided_as_its_analysis_says() {
    alone("ros::bags::a_bag_that_is_played_into_a_dry_policy_is_decided_as_its_analysis_says", &[], || {
        let folder = tempfile::tempdir().unwrap();
        let (path, plan) = (folder.path().join("bag"), folder.path().join("plan.json"));
        peer("arm.py", &[&path]);
        let bag = Bag::open(&path).unwrap();
        let run = a_run(folder.path(), Robot::Panda);
        let checkpoint = RunDir::resolve(Path::new(&run), Which::Newest).unwrap();
        let snapshot = Arc::new(load_snapshot(&checkpoint, None).unwrap());
        let present = Some(Present { from: run.clone(), snapshot, critic: true, rewards: None });
        let mut decisions = Vec::new();
        let mut each = |decision: &handoff::analysis::Decision| {
            decisions.push(json!({
                "stamp": (decision.stamp_secs * 1e9).round() as i64, "option": decision.option,
                "duration": decision.duration, "probs": decision.option_probs, "end": decision.termination_prob,
            }));
        };
        let found = analyse(&bag, &Setup { present, ..Setup::default() }, &mut each, &mut |_| {}).unwrap();
        assert_eq!((found.decisions, decisions.len()), (20, 20), "1 s at 20 Hz");
        let (messages, count) = (messages(&bag), decisions.len());
        std::fs::write(&plan, json!({"messages": messages, "decisions": decisions}).to_string()).unwrap();
        let _node = node(&["policy", "--run", &run, "--link", "isaac"]);
        Script::start("play.py", &[plan.to_str().unwrap()])
            .succeeded_within(3 * PATIENCE + Duration::from_secs(count as u64));
    });
}
