//! Trainings as processes, and what they leave.

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

pub(super) fn handoff(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoff"));
    command.args(arguments).env_remove("ROS_DOMAIN_ID").stdin(Stdio::null());
    command
}

pub(super) fn train(run: &Path, arguments: &[&str]) -> Command {
    let mut command = handoff(&["train", "--run", run.to_str().unwrap()]);
    command.args(SMALL).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(super) fn finished(output: Output) -> (String, String) {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (words(&output.stdout), words(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    (out, err)
}

pub(super) fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub(super) fn shared_memory() -> BTreeSet<String> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("fastrtps"))
        .collect()
}

/// Processes whose command line holds all of these words.
pub(super) fn processes(words: &[&str]) -> Vec<i32> {
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

pub(super) fn wait_until(what: &str, child: &mut Child, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        if deadline < Instant::now() {
            let said = logs(child);
            let _ended = child.kill(); // and its nodes with it
            panic!("{what}: not within two minutes\n{said}");
        }
        assert!(child.try_wait().unwrap().is_none(), "{what}: the training ended before");
        std::thread::yield_now();
    }
}

/// What the nodes of a training have said.
fn logs(train: &Child) -> String {
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", train.id())).unwrap_or_default();
    let run = line.split('\0').skip_while(|word| *word != "--run").nth(1).unwrap_or_default();
    let files = std::fs::read_dir(Path::new(run).join("logs")).into_iter().flatten().flatten();
    files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stderr"))
        .map(|path| format!("{}:\n{}\n", path.display(), std::fs::read_to_string(&path).unwrap_or_default()))
        .collect()
}

/// Shared memory that has come since and that no process maps; other trainings beside this one have theirs.
pub(super) fn left_behind(before: &BTreeSet<String>) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let maps: Vec<String> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read_to_string(entry.path().join("maps")).ok())
            .collect();
        let mapped = |name: &String| maps.iter().any(|map| map.contains(name.trim_end_matches("_el")));
        let left: Vec<String> = shared_memory().difference(before).filter(|name| !mapped(name)).cloned().collect();
        if left.is_empty() || deadline < Instant::now() {
            return left;
        }
        std::thread::yield_now();
    }
}

pub(super) fn signal(pid: i32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap().success());
}

/// The only process of this kind (`sim`, `rollout`, `learner`) that a training with this parameter file has, or the first.
pub(super) fn node(kind: &str, file: &str) -> i32 {
    processes(&[&format!("{kind} --until-stdin-closes"), file])[0]
}

/// What `train` said of its audit at the end: transitions by what became of them, in the order of the line.
pub(super) fn audit(err: &str) -> Audit {
    let line = err.lines().find(|line| line.contains("audit: ")).unwrap_or_else(|| panic!("no audit in {err}"));
    let numbers: Vec<u64> = line[line.find("audit: ").unwrap()..]
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [recorded, stored, refused, lost, voided, memory, learned] = numbers[..] else { panic!("{line}") };
    assert_eq!(recorded, stored + refused + lost + voided + memory, "{line}");
    Audit { recorded, stored, refused, lost, memory, learned }
}

/// See [`audit`].
#[derive(Debug)]
pub(super) struct Audit {
    pub(super) recorded: u64,
    pub(super) stored: u64,
    pub(super) refused: u64,
    pub(super) lost: u64,
    pub(super) memory: u64,
    pub(super) learned: u64,
}
