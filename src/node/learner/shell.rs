//! The learner over channels: the front on the caller's task, the trainer on a thread of its own.

use super::{Learner, Rival, Work};
use crate::config::Train as Budget;
use crate::contract::Snapshot;
use crate::data::{Ack, Batch, LearnerStatus, RolloutStatus, StreamId};
use crate::error::{Error, Result};
use crate::node::trainer::{Done, Trainer};
use crate::node::{Activity, Notes, Output, Report, Shutdown, Stopwatch, Times};
use crate::run::Mark;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Period of the status and of looking after phases.
const BEAT: Duration = Duration::from_millis(50);
/// It looks this long for another learner before it says that it is alone; it works meanwhile.
const LOOKING: Duration = Duration::from_secs(3);
/// Its phase then.
pub const LOOKS: &str = "looking for other learners";
/// Its phase from the end of its work to the end of its process.
pub const SAVES: &str = "saving";
/// Period of the status.
const STATUS: Duration = Duration::from_millis(200);

/// What a learner hears.
pub struct Inputs {
    /// Transitions.
    pub batches: mpsc::Receiver<Batch>,
    /// Statuses of the rollouts.
    pub rollouts: mpsc::Receiver<RolloutStatus>,
    /// Statuses of learners, its own among them.
    pub learners: mpsc::Receiver<LearnerStatus>,
    /// Whether rollouts shall hold.
    pub pause: watch::Receiver<bool>,
    /// Each message asks for a checkpoint.
    pub save: mpsc::Receiver<()>,
}

/// What a learner says.
pub struct Outputs {
    /// Acknowledgements.
    pub acks: Output<Ack>,
    /// Its status.
    pub status: Output<LearnerStatus>,
    /// New weights.
    pub weights: Output<Arc<Snapshot>>,
    /// Where the front's time goes.
    pub times: Times,
    /// Where it stands, for whoever looks after it.
    pub report: Output<Report>,
    /// The fate of all transitions, if it is to be noted.
    pub audit: Option<Notes>,
}

/// Runs until `shutdown` or until the budget is spent; saves a checkpoint at the end. Fails if learning or saving fails.
pub async fn run(
    mut learner: Learner,
    mut trainer: Trainer,
    budget: Budget,
    mut inputs: Inputs,
    mut outputs: Outputs,
    mut shutdown: Shutdown,
) -> Result<()> {
    let start = Instant::now();
    let mut first_step = None;
    let (pulse, mut journal) = (trainer.pulse(), trainer.journal());
    let newest_life = trainer.newest_life();
    let mut told = String::new();
    if outputs.audit.is_some() {
        learner.audit();
    }
    let (desk, mut done) = trainer_thread(trainer)?;
    let mut beat = tokio::time::interval(BEAT);
    let mut said: Option<Instant> = None;
    let mut watch = Stopwatch::new(&outputs.times);
    loop {
        watch.turn_to(Activity::Waiting);
        let mut announce = false;
        let mut rival = Rival::None;
        tokio::select! {
            biased;
            () = shutdown.wait() => break,
            finished = done.recv() => {
                watch.turn_to(Activity::Transport);
                take(finished, &mut learner, &mut outputs)?;
                announce = true;
            }
            status = inputs.rollouts.recv() => match status {
                Some(status) => {
                    watch.turn_to(Activity::Admission);
                    rival = learner.rollout_status(status, start.elapsed());
                }
                None => break,
            },
            Some(status) = inputs.learners.recv() => rival = learner.learner_status(&status),
            batch = inputs.batches.recv() => match batch {
                Some(batch) => {
                    watch.turn_to(Activity::Admission);
                    learner.batch(batch, start.elapsed());
                }
                None => break,
            },
            Ok(()) = inputs.pause.changed() => {
                learner.pause(*inputs.pause.borrow_and_update());
                announce = true;
            }
            Some(()) = inputs.save.recv() => order(&desk, Order::Save)?,
            _ = beat.tick() => {}
        }
        watch.turn_to(Activity::Admission);
        match rival {
            Rival::None => {}
            Rival::Elder(sentence) => return Err(Error::invalid(sentence)),
            Rival::Younger(sentence) => tell(sentence, &mut told),
            Rival::Later(life) => {
                learner.overtaken(life, newest_life())?;
                tell(format!("somebody speaks of life {life} of this run, which its folder does not know"), &mut told);
            }
        }
        let due = learner.due(start.elapsed());
        watch.turn_to(Activity::Transport);
        if let (Some(journal), false) = (&mut journal, due.marks.is_empty()) {
            let mark = |(stream, position): (StreamId, u64)| Mark {
                rollout: stream.rollout,
                incarnation: stream.incarnation,
                position,
            };
            journal.append(&due.marks.into_iter().map(mark).collect::<Vec<_>>())?;
        }
        if let Some(write) = &mut outputs.audit {
            write(due.notes)?;
        }
        due.acks.iter().for_each(&mut outputs.acks);
        if let Some(work) = due.work {
            order(&desk, Order::Work(work))?;
        }
        if announce || due.announce || said.is_none_or(|said| STATUS <= said.elapsed()) {
            (outputs.status)(&learner.status());
            let mut report = learner.report(pulse.load(Ordering::Relaxed));
            if start.elapsed() < LOOKING {
                report.phase = LOOKS.into();
            }
            (outputs.report)(&report);
            said = Some(Instant::now());
        }
        if learner.started() {
            watch.start();
            let began = *first_step.get_or_insert_with(Instant::now);
            let spent = 0.0 < budget.minutes && budget.minutes * 60.0 <= began.elapsed().as_secs_f64();
            if spent || (0 < budget.env_steps && budget.env_steps <= learner.env_steps) {
                break;
            }
        }
    }
    if let Some(work) = learner.leave() {
        order(&desk, Order::Work(work))?;
    }
    if let Some(write) = &mut outputs.audit {
        write(learner.last_notes())?;
    }
    learner.pause(true);
    (outputs.status)(&learner.status());
    order(&desk, Order::Save)?;
    drop(desk);
    // Who looks after it hears of it until the last order is done.
    loop {
        tokio::select! {
            biased;
            finished = done.recv() => match finished {
                Some(finished) => take(Some(finished), &mut learner, &mut outputs)?,
                None => return Ok(()),
            },
            _ = beat.tick() => {
                let report = learner.report(pulse.load(Ordering::Relaxed));
                (outputs.report)(&Report { phase: SAVES.into(), ..report });
            }
        }
    }
}

fn tell(sentence: String, told: &mut String) {
    if *told != sentence {
        tracing::error!("{sentence}");
        *told = sentence;
    }
}

enum Order {
    Work(Work),
    Save,
}

type Desk = std::sync::mpsc::Sender<Order>;

/// libtorch lives on this thread alone. It ends when the desk is gone; its last word may be an error.
fn trainer_thread(mut trainer: Trainer) -> Result<(Desk, mpsc::Receiver<Result<Done>>)> {
    let (desk, orders) = std::sync::mpsc::channel();
    let (report, done) = mpsc::channel(4);
    let work = move || {
        let first = Done { snapshot: Some(trainer.snapshot()), durable: None };
        let mut alive = report.blocking_send(Ok(first)).is_ok();
        while let (true, Ok(order)) = (alive, orders.recv()) {
            let result = match order {
                Order::Work(work) => trainer.work(work),
                Order::Save => trainer.save(),
            };
            alive = result.is_ok();
            alive &= report.blocking_send(result).is_ok();
        }
    };
    std::thread::Builder::new()
        .name("trainer".into())
        .spawn(work)
        .map_err(|error| Error::invalid(format!("the trainer's thread cannot start: {error}")))?;
    Ok((desk, done))
}

fn order(desk: &Desk, order: Order) -> Result<()> {
    desk.send(order).map_err(|_| Error::invalid("the trainer has stopped"))
}

fn take(finished: Option<Result<Done>>, learner: &mut Learner, outputs: &mut Outputs) -> Result<()> {
    let done = finished.unwrap_or_else(|| Err(Error::invalid("the trainer has stopped without a word")))?;
    if let Some(table) = &done.durable {
        learner.durable(table);
    }
    if let Some(snapshot) = &done.snapshot {
        (outputs.weights)(snapshot);
        learner.published(snapshot, snapshot.hash());
    }
    Ok(())
}
