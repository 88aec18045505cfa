//! Processes that are killed, stopped or hung in the middle of a training: by the ids, every transition has one fate.

use super::harness::{
    Audit, audit, finished, left_behind, metrics, node, processes, shared_memory, signal, train, wait_until,
};
use handoff::data::StreamId;
use handoff::data::audit::Note;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Streams of which a learner has stored something.
fn stored(run: &Path) -> BTreeSet<StreamId> {
    let notes = handoff::report::audit::read(&run.join("logs")).unwrap_or_default();
    let stream = |note| match note {
        Note::Stored { stream, .. } => Some(stream),
        _ => None,
    };
    notes.into_iter().flatten().filter_map(stream).collect()
}

/// Kills a rollout, a sim and the learner one after the other; what became of the transitions.
fn kill_each(arguments: &[&str]) -> Audit {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let file = run.join("config.yaml").display().to_string();
    let before = shared_memory();
    let common = ["--minutes", "0", "--rollouts", "2", "--set", "learner.save_interval=3", "--set", "audit=true"];
    let mut child = train(&run, &[&common, arguments].concat()).spawn().unwrap();
    wait_until("first update", &mut child, || !metrics(&run).is_empty());
    for node in ["rollout", "sim", "learner"] {
        let words = [" ", node, " --until-stdin-closes", &file].concat();
        let words = [words.trim_start(), file.as_str()];
        let victim = processes(&[&format!("{node} --until-stdin-closes"), words[1]])[0];
        let (updates, streams) = (metrics(&run).len(), stored(&run));
        signal(victim, "KILL");
        let killed = Instant::now();
        if node == "rollout" {
            wait_until("the replacement contributes", &mut child, || !stored(&run).is_subset(&streams));
            let took = killed.elapsed();
            assert!(took < Duration::from_secs(5), "the replacement of a rollout contributed after {took:?}");
        }
        wait_until("updates after a kill", &mut child, || {
            let alive = processes(&[&format!("{node} --until-stdin-closes"), &file]);
            updates + 2 < metrics(&run).len() && !alive.is_empty() && !alive.contains(&victim)
        });
    }
    signal(child.id() as i32, "INT");
    let account = audit(&finished(child.wait_with_output().unwrap()).1);
    assert!(0 < account.stored && account.learned <= account.recorded, "{account:?}");
    assert_eq!(processes(&[&file]), [] as [i32; 0], "processes are left behind");
    assert_eq!(left_behind(&before), [] as [String; 0]);
    assert_eq!(std::fs::read_to_string(run.join("life")).unwrap().trim(), "2");
    account
}

#[test]
fn what_is_killed_comes_back_and_training_goes_on() {
    // Asynchronous: a rollout acts nearly always, so that a kill hits it in the middle of a fragment.
    let account = kill_each(&["--update-mode", "async", "--set", "learner.batch_steps=300"]);
    // What a killed learner had beyond its checkpoint is lost, and counted; what a killed rollout had, nobody else had.
    assert!(0 < account.lost && 0 < account.memory, "{account:?}");
}

#[test]
fn what_is_killed_in_a_phase_comes_back_and_training_goes_on() {
    kill_each(&["--update-mode", "sync"]);
}

#[test]
fn what_is_killed_comes_back_and_replay_learning_goes_on() {
    let sizes = ["--set", "learner.osac.warmup_steps=300", "--set", "hidden=[32,32]"];
    kill_each(&[&["--algo", "osac", "--update-mode", "async"][..], &sizes].concat());
}

#[test]
fn a_learner_that_is_stopped_for_ten_seconds_loses_nothing_and_nobody_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let file = run.join("config.yaml").display().to_string();
    let mut child = train(&run, &["--minutes", "0", "--rollouts", "2", "--set", "audit=true"]).spawn().unwrap();
    wait_until("first update", &mut child, || !metrics(&run).is_empty());
    let nodes: BTreeSet<i32> = processes(&["--until-stdin-closes", &file]).into_iter().collect();
    let learner = node("learner", &file);
    signal(learner, "STOP");
    std::thread::sleep(Duration::from_secs(10)); // the fault itself
    let updates = metrics(&run).len();
    signal(learner, "CONT");
    wait_until("updates after the stop", &mut child, || updates + 2 < metrics(&run).len());
    assert_eq!(processes(&["--until-stdin-closes", &file]).into_iter().collect::<BTreeSet<_>>(), nodes);
    signal(child.id() as i32, "INT");
    let (_, err) = finished(child.wait_with_output().unwrap());
    let account = audit(&err);
    assert_eq!((account.lost, account.refused), (0, 0), "{account:?}");
    assert!(err.contains("learner is silent for"), "the console says who is silent: {err}");
}

#[test]
fn a_sim_that_hangs_is_named_with_its_phase_and_started_again_and_who_waits_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let file = run.join("config.yaml").display().to_string();
    let arguments = ["--minutes", "0", "--rollouts", "2", "--set", "audit=true", "--set", "train.watchdog_secs=6"];
    let mut child = train(&run, &arguments).spawn().unwrap();
    wait_until("first update", &mut child, || !metrics(&run).is_empty());
    let others = || -> Vec<i32> {
        ["learner", "rollout"]
            .iter()
            .flat_map(|kind| processes(&[&format!("{kind} --until-stdin-closes"), &file]))
            .collect()
    };
    let (before, sim) = (others(), node("sim", &file));
    signal(sim, "STOP");
    wait_until("another sim", &mut child, || {
        let sims = processes(&["sim --until-stdin-closes", &file]);
        sims.len() == 2 && !sims.contains(&sim)
    });
    let updates = metrics(&run).len();
    wait_until("updates after the hang", &mut child, || updates + 3 < metrics(&run).len());
    assert_eq!(others(), before, "those that waited are the same");
    signal(child.id() as i32, "HUP");
    let (_, err) = finished(child.wait_with_output().unwrap());
    audit(&err);
    let named = err.lines().any(|line| {
        line.contains("sim")
            // Phases are told five times a second: it may have been stopped before the first batch was its news.
            && ["serving r", "waiting for a rollout"]
                .iter()
                .any(|phase| line.contains(&format!("says nothing for 6 s; its last phase was \"{phase}")))
            && line.contains("restart 1")
    });
    assert!(named, "{err}");
}

#[test]
fn a_training_outlives_its_readers_and_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let file = run.join("config.yaml").display().to_string();
    let mut child = train(&run, &["--minutes", "0", "--rollouts", "1"]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    wait_until("three updates", &mut child, || 3 <= metrics(&run).len());
    // Something to be said to nobody.
    let victim = node("rollout", &file);
    signal(victim, "KILL");
    wait_until("the restart", &mut child, || {
        let found = processes(&["rollout --until-stdin-closes", &file]);
        !found.is_empty() && !found.contains(&victim)
    });
    let updates = metrics(&run).len();
    wait_until("updates after the restart", &mut child, || updates + 2 < metrics(&run).len());
    signal(child.id() as i32, "HUP");
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(processes(&[&file]), [] as [i32; 0], "processes are left behind");
}

#[test]
fn a_second_training_in_the_same_domain_is_refused_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (run, second) = (folder.path().join("run"), folder.path().join("second"));
    // A domain whose discovery port nobody has; held by nobody after this, as a person would choose one.
    let domain = (1..100).rev().find(|d| std::net::UdpSocket::bind(("0.0.0.0", 7400 + 250 * d)).is_ok()).unwrap();
    let told = |run: &Path, arguments: &[&str]| {
        let mut command = train(run, arguments);
        command.env("ROS_DOMAIN_ID", domain.to_string()).env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        command
    };
    let mut child = told(&run, &["--minutes", "0", "--rollouts", "2", "--set", "audit=true"]).spawn().unwrap();
    wait_until("first update", &mut child, || !metrics(&run).is_empty());
    let output = told(&second, &["--env-steps", "1000"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("has a learner on these topics") && err.contains("learner_ns"), "{err}");
    let updates = metrics(&run).len();
    wait_until("updates beside the refused", &mut child, || updates + 2 < metrics(&run).len());
    signal(child.id() as i32, "INT");
    let account = audit(&finished(child.wait_with_output().unwrap()).1);
    assert_eq!((account.lost, account.refused), (0, 0), "{account:?}");
}
