//! Node `rollout`.

use super::health;
use super::wire::{Drops, QUEUE, Queue, convert, to_queue, to_topic, topic_of};
use super::{audit, drive, random, start, tell};
use crate::app::cli;
use crate::config::{Purpose, Seed};
use crate::contract::Snapshot;
use crate::data::{ArmStates, Follow, GoalPose, Hold, LearnerStatus, Outbox, StreamId};
use crate::error::{Error, Result};
use crate::node::rollout::{self, Agent, Rollout};
use crate::node::{Shutdown, Times};
use crate::policy::Sampling;
use crate::ros::{self, msg, srv};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// How long a pulled answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Node `rollout`: acts and records.
pub(in crate::app) fn rollout(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("rollout")?;
    crate::policy::set_threads(1);
    let settings = &config.rollout;
    let contract = Arc::new(config.contract()?);
    let name = if settings.id.is_empty() { node.full_name()? } else { settings.id.clone() };
    let stream = StreamId { rollout: name, incarnation: random() };
    let run_id = parse_run(&settings.run)?;
    let seed = Seed::root(config.seed).of(Purpose::Episodes).child(settings.index).child(settings.restarts);
    let sampling = if settings.evaluate { Sampling::MeanAction } else { Sampling::Stochastic };
    let machine = Rollout::new(contract, settings.num_envs, stream.clone(), seed, sampling)?;
    let follow = Follow::new(stream.clone(), settings.num_envs, run_id);
    let outbox = Outbox::new(stream.clone(), settings.window, Hold::Consumed);
    let agent = if settings.evaluate {
        Agent::evaluating(machine, follow, outbox)
    } else {
        Agent::new(machine, follow, outbox, settings.fragment_steps)
    };

    let learner = |topic: &str| topic_of(&settings.learner_ns, topic);
    let drops = Drops::default();
    let (states, states_in) = mpsc::channel(QUEUE);
    let (acks, acks_in) = mpsc::channel(QUEUE);
    let (statuses, learner_in) = mpsc::channel(QUEUE);
    let (weights, weights_in) = watch::channel(None);
    let weights = Arc::new(weights);
    // What is lost is repeated by the lockstep itself: best effort saves the acknowledgements.
    let to_agent = to_queue::<msg::ArmStates, ArmStates>("arm_states", states, &drops);
    node.subscribe("arm_states", ros::sensor(), to_agent)?;
    let own = stream;
    let mut acks = Queue::new("transition_ack", acks, &drops);
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
        to_queue::<msg::LearnerStatus, LearnerStatus>("learner_status", statuses, &drops),
    )?;
    let (latched, unreadable) = (weights.clone(), drops.clone());
    node.subscribe(&learner("policy_weights"), ros::latched(), move |message: msg::PolicyWeights| {
        offer(message, &latched, &unreadable);
    })?;
    let unreadable = drops.clone();
    let (goal, goal_in) = watch::channel(None);
    node.subscribe("goal_pose", ros::newest(), move |message: msg::PoseStamped| {
        convert(message, "goal_pose", &unreadable, |pose: GoalPose| drop(goal.send_replace(Some(pose))));
    })?;
    let client = node.client::<srv::GetWeights::Service>(&learner("get_weights"))?;
    let (pull, mut pulls) = mpsc::channel::<()>(1);
    // A learner waits for every rollout that it hears: one that only evaluates stays silent.
    let status_topic = if settings.evaluate { "~/status".into() } else { learner("rollout_status") };
    let status = to_topic::<msg::RolloutStatus, _>(node.publish(&status_topic, ros::everything())?);
    let heard = vec![
        ("arm_states".into(), ros::sensor()),
        (learner("transition_ack"), ros::everything()),
        (learner("learner_status"), ros::everything()),
        (learner("policy_weights"), ros::latched()),
    ];
    let times = Times::default();
    let report = health::diagnose(
        &mut node,
        heard,
        times.clone(),
        drops.clone(),
        Default::default(),
        arguments.until_stdin_closes,
    )?;
    let outputs = rollout::Outputs {
        commands: to_topic::<msg::ArmCommands, _>(node.publish("arm_commands", ros::newest())?),
        batches: to_topic::<msg::TransitionBatch, _>(node.publish(&learner("transitions"), ros::everything())?),
        status,
        report,
        audit: if settings.evaluate { None } else { audit(&node, &config)? },
        episodes: to_topic::<msg::EpisodeStats, _>(node.publish("episode_stats", ros::everything())?),
        pull: Box::new(move || {
            let _asked_already = pull.try_send(());
        }),
        times: times.clone(),
    };
    let inputs =
        rollout::Inputs { states: states_in, weights: weights_in, acks: acks_in, learner: learner_in, goal: goal_in };
    let (stopper, shutdown) = Shutdown::new();
    drive(arguments, stopper, node, async {
        let puller = async {
            while pulls.recv().await.is_some() {
                match client.call(&srv::GetWeights::Request::default(), PATIENCE).await {
                    Ok(answer) if answer.available => offer(answer.weights, &weights, &drops),
                    Ok(_) => {}
                    Err(error) => tracing::debug!("{error}"),
                }
            }
            std::future::pending::<Result<()>>().await
        };
        let done = tokio::select! {
            done = rollout::run(agent, inputs, outputs, shutdown) => done,
            never = puller => never,
        };
        tell("rollout", &times);
        done
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
