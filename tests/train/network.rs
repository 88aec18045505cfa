//! A learner in one network namespace, a rollout and its simulator in another, and a bad wire between them. Started as
//! docs/two-machines.md says.

use super::harness::{handoff, metrics, signal};
use handoff::data::audit::{Note, account};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2";

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("`ip {arguments}`: {}", said.trim())) }
}

/// Three namespaces: two hosts, and between them the wire.
struct Hosts {
    here: String,
    there: String,
    between: String,
    wire: Option<(Child, ChildStdin)>,
}

impl Hosts {
    fn new(name: &str) -> Result<Self, String> {
        let of = |part: &str| format!("handoff-{name}-{}-{part}", std::process::id());
        let mut hosts = Self { here: of("a"), there: of("b"), between: of("w"), wire: None };
        for namespace in [&hosts.here, &hosts.there, &hosts.between] {
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        for (host, end, address) in [(&hosts.here, "left", HERE), (&hosts.there, "right", THERE)] {
            let between = &hosts.between;
            ip(&format!("-n {host} link add name eth type veth peer name {end} netns {between}"))?;
            ip(&format!("-n {host} address add {address}/24 dev eth"))?;
            ip(&format!("-n {host} link set eth up multicast on"))?;
            ip(&format!("-n {host} route add 224.0.0.0/4 dev eth"))?;
            ip(&format!("-n {between} link set {end} up promisc on"))?;
        }
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/train/forwarder.py");
        let mut wire = Command::new("ip");
        wire.args(["netns", "exec", &hosts.between, "python3"]).arg(script).args(["left", "right", "1"]);
        let mut wire = wire.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let mut ready = String::new();
        BufReader::new(wire.stdout.take().unwrap()).read_line(&mut ready).map_err(|error| error.to_string())?;
        let stdin = wire.stdin.take().unwrap();
        hosts.wire = Some((wire, stdin));
        if ready.trim() == "ready" { Ok(hosts) } else { Err("the wire does not start".into()) }
    }

    fn wire(&mut self, order: &str) {
        writeln!(self.wire.as_mut().unwrap().1, "{order}").unwrap();
    }

    /// A node on a host, with the environment that its person would set.
    fn node(&self, host: &str, arguments: &[&str], environment: &[(&str, &str)], log: &Path) -> Node {
        let program = handoff(arguments);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host]).arg(program.get_program()).args(program.get_args());
        // One machine plays two: its shared memory must not be the short cut that two machines do not have.
        command.env("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4").env("ROS_DOMAIN_ID", "7");
        command.env_remove("ROS_AUTOMATIC_DISCOVERY_RANGE").envs(environment.iter().copied());
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        Node(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some((mut wire, stdin)) = self.wire.take() {
            drop(stdin);
            let _ = wire.wait();
        }
        for namespace in [&self.here, &self.there, &self.between] {
            // what a wrapper has started outlives it: `fastdds discovery` its server
            if let Ok(output) = Command::new("ip").args(["netns", "pids", namespace]).output() {
                for pid in String::from_utf8_lossy(&output.stdout).lines() {
                    let _ = Command::new("kill").args(["-KILL", pid]).status();
                }
            }
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

/// A process, ended with this value.
struct Node(Child);

impl Node {
    /// Ends as a person ends it, and leaves its notes whole.
    fn interrupt(mut self) {
        signal(self.0.id() as i32, "INT");
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The hosts, or none where this machine does not let us make them; a build machine must.
fn hosts(name: &str) -> Option<Hosts> {
    match Hosts::new(name) {
        Ok(hosts) => Some(hosts),
        Err(why) => {
            eprintln!("skipped: network namespaces cannot be made here: {why}");
            assert!(std::env::var_os("HANDOFF_NEEDS_NETNS").is_none(), "HANDOFF_NEEDS_NETNS is set");
            None
        }
    }
}

/// Asynchronous where the wire is bad: a phase would wait for every status that is lost on the way. A batch fits one
/// packet: one of six packets arrives whole once in eight times. Weights take more, so no lag ends the training.
fn parameters(run: &Path, folder: &Path, mode: &str) -> String {
    let file = folder.join("parameters.yaml");
    let text = format!(
        "/**: {{ros__parameters: {{hidden: [8, 8], audit: true, rollout: {{id: far, num_envs: 1, fragment_steps: 3, window: 8}}, \
         sim: {{threads: 1}}, train: {{minutes: 0.0}}, \
         learner: {{run_dir: {}, update_mode: {mode}, num_steps_per_env: 40, batch_steps: 12, max_lag: 1000, save_interval: 5}}}}}}",
        run.display()
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn wait_for(what: &str, log: &Path, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !holds() {
        let said = || std::fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < deadline, "{what}: not within 90 s\n{}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the page says, with the addresses of the test.
fn start(hosts: &Hosts, run: &Path, mode: &str, here: (&str, &str), there: (&str, &str)) -> (Vec<Node>, PathBuf) {
    let folder = run.parent().unwrap();
    let (file, log) = (parameters(run, folder, mode), folder.join("log"));
    let own = format!("learner.run_dir:={}", folder.join("far").display());
    let ros = ["--ros-args", "--params-file", &file, "-r", "__ns:=/far", "-p", &own];
    let learner = ["learner", "--ros-args", "--params-file", &file];
    let range = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
    let nodes = vec![
        hosts.node(&hosts.here, &learner, &[range, here], &log),
        hosts.node(&hosts.there, &[&["sim"], &ros[..]].concat(), &[range, there], &log),
        hosts.node(&hosts.there, &[&["rollout"], &ros[..]].concat(), &[range, there], &log),
    ];
    (nodes, log)
}

/// Learner first, as everywhere: it counts what the rollouts have sent.
fn finish(nodes: Vec<Node>, run: &Path) -> handoff::data::audit::Account {
    nodes.into_iter().for_each(Node::interrupt);
    let far = run.with_file_name("far");
    let read = |folder: &Path| handoff::report::audit::read(&folder.join("logs")).unwrap();
    let notes = [read(run), read(&far)].concat();
    let mut streams = String::new();
    for note in notes.iter().flatten() {
        if let Note::Begun { life, .. } = note {
            write!(streams, "life {life} ").unwrap();
        }
    }
    assert_eq!(streams, "life 1 ", "the learner lived through it");
    account(&notes).unwrap()
}

#[test]
fn slow_a_wire_that_loses_a_third_and_is_cut_for_half_a_minute_costs_no_transition() {
    let Some(mut hosts) = hosts("cut") else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (here, there) = (("ROS_STATIC_PEERS", THERE), ("ROS_STATIC_PEERS", HERE));
    let (nodes, log) = start(&hosts, &run, "async", here, there);
    wait_for("the first update", &log, || !metrics(&run).is_empty());
    hosts.wire("loss 0.3");
    let updates = metrics(&run).len();
    wait_for("updates over the bad wire", &log, || updates + 2 <= metrics(&run).len());
    hosts.wire("cut");
    std::thread::sleep(Duration::from_secs(30)); // the fault itself
    hosts.wire("loss 0");
    hosts.wire("heal");
    let updates = metrics(&run).len();
    wait_for("updates after the cut", &log, || updates + 3 <= metrics(&run).len());
    let account = finish(nodes, &run);
    assert_eq!((account.lost, account.voided), (0, 0), "{account:?}");
    assert!(0 < account.stored && 0 < account.learned, "{account:?}");
}

#[test]
fn rollouts_on_another_host_are_found_by_a_discovery_server() {
    let Some(hosts) = hosts("server") else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut server = Command::new("ip");
    server.args(["netns", "exec", &hosts.here, "fastdds", "discovery", "-i", "0", "-l", HERE, "-p", "11811"]);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(server) = server.spawn() else {
        return eprintln!("skipped: there is no `fastdds` here");
    };
    let _server = Node(server);
    let address = format!("{HERE}:11811");
    let told = ("ROS_DISCOVERY_SERVER", address.as_str());
    let (nodes, log) = start(&hosts, &run, "sync", told, told);
    wait_for("two updates", &log, || 2 <= metrics(&run).len());
    let account = finish(nodes, &run);
    assert_eq!((account.lost, account.refused), (0, 0), "{account:?}");
}
