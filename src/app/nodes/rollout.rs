//! Node `rollout`.

use super::arm::{self, Ears};
use super::health;
use super::wire::{Drops, QUEUE, Queue, convert, to_queue, to_topic, topic_of};
use super::{audit, drive, random, run, start, tell};
use crate::app::cli;
use crate::config::{Config, Purpose, Seed};
use crate::contract::Snapshot;
use crate::data::{
    Ack, ArmStates, Batch, EpisodeStats, Follow, GoalPose, Hold, LearnerStatus, Outbox, RolloutStatus, StreamId,
};
use crate::error::{Error, Result};
use crate::node::rollout::on_link::{self, OnLink, Request};
use crate::node::rollout::{self, Agent, Inputs, Outputs, Rollout};
use crate::node::{Notes, Output, Report, Shutdown, Times};
use crate::policy::Sampling;
use crate::ros::{self, Node, Qos, msg, srv};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// How long a service is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Batches that are held on hardware until a checkpoint has them: 55 minutes of one arm.
const HELD_BATCHES: usize = 4096;

/// Node `rollout`: acts and records, in lockstep with a simulator or on a robot's own topics.
pub(in crate::app) fn rollout(arguments: &cli::Node) -> Result<()> {
    let (node, config) = start("rollout")?;
    crate::policy::set_threads(1);
    let settings = &config.rollout;
    let contract = Arc::new(config.contract()?);
    let name = if settings.id.is_empty() { node.full_name()? } else { settings.id.clone() };
    let stream = StreamId { rollout: name, incarnation: random() };
    let run_id = parse_run(&settings.run)?;
    let seed = draws(&config, stream.incarnation);
    let sampling = if settings.evaluate { Sampling::MeanAction } else { Sampling::Stochastic };
    let num_envs = if settings.on_link { 1 } else { settings.num_envs };
    let leash = if settings.on_link { Some(config.guard.leash_rad) } else { config.leash_rad() };
    let machine = Rollout::new(contract, num_envs, stream.clone(), seed, sampling)?.leashed(leash);
    let follow = Follow::new(stream.clone(), num_envs, run_id);
    let hardware = settings.on_link && !config.policy.link.link().simulated;
    let hold = if hardware { Hold::Durable { capacity: HELD_BATCHES } } else { Hold::Consumed };
    let outbox = Outbox::new(stream.clone(), settings.window, hold);
    let agent = if settings.evaluate {
        Agent::evaluating(machine, follow, outbox)
    } else {
        Agent::new(machine, follow, outbox, settings.fragment_steps)
    };
    if settings.on_link {
        on_link(arguments, node, &config, agent, stream)
    } else {
        in_lockstep(arguments, node, &config, agent, stream)
    }
}

/// What this start of the rollout draws: no other start in the run draws the same.
fn draws(config: &Config, incarnation: u64) -> Seed {
    let start = u64::try_from(config.rollout.restarts).unwrap_or(incarnation);
    Seed::root(config.seed).of(Purpose::Episodes).child(config.rollout.index).child(start)
}

fn in_lockstep(arguments: &cli::Node, mut node: Node, config: &Config, agent: Agent, stream: StreamId) -> Result<()> {
    let drops = Drops::default();
    let (states, states_in) = mpsc::channel(QUEUE);
    // What is lost is repeated by the lockstep itself: best effort saves the acknowledgements.
    let to_agent = to_queue::<msg::ArmStates, ArmStates>("arm_states", states, &drops);
    node.subscribe("arm_states", ros::sensor(), to_agent)?;
    let commands = to_topic::<msg::ArmCommands, _>(node.publish("arm_commands", ros::newest())?);
    let heard = vec![("arm_states".into(), ros::sensor())];
    let wires = wires(arguments, &mut node, config, stream, &drops, heard)?;
    let (inputs, outputs, puller) = wires.with(states_in, commands);
    let times = outputs.times.clone();
    let (stopper, shutdown) = Shutdown::new();
    drive(arguments, stopper, node, async {
        let done = tokio::select! {
            done = rollout::run(agent, inputs, outputs, shutdown) => done,
            never = puller => never,
        };
        tell("rollout", &times);
        done
    })
}

fn on_link(arguments: &cli::Node, mut node: Node, config: &Config, agent: Agent, stream: StreamId) -> Result<()> {
    let settings = &config.rollout;
    arm::prioritise(config);
    let described = arm::described(&mut node, config)?;
    let arm = OnLink::new(
        agent,
        on_link::Settings {
            arm: config.robot,
            preset: config.policy.link,
            prefix: config.policy.joint_prefix.clone(),
            described,
            guard: config.guard.clone(),
            arms_itself: settings.arms_itself,
            resets: !settings.reset.is_empty(),
        },
    )?;
    let link = arm.link();
    let drops = Drops::default();
    let mut heard = Vec::new();
    let Ears { states, clock, publishers } = arm::hear(&mut node, config, link, &drops, &mut heard)?;
    let (ask, requests) = mpsc::channel(4);
    for (name, request) in [("~/arm", Request::Arm as fn(bool) -> Request), ("~/recover", Request::Recover)] {
        arm::switch(&mut node, name, ask.clone(), request)?;
    }
    let modes = arm::modes(&mut node, config, link, &drops)?;
    let (reset, mut asked) = mpsc::channel::<()>(1);
    let (answered, resets) = mpsc::channel(1);
    let client = match settings.reset.as_str() {
        "" => None,
        name => Some(node.resetter(name)?),
    };
    let commands = arm::commands(&mut node, link)?;
    let topic = node.resolve(link.states);
    let wires = wires(arguments, &mut node, config, stream, &drops, heard)?;
    let (inputs, outputs, puller) = wires.with(states, commands);
    let times = outputs.times.clone();
    let inputs = on_link::Inputs { rollout: inputs, topic, clock, publishers, modes, resets, requests };
    let outputs = on_link::Outputs {
        rollout: outputs,
        reset: Box::new(move || {
            let _asked_already = reset.try_send(());
        }),
    };
    let (stopper, shutdown) = Shutdown::new();
    run(arguments, stopper, node.spin()?, async {
        let resetter = async {
            while let (Some(()), Some(client)) = (asked.recv().await, &client) {
                if let Err(error) = client.reset(PATIENCE).await {
                    tracing::warn!("{error}; the arm goes to its start pose without a reset");
                }
                let _told_already = answered.try_send(());
            }
            std::future::pending::<Result<()>>().await
        };
        let done = tokio::select! {
            done = on_link::run(arm, inputs, outputs, shutdown) => done,
            never = puller => never,
            never = resetter => never,
        };
        tell("rollout", &times);
        done
    })
}

/// What every rollout has: its side of the protocol, and goals.
struct Wires<P> {
    weights: watch::Receiver<Option<Arc<Snapshot>>>,
    acks: mpsc::Receiver<Ack>,
    learner: mpsc::Receiver<LearnerStatus>,
    goal: watch::Receiver<Option<GoalPose>>,
    batches: Output<Batch>,
    status: Output<RolloutStatus>,
    episodes: Output<EpisodeStats>,
    report: Output<Report>,
    audit: Option<Notes>,
    pull: Box<dyn FnMut() + Send>,
    times: Times,
    /// Pulls weights; never ends.
    puller: P,
}

impl<P> Wires<P> {
    fn with<S, C>(self, states: mpsc::Receiver<S>, commands: Output<C>) -> (Inputs<S>, Outputs<C>, P) {
        let Self { weights, acks, learner, goal, batches, status, episodes, report, audit, pull, times, puller } = self;
        let inputs = Inputs { states, weights, acks, learner, goal };
        (inputs, Outputs { commands, batches, status, episodes, report, audit, pull, times }, puller)
    }
}

/// `heard`: what the arms are heard on.
fn wires(
    arguments: &cli::Node,
    node: &mut Node,
    config: &Config,
    own: StreamId,
    drops: &Drops,
    mut heard: Vec<(String, Qos)>,
) -> Result<Wires<impl Future<Output = Result<()>> + use<>>> {
    let settings = &config.rollout;
    let learner = |topic: &str| topic_of(&settings.learner_ns, topic);
    let (acks, acks_in) = mpsc::channel(QUEUE);
    let (statuses, learner_in) = mpsc::channel(QUEUE);
    let (weights, weights_in) = watch::channel(None);
    let weights = Arc::new(weights);
    let mut acks = Queue::new("transition_ack", acks, drops);
    let unreadable = drops.clone();
    node.subscribe(&learner("transition_ack"), ros::everything(), move |message: msg::TransitionAck| {
        // Most acks are for other streams; a lost one is repeated.
        if message.rollout == own.rollout && message.incarnation == own.incarnation {
            convert(message, "transition_ack", &unreadable, |ack| acks.put(ack));
        }
    })?;
    node.subscribe(
        &learner("learner_status"),
        ros::everything(),
        to_queue::<msg::LearnerStatus, LearnerStatus>("learner_status", statuses, drops),
    )?;
    let (latched, unreadable) = (weights.clone(), drops.clone());
    node.subscribe(&learner("policy_weights"), ros::latched(), move |message: msg::PolicyWeights| {
        offer(message, &latched, &unreadable);
    })?;
    let goal = arm::goal(node, drops)?;
    let client = node.client::<srv::GetWeights::Service>(&learner("get_weights"))?;
    let (pull, mut pulls) = mpsc::channel::<()>(1);
    // A learner waits for every rollout that it hears: one that only evaluates stays silent.
    let status_topic = if settings.evaluate { "~/status".into() } else { learner("rollout_status") };
    let status = to_topic::<msg::RolloutStatus, _>(node.publish(&status_topic, ros::everything())?);
    heard.extend([
        (learner("transition_ack"), ros::everything()),
        (learner("learner_status"), ros::everything()),
        (learner("policy_weights"), ros::latched()),
    ]);
    let times = Times::default();
    let report =
        health::diagnose(node, heard, times.clone(), drops.clone(), Default::default(), arguments.until_stdin_closes)?;
    let drops = drops.clone();
    let puller = async move {
        while pulls.recv().await.is_some() {
            match client.call(&srv::GetWeights::Request::default(), PATIENCE).await {
                Ok(answer) if answer.available => offer(answer.weights, &weights, &drops),
                Ok(_) => {}
                Err(error) => tracing::debug!("{error}"),
            }
        }
        std::future::pending::<Result<()>>().await
    };
    Ok(Wires {
        weights: weights_in,
        acks: acks_in,
        learner: learner_in,
        goal,
        batches: to_topic::<msg::TransitionBatch, _>(node.publish(&learner("transitions"), ros::everything())?),
        status,
        episodes: to_topic::<msg::EpisodeStats, _>(node.publish("episode_stats", ros::everything())?),
        report,
        audit: if settings.evaluate { None } else { audit(node, config)? },
        pull: Box::new(move || {
            let _asked_already = pull.try_send(());
        }),
        times,
        puller,
    })
}

fn offer(message: msg::PolicyWeights, weights: &watch::Sender<Option<Arc<Snapshot>>>, drops: &Drops) {
    convert(message, "policy_weights", drops, |snapshot: Snapshot| {
        weights.send_replace(Some(Arc::new(snapshot)));
    });
}

fn parse_run(run: &str) -> Result<Option<Uuid>> {
    if run.is_empty() {
        return Ok(None);
    }
    Uuid::parse_str(run).map(Some).map_err(|error| Error::invalid(format!("rollout.run = {run:?} is no uuid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_nobody_counts_draws_otherwise_than_the_one_before() {
        let mut config = Config::default();
        assert_ne!(draws(&config, 7), draws(&config, 8), "respawned by ros2 launch, or started by hand");
        config.rollout.restarts = 3;
        assert_eq!(draws(&config, 7), draws(&config, 8), "a training counts, and can be repeated");
        let counted = draws(&config, 7);
        config.rollout.restarts = 4;
        assert_ne!(draws(&config, 7), counted);
    }
}
