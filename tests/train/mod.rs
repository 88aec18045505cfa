//! The whole graph over ROS 2, as a person starts it. Each training takes a ROS domain of its own.

mod disk;
mod faults;
mod harness;
mod links;
mod network;

use harness::{finished, handoff, left_behind, metrics, processes, shared_memory, train};
use serde_json::Value;

#[test]
fn two_commands_train_and_evaluate() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let before = shared_memory();
    let (out, err) = finished(train(&run, &["--env-steps", "2000", "--rollouts", "2"]).output().unwrap());
    assert!(out.contains("success") && out.contains(run.to_str().unwrap()), "{out}");
    assert!(err.contains("ROS domain"), "{err}");
    for wanted in ["config.yaml", "life", "checkpoints", "metrics.jsonl", "logs"] {
        assert!(run.join(wanted).exists(), "{wanted} is missing");
    }
    let rows = metrics(&run);
    let last = rows.last().unwrap();
    assert!(2000 <= last["env_steps"].as_u64().unwrap());
    // Synchronous: all data of an update is of one version, and nothing was lost or refused.
    for (name, value) in [("lag/max", 0), ("stream/lost", 0), ("stream/refused", 0)] {
        assert_eq!(last[name].as_f64(), Some(f64::from(value)), "{name} in {last}");
    }
    assert_eq!(last["stream/admitted"].as_f64().unwrap() as u64, last["env_steps"].as_u64().unwrap());
    assert_eq!(processes(&[run.to_str().unwrap()]), [] as [i32; 0], "processes are left behind");
    assert_eq!(left_behind(&before), [] as [String; 0]);

    let json = finished(handoff(&["eval", run.to_str().unwrap(), "--episodes", "20", "--json"]).output().unwrap()).0;
    let evaluation: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((evaluation["episodes"].as_u64(), evaluation["options"].as_array().unwrap().len()), (Some(20), 4));
    for key in ["success", "success_1cm", "return_mean", "length_mean"] {
        assert!(evaluation[key].is_f64(), "{key} in {json}");
    }
    for option in evaluation["options"].as_array().unwrap() {
        assert!(["share", "median_duration", "beta_mean"].iter().all(|key| option.get(*key).is_some()), "{json}");
    }
    let again = finished(handoff(&["eval", run.to_str().unwrap(), "--episodes", "20", "--json"]).output().unwrap()).0;
    assert_eq!(json, again, "the same seed evaluates the same episodes");
}

#[test]
fn a_run_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    finished(train(&run, &["--env-steps", "900"]).output().unwrap());
    let before = metrics(&run).last().unwrap().clone();
    let arguments = ["train", "--resume", run.to_str().unwrap(), "--env-steps", "1800"];
    finished(handoff(&arguments).output().unwrap());
    let rows = metrics(&run);
    let next = &rows[rows.iter().position(|row| *row == before).unwrap() + 1];
    assert_eq!(next["updates"].as_u64(), before["updates"].as_u64().map(|updates| updates + 1));
    assert!(1800 <= rows.last().unwrap()["env_steps"].as_u64().unwrap());
    assert_eq!(std::fs::read_to_string(run.join("life")).unwrap().trim(), "2");

    // what is refused leaves the run as it was
    let config = std::fs::read_to_string(run.join("config.yaml")).unwrap();
    let refused = |arguments: &[&str], word: &str| {
        let output = handoff(&[&["train", "--resume", run.to_str().unwrap()], arguments].concat()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && err.contains(word), "{err}");
        assert_eq!(std::fs::read_to_string(run.join("config.yaml")).unwrap(), config);
    };
    refused(&["--set", "options.count=3"], "this configuration");
    let held = handoff::run::RunDir::open(&run).unwrap().hold().unwrap();
    refused(&["--env-steps", "2700"], "is being trained by another process");
    drop(held);
    finished(handoff(&["train", "--resume", run.to_str().unwrap(), "--env-steps", "2700"]).output().unwrap());
}

/// A training's own domain and transport keep out nobody who asks for them, with the defaults or for this host alone.
#[test]
fn a_client_of_its_domain_hears_a_training() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut training = train(&run, &["--minutes", "2"]).spawn().unwrap();
    harness::wait_until("the first update", &mut training, || !metrics(&run).is_empty());
    let learner = harness::node("learner", run.to_str().unwrap());
    let environment = std::fs::read_to_string(format!("/proc/{learner}/environ")).unwrap();
    let domain = environment.split('\0').find_map(|variable| variable.strip_prefix("ROS_DOMAIN_ID=")).unwrap();
    assert!(environment.contains("fastdds.xml"), "the training has its own transport");
    for range in ["SUBNET", "LOCALHOST"] {
        let mut client = std::process::Command::new("python3");
        client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/train/hears.py"));
        client.env("ROS_DOMAIN_ID", domain).env("ROS_AUTOMATIC_DISCOVERY_RANGE", range);
        assert!(client.status().unwrap().success(), "nothing was heard with range {range}");
    }
    harness::signal(training.id() as i32, "INT");
    finished(training.wait_with_output().unwrap());
}

#[test]
fn the_asynchronous_mode_trains() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let arguments =
        ["--env-steps", "2000", "--rollouts", "2", "--update-mode", "async", "--set", "learner.batch_steps=300"];
    finished(train(&run, &arguments).output().unwrap());
    assert!(2000 <= metrics(&run).last().unwrap()["env_steps"].as_u64().unwrap());
}

#[test]
fn replay_is_learned_from_and_still_there_after_a_resume() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let arguments = ["warmup_steps=200", "batch_size=32", "actor_fragments=8"].map(|key| format!("learner.osac.{key}"));
    let mut arguments: Vec<&str> = arguments.iter().flat_map(|assignment| ["--set", assignment]).collect();
    arguments.extend(["--algo", "osac", "--env-steps", "600"]);
    finished(train(&run, &arguments).output().unwrap());
    let before = metrics(&run).len();
    finished(handoff(&["train", "--resume", run.to_str().unwrap(), "--env-steps", "1000"]).output().unwrap());
    let rows = metrics(&run);
    assert!(before < rows.len());
    for row in &rows {
        assert_eq!(row["replay/steps"], row["env_steps"].as_f64().unwrap(), "remembered from the first step on: {row}");
        assert_eq!(row["stream/refused"].as_f64(), Some(0.0), "{row}");
        assert_eq!(row["stream/lost"].as_f64(), Some(0.0), "what waited at the stop is remembered: {row}");
    }
    // One gradient step a recorded step after the warm-up, give or take the slack of 256.
    let last = rows.last().unwrap();
    let (steps, per_insert) =
        (last["env_steps"].as_f64().unwrap(), last["replay/samples_per_insert"].as_f64().unwrap());
    assert!((steps * per_insert / 32.0 - (steps - 200.0)).abs() <= 256.0, "{last}");
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    for (arguments, words) in [
        (vec!["train", "--set", "learner.hs_ppo.gamma=1.5"], vec!["learner.hs_ppo.gamma", "1.5"]),
        (vec!["train", "--set", "learner.gama=1"], vec!["gama"]),
        (vec!["train", "--serial", "--update-mode", "async"], vec!["--serial", "--update-mode async"]),
        (vec!["train", "--task", "juggle"], vec!["juggle", "reach"]),
        (vec!["train", "--options", "0"], vec!["options.count", "0", "1"]),
        (vec!["train", "--minutes", "-1"], vec!["train.minutes", "-1", "0"]),
        (vec!["train", "--set", "sim.timestep_secs=0.003"], vec!["sim.timestep_secs", "0.003", "0.05"]),
        (
            vec!["train", "--algo", "osac", "--set", "learner.osac.slack_steps=8"],
            vec!["learner.osac.slack_steps", "8", "at least 32"],
        ),
        (vec!["train", "--algo", "sac", "--set", "learner.osac.target_entropy=1"], vec!["target_entropy", "1", "-1"]),
        (vec!["train", "--set", "learner.osac.capacity=99"], vec!["learner.osac.capacity", "99", "256", "1000"]),
        (vec!["train", "--minutes", "NaN"], vec!["--minutes", "NaN", "a finite number"]),
        (vec!["train", "--resume", &missing], vec!["no run folder", "missing"]),
        (
            vec!["train", "--set", "guard.command_rate_hz=10"],
            vec!["guard.command_rate_hz", "10", "20", "sim.led=false"],
        ),
        (vec!["train", "--link", "isaac", "--namespaces", "a,/a"], vec!["train.namespaces", "/a twice"]),
        (vec!["train", "--link", "isaac", "--namespaces", "a,,b"], vec!["train.namespaces", "\"\" is no namespace"]),
        (vec!["train", "--link", "isaac", "--namespaces", "2nd arm"], vec!["train.namespaces", "2nd arm"]),
        (vec!["train", "--link", "isaac", "--namespaces", "a", "--rollouts", "3"], vec!["--rollouts 3", "names 1"]),
        (vec!["eval", &missing, "--link", "isaac", "--set", "robot=fr3"], vec!["robot=fr3", "guard.*"]),
        (vec!["eval", &missing], vec!["missing"]),
        (vec!["eval", "src"], vec!["no run folder"]),
    ] {
        let output = handoff(&arguments).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(words.iter().all(|word| err.contains(word)), "{arguments:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
}
