//! The nodes wired to ROS: parameters in, topics to channels and back. What they do is in `node`.

use super::cli;
use crate::config::{self, Config, Purpose, Seed};
use crate::contract::Snapshot;
use crate::data::{ArmCommands, ArmStates, Batch, Follow, Hold, LearnerStatus, Outbox, RolloutStatus, StreamId};
use crate::error::{Error, Result};
use crate::node::learner::Learner;
use crate::node::rollout::{Agent, Rollout};
use crate::node::trainer::Trainer;
use crate::node::{Output, Shutdown, Stopper, learner, rollout, simulator};
use crate::policy::Sampling;
use crate::ros::{self, Node, msg, srv};
use crate::sim::{Arms, Lockstep};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// Messages that wait between the spin thread and an actor; what does not fit is dropped and asked for again.
const QUEUE: usize = 256;
/// How long a pulled answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Node `sim`: the embedded arm, in lockstep.
pub(super) fn sim(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("sim")?;
    let contract = config.contract()?;
    let task = crate::task::find(&config.task)?;
    let period = contract.control_period_secs;
    let arms = Arms::new(config.rollout.num_envs, config.robot, &config.sim, period, task.cube())?;
    let lockstep = Lockstep::new(arms, random());
    let (commands, inbox) = mpsc::channel::<ArmCommands>(QUEUE);
    node.subscribe("arm_commands", ros::newest(), to_queue::<msg::ArmCommands, _>("arm_commands", commands))?;
    let states: Output<ArmStates> = to_topic::<msg::ArmStates, _>(node.publish("arm_states", ros::newest())?);
    let running = node.spin()?;
    let (stopper, shutdown) = Shutdown::new();
    run(arguments, stopper, running, async {
        simulator::run(lockstep, inbox, states, shutdown).await;
        Ok(())
    })
}

/// Node `rollout`: acts and records.
pub(super) fn rollout(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("rollout")?;
    crate::policy::set_threads(1);
    let settings = &config.rollout;
    let contract = Arc::new(config.contract()?);
    let name = if settings.id.is_empty() { node.full_name()? } else { settings.id.clone() };
    let stream = StreamId { rollout: name, incarnation: random() };
    let run_id = parse_run(&settings.run)?;
    let seed = Seed::root(config.seed).of(Purpose::Episodes).child(settings.index).child(settings.restarts);
    let machine = Rollout::new(contract, settings.num_envs, stream.clone(), seed, Sampling::Stochastic)?;
    let follow = Follow::new(stream.clone(), settings.num_envs, run_id);
    let outbox = Outbox::new(stream.clone(), settings.window, Hold::Consumed);
    let agent = Agent::new(machine, follow, outbox, settings.fragment_steps);

    let learner = |topic: &str| topic_of(&settings.learner_ns, topic);
    let (states, states_in) = mpsc::channel(QUEUE);
    let (acks, acks_in) = mpsc::channel(QUEUE);
    let (status, learner_in) = mpsc::channel(QUEUE);
    let (weights, weights_in) = watch::channel(None);
    let weights = Arc::new(weights);
    node.subscribe("arm_states", ros::newest(), to_queue::<msg::ArmStates, ArmStates>("arm_states", states))?;
    let own = stream;
    let mut acks = Queue::new("transition_ack", acks);
    node.subscribe(&learner("transition_ack"), ros::everything(), move |message: msg::TransitionAck| {
        // Most acks are for other streams; a lost one is repeated.
        if message.rollout == own.rollout && message.incarnation == own.incarnation {
            convert(message, "transition_ack", |ack| acks.put(ack));
        }
    })?;
    node.subscribe(
        &learner("learner_status"),
        ros::everything(),
        to_queue::<msg::LearnerStatus, LearnerStatus>("learner_status", status),
    )?;
    let latched = weights.clone();
    node.subscribe(&learner("policy_weights"), ros::latched(), move |message: msg::PolicyWeights| {
        offer(message, &latched);
    })?;
    let client = node.client::<srv::GetWeights::Service>(&learner("get_weights"))?;
    let (pull, mut pulls) = mpsc::channel::<()>(1);
    let outputs = rollout::Outputs {
        commands: to_topic::<msg::ArmCommands, _>(node.publish("arm_commands", ros::newest())?),
        batches: to_topic::<msg::TransitionBatch, _>(node.publish(&learner("transitions"), ros::everything())?),
        status: to_topic::<msg::RolloutStatus, _>(node.publish(&learner("rollout_status"), ros::everything())?),
        episodes: to_topic::<msg::EpisodeStats, _>(node.publish("episode_stats", ros::everything())?),
        pull: Box::new(move || {
            let _asked_already = pull.try_send(());
        }),
    };
    let inputs = rollout::Inputs { states: states_in, weights: weights_in, acks: acks_in, learner: learner_in };
    let running = node.spin()?;
    let (stopper, shutdown) = Shutdown::new();
    run(arguments, stopper, running, async {
        let puller = async {
            while pulls.recv().await.is_some() {
                match client.call(&srv::GetWeights::Request::default(), PATIENCE).await {
                    Ok(answer) if answer.available => offer(answer.weights, &weights),
                    Ok(_) => {}
                    Err(error) => tracing::debug!("{error}"),
                }
            }
            std::future::pending::<Result<()>>().await
        };
        tokio::select! {
            done = rollout::run(agent, inputs, outputs, shutdown) => done,
            never = puller => never,
        }
    })
}

/// Node `learner`: admits, learns, publishes weights.
pub(super) fn learner(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("learner")?;
    let (trainer, table) = Trainer::open(&config)?;
    let (run_id, life) = trainer.identity();
    let front = Learner::new(run_id, life, Arc::new(config.contract()?), &config.learner, table);

    let topic = |name: &str| topic_of(&config.rollout.learner_ns, name);
    let (batches, batches_in) = mpsc::channel(QUEUE);
    let (statuses, statuses_in) = mpsc::channel(QUEUE);
    let (pause, pause_in) = watch::channel(false);
    let (save, save_in) = mpsc::channel(1);
    let mut batches = Queue::new("transitions", batches);
    node.subscribe(&topic("transitions"), ros::everything(), move |message: msg::TransitionBatch| {
        // A malformed batch keeps its heading, so that it gets its verdict and blocks nobody.
        let heading = ros::heading(&message);
        let batch = Batch::try_from(message).or_else(|error| {
            tracing::warn!("a batch does not fit its own shape: {error}");
            heading
        });
        if let Ok(batch) = batch {
            batches.put(batch);
        }
    })?;
    node.subscribe(
        &topic("rollout_status"),
        ros::everything(),
        to_queue::<msg::RolloutStatus, RolloutStatus>("rollout_status", statuses),
    )?;
    let newest: Arc<Mutex<Option<Arc<Snapshot>>>> = Arc::default();
    let served = newest.clone();
    node.serve::<srv::GetWeights::Service>(&topic("get_weights"), move |_| {
        let newest = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let weights = newest.as_deref().map(Into::into);
        srv::GetWeights::Response { available: weights.is_some(), weights: weights.unwrap_or_default() }
    })?;
    node.serve::<srv::SetBool::Service>(&topic("pause"), move |request| {
        pause.send_replace(request.data);
        let message = if request.data { "rollouts hold" } else { "rollouts go on" };
        srv::SetBool::Response { success: true, message: message.into() }
    })?;
    node.serve::<srv::Trigger::Service>(&topic("save"), move |_| {
        let success = save.try_send(()).is_ok();
        let message = if success { "a checkpoint follows" } else { "a checkpoint is being saved already" };
        srv::Trigger::Response { success, message: message.into() }
    })?;
    let latched = node.publish::<msg::PolicyWeights>(&topic("policy_weights"), ros::latched())?;
    let outputs = learner::Outputs {
        acks: to_topic::<msg::TransitionAck, _>(node.publish(&topic("transition_ack"), ros::everything())?),
        status: to_topic::<msg::LearnerStatus, _>(node.publish(&topic("learner_status"), ros::everything())?),
        weights: Box::new(move |snapshot: &Arc<Snapshot>| {
            if let Err(error) = latched.send(&(&**snapshot).into()) {
                tracing::error!("{error}");
            }
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
        }),
    };
    let inputs = learner::Inputs { batches: batches_in, rollouts: statuses_in, pause: pause_in, save: save_in };
    let running = node.spin()?;
    let (stopper, shutdown) = Shutdown::new();
    let budget = config.train.clone();
    run(arguments, stopper, running, learner::run(front, trainer, budget, inputs, outputs, shutdown))
}

/// Joins ROS, reads the parameters, starts the logs.
fn start(name: &str) -> Result<(Node, Config)> {
    let mut node = Node::start(name)?;
    let config = config::from_parameters(node.parameters()?)?;
    if let Ok(values) = serde_json::to_value(&config) {
        node.show_parameters(&values);
    }
    let (warnings, lines) = ros::rosout();
    node.rosout(lines)?;
    let logs = Path::new(&config.learner.run_dir).join("logs");
    let folder = (!config.learner.run_dir.is_empty() && logs.is_dir()).then_some(logs.as_path());
    crate::report::logs::start_with(&node.full_name()?, folder, None, Some(Box::new(warnings)))?;
    Ok((node, config))
}

/// Drives an actor on this thread until it ends, the node dies, or somebody says stop: Ctrl-C, SIGTERM, the parent.
fn run(
    arguments: &cli::Node,
    stopper: Stopper,
    node: ros::Running,
    actor: impl Future<Output = Result<()>>,
) -> Result<()> {
    if arguments.until_stdin_closes {
        super::stop::when_stdin_closes(stopper.clone())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::invalid(format!("the runtime does not start: {error}")))?;
    let outcome = runtime.block_on(async {
        let signals = super::stop::when_signalled(stopper);
        tokio::select! {
            done = actor => done,
            died = node.ended() => died,
            never = signals => never,
        }
    });
    outcome.and(node.stop())
}

/// The bounded way from the spin thread to an actor. What does not fit is dropped and counted; the protocol repeats it.
struct Queue<T> {
    topic: &'static str,
    sender: mpsc::Sender<T>,
    dropped: u64,
}

impl<T> Queue<T> {
    fn new(topic: &'static str, sender: mpsc::Sender<T>) -> Self {
        Self { topic, sender, dropped: 0 }
    }

    fn put(&mut self, value: T) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(value) {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                tracing::warn!("{} messages on {} found the queue of {QUEUE} full", self.dropped, self.topic);
            }
        }
    }
}

/// Puts a topic's messages into a queue, converted. A message that does not convert is refused with a sentence.
fn to_queue<M, T>(topic: &'static str, sender: mpsc::Sender<T>) -> impl FnMut(M) + Send + 'static
where
    T: TryFrom<M, Error = Error> + Send + 'static,
    M: 'static,
{
    let mut queue = Queue::new(topic, sender);
    move |message| convert(message, topic, |value| queue.put(value))
}

fn convert<M, T: TryFrom<M, Error = Error>>(message: M, topic: &str, take: impl FnOnce(T)) {
    match T::try_from(message) {
        Ok(value) => take(value),
        Err(error) => tracing::warn!("a message on {topic} was refused: {error}"),
    }
}

/// Publishes what an actor says.
fn to_topic<M, T>(publisher: ros::Publisher<M>) -> Output<T>
where
    M: ros::Message + for<'a> From<&'a T>,
{
    Box::new(move |value: &T| {
        if let Err(error) = publisher.send(&value.into()) {
            tracing::error!("{error}");
        }
    })
}

fn offer(message: msg::PolicyWeights, weights: &watch::Sender<Option<Arc<Snapshot>>>) {
    convert(message, "policy_weights", |snapshot: Snapshot| {
        weights.send_replace(Some(Arc::new(snapshot)));
    });
}

fn topic_of(namespace: &str, topic: &str) -> String {
    format!("{}/{topic}", namespace.trim_end_matches('/'))
}

fn parse_run(run: &str) -> Result<Option<Uuid>> {
    if run.is_empty() {
        return Ok(None);
    }
    Uuid::parse_str(run).map(Some).map_err(|error| Error::invalid(format!("rollout.run = {run:?} is no uuid: {error}")))
}

/// A number that no other start of a process has.
fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}
