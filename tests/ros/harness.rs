//! A graph of its own for each test: the test runs again in a child process whose domain nobody else has.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Longest that anything in these tests may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `body` alone in a ROS domain, in a child process with `ros_args` after `--ros-args`. `test` is the test's path.
pub(super) fn alone(test: &str, ros_args: &[&str], body: impl FnOnce()) {
    const INSIDE: &str = "HANDOFF_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let (domain, _held) = free_domain();
    // what follows a second `--` are further names of tests to libtest, and arguments to ROS
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--", "--ros-args"]).args(ros_args);
    child.env(INSIDE, "1").env("ROS_DOMAIN_ID", domain.to_string()).env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
    let status = child.status().unwrap();
    assert!(status.success(), "{test} failed in domain {domain}");
}

/// Runs `body` as [`alone`] does, with `peer` in a process of its own beside it, so that DDS takes no short cut.
pub(super) fn beside(test: &str, peer: impl FnOnce(), body: impl FnOnce()) {
    const PEER: &str = "HANDOFF_TEST_PEER";
    alone(test, &[], || {
        if std::env::var_os(PEER).is_some() {
            return peer();
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        let _peer = Process(child.args([test, "--exact", "--nocapture"]).env(PEER, "1").spawn().unwrap());
        body();
    });
}

/// A domain that no other test on this machine has, as long as the listener lives.
pub(crate) fn free_domain() -> (u16, TcpListener) {
    // 1 to 101 are safe on Linux: https://docs.ros.org/en/jazzy/Concepts/Intermediate/About-Domain-ID.html
    (1..=101)
        .find_map(|domain| Some((domain, TcpListener::bind(("127.0.0.1", 25_000 + domain)).ok()?)))
        .expect("no ROS domain is free")
}

/// A process, ended with this value.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A script of this folder in Python, ended with this value.
pub(super) struct Script(Process);

impl Script {
    /// Starts `<name>.py`.
    pub(super) fn start(name: &str, args: &[&str]) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ros").join(name);
        Self(Process(Command::new("python3").arg(path).args(args).spawn().expect("python3 starts")))
    }

    /// Waits until it has ended well.
    pub(super) fn succeeded(self) {
        self.succeeded_within(PATIENCE);
    }

    /// The same for a script that takes its time.
    pub(super) fn succeeded_within(mut self, patience: Duration) {
        let ended = wait_within("the script's end", patience, || self.0.0.try_wait().unwrap());
        assert!(ended.success(), "the script says what is wrong above");
    }
}

/// Looks until there is something.
pub(super) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(what, PATIENCE, look)
}

fn wait_within<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < patience, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
