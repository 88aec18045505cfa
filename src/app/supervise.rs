//! Child processes of a training: started, watched, restarted when they die, stopped in order. Each child's standard
//! input is a pipe that closes with this process, so no child outlives it.

use super::watchdog::{Beat, Watchdog};
use crate::error::{Error, Result};
use crate::node::learner::SAVES;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// A child that dies younger than this died at start.
const YOUNG: Duration = Duration::from_secs(5);
/// Deaths at start in a row after which the training gives up.
const MOST_YOUNG_DEATHS: u32 = 4;
/// Silence that is told.
const SILENT: Duration = Duration::from_secs(2);
/// A child that does not stop within this is killed ...
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// ... or one that says that it still saves, within this.
const SAVE_TIMEOUT: Duration = Duration::from_secs(300);

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
    watchdog: Watchdog,
    said: watch::Receiver<Option<Beat>>,
    /// Why it was killed.
    stuck: Option<String>,
}

/// The processes of a training.
pub struct Graph {
    program: PathBuf,
    environment: Vec<(String, String)>,
    logs: PathBuf,
    running: Vec<Running>,
    /// A child that is silent or stuck for this long is killed and started again.
    patience: Option<Duration>,
    start: Instant,
}

/// What [`Graph::watch`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// All is well.
    Quiet,
    /// The node that ends the training has done so.
    Finished,
    /// A node died, or was stuck and killed, and was started again; the sentence says which and why.
    Restarted(String),
}

impl Graph {
    /// `environment` is added to this process's own; each child's standard error goes to `logs/<name>.stderr`.
    /// A child that says nothing, or makes no progress where it does not wait, for `patience` is killed.
    pub fn new(
        program: PathBuf,
        environment: Vec<(String, String)>,
        logs: PathBuf,
        patience: Option<Duration>,
    ) -> Self {
        Self { program, environment, logs, running: Vec::new(), patience, start: Instant::now() }
    }

    /// Starts a node.
    pub fn start(&mut self, node: Node) -> Result<()> {
        let (child, said) = self.spawn(&node, 0)?;
        self.running.push(Running {
            node,
            child,
            started: Instant::now(),
            restarts: 0,
            young_deaths: 0,
            watchdog: Watchdog::new(self.patience),
            said,
            stuck: None,
        });
        Ok(())
    }

    /// Names and process ids of the children.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.running.iter().filter_map(|running| Some((running.node.name.as_str(), running.child.id()?)))
    }

    /// Whether no node was started yet.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether a node has said that it is past `phase`.
    pub fn is_past(&self, name: &str, phase: &str) -> bool {
        let beat = self.running.iter().find(|running| running.node.name == name).and_then(|it| it.watchdog.beat());
        beat.is_some_and(|beat| beat.phase != phase)
    }

    /// Who is silent for a while, and whom a node waits for longer than usual, in a few words; empty if nobody.
    pub fn silent(&self) -> String {
        let words = |running: &Running| {
            let (silent, beat) = (running.watchdog.silent(), running.watchdog.beat()?);
            let own = (SILENT <= silent).then(|| format!("{} is silent for {} s", running.node.name, silent.as_secs()));
            Some(own.into_iter().chain(beat.waits_for.clone()).collect::<Vec<_>>())
        };
        self.running.iter().filter_map(words).flatten().collect::<Vec<_>>().join(", ")
    }

    /// Looks after every child once; starts again what died.
    pub fn watch(&mut self) -> Result<Event> {
        for index in 0..self.running.len() {
            let running = &mut self.running[index];
            let said = match running.said.has_changed() {
                Ok(true) => running.said.borrow_and_update().clone(),
                _ => None,
            };
            if running.stuck.is_none()
                && let Some(sentence) = running.watchdog.look(self.start.elapsed(), said)
            {
                running.child.start_kill().map_err(Error::io(&self.program))?;
                running.stuck = Some(sentence);
            }
            let Some(status) = running.child.try_wait().map_err(Error::io(&self.program))? else { continue };
            if status.success() && running.node.ends_training {
                return Ok(Event::Finished);
            }
            let name = running.node.name.clone();
            // One that was killed before it ever spoke died at start, however long that took.
            let mute = running.stuck.is_some() && running.watchdog.beat().is_none();
            let young = mute || running.started.elapsed() < YOUNG;
            running.young_deaths = if young { running.young_deaths + 1 } else { 0 };
            let death = match running.stuck.take() {
                Some(sentence) => format!("{name} {sentence}; it was killed"),
                None => format!("{name} {}", ending(status)),
            };
            if MOST_YOUNG_DEATHS <= running.young_deaths || status.code() == Some(2) {
                let log = self.log(&name);
                return Err(Error::invalid(format!(
                    "{death}; its last words, from {}:\n{}",
                    log.display(),
                    tail(&log)
                )));
            }
            let restarts = running.restarts + 1;
            let (child, said) = self.spawn(&self.running[index].node, restarts)?;
            let watchdog = Watchdog::new(self.patience);
            let running = &mut self.running[index];
            (running.child, running.restarts, running.started) = (child, restarts, Instant::now());
            (running.watchdog, running.said) = (watchdog, said);
            return Ok(Event::Restarted(format!("{death}; started again (restart {restarts})")));
        }
        Ok(Event::Quiet)
    }

    /// Stops every child by closing its input, the first started alone, then all others at once; kills what does not stop.
    pub async fn stop(&mut self) {
        let mut running = self.running.drain(..);
        if let Some(first) = running.next() {
            stop(first, STOP_TIMEOUT, SAVE_TIMEOUT).await;
        }
        futures::future::join_all(running.map(|child| stop(child, STOP_TIMEOUT, SAVE_TIMEOUT))).await;
    }

    fn spawn(&self, node: &Node, restarts: u64) -> Result<(Child, watch::Receiver<Option<Beat>>)> {
        let log = self.log(&node.name);
        let stderr = OpenOptions::new().create(true).append(true).open(&log).map_err(Error::io(&log))?;
        let mut child = Command::new(&self.program)
            .args((node.arguments)(restarts))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io(&self.program))?;
        let (beats, said) = watch::channel(None);
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(async move {
                let mut lines = BufReader::new(stdout).split(b'\n');
                while let Ok(Some(line)) = lines.next_segment().await {
                    if let Some(beat) = Beat::parse(&String::from_utf8_lossy(&line)) {
                        beats.send_replace(Some(beat));
                    }
                }
            });
        }
        Ok((child, said))
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

/// Kills what has not stopped, and has not said for `patience` that it saves; or `longest` after it was told.
async fn stop(mut running: Running, patience: Duration, longest: Duration) {
    drop(running.child.stdin.take());
    let told = Instant::now();
    let mut deadline = told + patience;
    loop {
        tokio::select! {
            _ended = running.child.wait() => return,
            Ok(()) = running.said.changed() => {
                if running.said.borrow_and_update().as_ref().is_some_and(|beat| beat.phase == SAVES) {
                    deadline = (Instant::now() + patience).min(told + longest);
                }
            }
            () = tokio::time::sleep_until(deadline.into()) => break,
        }
    }
    tracing::warn!("{} did not stop in {} s and was killed", running.node.name, told.elapsed().as_secs());
    let _already_gone = running.child.kill().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(folder: &Path) -> Graph {
        Graph::new("/bin/sh".into(), vec![], folder.to_path_buf(), Some(Duration::from_secs(2)))
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

    #[tokio::test]
    async fn what_still_saves_is_waited_for_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let (patience, forever) = (Duration::from_secs(2), Duration::from_secs(60));
        // It saves for twice as long as is waited for silence; it saves without end; it does something else.
        for (phase, beats, longest, ends) in
            [(SAVES, 40, forever, true), (SAVES, 400, Duration::from_secs(3), false), ("acting", 40, forever, false)]
        {
            let witness = folder.path().join(format!("{phase}{beats}"));
            let beat = format!(r#"echo '{{"phase":"{phase}","waits":false,"progress":3}}'; sleep 0.1"#);
            let script = format!("cat; for i in $(seq {beats}); do {beat}; done; touch {}", witness.display());
            let mut graph = graph(folder.path());
            graph.start(node(move |_| script.clone(), true)).unwrap();
            stop(graph.running.remove(0), patience, longest).await;
            assert_eq!(witness.exists(), ends, "{phase} {beats} times");
        }
    }

    #[tokio::test]
    async fn what_never_says_a_word_ends_the_training_after_some_starts() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = graph(folder.path());
        graph.patience = Some(Duration::from_millis(200));
        graph.start(node(|_| "exec sleep 60".into(), false)).unwrap();
        // Longer than a young death takes.
        graph.running[0].started -= 2 * YOUNG;
        let event = until(&mut graph, |event| !matches!(event, Ok(Event::Quiet))).await.unwrap();
        assert!(matches!(event, Event::Restarted(_)), "{event:?}");
        assert_eq!(graph.running[0].young_deaths, 1);
        let error = until(&mut graph, Result::is_err).await.unwrap_err().to_string();
        assert!(error.contains("its last phase was \"starting\""), "{error}");
    }

    #[tokio::test]
    async fn the_first_is_stopped_alone_and_the_others_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = graph(folder.path());
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (first, a, b, done) = (at("first"), at("a"), at("b"), at("done"));
        let script = format!("cat; test ! -e {a} && touch {first}");
        graph.start(node(move |_| script.clone(), true)).unwrap();
        // each of the others ends once the other has been told to
        for (mine, other) in [(&a, &b), (&b, &a)] {
            let script = format!(
                "cat; touch {mine}; while ! test -e {other}; do sleep 0.01; done; test -e {first} && echo >> {done}"
            );
            graph.start(node(move |_| script.clone(), false)).unwrap();
        }
        graph.stop().await;
        assert_eq!(std::fs::read_to_string(&done).unwrap().lines().count(), 2);
    }

    #[tokio::test]
    async fn what_is_stuck_is_named_with_its_phase_killed_and_started_again() {
        let folder = tempfile::tempdir().unwrap();
        for (says, words) in [
            // It goes on talking, and gets nowhere; it falls silent; it never says anything.
            (
                r#"while true; do echo '{"phase":"acting","waits":false,"progress":3}'; sleep 0.1; done"#,
                "stuck in \"acting\" at 3",
            ),
            (
                r#"echo '{"phase":"serving r0","waits":true,"progress":5}'; sleep 60"#,
                "its last phase was \"serving r0\" at 5",
            ),
            ("sleep 60", "its last phase was \"starting\""),
        ] {
            let mut graph = graph(folder.path());
            let script = move |restarts| if restarts == 0 { says.into() } else { "read line".into() };
            graph.start(node(script, false)).unwrap();
            let event = until(&mut graph, |event| !matches!(event, Ok(Event::Quiet))).await.unwrap();
            let Event::Restarted(sentence) = event else { panic!("{event:?}") };
            assert!(sentence.contains(words) && sentence.contains("restart 1"), "{sentence}");
            graph.stop().await;
        }
    }

    #[tokio::test]
    async fn waiting_restarts_nobody_and_silence_is_told_before_it_is_punished() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = Graph::new("/bin/sh".into(), vec![], folder.path().to_path_buf(), Some(Duration::from_secs(4)));
        let waits = r#"for i in $(seq 30); do echo '{"phase":"waiting for a phase","waits":true,"progress":3}'; sleep 0.1; done; sleep 60"#;
        graph.start(node(|_| waits.into(), false)).unwrap();
        let start = Instant::now();
        while graph.silent().is_empty() {
            assert_eq!(graph.watch().unwrap(), Event::Quiet, "after {:?}", start.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(Duration::from_secs(4) < start.elapsed(), "it waited for 3 s, and was silent for 2 s after that");
        assert_eq!(graph.silent(), "node is silent for 2 s");
        graph.stop().await;
    }
}
