//! Node `learner`.

use super::health;
use super::wire::{Drops, QUEUE, Queue, to_queue, to_topic, topic_of};
use super::{audit, run, start, tell};
use crate::app::cli;
use crate::contract::Snapshot;
use crate::data::{Batch, LearnerStatus, RolloutStatus};
use crate::error::Result;
use crate::node::learner::{self, Learner};
use crate::node::trainer::Trainer;
use crate::node::{Shutdown, Times};
use crate::ros::{self, msg, srv};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};

/// Node `learner`: admits, learns, publishes weights.
pub(in crate::app) fn learner(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("learner")?;
    let (trainer, table) = Trainer::open(&config)?;
    let (run_id, life) = trainer.identity();
    let front = Learner::new(run_id, life, Arc::new(config.contract()?), &config.learner, table);

    let topic = |name: &str| topic_of(&config.rollout.learner_ns, name);
    let (batches, batches_in) = mpsc::channel(QUEUE);
    let (statuses, statuses_in) = mpsc::channel(QUEUE);
    let (learners, learners_in) = mpsc::channel(QUEUE);
    let drops = Drops::default();
    let (pause, pause_in) = watch::channel(false);
    let (save, save_in) = mpsc::channel(1);
    let mut batches = Queue::new("transitions", batches, &drops);
    let unreadable = drops.clone();
    node.subscribe(&topic("transitions"), ros::everything(), move |message: msg::TransitionBatch| {
        // A malformed batch keeps its heading, so that it gets its verdict and blocks nobody.
        let heading = ros::heading(&message);
        let batch = Batch::try_from(message).or_else(|error| {
            unreadable.count("transitions", "unreadable");
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
        to_queue::<msg::RolloutStatus, RolloutStatus>("rollout_status", statuses, &drops),
    )?;
    node.subscribe(
        &topic("learner_status"),
        ros::everything(),
        to_queue::<msg::LearnerStatus, LearnerStatus>("learner_status", learners, &drops),
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
    let status = to_topic::<msg::LearnerStatus, _>(node.publish(&topic("learner_status"), ros::everything())?);
    let heard = ["transitions", "rollout_status", "learner_status"].map(|name| (name, ros::everything()));
    let heard = heard.into_iter().map(|(name, qos)| (topic(name), qos)).collect();
    let (times, trainer_times) = (Times::default(), trainer.times());
    let report =
        health::diagnose(&mut node, heard, times.clone(), drops, trainer.alarm(), arguments.until_stdin_closes)?;
    let outputs = learner::Outputs {
        acks: to_topic::<msg::TransitionAck, _>(node.publish(&topic("transition_ack"), ros::everything())?),
        status,
        report,
        audit: audit(&node, &config)?,
        weights: Box::new(move |snapshot: &Arc<Snapshot>| {
            if let Err(error) = latched.send(&(&**snapshot).into()) {
                tracing::error!("{error}");
            }
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
        }),
        times: times.clone(),
    };
    let inputs = learner::Inputs {
        batches: batches_in,
        rollouts: statuses_in,
        learners: learners_in,
        pause: pause_in,
        save: save_in,
    };
    let running = node.spin()?;
    let (stopper, shutdown) = Shutdown::new();
    let budget = config.train.clone();
    run(arguments, stopper, running, async {
        let done = learner::run(front, trainer, budget, inputs, outputs, shutdown).await;
        tell("learner", &times);
        tell("trainer", &trainer_times);
        done
    })
}
