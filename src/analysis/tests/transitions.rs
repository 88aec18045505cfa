//! Transitions of other networks, of mean actions, of several trainings, sent twice, and with holes.

use super::*;
use crate::data::{Final, Fragment};
use std::collections::BTreeMap;

#[test]
fn a_policy_of_other_networks_is_compared_with_what_was_recorded() {
    let acting = snapshot(1, 0.0);
    let wide = Arc::new(Config { hidden: vec![16], ..Config::default() }.contract().unwrap());
    let parameters = vec![0.01; wide.layout().len()].into();
    let run = Arc::new(Snapshot { contract: wide, parameters, ..(*acting).clone() });
    let mut bag = recorded(&transitions(&acting, 100));
    let (found, _) = analysed(&bag, &Setup { present: present(&run), ..Setup::default() });
    assert_eq!(found.source, "messages alone", "whose they are is not known");
    let topic = bag.topic("/policy_weights", "handoff/msg/PolicyWeights");
    bag.add(topic, ns(0.0), recording::weights(&acting));
    let (found, _) = analysed(&bag, &Setup { present: present(&run), ..Setup::default() });
    assert_eq!((found.source.as_str(), found.options.unwrap().steps), ("100 transitions", 100));
    assert!(found.now.unwrap().options[0].action.is_some());
}

#[test]
fn the_divergence_of_mean_actions_comes_from_the_weights_or_is_none() {
    let (acting, narrow) =
        (constant(0.2, [0.0; 4], 0.0), deviating(&constant(0.2, [0.0; 4], 0.0), -std::f32::consts::LN_2));
    let mean = transitions_by(&acting, 200, Sampling::MeanAction);
    let actions = |bag: &Recording| {
        let (found, _) = analysed(bag, &Setup { present: present(&narrow), ..Setup::default() });
        (found.now.unwrap().options.iter().filter_map(|one| one.action).collect::<Vec<_>>(), found.notes)
    };
    let (found, notes) = actions(&recorded(&mean));
    assert!(
        found.is_empty() && notes.iter().any(|note| note.starts_with("200 actions have no divergence")),
        "{notes:?}"
    );
    let with_weights = |batch: &Batch| {
        let mut bag = Recording::new();
        let topic = bag.topic("/policy_weights", "handoff/msg/PolicyWeights");
        bag.add(topic, ns(0.0), recording::weights(&acting));
        let topic = bag.topic("/transitions", "handoff/msg/TransitionBatch");
        bag.add(topic, ns(1.0), recording::batch(batch));
        bag
    };
    for batch in [mean, transitions(&acting, 200)] {
        let (found, notes) = actions(&with_weights(&batch));
        assert!(!found.is_empty() && !notes.iter().any(|note| note.contains("no divergence")), "{notes:?}");
        for action in found {
            // 7 joints, equal means, half of the deviation: 7 · (log ½ + 2 - ½)
            assert!((action.mean - 5.647_970).abs() < 1e-4 && action.rms - action.mean < 1e-4, "{action:?}");
        }
    }
}

#[test]
fn versions_of_two_trainings_are_not_those_of_one_another() {
    let first = snapshot(3, 0.0);
    let second = Arc::new(Snapshot { run: Uuid::from_u128(4), ..(*snapshot(3, 0.3)).clone() });
    let newer = Arc::new(Snapshot { version: 40, ..(*first).clone() });
    let mut bag = Recording::new();
    let weights = bag.topic("/policy_weights", "handoff/msg/PolicyWeights");
    let batches = bag.topic("/transitions", "handoff/msg/TransitionBatch");
    for (at, snapshot) in [(0.0, &first), (0.1, &newer), (0.2, &second)] {
        bag.add(weights, ns(at), recording::weights(snapshot));
    }
    bag.add(batches, ns(1.0), recording::batch(&transitions(&second, 200)));
    // that of the second run's version 3, beside itself, is none, though the first run had a version 3 and a 40
    let (found, _) = analysed(&bag, &Setup { present: present(&second), ..Setup::default() });
    assert_eq!(found.health.weights_lag.unwrap().mean, 0.0);
    for one in found.now.unwrap().options.iter().filter_map(|one| one.action) {
        assert!(one.rms < 1e-5, "{one:?}");
    }
    let mut bag = bag.only(&["/policy_weights", "/transitions"]);
    bag.add(batches, ns(2.0), recording::batch(&Batch { seq: 1, ..transitions(&first, 200) }));
    let (found, _) = analysed(&bag, &Setup { present: present(&second), ..Setup::default() });
    // 200 steps 37 versions behind, 200 none
    assert_eq!(found.health.weights_lag.unwrap().mean, 18.5);
}

#[test]
fn nothing_goes_on_over_steps_that_are_missing_or_come_late() {
    let acting = snapshot(1, 0.0);
    let whole = transitions(&acting, 50); // one episode
    let piece = |seq: u64, from: usize, to: usize| {
        let fragment = &whole.fragments[0];
        let size = fragment.obs_size;
        let observations = fragment.observations[from * size..(to + 1) * size].to_vec();
        let finals = if to == 50 { vec![Final { step: to - from - 1, ..fragment.finals[0].clone() }] } else { vec![] };
        let steps = fragment.steps[from..to].to_vec();
        let fragment = Fragment { first: from as u64, steps, observations, finals, ..fragment.clone() };
        Batch { seq, first_step: from as u64, fragments: vec![fragment], ..whole.clone() }
    };
    let found = |batches: &[Batch]| {
        let mut bag = Recording::new();
        let topic = bag.topic("/transitions", "handoff/msg/TransitionBatch");
        batches.iter().zip(1..).for_each(|(batch, at)| bag.add(topic, ns(f64::from(at)), recording::batch(batch)));
        let (found, _) = analysed(&bag, &Setup { present: present(&acting), ..Setup::default() });
        let late = found.notes.iter().filter(|note| note.contains("came behind later ones")).count();
        let options = found.options.unwrap();
        let jerks = [options.jerk_switching, options.jerk_between].map(|jerk| jerk.map_or(0, |jerk| jerk.count));
        let runs: BTreeMap<_, _> = options
            .options
            .iter()
            .flat_map(|one| one.durations.iter().map(|(length, count)| ((one.option, *length), *count)))
            .collect();
        (options.steps, jerks.iter().sum::<u64>(), runs, late)
    };
    let (steps, jerks, runs, late) = found(&[piece(0, 0, 20), piece(1, 20, 35), piece(2, 35, 50)]);
    // of 50 velocities in a row 48 bends
    assert_eq!((steps, jerks, late), (50, 48, 0));
    assert!(3 < runs.len());
    // without the middle: 18 and 13, and no run that is longer than what was seen of it
    let (steps, jerks, holed, late) = found(&[piece(0, 0, 20), piece(2, 35, 50)]);
    assert_eq!((steps, jerks, late), (35, 31, 0));
    assert!(
        holed.iter().all(|(length, count)| runs.get(length).is_some_and(|whole| count <= whole)),
        "{holed:?} {runs:?}"
    );
    // the middle comes late: 18, 13 and 13
    let (steps, jerks, mixed, late) = found(&[piece(0, 0, 20), piece(2, 35, 50), piece(1, 20, 35)]);
    assert_eq!((steps, jerks, late), (50, 44, 1));
    assert!(
        mixed.iter().all(|(length, count)| runs.get(length).is_some_and(|whole| count <= whole)),
        "{mixed:?} {runs:?}"
    );
}

#[test]
fn what_was_sent_twice_counts_once_and_what_is_left_out_not_at_all() {
    let acting = snapshot(1, 0.0);
    let setup = Setup { present: present(&acting), ..Setup::default() };
    let mut batch = transitions(&acting, 100);
    batch.episodes = vec![stats()];
    let mut bag = recorded(&batch);
    bag.again();
    let mut other = Batch { seq: 1, contract_hash: [9; 32], ..batch.clone() };
    bag.add(0, ns(2.0), recording::batch(&other));
    bag.add(0, ns(3.0), recording::batch(&other));
    (other.seq, other.contract_hash, other.fragments[0].obs_size) = (2, batch.contract_hash, 7);
    bag.add(0, ns(4.0), recording::batch(&other));
    let (found, _) = analysed(&bag, &setup);
    assert_eq!((found.source.as_str(), found.options.unwrap().steps), ("100 transitions", 100));
    assert_eq!(found.episodes.unwrap().count, 1);
    let left: Vec<&String> = found.notes.iter().filter(|note| note.contains("left out")).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|note| note.starts_with("100 transitions")), "{left:?}");
    let read = crate::analysis::logged::transitions(&[bag.write()], &acting.contract, &[]).unwrap();
    let malformed = read.left_out.iter().find(|(reason, _)| reason.contains("observations has"));
    assert_eq!(malformed.map(|(_, count)| *count), Some(100), "{:?}", read.left_out);
}

#[test]
fn steps_are_at_their_stamps_where_these_are_of_the_recorders_clock() {
    let acting = snapshot(1, 0.0);
    let fragment = &transitions(&acting, 100).fragments[0]; // stamps 0, 0.05, ..., 4.95
    let times = |at_secs, since_secs, start_ns| {
        let at = crate::analysis::rows::times(fragment, at_secs, since_secs, start_ns);
        [at(0), at(49), at(99)]
    };
    let near =
        |found: [f64; 3], want: [f64; 3]| found.iter().zip(want).all(|(found, want)| (found - want).abs() < 1e-9);
    // as `eval` writes them: received with the last step, the bag's first message at 0; nothing was received before
    assert!(near(times(4.95, 4.95, 0), [0.0, 2.45, 4.95]));
    // an arm: sent 0.3 s later, the bag began at 0.2 s
    assert!(near(times(5.05, 1.0, 200_000_000), [0.0, 2.25, 4.75]));
    // a simulator of its own time beside a wall clock: between two receipts
    assert!(near(times(12.0, 11.0, 1_700_000_000_000_000_000), [11.01, 11.5, 12.0]));
}
