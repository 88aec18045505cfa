//! The learner's side, step by step.

use super::make::{RUN, contract, fragment, origin, secs, stream};
use crate::data::{Accept, Admission, Batch, Refusal, Table, Verdict};
use uuid::Uuid;

const NOW: std::time::Duration = std::time::Duration::ZERO;

/// Batch `seq` of a stream whose batches have two steps.
fn batch(seq: u64, base: u64) -> Batch {
    let origin = origin(1, 0);
    Batch {
        run: origin.run,
        life: origin.life,
        stream: stream("r0", 1),
        seq,
        base,
        first_step: 2 * seq,
        phase: 0,
        contract_hash: origin.contract_hash,
        fragments: vec![fragment(0, 2 * seq, 2, 5, 1)],
        episodes: vec![],
    }
}

fn admission(life: u32) -> Admission {
    Admission::new(RUN, life, contract())
}

#[track_caller]
fn admit(admission: &mut Admission, batch: Batch) {
    let verdict = admission.receive(batch, NOW, Accept::Run);
    assert!(matches!(verdict, Verdict::Admitted(_)), "{verdict:?}");
}

/// A bad batch as its rollout sends it: again, until it has its verdict.
fn insist(admission: &mut Admission, batch: &Batch) -> Verdict {
    let first = admission.receive(batch.clone(), NOW, Accept::Run);
    assert!(matches!(first, Verdict::Suspect(_)), "{first:?}");
    admission.receive(batch.clone(), secs(1.0), Accept::Run)
}

/// Moved into the store of an update, and handed to one.
fn learn(admission: &mut Admission, seq: u64) {
    admission.consumed(&stream("r0", 1), seq);
    admission.learned(&stream("r0", 1), seq);
}

/// (received, mask, consumed, admitted, lost)
fn state(admission: &Admission) -> (u64, u64, u64, u64, u64) {
    let ack = admission.ack(&stream("r0", 1)).unwrap();
    (ack.received, ack.received_mask, ack.consumed, ack.admitted, ack.lost)
}

#[test]
fn batches_out_of_order_are_admitted_at_once_and_named_by_the_mask() {
    let mut admission = admission(1);
    admit(&mut admission, batch(2, 0));
    admit(&mut admission, batch(4, 0));
    assert_eq!(state(&admission), (0, 0b1010, 0, 4, 0));
    admit(&mut admission, batch(0, 0));
    assert_eq!(state(&admission), (1, 0b101, 0, 6, 0));
    admit(&mut admission, batch(1, 0));
    assert_eq!(state(&admission), (3, 0b1, 0, 8, 0));
}

#[test]
fn consumed_waits_for_the_lowest_batch_not_yet_moved() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    (0..3).for_each(|seq| admit(&mut admission, batch(seq, 0)));
    admission.consumed(&id, 1);
    admission.consumed(&id, 2);
    assert_eq!(state(&admission).2, 0);
    admission.consumed(&id, 0);
    assert_eq!(state(&admission).2, 3);
}

#[test]
fn a_repeated_batch_is_a_duplicate_whatever_its_verdict_was() {
    let mut admission = admission(1);
    admit(&mut admission, batch(1, 0));
    let mut bad = batch(0, 0);
    bad.fragments[0].steps[0].reward = f32::NAN;
    assert!(matches!(insist(&mut admission, &bad), Verdict::Refused(Refusal::NonFinite(_))));
    assert_eq!(admission.receive(bad, NOW, Accept::Run), Verdict::Duplicate);
    assert_eq!(admission.receive(batch(1, 0), NOW, Accept::Run), Verdict::Duplicate);
    let totals = admission.totals();
    assert_eq!((totals.admitted, totals.refused.nonfinite, totals.duplicates), (2, 2, 2));
}

#[test]
fn poison_advances_its_stream() {
    let mut admission = admission(1);
    let mut bad = batch(0, 0);
    bad.base = 9;
    assert!(matches!(insist(&mut admission, &bad), Verdict::Refused(Refusal::Malformed(_))));
    assert_eq!(state(&admission), (1, 0, 1, 0, 0));
    admit(&mut admission, batch(1, 0));
    assert_eq!(state(&admission).0, 2);
}

#[test]
fn another_contract_is_refused_and_another_run_is_neither_admitted_nor_acknowledged() {
    let mut admission = admission(1);
    let other = Batch { contract_hash: [1; 32], ..batch(0, 0) };
    assert!(matches!(insist(&mut admission, &other), Verdict::Refused(Refusal::Contract(_))));
    let foreign = Batch { run: Uuid::from_u128(8), stream: stream("r1", 1), ..batch(0, 0) };
    assert!(matches!(admission.receive(foreign, NOW, Accept::Run), Verdict::Ignored(_)));
    assert_eq!(admission.ack(&stream("r1", 1)), None);
    assert_eq!((admission.totals().refused.contract, admission.totals().ignored), (2, 1));
}

#[test]
fn data_out_of_time_is_refused_as_stale() {
    let mut admission = admission(2);
    let mut seq = 0;
    let mut stale = |life, phase, accept| {
        seq += 1;
        let batch = Batch { life, phase, ..batch(seq - 1, 0) };
        matches!(admission.receive(batch, NOW, accept), Verdict::Refused(Refusal::Stale(_)))
    };
    assert!(stale(1, 0, Accept::Life));
    assert!(!stale(2, 0, Accept::Life));
    assert!(!stale(1, 0, Accept::Run));
    assert!(stale(1, 4, Accept::Phase(4)));
    assert!(stale(2, 3, Accept::Phase(4)));
    assert!(stale(2, 0, Accept::Phase(0)));
    assert!(!stale(2, 4, Accept::Phase(4)));
    assert_eq!(admission.totals().refused.stale, 8);
}

#[test]
fn what_no_published_version_decided_is_refused() {
    let mut admission = admission(2);
    let mut decided = |seq, life, version| {
        let mut batch = Batch { life, ..batch(seq, 0) };
        batch.fragments[0].steps[1].version = version;
        admission.published(4);
        admission.receive(batch, NOW, Accept::Run)
    };
    assert!(matches!(decided(0, 2, 4), Verdict::Admitted(_)));
    let refused = decided(1, 2, 5);
    let Verdict::Refused(Refusal::Stale(sentence)) = &refused else { panic!("{refused:?}") };
    assert!(sentence.contains("version 5") && sentence.contains("newest is 4"), "{sentence}");
    assert!(matches!(decided(2, 1, 9), Verdict::Admitted(_)), "a former life may have gone further");
}

#[test]
fn a_step_of_an_older_version_than_its_phases_is_stale() {
    let mut admission = admission(1);
    admission.published(4);
    let mut decided = |seq, first, second| {
        let mut batch = Batch { phase: 2, ..batch(seq, 0) };
        (batch.fragments[0].steps[0].version, batch.fragments[0].steps[1].version) = (first, second);
        admission.receive(batch, NOW, Accept::Phase(2))
    };
    assert!(matches!(decided(0, 4, 4), Verdict::Admitted(_)));
    let refused = decided(1, 3, 4);
    let Verdict::Refused(Refusal::Stale(sentence)) = &refused else { panic!("{refused:?}") };
    assert!(sentence.ends_with("was decided by version 3; phase 2 is of version 4"), "{sentence}");
    let statistics = Batch { phase: 2, fragments: vec![], ..batch(2, 0) };
    assert!(!matches!(admission.receive(statistics, NOW, Accept::Phase(2)), Verdict::Refused(Refusal::Stale(_))));
    assert_eq!(admission.totals().refused.stale, 2);
}

#[test]
fn a_checkpoint_is_acknowledged_to_those_who_have_something_new_in_it() {
    let mut admission = admission(1);
    let other = stream("r1", 1);
    admit(&mut admission, batch(0, 0));
    admit(&mut admission, Batch { stream: other.clone(), ..batch(0, 0) });
    learn(&mut admission, 0);
    admission.acks_due(NOW);
    admission.durable(&admission.table());
    let told = |admission: &mut Admission| {
        let acks = admission.acks_due(NOW);
        acks.into_iter().map(|ack| (ack.stream, ack.durable)).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut admission), [(stream("r0", 1), 1)]);
    admission.durable(&admission.table());
    assert_eq!(told(&mut admission), [], "the same checkpoint once more");
    admission.consumed(&other, 0);
    admission.learned(&other, 0);
    admission.acks_due(NOW);
    admission.durable(&admission.table());
    assert_eq!(told(&mut admission), [(other, 1)]);
}

#[test]
fn a_stream_starts_at_its_base_and_a_resumed_run_counts_what_lies_below() {
    let mut first = admission(1);
    admit(&mut first, batch(7, 5));
    assert_eq!(state(&first), (5, 0b10, 5, 2, 0));
    admit(&mut first, batch(5, 5));
    let mut resumed = admission(2);
    let id = stream("r0", 1);
    admit(&mut resumed, batch(5, 5));
    resumed.consumed(&id, 5);
    assert_eq!(state(&resumed), (6, 0, 6, 2, 10));
}

#[test]
fn a_raised_base_counts_what_will_never_come_and_a_straggler_is_not_admitted_any_more() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    admit(&mut admission, batch(0, 0));
    admit(&mut admission, batch(2, 0));
    admission.consumed(&id, 0);
    admission.consumed(&id, 2);
    admit(&mut admission, batch(6, 5));
    assert_eq!(state(&admission).0, 5);
    admit(&mut admission, batch(5, 5));
    admission.consumed(&id, 5);
    admission.consumed(&id, 6);
    // Batches 1, 3 and 4 are lost: six steps.
    assert_eq!(state(&admission), (7, 0, 7, 8, 6));
    assert_eq!(admission.receive(batch(3, 0), NOW, Accept::Run), Verdict::Duplicate);
    assert_eq!(state(&admission), (7, 0, 7, 8, 6));
}

#[test]
fn a_gap_in_the_steps_counts_what_the_rollout_dropped() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    admit(&mut admission, batch(0, 0));
    admit(&mut admission, Batch { first_step: 12, ..batch(1, 0) });
    admission.consumed(&id, 0);
    admission.consumed(&id, 1);
    assert_eq!(state(&admission).4, 10);
}

#[test]
fn a_malformed_batch_cannot_lie_about_its_place() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    let mut bad = Batch { first_step: 1 << 60, ..batch(0, 0) };
    bad.fragments[0].steps[0].choice.option = 77;
    insist(&mut admission, &bad);
    admit(&mut admission, batch(1, 0));
    admission.consumed(&id, 1);
    assert_eq!(state(&admission), (2, 0, 2, 2, 0));
}

#[test]
fn what_an_ack_could_not_name_is_not_taken() {
    let mut admission = admission(1);
    admit(&mut admission, batch(0, 0));
    admit(&mut admission, batch(65, 0));
    assert!(matches!(admission.receive(batch(66, 0), NOW, Accept::Run), Verdict::Ignored(_)));
    assert_eq!(state(&admission), (1, 1 << 63, 0, 4, 0));
}

#[test]
fn the_table_forgets_what_was_not_learned_and_keeps_what_was_learned_ahead() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    [0, 1, 3].into_iter().for_each(|seq| admit(&mut admission, batch(seq, 0)));
    [0, 3].into_iter().for_each(|seq| learn(&mut admission, seq));
    admission.consumed(&id, 1); // it waits for its update
    assert_eq!(admission.ack(&id).unwrap().consumed, 2);
    let table = admission.table();
    let json = serde_json::to_string(&table).unwrap();
    let table: Table = serde_json::from_str(&json).unwrap();
    let mut resumed = Admission::restore(table, RUN, 2, contract());
    let ack = resumed.ack(&id).unwrap();
    assert_eq!((ack.life, ack.received, ack.received_mask), (2, 1, 0b10));
    assert_eq!((ack.consumed, ack.durable, ack.admitted), (1, 1, 4));
    admit(&mut resumed, batch(1, 1));
    assert_eq!(resumed.receive(batch(3, 1), NOW, Accept::Run), Verdict::Duplicate);
}

#[test]
fn durable_follows_the_checkpoint_that_was_written() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    admit(&mut admission, batch(0, 0));
    learn(&mut admission, 0);
    let table = admission.table();
    admit(&mut admission, batch(1, 0));
    learn(&mut admission, 1);
    assert_eq!(admission.ack(&id).unwrap().durable, 0);
    admission.durable(&table);
    assert_eq!(admission.ack(&id).unwrap().durable, 1);
}

#[test]
fn acks_go_out_after_each_event_and_at_5_hz_while_the_stream_lives() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    let due = |admission: &mut Admission, at: f64| admission.acks_due(secs(at)).len();
    assert_eq!(due(&mut admission, 0.0), 0);
    admit(&mut admission, batch(0, 0));
    assert_eq!(due(&mut admission, 0.0), 1);
    assert_eq!(due(&mut admission, 0.1), 0);
    admission.receive(batch(0, 0), secs(0.1), Accept::Run);
    assert_eq!(due(&mut admission, 0.1), 1, "a duplicate is answered");
    admission.consumed(&id, 0);
    assert_eq!(due(&mut admission, 0.15), 1);
    assert_eq!(due(&mut admission, 0.3), 0);
    assert_eq!(due(&mut admission, 0.35), 1);
    assert_eq!(due(&mut admission, 9.0), 1);
    assert_eq!(due(&mut admission, 11.0), 0, "nobody is there any more");
    admission.heard(&id, 0, secs(11.0));
    assert_eq!(due(&mut admission, 11.0), 1);
}

#[test]
fn an_older_life_stops_when_it_hears_its_own_run_with_a_greater_one() {
    let admission = admission(2);
    assert!(admission.require_newest(RUN, 2).is_ok());
    assert!(admission.require_newest(Uuid::from_u128(8), 3).is_ok());
    let error = admission.require_newest(RUN, 3).unwrap_err().to_string();
    assert!(error.contains("life 3; this one is life 2 and stops"), "{error}");
}

#[test]
fn a_forged_batch_does_not_use_up_the_number_of_the_real_one() {
    let mut admission = admission(1);
    admit(&mut admission, batch(0, 0));
    for spoil in [
        (|bad: &mut Batch| bad.fragments[0].steps[0].reward = f32::NAN) as fn(&mut Batch),
        |bad| bad.fragments[0].observations.truncate(1),
        |bad| bad.fragments.clear(),
        |bad| bad.contract_hash = [1; 32],
        |bad| bad.base = 60,
    ] {
        let mut forged = batch(1, 0);
        spoil(&mut forged);
        // However often it comes at once, or for hours while the rollout says that it has nothing in flight.
        for at in [0.0, 0.1, 0.2, 3600.0, 7200.0] {
            let verdict = admission.receive(forged.clone(), secs(at), Accept::Run);
            assert!(matches!(verdict, Verdict::Suspect(_)), "{verdict:?}");
            if 0.2 <= at {
                admission.heard(&stream("r0", 1), 0, secs(at));
            }
        }
        assert_eq!(state(&admission), (1, 0, 0, 2, 0));
    }
    admit(&mut admission, batch(1, 0));
    assert_eq!((admission.totals().refused.total(), admission.totals().suspect), (0, 25));
}

#[test]
fn a_forged_batch_of_an_unknown_stream_makes_no_stream() {
    let mut admission = admission(1);
    let forged = Batch { fragments: vec![], base: 3, ..batch(5, 3) };
    assert!(matches!(admission.receive(forged, NOW, Accept::Run), Verdict::Suspect(_)));
    assert_eq!(admission.ack(&stream("r0", 1)), None);
}

#[test]
fn the_transitions_of_a_batch_that_cannot_be_read_are_counted_by_the_next_one() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    let unreadable = Batch { fragments: vec![], ..batch(0, 0) };
    assert!(matches!(insist(&mut admission, &unreadable), Verdict::Refused(Refusal::Malformed(_))));
    admit(&mut admission, batch(1, 0));
    admission.consumed(&id, 1);
    let totals = admission.totals();
    assert_eq!((totals.refused.malformed, totals.lost, totals.admitted), (2, 0, 2));
}

#[test]
fn what_a_killed_learner_had_is_lost_also_for_streams_that_ended_before() {
    let mut first = admission(1);
    let saved = first.table();
    for (rollout, batches) in [("r0", 3), ("r1", 2)] {
        for seq in 0..batches {
            admit(&mut first, Batch { stream: stream(rollout, 1), ..batch(seq, 0) });
            first.consumed(&stream(rollout, 1), seq);
        }
    }
    let mut table = saved;
    table.presume(first.marks());
    let mut second = Admission::restore(table.clone(), RUN, 2, contract());
    assert_eq!(second.totals().lost, 10, "six steps of r0 and four of r1, which no checkpoint has");
    // r1 ended; r0 goes on with batch 3, and its six steps are still six.
    let next = Batch { life: 2, ..batch(3, 3) };
    admit(&mut second, next);
    learn(&mut second, 3);
    assert_eq!((second.totals().lost, second.totals().admitted), (10, 2));
    // Where it can come again, as with replay, it is not lost.
    let mut third = Admission::restore(table, RUN, 2, contract());
    (0..3).for_each(|seq| admit(&mut third, batch(seq, 0)));
    (0..3).for_each(|seq| third.consumed(&stream("r0", 1), seq));
    assert_eq!((third.totals().lost, third.totals().admitted), (4, 6));
    // A third life knows it from the second's checkpoint.
    let fourth = Admission::restore(second.table(), RUN, 3, contract());
    assert_eq!(fourth.totals().lost, 10);
}

#[test]
fn marks_tell_each_position_once() {
    let (mut admission, id) = (admission(1), stream("r0", 1));
    admit(&mut admission, batch(0, 0));
    admit(&mut admission, batch(1, 0));
    admission.marks();
    admission.consumed(&id, 1);
    assert_eq!(admission.marks(), [], "the window has not slid");
    admission.consumed(&id, 0);
    assert_eq!(admission.marks(), [(id, 4)]);
    assert_eq!(admission.marks(), []);
}
