//! Child processes of a training: started, watched, restarted when they die, stopped in order. Each child's standard
//! input is a pipe that closes with this process, so no child outlives it.

use crate::error::{Error, Result};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// A child that dies younger than this died at start.
const YOUNG: Duration = Duration::from_secs(5);
/// Deaths at start in a row after which the training gives up.
const MOST_YOUNG_DEATHS: u32 = 4;
/// A child that does not stop within this is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// One node of the graph.
pub struct Node {
    /// Name in messages and of its log.
    pub name: String,
    /// Its arguments for this number of restarts.
    pub arguments: Box<dyn Fn(u64) -> Vec<String>>,
    /// Whether a clean exit (status 0) ends the training.
    pub ends_training: bool,
}

struct Running {
    node: Node,
    child: Child,
    started: Instant,
    restarts: u64,
    young_deaths: u32,
}

/// The processes of a training.
pub struct Graph {
    program: PathBuf,
    environment: Vec<(String, String)>,
    logs: PathBuf,
    running: Vec<Running>,
}

/// What [`Graph::watch`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// All is well.
    Quiet,
    /// The node that ends the training has done so.
    Finished,
    /// A node died and was started again; the sentence says which and why.
    Restarted(String),
}

impl Graph {
    /// `environment` is added to this process's own; each child's standard error goes to `logs/<name>.stderr`.
    pub fn new(program: PathBuf, environment: Vec<(String, String)>, logs: PathBuf) -> Self {
        Self { program, environment, logs, running: Vec::new() }
    }

    /// Starts a node.
    pub fn start(&mut self, node: Node) -> Result<()> {
        let child = self.spawn(&node, 0)?;
        self.running.push(Running { node, child, started: Instant::now(), restarts: 0, young_deaths: 0 });
        Ok(())
    }

    /// Names and process ids of the children.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.running.iter().filter_map(|running| Some((running.node.name.as_str(), running.child.id()?)))
    }

    /// Looks after every child once; starts again what died.
    pub fn watch(&mut self) -> Result<Event> {
        for index in 0..self.running.len() {
            let running = &mut self.running[index];
            let Some(status) = running.child.try_wait().map_err(Error::io(&self.program))? else { continue };
            if status.success() && running.node.ends_training {
                return Ok(Event::Finished);
            }
            let name = running.node.name.clone();
            let young = running.started.elapsed() < YOUNG;
            running.young_deaths = if young { running.young_deaths + 1 } else { 0 };
            let death = format!("{name} {}", ending(status));
            if MOST_YOUNG_DEATHS <= running.young_deaths || status.code() == Some(2) {
                let log = self.log(&name);
                return Err(Error::invalid(format!(
                    "{death}; its last words, from {}:\n{}",
                    log.display(),
                    tail(&log)
                )));
            }
            let restarts = running.restarts + 1;
            let child = self.spawn(&self.running[index].node, restarts)?;
            let running = &mut self.running[index];
            (running.child, running.restarts, running.started) = (child, restarts, Instant::now());
            return Ok(Event::Restarted(format!("{death}; started again (restart {restarts})")));
        }
        Ok(Event::Quiet)
    }

    /// Stops every child, the first started first, by closing its input; kills what does not stop.
    pub async fn stop(&mut self) {
        for mut running in self.running.drain(..) {
            drop(running.child.stdin.take());
            if tokio::time::timeout(STOP_TIMEOUT, running.child.wait()).await.is_err() {
                tracing::warn!("{} did not stop in {} s and was killed", running.node.name, STOP_TIMEOUT.as_secs());
                let _already_gone = running.child.kill().await;
            }
        }
    }

    fn spawn(&self, node: &Node, restarts: u64) -> Result<Child> {
        let log = self.log(&node.name);
        let stderr = OpenOptions::new().create(true).append(true).open(&log).map_err(Error::io(&log))?;
        Command::new(&self.program)
            .args((node.arguments)(restarts))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io(&self.program))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.stderr"))
    }
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(folder: &Path) -> Graph {
        Graph::new("/bin/sh".into(), vec![], folder.to_path_buf())
    }

    fn node(script: impl Fn(u64) -> String + 'static, ends_training: bool) -> Node {
        let arguments = Box::new(move |restarts| vec!["-c".to_owned(), script(restarts)]);
        Node { name: "node".into(), arguments, ends_training }
    }

    async fn until(graph: &mut Graph, wanted: impl Fn(&Result<Event>) -> bool) -> Result<Event> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let event = graph.watch();
            if wanted(&event) || deadline < Instant::now() {
                return event;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_dies_is_started_again_with_its_restart_count() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = graph(folder.path());
        // The first life kills itself; the second waits until its input closes.
        let script = |restarts: u64| if restarts == 0 { "kill -9 $$".into() } else { "read line; exit 0".into() };
        graph.start(node(script, true)).unwrap();
        let event = until(&mut graph, |event| !matches!(event, Ok(Event::Quiet))).await.unwrap();
        let Event::Restarted(sentence) = event else { panic!("{event:?}") };
        assert!(sentence.contains("signal 9") && sentence.contains("restart 1"), "{sentence}");
        graph.stop().await;
    }

    #[tokio::test]
    async fn what_dies_at_every_start_ends_the_training_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = graph(folder.path());
        graph.start(node(|_| "echo no such thing >&2; exit 1".into(), false)).unwrap();
        let error = until(&mut graph, Result::is_err).await.unwrap_err().to_string();
        assert!(error.contains("status 1") && error.contains("no such thing"), "{error}");
    }

    #[tokio::test]
    async fn a_clean_exit_of_the_learner_finishes_the_training() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = graph(folder.path());
        graph.start(node(|_| "exit 0".into(), true)).unwrap();
        assert_eq!(until(&mut graph, |event| !matches!(event, Ok(Event::Quiet))).await.unwrap(), Event::Finished);
    }

    #[tokio::test]
    async fn stopping_closes_the_input_and_leaves_no_child() {
        let folder = tempfile::tempdir().unwrap();
        let witness = folder.path().join("stopped");
        let mut graph = graph(folder.path());
        let script = format!("cat; touch {}", witness.display());
        graph.start(node(move |_| script.clone(), false)).unwrap();
        graph.stop().await;
        assert!(witness.exists());
    }
}
