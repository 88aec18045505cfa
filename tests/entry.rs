//! The entry script `./handoff` and its lock files; nothing here touches the network.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A copy of the script in a folder where nothing is set up.
fn fresh_copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(copy.path().join("scripts")).unwrap();
    for file in ["handoff", "scripts/setup.sh", "scripts/environment.sh"] {
        fs::copy(root.join(file), copy.path().join(file)).unwrap();
    }
    copy
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// What bash prints when it runs `script` with the functions of the entry script.
fn with_functions(root: &Path, script: &str) -> String {
    let sourced = format!("set -euo pipefail; source scripts/setup.sh; source scripts/environment.sh; {script}");
    let (code, stdout, stderr) =
        output(Command::new("bash").args(["-c", &sourced]).env("root", root).current_dir(root));
    assert_eq!(code, Some(0), "{stderr}");
    stdout
}

#[test]
fn help_sets_nothing_up() {
    let copy = fresh_copy();
    for arguments in [&[][..], &["--help"], &["--cpu", "-h"]] {
        let (code, stdout, _) = output(Command::new(copy.path().join("handoff")).args(arguments));
        assert_eq!(code, Some(0));
        assert!(stdout.starts_with("Usage: ./handoff [--cpu] COMMAND"), "{stdout}");
    }
    assert!(!copy.path().join(".handoff").exists());
}

#[test]
fn an_unknown_option_is_named() {
    let copy = fresh_copy();
    let (code, _, stderr) = output(Command::new(copy.path().join("handoff")).arg("--gpu"));
    assert_eq!(code, Some(2));
    assert_eq!(stderr, "handoff: unknown option '--gpu'; ./handoff --help lists the commands\n");
}

#[test]
fn a_ros_that_the_client_does_not_know_is_refused_by_name() {
    let copy = fresh_copy();
    let mut command = Command::new(copy.path().join("handoff"));
    command.arg("setup").env("ROS_DISTRO", "kilted").env("AMENT_PREFIX_PATH", "/opt/ros/kilted");
    let (code, _, stderr) = output(&mut command);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("does not know 'kilted'") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn an_installed_ros_and_its_overlays_are_kept_in_order() {
    let copy = fresh_copy();
    let paths = "export ROS_DISTRO=humble AMENT_PREFIX_PATH=/old/.handoff/msgs/1:/home/me/ws/install:/opt/ros/humble; \
                 choose_ros; echo $ros $AMENT_PREFIX_PATH";
    assert_eq!(with_functions(copy.path(), paths), "installed /home/me/ws/install:/opt/ros/humble\n");
}

#[test]
fn an_environment_of_ours_is_no_installed_ros() {
    let copy = fresh_copy();
    let paths =
        "export ROS_DISTRO=jazzy AMENT_PREFIX_PATH=/old/.handoff/msgs/1:/old/.handoff/ros; choose_ros; echo $ros";
    assert_eq!(with_functions(copy.path(), paths), "brought\n");
}

#[test]
fn a_step_is_made_once_and_anew_when_interrupted_or_asked_for_otherwise() {
    let copy = fresh_copy();
    let steps = "mkdir $state; make() { [[ ! -e $1 ]]; mkdir $1; echo made; }; \
                 step a 'clone one' make; step a 'clone one' make; echo -; \
                 step a 'clone two' make; echo -; \
                 rm $state/a.done; step a 'clone two' make; echo -; \
                 rmdir $state/a; step a 'clone two' make";
    assert_eq!(with_functions(copy.path(), steps), "made\n-\nmade\n-\nmade\n-\nmade\n");
}

#[test]
fn every_wheel_is_pinned_by_version_and_hash() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/requirements");
    for name in ["peers", "ros", "tools", "torch-cpu", "torch-cuda"] {
        let lock = fs::read_to_string(folder.join(name).with_extension("txt")).unwrap();
        let mut pins = lock.lines().filter(|line| !line.starts_with('#')).peekable();
        assert!(pins.peek().is_some(), "{name} is empty");
        for pin in pins {
            let mut words = pin.split(' ');
            assert!(words.next().unwrap().split_once("==").is_some_and(|(_, version)| !version.contains('*')), "{pin}");
            let digests: Vec<_> = words.map(|word| word.strip_prefix("--hash=sha256:").unwrap_or_default()).collect();
            assert!(!digests.is_empty() && digests.iter().all(|digest| digest.len() == 64), "{pin}");
        }
    }
}

#[test]
fn the_mujoco_wheel_is_the_one_that_the_crate_was_made_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let of_crate = lock.split("name = \"mujoco-rs\"\nversion = \"").nth(1).unwrap().split(['+', '"']).nth(1).unwrap();
    let tools = fs::read_to_string(root.join("scripts/requirements/tools.txt")).unwrap();
    let of_wheel = tools.lines().find_map(|line| line.strip_prefix("mujoco==")).unwrap().split(' ').next().unwrap();
    assert_eq!(of_crate, format!("mj-{of_wheel}"));
}
