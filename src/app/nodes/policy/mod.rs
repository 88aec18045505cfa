//! Node `policy`.

mod hand;
mod health;

use super::arm::{self, Asked, Ears};
use super::wire::{Drops, QUEUE, Queue, convert, joints, to_topic, topic_of};
use super::{run, start_with};
use crate::app::cli;
use crate::config::{Config, Seed};
use crate::contract::Snapshot;
use crate::data::Scene;
use crate::error::Result;
use crate::guard::Hand;
use crate::link::{Form, Link};
use crate::node::policy::{Inputs, Outputs, Pilot, Request, Settings, Status, run as pilot_run};
use crate::node::{Output, Shutdown};
use crate::policy::Sampling;
use crate::robot::Limits;
use crate::ros::{self, Lifecycle, Node, Qos, msg, srv};
use crate::run::{RunDir, Which, load_snapshot};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// Node `policy`: runs a trained policy on an arm, guarded.
pub(in crate::app) fn policy(arguments: &cli::Policy) -> Result<()> {
    let (mut node, config) = start_with("policy", &arguments.assignments())?;
    crate::policy::set_threads(1);
    arm::prioritise(&config);
    let described = arm::described(&mut node, &config)?;
    let mut pilot = Pilot::new(settings(&config, described))?;
    let drops = Drops::default();
    let mut heard = Vec::new();
    let weights = weights(&mut node, &config, &mut pilot, &drops, &mut heard)?;
    let (ask, requests) = mpsc::channel(4);
    let lifecycle = serve(&mut node, &ask)?;
    let link = pilot.link();
    let inputs = hear(&mut node, &config, link, weights, requests, &drops, &mut heard)?;
    let (wish, wishes) = mpsc::channel(1);
    let (told, state) = watch::channel(Hand::default());
    let hand = hand_of(&mut node, link, wish)?;
    let hand_state = hand.is_some().then_some(state);
    let status = health::diagnose(&mut node, heard, drops, hand_state)?;
    let outputs = say(&mut node, link, lifecycle, status)?;
    let (stopper, shutdown) = Shutdown::new();
    run(&arguments.node, stopper, node.spin()?, async {
        let moved = async {
            if let Some(hand) = &hand {
                let start = Instant::now();
                hand::run(|goal| hand.pursue(goal), || start.elapsed().as_secs_f64(), wishes, told).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            done = pilot_run(pilot, inputs, outputs, shutdown) => done,
            never = moved => never,
        }
    })
}

/// A Franka Hand, where there may be one, and the service with which a person moves it.
fn hand_of(node: &mut Node, link: Link, wish: mpsc::Sender<bool>) -> Result<Option<ros::Hand>> {
    let Some(name) = link.hand else { return Ok(None) };
    let Some(hand) = node.hand(name)? else { return Ok(None) };
    node.serve::<srv::SetBool::Service>("~/hand", move |message| {
        let success = wish.try_send(message.data).is_ok();
        let asked = if message.data { "the hand is asked to open" } else { "the hand is asked to grasp" };
        let message = if success { asked } else { "the hand is busy; ask again" };
        srv::SetBool::Response { success, message: message.into() }
    })?;
    Ok(Some(hand))
}

fn settings(config: &Config, described: Option<Limits>) -> Settings {
    let policy = &config.policy;
    Settings {
        arm: config.robot,
        preset: policy.link,
        prefix: policy.joint_prefix.clone(),
        described,
        guard: config.guard.clone(),
        seed: Seed::root(config.seed),
        sampling: if policy.stochastic { Sampling::Stochastic } else { Sampling::MeanAction },
        autostart: policy.autostart,
    }
}

/// Of a run, at once; or as a learner publishes them.
fn weights(
    node: &mut Node,
    config: &Config,
    pilot: &mut Pilot,
    drops: &Drops,
    heard: &mut Vec<(String, Qos)>,
) -> Result<watch::Receiver<Option<Arc<Snapshot>>>> {
    let (weights, newest) = watch::channel(None);
    let settings = &config.policy;
    if settings.run.is_empty() {
        let topic = topic_of(&settings.learner_ns, "policy_weights");
        heard.push((topic.clone(), ros::latched()));
        let unreadable = drops.clone();
        node.subscribe(&topic, ros::latched(), move |message: msg::PolicyWeights| {
            convert(message, "policy_weights", &unreadable, |snapshot: Snapshot| {
                weights.send_replace(Some(Arc::new(snapshot)));
            });
        })?;
    } else {
        let folder = RunDir::resolve(Path::new(&settings.run), Which::Newest)?;
        let snapshot = Arc::new(load_snapshot(&folder, None)?);
        pilot.weights(&snapshot)?;
        // for recordings: no learner publishes them
        node.publish::<msg::PolicyWeights>("~/policy_weights", ros::latched())?.send(&(&*snapshot).into())?;
        tracing::info!("the policy of {}", folder.display());
    }
    Ok(newest)
}

/// The services.
fn serve(node: &mut Node, ask: &mpsc::Sender<Asked<Request>>) -> Result<Lifecycle> {
    for (name, request) in [("~/arm", Request::Arm as fn(bool) -> Request), ("~/recover", Request::Recover)] {
        arm::switch(node, name, ask.clone(), request)?;
    }
    let scale = ask.clone();
    node.set_parameter("guard.scale", move |share| arm::answer(&scale, Request::Scale(share)).map(|_| ()));
    let change = ask.clone();
    node.manage(move |wanted| arm::answer(&change, Request::Change(wanted)).is_ok())
}

fn hear(
    node: &mut Node,
    config: &Config,
    link: Link,
    weights: watch::Receiver<Option<Arc<Snapshot>>>,
    requests: mpsc::Receiver<Asked<Request>>,
    drops: &Drops,
    heard: &mut Vec<(String, Qos)>,
) -> Result<Inputs> {
    let (led, led_in) = mpsc::channel(QUEUE);
    if link.form == Form::Positions {
        let mut led = Queue::new(link.commands, led, drops);
        node.subscribe(link.commands, ros::newest(), move |message: msg::JointState| {
            if let Ok(command) = joints(message) {
                led.put(command); // what is unreadable leads nothing
            }
        })?;
    }
    let Ears { states, clock, publishers } = arm::hear(node, config, link, drops, heard)?;
    let goal = arm::goal(node, drops)?;
    let modes = arm::modes(node, config, link, drops)?;
    Ok(Inputs { states, led: led_in, weights, goal, clock, publishers, modes, requests })
}

fn say(node: &mut Node, link: Link, lifecycle: Lifecycle, status: Output<Status>) -> Result<Outputs> {
    let markers = node.publish::<msg::MarkerArray>("~/markers", ros::newest())?;
    let shown = markers.clone();
    let mut scenes = to_topic::<msg::MarkerArray, Scene>(markers);
    Ok(Outputs {
        commands: arm::commands(node, link)?,
        targets: to_topic::<msg::JointState, _>(node.publish("~/target", ros::newest())?),
        options: to_topic::<msg::OptionState, _>(node.publish("~/option_state", ros::everything())?),
        scenes: Box::new(move |scene: &Scene| {
            if 0 < shown.readers() {
                scenes(scene);
            }
        }),
        moves: Box::new(move |moved| lifecycle.moved(moved)),
        status,
    })
}
