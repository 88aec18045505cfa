//! Training on robots' own topics: paced simulators that behave as Isaac Sim does.

use super::harness::{audit, finished, handoff, metrics, processes, signal, train, wait_until};
use crate::ros::harness::{Process, free_domain};
use handoff::data::audit::Note;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Transitions that the learner has stored of a rollout.
fn stored(run: &Path, rollout: &str) -> u64 {
    let notes = handoff::report::audit::read(&run.join("logs")).unwrap_or_default();
    let of = |note: &Note| match note {
        Note::Stored { stream, rows, .. } if stream.rollout == rollout => rows.iter().map(|row| row.steps).sum(),
        _ => 0,
    };
    notes.iter().flatten().map(of).sum()
}

/// Whether a node has said this.
fn said(run: &Path, words: &str) -> bool {
    let files = std::fs::read_dir(run.join("logs")).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).any(|text| text.contains(words))
}

/// A process in this domain.
fn start(domain: impl ToString, command: &mut Command) -> Process {
    let command = command.env("ROS_DOMAIN_ID", domain.to_string()).env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
    Process(command.stdin(Stdio::null()).spawn().unwrap())
}

#[test]
fn arms_of_a_simulator_are_learned_on_and_one_that_stops_is_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (domain, _held) = free_domain();
    let there = |command: &mut Command| start(domain, command);
    let sim = |namespace: &str, clock: bool| {
        let (namespace, clock) = (format!("__ns:={namespace}"), format!("sim.clock:={clock}"));
        let arguments = ["sim", "--paced", "--ros-args", "-r", &namespace, "-p", &clock];
        there(handoff(&arguments).args(["-p", "sim.real_time_factor:=4.0", "-p", "sim.rounding:=0.0001"]))
    };
    let relay = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/train/relay.py");
    let simulators = [sim("/arm_1", true), sim("/behind/arm_2", false)];
    let _relay = there(Command::new("python3").arg(relay).args(["/behind/arm_2", "/arm_2"]));
    let arguments = ["--link", "isaac", "--namespaces", "arm_1,arm_2", "--minutes", "0", "--set", "audit=true"];
    let sizes = ["--set", "learner.batch_steps=100", "--set", "rollout.fragment_steps=10"];
    let mut child =
        train(&run, &[&arguments[..], &sizes].concat()).env("ROS_DOMAIN_ID", domain.to_string()).spawn().unwrap();
    wait_until("updates on both arms", &mut child, || {
        2 <= metrics(&run).len() && ["r0", "r1"].iter().all(|rollout| 0 < stored(&run, rollout))
    });
    assert_eq!(processes(&["sim --until-stdin-closes", run.to_str().unwrap()]), [] as [i32; 0], "no simulator of ours");
    let arm_2 = simulators[1].0.id() as i32; // the other one has the clock of both
    signal(arm_2, "STOP");
    // in an episode, or between two
    let noticed = || said(&run, "an episode ends as aborted") || said(&run, "no joint states come on /arm_2");
    wait_until("the stop is noticed", &mut child, noticed);
    let updates = metrics(&run).len();
    wait_until("the other arm is learned on", &mut child, || updates < metrics(&run).len());
    let before = stored(&run, "r1");
    signal(arm_2, "CONT");
    wait_until("the arm is taken up again", &mut child, || before + 20 < stored(&run, "r1"));
    signal(child.id() as i32, "INT");
    let (_, err) = finished(child.wait_with_output().unwrap());
    let audit = audit(&err);
    assert!(200 <= audit.stored && audit.refused == 0 && audit.lost == 0, "{audit:?}");
}

#[test]
#[cfg_attr(not(simulation_interfaces), ignore = "built without simulation_interfaces: scripts/test_optional.sh")]
fn a_simulator_is_reset_before_each_episode_by_the_standard_service() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (domain, _held) = free_domain();
    let there = |command: &mut Command| start(domain, command);
    let _sim = there(&mut handoff(&["sim", "--paced", "--ros-args", "-p", "sim.real_time_factor:=4.0"]));
    let resets = folder.path().join("resets");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/train/reset.py");
    let _isaac = there(Command::new("python3").arg(script).stdout(std::fs::File::create(&resets).unwrap()));
    let arguments = ["--link", "isaac", "--minutes", "0", "--set", "rollout.reset=/reset_simulation"];
    let mut child = train(&run, &arguments).env("ROS_DOMAIN_ID", domain.to_string()).spawn().unwrap();
    wait_until("three episodes that begin with a reset", &mut child, || {
        let episodes = std::fs::read_to_string(&resets).unwrap().lines().count();
        3 <= episodes && !said(&run, "was not reset")
    });
    signal(child.id() as i32, "INT");
    finished(child.wait_with_output().unwrap());
}
