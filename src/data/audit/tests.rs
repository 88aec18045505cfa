//! The check refuses each way in which notes can disagree.

use super::*;

fn stream() -> StreamId {
    StreamId { rollout: "r0".into(), incarnation: 1 }
}

fn span(first: u64, steps: u64) -> Span {
    Span { env: 0, first, steps, episode: 0, t: first as u32 }
}

fn recorded(steps: std::ops::Range<u64>) -> Note {
    let step = |index| Step { env: 0, index, episode: 0, t: index as u32 };
    Note::Recorded { stream: stream(), steps: steps.map(step).collect() }
}

fn numbered(seq: u64, first: u64, steps: u64) -> Note {
    Note::Numbered { stream: stream(), seq, first_step: first, rows: vec![span(first, steps)] }
}

fn stored(seq: u64, first: u64, steps: u64) -> Note {
    Note::Stored { stream: stream(), seq, first_step: first, rows: vec![span(first, steps)] }
}

fn freed(below: u64) -> Note {
    Note::Freed { stream: stream(), below }
}

fn begun(life: u32, taken: Option<(u64, u64, u64)>) -> Note {
    let taken =
        taken.map(|(below, position, presumed)| Taken { stream: stream(), below, others: vec![], position, presumed });
    Note::Begun { life, streams: taken.into_iter().collect() }
}

fn refused(seq: u64) -> Note {
    Note::Refused { stream: stream(), seq, reason: "stale".into() }
}

fn lost(from: u64, to: u64) -> Note {
    Note::Lost { stream: stream(), from, to }
}

fn learned(first: u64, steps: u64) -> Note {
    Note::Learned { stream: stream(), rows: vec![span(first, steps)] }
}

/// Three batches of two steps, and a step in the open fragment.
fn rollout() -> Vec<Note> {
    vec![recorded(0..3), numbered(0, 0, 2), recorded(3..7), numbered(1, 2, 2), numbered(2, 4, 2), freed(2)]
}

#[test]
fn every_transition_has_one_fate() {
    let learner = vec![begun(1, None), stored(0, 0, 2), refused(1), learned(0, 2)];
    let account = account(&[rollout(), learner]).unwrap();
    let expected = Account { recorded: 7, stored: 2, refused: 2, lost: 0, voided: 0, memory: 3, learned: 2 };
    assert_eq!(account, expected);
}

#[test]
fn a_later_life_undoes_what_its_checkpoint_does_not_know_and_counts_it_as_lost() {
    let first = vec![begun(1, None), stored(0, 0, 2), stored(1, 2, 2), learned(0, 4)];
    // The checkpoint knows batch 0; the stream ended before the second life, or goes on.
    let ended = vec![begun(2, Some((1, 2, 4)))];
    let goes_on = vec![begun(2, Some((1, 2, 4))), lost(2, 4), stored(2, 4, 2), learned(4, 2)];
    let of = |second| account(&[rollout(), first.clone(), second]).unwrap();
    assert_eq!((of(ended).stored, of(goes_on.clone()).stored), (2, 4));
    assert_eq!((of(goes_on.clone()).lost, of(goes_on.clone()).memory, of(goes_on).learned), (2, 1, 6));
    let forgotten = account(&[rollout(), first.clone(), vec![begun(2, Some((1, 2, 2)))]]).unwrap_err().to_string();
    assert!(forgotten.contains("has forgotten batch 1"), "{forgotten}");
}

#[test]
fn each_disagreement_is_named() {
    let learner = |notes: &[Note]| [vec![begun(1, None), stored(0, 0, 2), stored(1, 2, 2)], notes.to_vec()].concat();
    let rollout = |notes: &[Note]| [rollout(), notes.to_vec()].concat();
    for (rollout, learner, words) in [
        (rollout(&[recorded(2..3)]), learner(&[]), "recorded step 2 of env 0 twice"),
        (rollout(&[numbered(3, 6, 2)]), learner(&[]), "step 7 of env 0"),
        (rollout(&[numbered(3, 5, 2)]), learner(&[]), "step 5 of env 0"),
        (rollout(&[numbered(2, 6, 1)]), learner(&[]), "two batches 2"),
        (rollout(&[freed(3)]), learner(&[]), "forgotten batch 2"),
        (rollout(&[]), learner(&[refused(1)]), "batch 1 of r0#00000001 has two verdicts"),
        (rollout(&[]), learner(&[stored(2, 4, 1)]), "batch 2 of r0#00000001 is stored otherwise than recorded"),
        (rollout(&[]), learner(&[stored(5, 6, 1)]), "batch 5 of r0#00000001 is stored otherwise"),
        (rollout(&[]), learner(&[lost(1, 3)]), "has a verdict, and is counted as lost"),
        (rollout(&[]), learner(&[lost(4, 6), lost(4, 6)]), "batch 2 of r0#00000001 is lost twice"),
        (
            rollout(&[]),
            learner(&[learned(0, 2), learned(1, 1)]),
            "step 1 of env 0 of r0#00000001 was learned from twice",
        ),
        (rollout(&[]), learner(&[learned(4, 1)]), "or without being stored"),
        (rollout(&[]), learner(&[Note::Totals { admitted: 5, refused: 0, lost: 0 }]), "counts 5 admitted"),
    ] {
        let told = account(&[rollout, learner]).unwrap_err().to_string();
        assert!(told.contains(words), "{told} (wanted: {words})");
    }
}

#[test]
fn notes_are_what_they_were_after_a_line_of_json() {
    for note in [rollout(), vec![begun(2, Some((1, 2, 4))), lost(2, 4), learned(0, 1), refused(3)]].concat() {
        let line = serde_json::to_string(&note).unwrap();
        assert_eq!(serde_json::from_str::<Note>(&line).unwrap(), note, "{line}");
    }
}

#[test]
fn nothing_is_noted_where_nobody_wants_it() {
    let mut trail = Trail::default();
    trail.note(|| panic!("nobody asked"));
    assert_eq!(trail.take(), []);
    trail.start();
    trail.note(|| freed(1));
    assert_eq!((trail.take(), trail.take()), (vec![freed(1)], vec![]));
}
