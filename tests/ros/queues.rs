//! Nothing is lost between DDS and an actor's queue; a stalled reader of the newest gets the newest.

use super::harness::{PATIENCE, alone, beside, wait_for};
use handoff::ros::{Node, Qos, everything, latched, msg, newest, sensor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

/// 100 kB and a number.
fn numbered(seq: u64) -> msg::TransitionBatch {
    let observations = vec![seq as f32; 25_000];
    let fragment = msg::Fragment { observations, ..Default::default() };
    msg::TransitionBatch { seq, fragments: vec![fragment], contract_hash: vec![0; 32], ..Default::default() }
}

#[test]
fn no_message_is_lost_on_the_way_to_the_queue() {
    const COUNT: u64 = 500;
    // what the writer may have on the way: less than its history, as the protocol's window sees to
    const WINDOW: u64 = 100;
    let writer = || {
        let acked = Arc::new(AtomicU64::new(0));
        let mut node = Node::start("writer").unwrap();
        let publisher = node.publish::<msg::TransitionBatch>("transitions", everything()).unwrap();
        let heard = acked.clone();
        node.subscribe::<msg::TransitionAck>("ack", everything(), move |ack| {
            heard.fetch_max(ack.received, Ordering::Relaxed);
        })
        .unwrap();
        let running = node.spin().unwrap();
        wait_for("the reader", || (publisher.readers() == 1).then_some(()));
        for seq in 0..COUNT {
            wait_for("room in the window", || (seq < acked.load(Ordering::Relaxed) + WINDOW).then_some(()));
            publisher.send(&numbered(seq)).unwrap();
        }
        wait_for("the last ack", || (acked.load(Ordering::Relaxed) == COUNT).then_some(()));
        running.stop().unwrap();
    };
    beside("ros::queues::no_message_is_lost_on_the_way_to_the_queue", writer, || {
        let mut node = Node::start("reader").unwrap();
        let acks = node.publish::<msg::TransitionAck>("ack", everything()).unwrap();
        let (queue, batches) = mpsc::channel();
        node.subscribe::<msg::TransitionBatch>("transitions", everything(), move |batch| {
            queue.send((batch.seq, batch.fragments[0].observations[24_999])).unwrap();
        })
        .unwrap();
        let running = node.spin().unwrap();
        wait_for("the writer", || (acks.readers() == 1).then_some(()));
        let mut start = None;
        for seq in 0..COUNT {
            assert_eq!(batches.recv_timeout(PATIENCE).unwrap(), (seq, seq as f32));
            start.get_or_insert_with(Instant::now);
            acks.send(&msg::TransitionAck { received: seq + 1, ..Default::default() }).unwrap();
        }
        println!("{COUNT} batches of 100 kB in {:?}", start.unwrap().elapsed());
        running.stop().unwrap();
    });
}

#[test]
fn a_stalled_reader_of_the_newest_gets_the_newest() {
    alone("ros::queues::a_stalled_reader_of_the_newest_gets_the_newest", &[], || {
        for qos in [newest, sensor, latched] as [fn() -> Qos; 3] {
            let mut reader = Node::start("reader").unwrap();
            let (queue, heard) = mpsc::channel();
            let stall = Arc::new(Mutex::new(()));
            let gate = stall.clone();
            reader
                .subscribe::<msg::ArmStates>("states", qos(), move |states| {
                    queue.send(states.tick).unwrap();
                    drop(gate.lock().unwrap());
                })
                .unwrap();
            let mut writer = Node::start("writer").unwrap();
            let publisher = writer.publish::<msg::ArmStates>("states", qos()).unwrap();
            let (reader, writer) = (reader.spin().unwrap(), writer.spin().unwrap());
            wait_for("the reader", || (publisher.readers() == 1).then_some(()));

            let send = |tick| publisher.send(&msg::ArmStates { tick, ..Default::default() }).unwrap();
            let held = stall.lock().unwrap();
            send(0);
            assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), 0);
            // the spin thread stands in the closure now
            (1..=100).for_each(send);
            drop(held);
            let after: Vec<u64> = std::iter::from_fn(|| heard.recv_timeout(PATIENCE / 60).ok()).collect();
            assert_eq!(after.last(), Some(&100), "{after:?}");
            assert!(after.len() <= 2, "no backlog of old ones: {after:?}");
            writer.stop().unwrap();
            reader.stop().unwrap();
        }
    });
}
