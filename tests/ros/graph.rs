//! Periodic work, the graph, health, logs, and the death of a node.

use super::harness::{PATIENCE, Script, alone, wait_for};
use handoff::ros::{Health, Level, Node, everything, msg, newest, rosout, sensor};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tracing_subscriber::layer::SubscriberExt as _;

#[test]
fn mismatched_publishers_are_named_through_remapping() {
    let args = ["-r", "joint_states:=/isaac/joint_states"];
    alone("ros::graph::mismatched_publishers_are_named_through_remapping", &args, || {
        let mut franka = Node::start("franka").unwrap();
        let _states = franka.publish::<msg::JointState>("joint_states", sensor()).unwrap();
        let franka = franka.spin().unwrap();
        let mut policy = Node::start("policy").unwrap();
        policy.subscribe::<msg::JointState>("joint_states", newest(), |_| ()).unwrap();
        let (found, seen) = mpsc::channel();
        policy.every(Duration::from_millis(20), move |graph| {
            let writers = graph.writers("joint_states").unwrap();
            let _ = found.send((writers.len(), graph.mismatches("joint_states", &newest()).unwrap()));
            assert_eq!(graph.mismatches("joint_states", &sensor()).unwrap(), [""; 0]);
        });
        let policy = policy.spin().unwrap();
        let sentences = wait_for("the publisher", || match seen.recv_timeout(PATIENCE).unwrap() {
            (1, sentences) => Some(sentences),
            (count, _) => {
                assert_eq!(count, 0);
                None
            }
        });
        let want = "nothing that /franka publishes on /isaac/joint_states arrives: \
                    it offers best effort, reliable is requested";
        assert_eq!(sentences, [want]);
        policy.stop().unwrap();
        franka.stop().unwrap();
    });
}

#[test]
fn periodic_work_keeps_its_period_while_messages_arrive() {
    alone("ros::graph::periodic_work_keeps_its_period_while_messages_arrive", &[], || {
        let mut node = Node::start("busy").unwrap();
        let publisher = node.publish::<msg::ArmStates>("states", everything()).unwrap();
        node.subscribe::<msg::ArmStates>("states", everything(), |_| ()).unwrap();
        let (tick, ticks) = mpsc::channel();
        node.every(Duration::from_millis(10), move |_| tick.send(()).unwrap());
        let start = Instant::now();
        let running = node.spin().unwrap();
        while start.elapsed() < Duration::from_secs(1) {
            publisher.send(&msg::ArmStates::default()).unwrap();
        }
        running.stop().unwrap();
        let (turns, most) = (ticks.try_iter().count(), start.elapsed().as_millis() as usize / 10);
        assert!((most / 4..=most).contains(&turns), "{turns} turns, at most {most} are right");
    });
}

#[test]
fn a_panic_on_the_spin_thread_is_told_with_its_words() {
    alone("ros::graph::a_panic_on_the_spin_thread_is_told_with_its_words", &[], || {
        let mut node = Node::start("doomed").unwrap();
        let publisher = node.publish::<msg::ArmStates>("states", everything()).unwrap();
        let (_sender, gone) = {
            let (sender, receiver) = mpsc::channel::<()>();
            node.every(Duration::from_millis(5), move |_| {
                let _held = &sender;
                panic!("no such arm");
            });
            ((), receiver)
        };
        let running = node.spin().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let error = runtime.block_on(running.ended()).unwrap_err().to_string();
        assert_eq!(error, "the ROS node /doomed died: no such arm");
        assert_eq!(gone.recv(), Err(mpsc::RecvError), "closures are dropped with the node");
        assert!(publisher.send(&msg::ArmStates::default()).is_err(), "nothing is published by a dead node");
        assert!(running.stop().unwrap_err().to_string().contains("no such arm"));
    });
}

#[test]
fn health_and_warnings_reach_the_standard_topics() {
    alone("ros::graph::health_and_warnings_reach_the_standard_topics", &[], || {
        let mut node = Node::start("policy").unwrap();
        let (layer, lines) = rosout();
        node.rosout(lines).unwrap();
        node.diagnose(|_| Health {
            level: Level::Warn,
            message: "no states for 2 s".into(),
            values: vec![("held_ticks".into(), "40".into())],
        })
        .unwrap();
        let running = node.spin().unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(age_secs = 2.0, "states are late");
        });
        Script::start("standard.py", &[]).succeeded();
        running.stop().unwrap();
    });
}
