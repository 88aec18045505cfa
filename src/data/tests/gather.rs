//! The store of the update being gathered.

use super::make::{fragment, origin, stream};
use crate::config::UpdateMode;
use crate::data::{Batch, Fragment, Gather, Gathered, StreamId, join};
use proptest::prelude::*;

fn batch(rollout: &str, seq: u64, fragments: Vec<Fragment>) -> Batch {
    let origin = origin(1, 1);
    Batch {
        run: origin.run,
        life: 1,
        stream: stream(rollout, 1),
        seq,
        base: 0,
        first_step: 0,
        phase: 1,
        contract_hash: origin.contract_hash,
        fragments,
        episodes: vec![],
    }
}

fn shapes(rows: &[Gathered]) -> Vec<(&str, u32, u64, usize)> {
    let mut shapes = Vec::new();
    for Gathered { stream, fragment, .. } in rows {
        shapes.push((stream.rollout.as_str(), fragment.env, fragment.first, fragment.steps.len()));
    }
    shapes
}

proptest! {
    #[test]
    fn the_order_of_arrival_changes_nothing(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let put = |order: &[usize]| {
            let mut gather = Gather::new(UpdateMode::Sync, 1, 0);
            for &n in order {
                let (rollout, part) = (["a", "b"][n % 2], n as u64 / 2);
                let rows = (0..2).map(|env| fragment(env, part * 3, 3, 7, 4)).collect();
                gather.put(batch(rollout, part, rows));
            }
            prop_assert_eq!(gather.moved().len(), 12);
            Ok(join(gather.take(4).unwrap()))
        };
        let rows = put(&order)?;
        prop_assert_eq!(shapes(&rows), [("a", 0, 0, 18), ("a", 1, 0, 18), ("b", 0, 0, 18), ("b", 1, 0, 18)]);
        prop_assert_eq!(&rows[3].fragment, &fragment(1, 0, 18, 7, 4));
        prop_assert_eq!(rows, put(&(0..12).collect::<Vec<_>>())?);
    }
}

#[test]
fn a_stream_out_of_its_phase_is_dropped_whole() {
    let mut gather = Gather::new(UpdateMode::Sync, 1, 0);
    gather.put(batch("a", 0, vec![fragment(0, 0, 3, 7, 1), fragment(1, 0, 2, 7, 1)]));
    gather.put(batch("b", 0, vec![fragment(0, 0, 4, 7, 1)]));
    gather.put(batch("a", 1, vec![fragment(0, 3, 3, 7, 1)]));
    assert_eq!(gather.drop_stream(&stream("a", 1)), 8);
    assert_eq!(gather.stored(), 4);
    assert_eq!(shapes(&gather.take(1).unwrap()), [("b", 0, 0, 4)]);
    assert_eq!((gather.counters().gathered, gather.counters().taken, gather.counters().dropped_out), (12, 4, 8));
}

#[test]
fn a_synchronous_update_is_of_one_version_whatever_lag_is_allowed() {
    let mut gather = Gather::new(UpdateMode::Sync, 1, 8);
    gather.put(batch("a", 0, vec![fragment(0, 0, 3, 7, 4)]));
    gather.put(batch("b", 0, vec![fragment(0, 0, 3, 7, 3)]));
    assert_eq!(shapes(&gather.take(4).unwrap()), [("a", 0, 0, 3)]);
    assert_eq!(gather.counters().dropped_lag, 3);
}

#[test]
fn an_asynchronous_store_holds_one_update_and_leaves_the_rest_unconsumed() {
    let mut gather = Gather::new(UpdateMode::Async, 10, 8);
    let seqs = |gather: &mut Gather| gather.moved().iter().map(|(_, seq)| *seq).collect::<Vec<_>>();
    for seq in 0..6 {
        gather.put(batch("a", seq, vec![fragment(0, seq * 4, 4, 7, 1)]));
    }
    assert_eq!(seqs(&mut gather), [0, 1, 2]);
    assert_eq!((gather.stored(), gather.waiting()), (12, 3));
    let left = |gather: &mut Gather| gather.left().iter().map(|(_, seq)| *seq).collect::<Vec<_>>();
    assert_eq!(left(&mut gather), [0_u64; 0]);
    assert_eq!(shapes(&join(gather.take(1).unwrap())), [("a", 0, 0, 12)], "first in, first out");
    assert_eq!(seqs(&mut gather), [3, 4, 5]);
    assert_eq!(left(&mut gather), [0, 1, 2], "what waits for the next update is not learned");
    assert_eq!((gather.stored(), gather.waiting()), (12, 0));
    assert_eq!(shapes(&join(gather.take(1).unwrap())), [("a", 0, 12, 12)]);
    assert_eq!(gather.take(1), None);
}

#[test]
fn an_update_takes_whole_batches() {
    let mut gather = Gather::new(UpdateMode::Async, 4, 8);
    gather.put(batch("b", 0, vec![]));
    gather.put(batch("a", 0, vec![fragment(0, 0, 4, 7, 1), fragment(1, 0, 3, 7, 1)]));
    gather.put(batch("a", 1, vec![fragment(0, 4, 4, 7, 1), fragment(1, 3, 3, 7, 1)]));
    assert_eq!(gather.left(), [(stream("b", 1), 0)], "there is nothing to learn in it");
    assert_eq!(shapes(&gather.take(1).unwrap()), [("a", 0, 0, 4), ("a", 1, 0, 3)], "4 steps would do");
    assert_eq!(gather.left(), [(stream("a", 1), 0)]);
    assert_eq!(gather.drop_stream(&stream("a", 1)), 7);
    assert_eq!(gather.left(), [(stream("a", 1), 1)]);
}

#[test]
fn at_the_end_all_is_handed_out_what_waits_included() {
    let mut gather = Gather::new(UpdateMode::Async, 4, 8);
    for seq in 0..4 {
        gather.put(batch("a", seq, vec![fragment(0, seq * 3, 3, 7, 1)]));
    }
    assert_eq!((gather.moved().len(), gather.waiting()), (2, 2));
    assert_eq!(shapes(&join(gather.drain())), [("a", 0, 0, 12)]);
    let seqs = |named: Vec<(StreamId, u64)>| named.into_iter().map(|(_, seq)| seq).collect::<Vec<_>>();
    assert_eq!((seqs(gather.moved()), seqs(gather.left())), (vec![2, 3], vec![0, 1, 2, 3]));
    assert_eq!((gather.stored(), gather.waiting(), gather.counters().taken), (0, 0, 12));
}

#[test]
fn a_batch_larger_than_an_update_is_taken_all_the_same() {
    let mut gather = Gather::new(UpdateMode::Async, 2, 8);
    gather.put(batch("a", 0, vec![fragment(0, 0, 30, 7, 1)]));
    assert_eq!(gather.moved().len(), 1);
    assert_eq!(gather.take(1).unwrap()[0].fragment.steps.len(), 30);
}

#[test]
fn data_over_the_lag_is_dropped_when_the_update_begins() {
    let mut gather = Gather::new(UpdateMode::Async, 6, 2);
    let mut mixed = fragment(0, 0, 3, 7, 3);
    mixed.steps[0].version = 1;
    gather.put(batch("a", 0, vec![mixed]));
    gather.put(batch("a", 1, vec![fragment(0, 3, 3, 7, 2)]));
    gather.put(batch("a", 2, vec![fragment(0, 6, 3, 7, 4)]));
    assert_eq!(gather.take(4).map(|rows| shapes(&rows).len()), Some(2), "lag 2 is within the limit");
    assert_eq!((gather.counters().dropped_lag, gather.counters().taken), (3, 6));
    gather.put(batch("a", 3, vec![fragment(0, 9, 6, 7, 4)]));
    assert_eq!(gather.take(7), None, "what is left is no update");
    assert_eq!((gather.counters().dropped_lag, gather.stored()), (9, 0));
}

#[test]
fn what_waited_outside_is_measured_too() {
    let mut gather = Gather::new(UpdateMode::Async, 4, 0);
    for seq in 0..4 {
        gather.put(batch("a", seq, vec![fragment(0, seq * 4, 4, 7, 1 + seq / 3)]));
    }
    assert_eq!(gather.waiting(), 3);
    assert_eq!(shapes(&gather.take(2).unwrap()), [("a", 0, 12, 4)]);
    assert_eq!(gather.counters().dropped_lag, 12);
    assert_eq!(gather.moved().len(), 4);
}

#[test]
fn what_moves_in_for_what_was_dropped_is_consumed_though_there_is_no_update_yet() {
    let mut gather = Gather::new(UpdateMode::Async, 4, 0);
    for seq in 0..3 {
        gather.put(batch("a", seq, vec![fragment(0, seq * 3, 3, 7, 1 + seq / 2)]));
    }
    assert_eq!((gather.moved().len(), gather.waiting()), (2, 1));
    assert_eq!(gather.take(2), None);
    assert_eq!((gather.moved().len(), gather.stored()), (1, 3));
}

#[test]
fn rows_are_joined_only_where_nothing_is_missing_between_them() {
    let row = |rollout: &str, fragment| Gathered { stream: stream(rollout, 1), seq: 0, fragment };
    let head = || row("a", fragment(0, 0, 3, 7, 1));
    let joined = |tail: Gathered| join(vec![head(), tail]).len();
    assert_eq!(joined(row("a", fragment(0, 3, 2, 7, 1))), 1);
    assert_eq!(joined(row("b", fragment(0, 3, 2, 7, 1))), 2, "another stream");
    assert_eq!(joined(row("a", fragment(1, 3, 2, 7, 1))), 2, "another environment");
    assert_eq!(joined(row("a", fragment(0, 4, 2, 7, 1))), 2, "a step is missing");
    let mut held = fragment(0, 3, 2, 7, 1);
    held.observations[1] = 99.0;
    assert_eq!(joined(row("a", held)), 2, "the arm moved between them");
    let mut restarted = fragment(0, 3, 2, 7, 1);
    restarted.steps.iter_mut().for_each(|step| step.episode = 5);
    assert_eq!(joined(row("a", restarted)), 2, "another episode without an end");
}

#[test]
fn after_an_end_the_next_row_knows_where_its_episode_begins() {
    let mut head = fragment(0, 0, 7, 7, 1);
    let copied = head.finals[0].observation.clone();
    head.observations.truncate(14);
    head.observations.extend(&copied);
    let tail = fragment(0, 7, 2, 7, 1);
    let row = |fragment| Gathered { stream: stream("a", 1), seq: 0, fragment };
    let rows = join(vec![row(head), row(tail)]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].fragment, fragment(0, 0, 9, 7, 1));
    assert_eq!(rows[0].fragment.next_observation(6), [0.0, -6.0]);
}
