//! The same actors on the same number of threads over in-process channels: what a training costs without ROS.

use super::usage::Sampler;
use crate::app::watch::Watch;
use crate::app::{pin, runtime};
use crate::config::{Config, Purpose, Seed, Sim};
use crate::contract::Snapshot;
use crate::data::{Ack, Batch, Follow, Hold, LearnerStatus, Outbox, RolloutStatus, StreamId};
use crate::error::{Error, Result};
use crate::node::learner::{self, Learner};
use crate::node::rollout::{self, Agent, Rollout};
use crate::node::trainer::Trainer;
use crate::node::{Output, Shutdown, Times, simulator};
use crate::policy::Sampling;
use crate::sim::{Arms, Lockstep};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Messages that wait for an actor, as over ROS.
const QUEUE: usize = 256;
/// How often the training is looked at.
const BEAT: Duration = Duration::from_millis(200);

/// What the run folder does not say.
pub(super) struct Outcome {
    /// Times by actor; one entry an actor.
    pub(super) times: Vec<(&'static str, Times)>,
    /// Transitions recorded.
    pub(super) recorded: u64,
    /// What it took, from the first update on.
    pub(super) sampler: Sampler,
}

/// Every thread of a training; told to stop, they end.
struct Threads {
    running: Vec<JoinHandle<Result<()>>>,
    shutdown: Shutdown,
}

impl Threads {
    /// Runs an actor, made on its own thread, on a runtime of its own.
    fn start<F: Future<Output = Result<()>>>(
        &mut self,
        name: String,
        actor: impl FnOnce(Shutdown) -> Result<F> + Send + 'static,
    ) -> Result<()> {
        let shutdown = self.shutdown.clone();
        let work = move || runtime()?.block_on(actor(shutdown)?);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(work)
            .map_err(|error| Error::invalid(format!("thread {name} cannot start: {error}")))?;
        self.running.push(thread);
        Ok(())
    }
}

/// The ends of one rollout's channels that the learner holds.
struct Peer {
    acks: mpsc::Sender<Ack>,
    learner: mpsc::Sender<LearnerStatus>,
}

/// Trains as the configuration says, in its run folder, until its budget is spent.
pub(super) fn train(config: &Config, note: &str) -> Result<Outcome> {
    let (trainer, table) = Trainer::open(config)?;
    let (run, life) = trainer.identity();
    let front = Learner::new(run, life, Arc::new(config.contract()?), &config.learner, table);
    let (stopper, shutdown) = Shutdown::new();
    let mut threads = Threads { running: Vec::new(), shutdown };
    let mut times = vec![("trainer", trainer.times())];

    let (weights, _) = watch::channel(None);
    let weights = Arc::new(weights);
    let (batches, batches_in) = mpsc::channel(QUEUE);
    let (statuses, statuses_in) = mpsc::channel(QUEUE);
    let mut peers = Vec::new();
    let mut recorded = Vec::new();
    for index in 0..config.train.rollouts {
        let steps = Arc::new(AtomicU64::new(0));
        let told = steps.clone();
        let mut status = to(&statuses);
        let status: Output<RolloutStatus> = Box::new(move |said| {
            told.store(said.steps, Ordering::Relaxed);
            status(said);
        });
        recorded.push(steps);
        let (sim_times, rollout_times) = (Times::default(), Times::default());
        times.extend([("sim", sim_times.clone()), ("rollout", rollout_times.clone())]);
        peers.push(pair(&mut threads, config, index, &weights, to(&batches), status, sim_times, rollout_times)?);
    }

    let learner_times = Times::default();
    times.push(("learner", learner_times.clone()));
    let (acks, heard): (Vec<_>, Vec<_>) = peers.into_iter().map(|peer| (peer.acks, peer.learner)).unzip();
    let outputs = learner::Outputs {
        // Each stream hears its own.
        acks: Box::new(move |ack: &Ack| {
            let index = ack.stream.rollout.strip_prefix('r').and_then(|index| index.parse::<usize>().ok());
            if let Some(acks) = index.and_then(|index| acks.get(index)) {
                let _repeated_anyway = acks.try_send(ack.clone());
            }
        }),
        status: Box::new(move |status: &LearnerStatus| {
            for rollout in &heard {
                let _repeated_anyway = rollout.try_send(status.clone());
            }
        }),
        weights: Box::new(move |snapshot: &Arc<Snapshot>| drop(weights.send_replace(Some(snapshot.clone())))),
        times: learner_times,
        report: Box::new(|_| {}),
        audit: None,
    };
    let (pause, pause_in) = watch::channel(false);
    let (save, save_in) = mpsc::channel(1);
    let (_no_rival, learners) = mpsc::channel(1);
    let inputs =
        learner::Inputs { batches: batches_in, rollouts: statuses_in, learners, pause: pause_in, save: save_in };
    let budget = config.train.clone();
    threads.start("learner".into(), move |shutdown| {
        let actor = learner::run(front, trainer, budget, inputs, outputs, shutdown);
        Ok(async move {
            let done = actor.await;
            drop((pause, save));
            done
        })
    })?;

    let watch = Watch::new(Path::new(&config.learner.run_dir), config.option_count(), note);
    let seen = look_on(watch, &threads);
    stopper.stop();
    for thread in threads.running {
        thread.join().map_err(|_| Error::invalid("a thread of the training panicked"))??;
    }
    let sampler = seen?;
    let recorded = recorded.iter().map(|steps| steps.load(Ordering::Relaxed)).sum();
    Ok(Outcome { times, recorded, sampler })
}

/// One simulator and its rollout.
#[expect(clippy::too_many_arguments, reason = "each is one end of a wire")]
fn pair(
    threads: &mut Threads,
    config: &Config,
    index: usize,
    weights: &Arc<watch::Sender<Option<Arc<Snapshot>>>>,
    batches: Output<Batch>,
    status: Output<RolloutStatus>,
    sim_times: Times,
    rollout_times: Times,
) -> Result<Peer> {
    let (rollouts, envs) = (config.train.rollouts, config.train.envs);
    let num_envs = envs / rollouts + usize::from(index < envs % rollouts);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sim_threads = if config.sim.threads == 0 { (cores / rollouts).max(1) } else { config.sim.threads };
    let (states, states_in) = mpsc::channel(QUEUE);
    let (commands, commands_in) = mpsc::channel(QUEUE);
    let (acks, acks_in) = mpsc::channel(QUEUE);
    let (learner, learner_in) = mpsc::channel(QUEUE);

    let core = pin::of_pair(config.train.pin, index);
    let settings = config.clone();
    threads.start(format!("sim{index}"), move |shutdown| {
        pin::pin_thread(core)?;
        let task = crate::task::find(&settings.task)?;
        let sim = Sim { threads: sim_threads, ..settings.sim.clone() };
        let period = settings.contract()?.control_period_secs;
        let arms = Arms::new(num_envs, settings.robot, &sim, period, task.cube())?.led(settings.lead())?;
        Ok(async move {
            simulator::run(
                Lockstep::new(arms, index as u64),
                commands_in,
                to(&states),
                Box::new(|_| {}),
                &sim_times,
                shutdown,
            )
            .await;
            Ok(())
        })
    })?;

    let (settings, weights) = (config.clone(), weights.clone());
    threads.start(format!("rollout{index}"), move |shutdown| {
        pin::pin_thread(core)?;
        crate::policy::set_threads(1);
        let stream = StreamId { rollout: format!("r{index}"), incarnation: 1 };
        let seed = Seed::root(settings.seed).of(Purpose::Episodes).child(index as u64).child(0);
        let contract = Arc::new(settings.contract()?);
        let machine = Rollout::new(contract, num_envs, stream.clone(), seed, Sampling::Stochastic)?;
        let machine = machine.leashed(settings.leash_rad());
        let follow = Follow::new(stream.clone(), num_envs, None);
        let outbox = Outbox::new(stream, settings.rollout.window, Hold::Consumed);
        let agent = Agent::new(machine, follow, outbox, settings.rollout.fragment_steps);
        let (goal, goal_in) = watch::channel(None);
        let inputs = rollout::Inputs {
            states: states_in,
            weights: weights.subscribe(),
            acks: acks_in,
            learner: learner_in,
            goal: goal_in,
        };
        let outputs = rollout::Outputs {
            commands: to(&commands),
            batches,
            status,
            episodes: Box::new(|_| {}),
            pull: Box::new(move || weights.send_modify(|_| {})),
            times: rollout_times,
            report: Box::new(|_| {}),
            audit: None,
        };
        Ok(async move {
            let done = rollout::run(agent, inputs, outputs, shutdown).await;
            drop(goal);
            done
        })
    })?;
    Ok(Peer { acks, learner })
}

/// Into a queue; what does not fit is repeated by the protocol.
fn to<T: Clone + Send + 'static>(queue: &mpsc::Sender<T>) -> Output<T> {
    let queue = queue.clone();
    Box::new(move |value: &T| {
        let _full = queue.try_send(value.clone());
    })
}

/// Shows progress and measures this process until a thread ends: the learner, or one that failed.
fn look_on(mut watch: Watch, threads: &Threads) -> Result<Sampler> {
    let own = [(String::new(), std::process::id())];
    let mut sampler = Sampler::default();
    while !threads.running.iter().any(JoinHandle::is_finished) {
        watch.show()?;
        if 0.0 < watch.trained_secs() {
            sampler.look(&own);
        }
        std::thread::sleep(BEAT);
    }
    watch.finish();
    Ok(sampler)
}
