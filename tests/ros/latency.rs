//! A message wakes the spin thread at once.

use super::harness::{PATIENCE, beside, wait_for};
use handoff::ros::{Node, msg, newest};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn a_round_trip_takes_far_less_than_a_control_tick() {
    let echo = || {
        let mut node = Node::start("echo").unwrap();
        let back = node.publish::<msg::ArmCommands>("commands", newest()).unwrap();
        node.subscribe::<msg::ArmStates>("states", newest(), move |states| {
            back.send(&msg::ArmCommands { tick: states.tick, ..Default::default() }).unwrap();
        })
        .unwrap();
        let _running = node.spin().unwrap();
        loop {
            std::thread::park();
        }
    };
    beside("ros::latency::a_round_trip_takes_far_less_than_a_control_tick", echo, || {
        let mut node = Node::start("sim").unwrap();
        let out = node.publish::<msg::ArmStates>("states", newest()).unwrap();
        let (queue, commands) = mpsc::channel();
        node.subscribe::<msg::ArmCommands>("commands", newest(), move |command| queue.send(command.tick).unwrap())
            .unwrap();
        let running = node.spin().unwrap();
        let answer = |tick, patience| {
            out.send(&msg::ArmStates { tick, position: vec![0.5; 16 * 9], ..Default::default() }).unwrap();
            commands.recv_timeout(patience).ok()
        };
        wait_for("both directions", || answer(0, Duration::from_millis(50)));
        while commands.recv_timeout(Duration::from_millis(200)).is_ok() {}
        let mut times: Vec<Duration> = (1..=1000)
            .map(|tick| {
                let start = Instant::now();
                assert_eq!(answer(tick, PATIENCE), Some(tick));
                start.elapsed()
            })
            .collect();
        times.sort();
        let (median, tail) = (times[500], times[990]);
        println!("round trip of 16 arms: p50 {median:?}, p99 {tail:?}");
        // a spin thread that slept through messages would need its longest wait, 20 ms, each way
        assert!(median < Duration::from_millis(5), "p50 {median:?}, p99 {tail:?}");
        running.stop().unwrap();
    });
}
