//! The rollout's side, step by step.

use super::make::{RUN, fragment, origin, secs, stream};
use crate::data::{Ack, Batch, EpisodeStats, Hold, MAX_BATCH_BYTES, Origin, Outbox, Refused};
use uuid::Uuid;

fn outbox(hold: Hold) -> Outbox {
    let mut outbox = Outbox::new(stream("r0", 1), 3, hold);
    outbox.adopt(RUN, 1);
    outbox
}

/// Pushes `count` batches of two steps each.
fn push(outbox: &mut Outbox, count: u64) {
    for _ in 0..count {
        let first = outbox.counters().recorded;
        outbox.push(vec![fragment(0, first, 2, 5, 1)], vec![], origin(1, 0));
    }
}

fn ack(life: u32, received: u64, received_mask: u64, consumed: u64, durable: u64) -> Ack {
    Ack {
        run: RUN,
        life,
        stream: stream("r0", 1),
        received,
        received_mask,
        consumed,
        durable,
        admitted: 0,
        lost: 0,
        refused: Refused::default(),
    }
}

fn due(outbox: &mut Outbox, at_secs: f64) -> Vec<u64> {
    outbox.due(secs(at_secs)).iter().map(|batch| batch.seq).collect()
}

#[test]
fn batches_are_numbered_and_say_what_lies_before_them() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 3);
    let places = |batch: &Batch| (batch.seq, batch.base, batch.first_step);
    assert_eq!(outbox.due(secs(0.0)).iter().map(places).collect::<Vec<_>>(), [(0, 0, 0), (1, 0, 2), (2, 0, 4)]);
}

#[test]
fn the_window_slides_on_consumed_and_not_on_received() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 5);
    assert_eq!(due(&mut outbox, 0.0), [0, 1, 2]);
    assert_eq!((outbox.in_flight(), outbox.queued(), outbox.full()), (3, 2, true));
    outbox.acknowledge(&ack(1, 3, 0, 0, 0));
    assert_eq!(due(&mut outbox, 0.1), [0; 0]);
    outbox.acknowledge(&ack(1, 3, 0, 1, 0));
    assert_eq!(due(&mut outbox, 0.2), [3]);
    outbox.acknowledge(&ack(1, 4, 0, 3, 0));
    assert_eq!(due(&mut outbox, 0.3), [4]);
    assert!(!outbox.full());
}

#[test]
fn silence_is_answered_after_1_2_and_then_every_4_seconds() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 1);
    let sent: Vec<f64> = (0..200).map(|n| f64::from(n) * 0.1).filter(|&at| !due(&mut outbox, at).is_empty()).collect();
    assert_eq!(sent, [0.0, 1.0, 3.0, 7.0, 11.0, 15.0, 19.0].map(|at: f64| (at * 10.0).round() * 0.1));
    assert_eq!((outbox.counters().sent, outbox.counters().resent), (1, 6));
}

#[test]
fn what_a_later_batch_overtook_goes_out_at_once_and_only_once() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 3);
    assert_eq!(due(&mut outbox, 0.0), [0, 1, 2]);
    outbox.acknowledge(&ack(1, 0, 0b10, 0, 0));
    assert_eq!(due(&mut outbox, 0.1), [0, 1]);
    outbox.acknowledge(&ack(1, 0, 0b10, 0, 0));
    assert_eq!(due(&mut outbox, 0.2), [0; 0]);
}

#[test]
fn a_batch_sent_at_once_waits_no_longer_for_it() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 3);
    assert_eq!(due(&mut outbox, 0.0), [0, 1, 2]);
    outbox.acknowledge(&ack(1, 0, 0b11, 0, 0));
    assert_eq!(due(&mut outbox, 0.1), [0]);
    assert_eq!((due(&mut outbox, 1.0), due(&mut outbox, 1.1)), (vec![], vec![0]));
    assert_eq!((due(&mut outbox, 3.0), due(&mut outbox, 3.1)), (vec![], vec![0]));
}

#[test]
fn a_received_batch_is_never_sent_again_within_a_life() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 2);
    assert_eq!(due(&mut outbox, 0.0), [0, 1]);
    outbox.acknowledge(&ack(1, 1, 0, 0, 0));
    assert_eq!(due(&mut outbox, 100.0), [1]);
}

#[test]
fn acks_of_another_life_run_or_stream_change_nothing() {
    let mut outbox = outbox(Hold::Consumed);
    outbox.adopt(RUN, 3);
    push(&mut outbox, 1);
    due(&mut outbox, 0.0);
    outbox.acknowledge(&ack(2, 1, 0, 1, 1));
    outbox.acknowledge(&ack(4, 1, 0, 1, 1));
    outbox.acknowledge(&Ack { run: Uuid::from_u128(8), ..ack(3, 1, 0, 1, 1) });
    outbox.acknowledge(&Ack { stream: stream("r0", 2), ..ack(3, 1, 0, 1, 1) });
    assert_eq!((outbox.held(), outbox.in_flight()), (1, 1));
    outbox.acknowledge(&ack(3, 1, 0, 1, 1));
    assert_eq!((outbox.held(), outbox.counters().freed), (0, 2));
}

#[test]
fn a_new_life_gets_all_that_is_held_and_hears_where_it_begins() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 3);
    due(&mut outbox, 0.0);
    outbox.acknowledge(&ack(1, 3, 0, 1, 0));
    assert_eq!(due(&mut outbox, 0.1), [0; 0]);
    outbox.adopt(RUN, 2);
    let places = |batch: &Batch| (batch.seq, batch.base, batch.life);
    assert_eq!(outbox.due(secs(0.2)).iter().map(places).collect::<Vec<_>>(), [(1, 1, 1), (2, 1, 1)]);
    assert_eq!((outbox.counters().sent, outbox.counters().resent), (3, 2));
    outbox.adopt(RUN, 1);
    assert_eq!(due(&mut outbox, 0.3), [0; 0], "an older life changes nothing");
}

#[test]
fn what_the_new_life_has_already_is_not_sent_again() {
    let mut outbox = outbox(Hold::Durable { capacity: 9 });
    push(&mut outbox, 3);
    due(&mut outbox, 0.0);
    outbox.adopt(RUN, 2);
    outbox.acknowledge(&ack(2, 2, 0, 2, 2));
    assert_eq!(due(&mut outbox, 0.1), [2]);
}

#[test]
fn what_was_consumed_but_not_durable_fills_the_window_of_the_new_life_again() {
    let mut outbox = outbox(Hold::Durable { capacity: 9 });
    push(&mut outbox, 3);
    due(&mut outbox, 0.0);
    outbox.acknowledge(&ack(1, 3, 0, 3, 0));
    push(&mut outbox, 2);
    assert_eq!(due(&mut outbox, 0.1), [3, 4]);
    outbox.adopt(RUN, 2);
    assert_eq!(due(&mut outbox, 0.2), [0, 1, 2]);
    assert_eq!((outbox.in_flight(), outbox.full()), (3, true));
}

#[test]
fn another_run_voids_what_is_held_and_what_comes_late() {
    let mut outbox = outbox(Hold::Consumed);
    push(&mut outbox, 2);
    due(&mut outbox, 0.0);
    let other = Uuid::from_u128(8);
    outbox.adopt(other, 5);
    push(&mut outbox, 1);
    assert_eq!((outbox.held(), outbox.counters().voided), (0, 6));
    outbox.push(vec![fragment(0, 6, 2, 5, 1)], vec![], Origin { run: other, ..origin(5, 0) });
    let batch = &outbox.due(secs(0.1))[0];
    assert_eq!((batch.seq, batch.base, batch.first_step), (2, 2, 6));
}

#[test]
fn hardware_holds_until_durable_and_drops_what_memory_cannot_hold() {
    let mut outbox = outbox(Hold::Durable { capacity: 3 });
    push(&mut outbox, 5);
    assert_eq!((outbox.held(), outbox.counters().overflowed), (3, 4));
    due(&mut outbox, 0.0);
    outbox.acknowledge(&ack(1, 3, 0, 3, 0));
    assert_eq!((outbox.held(), outbox.in_flight(), outbox.full()), (3, 0, false));
    outbox.acknowledge(&ack(1, 3, 0, 3, 2));
    assert_eq!((outbox.held(), outbox.counters().freed), (1, 4));
    push(&mut outbox, 1);
    let batch = &outbox.due(secs(0.1))[0];
    assert_eq!((batch.seq, batch.first_step), (3, 10), "the gap in the steps tells what was dropped");
}

#[test]
fn what_is_too_large_for_one_batch_travels_in_several_and_stays_whole() {
    let mut outbox = outbox(Hold::Consumed);
    let rows: Vec<_> = (0..4).map(|env| fragment(env, 0, 3000, 7, 1)).collect();
    let stats = |env| EpisodeStats {
        stamp_secs: 0.0,
        rollout: "r0".into(),
        env,
        episode: 0,
        version: 1,
        episode_return: 0.0,
        length: 7,
        end: crate::data::End::Truncated,
        final_error: 0.0,
        success: false,
        success_strict: false,
        first_success_step: 7,
        option_steps: vec![],
        option_runs: vec![],
        forced_ends: 0,
    };
    outbox.push(rows.clone(), (0..4).map(stats).collect(), origin(1, 0));
    let mut batches = Vec::new();
    while outbox.held() != 0 {
        let sent = outbox.due(secs(0.0));
        let next = sent.last().unwrap().seq + 1;
        batches.extend(sent);
        outbox.acknowledge(&ack(1, next, 0, next, 0));
    }
    // 3000 steps of 80 bytes, 3001 observations and 428 last ones of two floats: 269 kB a row, so each is cut in two.
    assert_eq!(batches.len(), 8);
    let bytes = |batch: &Batch| -> usize {
        batch.fragments.iter().map(|row| row.observations.len() * 4 + row.steps.len() * 80).sum()
    };
    assert!(batches.iter().all(|batch| bytes(batch) <= MAX_BATCH_BYTES));
    let envs = |batch: &Batch| batch.episodes.iter().map(|stats| stats.env).collect::<Vec<_>>();
    let episodes: Vec<_> = batches.iter().map(envs).collect();
    let expected: [Vec<u32>; 8] = [vec![], vec![0], vec![], vec![1], vec![], vec![2], vec![], vec![3]];
    assert_eq!(episodes, expected);
    let id = stream("r0", 1);
    let gathered = |fragment| crate::data::Gathered { stream: id.clone(), seq: 0, fragment };
    let pieces = batches.into_iter().flat_map(|batch| batch.fragments).map(gathered).collect();
    let whole: Vec<_> = crate::data::join(pieces).into_iter().map(|row| row.fragment).collect();
    assert_eq!(whole, rows);
}
