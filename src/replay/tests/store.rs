use super::{SHAPE, every, fragment};
use crate::config::Seed;
use crate::data::{End, Forced, NO_OPTION};
use crate::replay::{Priority, Replay, Shape};
use proptest::prelude::*;

#[test]
fn a_step_is_stored_with_where_it_led() {
    let mut replay = Replay::new(SHAPE, 64, Priority::Uniform).unwrap();
    replay.insert(&fragment(10, 3, &[(1, End::Truncated)], |n| (n % 3) as u8)).unwrap();
    let ids = every(&replay);
    let steps: Vec<_> = ids.iter().map(|id| replay.step(*id).unwrap()).collect();
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[0].observation, [10.0, -10.0]);
    assert_eq!(steps[0].next_observation, [11.0, -11.0]);
    assert_eq!(steps[1].next_observation, [0.5, 1.0], "the true last observation, not the next episode's");
    assert_eq!(steps[2].next_observation, [13.0, -13.0]);
    assert_eq!((steps[0].option, steps[0].option_prev, steps[0].forced), (1, NO_OPTION, Forced::Init));
    assert_eq!((steps[1].option, steps[1].option_prev, steps[1].option_age), (2, 1, 1));
    assert_eq!((steps[0].option_terminated, steps[1].option_terminated), (true, false));
    assert_eq!((steps[1].end, steps[2].end, steps[1].reward), (End::Truncated, End::None, 11.0));
    assert_eq!(steps[0].proposal, [0.01]);
    assert_eq!(steps[0].action, [0.01f32.tanh()]);
}

#[test]
fn no_drawn_fragment_crosses_an_episode_or_the_longest_length() {
    let mut replay = Replay::new(SHAPE, 256, Priority::Uniform).unwrap();
    replay.insert(&fragment(0, 11, &[(2, End::Terminated), (8, End::Aborted)], |_| 0)).unwrap();
    replay.insert(&fragment(11, 2, &[], |_| 0)).unwrap();
    let mut found: Vec<Vec<u32>> = Vec::new();
    for round in 0..50 {
        for picked in replay.pick(8, 1, &mut Seed::root(1).rng(round)).unwrap() {
            found.push((0..picked.len).map(|step| replay.of(&picked, step).reward as u32).collect());
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found, [vec![0, 1, 2], vec![3, 4, 5, 6], vec![7, 8], vec![9, 10], vec![11, 12]]);
}

#[test]
fn a_priority_for_a_step_that_was_written_over_is_dropped() {
    let mut replay = Replay::new(SHAPE, 12, Priority::Proportional { alpha: 1.0 }).unwrap();
    replay.insert(&fragment(0, 2, &[], |_| 0)).unwrap();
    let old = every(&replay);
    for number in 1..5 {
        replay.insert(&fragment(10 * number, 2, &[], |_| 1)).unwrap();
    }
    assert_eq!(replay.update(&old, &[100.0, 100.0]), 2);
    assert!(replay.step(old[0]).is_none());
    let draws = replay.draw(16, 0.0, &mut Seed::root(1).rng(0)).unwrap();
    assert!(
        draws.iter().all(|draw| (draw.probability - 1.0 / replay.len() as f64).abs() < 1e-12),
        "no priority changed"
    );
    assert_eq!(replay.counts(), [0, replay.len(), 0]);
}

#[test]
fn new_steps_get_the_highest_priority_so_far() {
    let mut replay = Replay::new(SHAPE, 64, Priority::Lap { alpha: 0.5 }).unwrap();
    replay.insert(&fragment(0, 3, &[], |_| 0)).unwrap();
    replay.update(&every(&replay), &[0.25, f64::NAN, 6.25]);
    replay.insert(&fragment(3, 1, &[], |_| 0)).unwrap();
    let probabilities: Vec<f64> = every(&replay).iter().map(|id| replay.priorities[id.row as usize]).collect();
    assert_eq!(probabilities, [1.0, 1.0, 2.5, 2.5], "LAP: max(|error|^alpha, 1); NaN changes nothing");
}

#[test]
fn a_million_transitions_of_64_floats_take_at_most_600_megabytes() {
    let shape = Shape { obs: 64, action: 8, options: 8, fragment: 16 };
    let rows = 1 << 20;
    let replay = Replay::new(shape, rows, Priority::Uniform).unwrap();
    // As long fragments as rollouts ship by default, 32 steps cut in two, use 17 rows for 16 steps; those of 8 nine.
    assert!(replay.bytes() * 9 / 8 <= 600_000_000, "{} bytes for {rows} rows", replay.bytes());
    let by_hand = rows * (4 * (64 + 8 + 8 + 1) + 16 + 1 + 8) + 8 * 8 * 2 * (rows / 16);
    assert_eq!(replay.bytes(), by_hand);
}

#[test]
fn sizes_that_hold_nothing_are_refused() {
    assert!(Replay::new(SHAPE, 4, Priority::Uniform).is_err());
    assert!(Replay::new(Shape { fragment: 0, ..SHAPE }, 64, Priority::Uniform).is_err());
    let mut replay = Replay::new(SHAPE, 64, Priority::Uniform).unwrap();
    assert!(replay.insert(&fragment(0, 1, &[], |_| 3)).unwrap_err().to_string().contains("options below 3"));
    assert!(replay.is_empty());
}

/// Some inserts, and errors for some of their steps.
fn filled(inserts: &[(usize, Option<usize>)], capacity: usize) -> Replay {
    let mut replay = Replay::new(SHAPE, capacity, Priority::Proportional { alpha: 0.6 }).unwrap();
    let mut number = 0;
    for &(steps, end) in inserts {
        let ends: Vec<_> = end.filter(|end| *end < steps).map(|end| (end, End::Truncated)).into_iter().collect();
        replay.insert(&fragment(number, steps, &ends, |n| (n % 3) as u8)).unwrap();
        number += steps as u64;
        let ids = every(&replay);
        let errors: Vec<f64> = (0..ids.len()).map(|at| ((at as u64 + number) % 11) as f64).collect();
        replay.update(&ids, &errors);
    }
    replay
}

#[test]
fn a_saved_replay_draws_on_exactly_and_a_broken_one_is_refused() {
    let inserts = [(9, Some(3)), (5, None), (12, Some(11)), (7, Some(0)), (9, None)];
    let mut replay = filled(&inserts, 40);
    let saved = replay.save();
    let mut other = Replay::new(SHAPE, 40, Priority::Proportional { alpha: 0.6 }).unwrap();
    other.restore(&saved).unwrap();
    for round in 0..20 {
        let rewards = |replay: &Replay| {
            let draws = replay.draw(16, 0.5, &mut Seed::root(4).rng(round)).unwrap();
            let drawn: Vec<_> =
                draws.iter().map(|draw| (replay.step(draw.step).unwrap().reward, draw.probability)).collect();
            (drawn, replay.pick(4, 2, &mut Seed::root(5).rng(round)).unwrap())
        };
        assert_eq!(rewards(&replay), rewards(&other));
        for replay in [&mut replay, &mut other] {
            replay.insert(&fragment(1000 + 10 * round, 5, &[], |n| (n % 3) as u8)).unwrap();
        }
    }
    for name in ["kind", "at", "left", "option", "priorities", "places", "observations"] {
        let mut broken = saved.clone();
        match broken.floats.get_mut(name) {
            Some(floats) => floats[2] += 7.0,
            None => broken.doubles.get_mut(name).unwrap()[0] -= 1e6,
        }
        if name == "observations" {
            broken.floats.get_mut(name).unwrap().pop();
        }
        let sentence = other.restore(&broken).map(|()| name).unwrap_err().to_string();
        assert!(sentence.contains("replay"), "{name}: {sentence}");
    }
    assert!(Replay::new(SHAPE, 20, Priority::Uniform).unwrap().restore(&saved).is_err(), "a smaller replay");
}

proptest! {
    /// After any inserts: every step is once in the store, its fragment is whole, the trees hold the priorities.
    #[test]
    fn the_store_stays_whole(
        inserts in prop::collection::vec((1usize..12, prop::option::of(0usize..12)), 1..40),
        capacity in 6usize..60,
    ) {
        let replay = filled(&inserts, capacity);
        let ids = every(&replay);
        prop_assert_eq!(ids.len(), replay.len());
        let written: usize = inserts.iter().map(|(steps, _)| steps).sum();
        // What is kept is the end of what was written, but for the rest of a fragment that gave way in part.
        let rewards: Vec<f32> = ids.iter().map(|id| replay.step(*id).unwrap().reward).collect();
        prop_assert!(rewards.windows(2).all(|pair| pair[0] + 1.0 == pair[1]), "{:?}", rewards);
        prop_assert_eq!(rewards.last().copied(), Some(written as f32 - 1.0));
        for id in &ids {
            let step = replay.step(*id).unwrap();
            prop_assert_eq!(step.observation[0], step.reward);
            if step.end == End::None {
                prop_assert_eq!(step.next_observation[0], step.reward + 1.0);
            }
        }
        let total: f64 = ids.iter().map(|id| replay.priorities[id.row as usize]).sum();
        prop_assert!((replay.top.total() - total).abs() < 1e-9 * total.max(1.0));
    }
}
