//! The whole graph over ROS 2, as a person starts it. Each training takes a ROS domain of its own.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SMALL: [&str; 8] = [
    "--set",
    "hidden=[32,32]",
    "--set",
    "learner.num_steps_per_env=50",
    "--set",
    "train.eval_episodes=10",
    "--envs",
    "6",
];

fn handoff(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoff"));
    command.args(arguments).env_remove("ROS_DOMAIN_ID").stdin(Stdio::null());
    command
}

fn train(run: &Path, arguments: &[&str]) -> Command {
    let mut command = handoff(&["train", "--run", run.to_str().unwrap()]);
    command.args(SMALL).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(output: Output) -> (String, String) {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (words(&output.stdout), words(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    (out, err)
}

fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn shared_memory() -> BTreeSet<String> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("fastrtps"))
        .collect()
}

/// Processes whose command line holds all of these words.
fn processes(words: &[&str]) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if words.iter().all(|word| line.contains(word)) {
            found.push(pid);
        }
    }
    found
}

fn wait_until(what: &str, child: &mut Child, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within two minutes");
        assert!(child.try_wait().unwrap().is_none(), "{what}: the training ended before");
        std::thread::yield_now();
    }
}

fn signal(pid: i32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap().success());
}

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
    assert_eq!(shared_memory().difference(&before).collect::<Vec<_>>(), [] as [&String; 0]);

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
    }
    // One gradient step a recorded step after the warm-up, give or take the slack of 256.
    let last = rows.last().unwrap();
    let (steps, per_insert) =
        (last["env_steps"].as_f64().unwrap(), last["replay/samples_per_insert"].as_f64().unwrap());
    assert!((steps * per_insert / 32.0 - (steps - 200.0)).abs() <= 256.0, "{last}");
}

#[test]
fn what_is_killed_comes_back_and_training_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let file = run.join("config.yaml").display().to_string();
    let before = shared_memory();
    let arguments = ["--minutes", "0", "--rollouts", "2", "--set", "learner.save_interval=1"];
    let mut child = train(&run, &arguments).spawn().unwrap();
    wait_until("first update", &mut child, || !metrics(&run).is_empty());
    for node in ["rollout", "sim", "learner"] {
        let words = [" ", node, " --until-stdin-closes", &file].concat();
        let words = [words.trim_start(), file.as_str()];
        let victim = processes(&[&format!("{node} --until-stdin-closes"), words[1]])[0];
        let updates = metrics(&run).len();
        signal(victim, "KILL");
        wait_until("updates after a kill", &mut child, || {
            let alive = processes(&[&format!("{node} --until-stdin-closes"), &file]);
            updates + 2 < metrics(&run).len() && !alive.is_empty() && !alive.contains(&victim)
        });
    }
    signal(child.id() as i32, "INT");
    finished(child.wait_with_output().unwrap());
    assert_eq!(processes(&[&file]), [] as [i32; 0], "processes are left behind");
    assert_eq!(shared_memory().difference(&before).collect::<Vec<_>>(), [] as [&String; 0]);
    assert_eq!(std::fs::read_to_string(run.join("life")).unwrap().trim(), "2");
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    for (arguments, words) in [
        (vec!["train", "--set", "learner.hs_ppo.gamma=1.5"], vec!["learner.hs_ppo.gamma", "1.5"]),
        (vec!["train", "--set", "learner.gama=1"], vec!["gama"]),
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
