//! Weights reach who comes late.

use super::harness::{PATIENCE, Script, alone, wait_for};
use super::messages::snapshot;
use handoff::contract::Snapshot;
use handoff::ros::{Node, latched, msg, srv};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_late_joiner_gets_the_newest_weights_by_topic_and_by_service() {
    alone("ros::weights::a_late_joiner_gets_the_newest_weights_by_topic_and_by_service", &[], || {
        let mut node = Node::start("learner").unwrap();
        let publisher = node.publish::<msg::PolicyWeights>("policy_weights", latched()).unwrap();
        let newest = Snapshot { version: 3, ..snapshot(360) };
        let served = newest.clone();
        node.serve::<srv::GetWeights::Service>("get_weights", move |_| srv::GetWeights::Response {
            available: true,
            weights: (&served).into(),
        })
        .unwrap();
        let client = node.client::<srv::GetWeights::Service>("get_weights").unwrap();
        let (heard, own) = mpsc::channel();
        let running = node.spin().unwrap();
        assert!(newest.parameters.len() * 4 > 1_000_000);
        for version in 1..=3 {
            publisher.send(&(&Snapshot { version, ..newest.clone() }).into()).unwrap();
        }

        Script::start("weights.py", &["3", &newest.parameters.len().to_string()]).succeeded();

        // and from Rust, after everything was said
        let mut late = Node::start("late").unwrap();
        late.subscribe::<msg::PolicyWeights>("policy_weights", latched(), move |m| heard.send(m).unwrap()).unwrap();
        let late = late.spin().unwrap();
        assert_eq!(Snapshot::try_from(own.recv_timeout(PATIENCE).unwrap()).unwrap(), newest);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let request = srv::GetWeights::Request::default();
        let answer = wait_for("an answer", || {
            let ask = client.call(&request, Duration::from_secs(1));
            runtime.block_on(ask).ok()
        });
        assert_eq!(Snapshot::try_from(answer.weights).unwrap(), newest);
        late.stop().unwrap();
        running.stop().unwrap();
    });
}

#[test]
fn a_service_that_nobody_serves_is_given_up_by_name() {
    alone("ros::weights::a_service_that_nobody_serves_is_given_up_by_name", &[], || {
        let mut node = Node::start("rollout").unwrap();
        let client = node.client::<srv::GetWeights::Service>("get_weights").unwrap();
        let running = node.spin().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let request = srv::GetWeights::Request::default();
        let ask = client.call(&request, Duration::from_millis(50));
        let error = runtime.block_on(ask).unwrap_err().to_string();
        assert_eq!(error, "service get_weights did not answer within 50ms");
        running.stop().unwrap();
    });
}
