//! Spinning: wakes at each message, drains every stream at once, runs what is periodic; on a thread of its own, or between
//! the turns of an actor.

use super::graph::Graph;
use super::names::Names;
use super::node::Node;
use crate::error::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Empties one stream into its closure.
pub(super) type Pump = Box<dyn FnMut() + Send>;

/// Longest wait for a message, and so for a stop. A message ends the wait at once.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// Something done again and again on the spin thread.
pub(super) struct Periodic {
    pub(super) period: Duration,
    pub(super) due: Instant,
    pub(super) run: Box<dyn FnMut(&Graph<'_>) + Send>,
}

/// A node on its thread. Dropping it stops and joins.
pub struct Running {
    name: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    ended: watch::Receiver<Option<Result<(), String>>>,
}

impl Running {
    pub(super) fn start(node: Node) -> Result<Self> {
        let name = node.full_name()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (report, ended) = watch::channel(None);
        let thread = std::thread::Builder::new()
            .name("ros".into())
            .spawn({
                let stop = stop.clone();
                move || {
                    let outcome = live(node, &stop);
                    report.send_replace(Some(outcome));
                }
            })
            .map_err(|error| Error::invalid(format!("no thread for node {name}: {error}")))?;
        Ok(Self { name, stop, thread: Some(thread), ended })
    }

    /// Its name with namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the node has ended; an error says what it died of.
    pub async fn ended(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        let outcome = ended.wait_for(Option::is_some).await;
        self.outcome(outcome.ok().and_then(|outcome| outcome.clone()))
    }

    /// Stops the node and waits for its thread; an error says what it died of before.
    pub fn stop(mut self) -> Result<()> {
        self.join();
        let outcome = self.ended.borrow().clone();
        self.outcome(outcome)
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // the thread reports its own panic
            let _ = thread.join();
        }
    }

    fn outcome(&self, outcome: Option<Result<(), String>>) -> Result<()> {
        let died = |why: &str| Err(Error::invalid(format!("the ROS node {} died: {why}", self.name)));
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => died(&why),
            None => died("its thread vanished"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.join();
    }
}

/// Spins between the turns of an actor, on one thread: no message has to wake a second one. Ends with the actor, or with
/// what something panicked with.
pub(super) async fn drive<T>(node: Node, actor: impl Future<Output = T>) -> Result<T> {
    let name = node.full_name()?;
    let Node { mut inner, mut pumps, mut periodic, names, .. } = node;
    let mut actor = pin!(actor);
    let outcome = loop {
        if let Poll::Ready(outcome) = futures::poll!(actor.as_mut()) {
            break Ok(outcome);
        }
        let turn = || turn(&mut inner, &names, &mut pumps, &mut periodic);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(turn)) {
            break Err(Error::invalid(format!("the ROS node {name} died: {}", said(&*panic))));
        }
        // timers and signals have their turn, too
        tokio::task::yield_now().await;
    };
    let gone = catch_unwind(AssertUnwindSafe(move || drop((pumps, periodic, inner))));
    gone.map_err(|panic| Error::invalid(format!("the ROS node {name} died as it stopped: {}", said(&*panic))))?;
    outcome
}

/// Spins until told to stop, or until something panics: then says what.
fn live(node: Node, stop: &AtomicBool) -> Result<(), String> {
    let Node { mut inner, mut pumps, mut periodic, names, .. } = node;
    let outcome = catch_unwind(AssertUnwindSafe(|| spin(&mut inner, &names, &mut pumps, &mut periodic, stop)));
    // what the closures hold goes before the node; a node that panicked may panic again as it goes
    let gone = catch_unwind(AssertUnwindSafe(move || drop((pumps, periodic, inner))));
    outcome.and(gone).map_err(|panic| said(&*panic).to_owned())
}

fn spin(node: &mut r2r::Node, names: &Names, pumps: &mut [Pump], periodic: &mut [Periodic], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        turn(node, names, pumps, periodic);
    }
}

/// Waits for a message, hands out what has come, and does what is due.
fn turn(node: &mut r2r::Node, names: &Names, pumps: &mut [Pump], periodic: &mut [Periodic]) {
    let now = Instant::now();
    let wait = periodic.iter().map(|each| each.due.saturating_duration_since(now)).min();
    // takes at most one message a subscription into a queue of ten, which the pumps empty before the next
    node.spin_once(wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT));
    pumps.iter_mut().for_each(|pump| pump());
    for each in periodic.iter_mut() {
        let now = Instant::now();
        if each.due <= now {
            (each.run)(&Graph { node, names });
            each.due = (each.due + each.period).max(now);
        }
    }
}

/// What a panic said.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words")
}
