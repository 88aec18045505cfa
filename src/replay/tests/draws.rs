use super::{every, fragment, with_priorities};
use crate::config::Seed;
use crate::replay::{Priority, Replay, Shape, importance};
use std::collections::BTreeMap;

/// How often each reward was drawn.
fn tally(replay: &Replay, count: usize, rounds: u64, share: f64) -> BTreeMap<u64, usize> {
    let mut tally = BTreeMap::new();
    let mut rng = Seed::root(5).rng(0);
    for _ in 0..rounds {
        for draw in replay.draw(count, share, &mut rng).unwrap() {
            *tally.entry(replay.step(draw.step).unwrap().reward as u64).or_insert(0) += 1;
        }
    }
    tally
}

#[test]
fn draws_follow_the_priorities() {
    let replay = with_priorities(&[1.0, 2.0, 3.0, 4.0], |_| 0);
    let rounds = 100_000;
    let tally = tally(&replay, 1, rounds, 0.0);
    let chi: f64 = (0..4)
        .map(|leaf| {
            let want = rounds as f64 * (leaf + 1) as f64 / 10.0;
            (tally[&leaf] as f64 - want).powi(2) / want
        })
        .sum();
    assert!(chi < 16.27, "chi squared {chi}: 99.9 % of draws with 3 degrees of freedom are below");
    let draws = replay.draw(64, 0.0, &mut Seed::root(1).rng(0)).unwrap();
    for draw in draws {
        let leaf = replay.step(draw.step).unwrap().reward;
        assert!((draw.probability - f64::from(leaf + 1.0) / 10.0).abs() < 1e-12);
    }
}

/// Four strata of a total of 10 are 2.5 wide: leaf i gets 4 p_i / 10 draws each time, give or take less than one, and
/// leaf 0 (1 wide) lies in the first stratum alone: .4; the strata split the others as .4 | .6 .2 | .8 .4 | .6 1.
#[test]
fn strata_spread_the_draws() {
    let replay = with_priorities(&[1.0, 2.0, 3.0, 4.0], |_| 0);
    let rounds = 100_000u64;
    let tally = tally(&replay, 4, rounds, 0.0);
    for (leaf, want) in [0.4, 0.8, 1.2, 1.6].into_iter().enumerate() {
        let mean = tally[&(leaf as u64)] as f64 / rounds as f64;
        assert!((mean - want).abs() < 0.01, "leaf {leaf}: {mean} a draw of four, not {want}");
    }
    for round in 0..1000 {
        let drawn = replay.draw(4, 0.0, &mut Seed::root(7).rng(round)).unwrap();
        let last = replay.step(drawn[3].step).unwrap().reward;
        assert_eq!(last, 3.0, "the last stratum lies in the last leaf");
    }
}

/// dopamine's `sum_tree_test.py`: stratified draws of equal leaves give each once.
#[test]
fn equal_leaves_are_drawn_once_each() {
    let replay = with_priorities(&[1.0; 32], |_| 0);
    let tally = tally(&replay, 32, 1, 0.0);
    assert_eq!(tally.len(), 32);
}

#[test]
fn importance_weights_are_those_of_the_paper() {
    let replay = with_priorities(&[1.0, 2.0, 3.0, 4.0], |_| 0);
    let mut draws = replay.draw(64, 0.0, &mut Seed::root(1).rng(0)).unwrap();
    draws.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    draws.dedup_by(|a, b| a.step == b.step);
    let weights = importance(&draws, replay.len(), 1.0);
    for (weight, want) in weights.iter().zip([1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0]) {
        assert!((weight - want).abs() < 1e-9);
    }
    assert_eq!(importance(&draws, replay.len(), 0.0), [1.0; 4]);
}

/// Options of 70, 200 and 10 steps: the last has too few for a share of its own.
fn uneven() -> Replay {
    let option = |number: u64| match number {
        0..70 => 0,
        70..270 => 1,
        _ => 2,
    };
    let priorities: Vec<f64> = (0..280).map(|number| 1.0 + f64::from(number % 5)).collect();
    with_priorities(&priorities, option)
}

#[test]
fn half_of_the_draws_are_spread_over_the_options() {
    let replay = uneven();
    let share = 0.5;
    let priority = |number: u64| 1.0 + (number % 5) as f64;
    let total: f64 = (0..280).map(priority).sum();
    let own = [(0..70).map(priority).sum::<f64>(), (70..270).map(priority).sum()];
    let law = |number: u64| {
        let bucket = match number {
            0..70 => priority(number) / own[0] / 2.0,
            70..270 => priority(number) / own[1] / 2.0,
            _ => 0.0,
        };
        (1.0 - share) * priority(number) / total + share * bucket
    };
    assert!(((0..280).map(law).sum::<f64>() - 1.0).abs() < 1e-12);
    let rounds = 4000u64;
    let tally = tally(&replay, 50, rounds, share);
    let drawn = (rounds * 50) as f64;
    let chi: f64 = (0..280)
        .map(|number| {
            (tally.get(&number).copied().unwrap_or(0) as f64 - drawn * law(number)).powi(2) / drawn / law(number)
        })
        .sum();
    assert!(chi < 360.0, "chi squared {chi} with 279 degrees of freedom: 99.9 % are below 360");
    for draw in replay.draw(500, share, &mut Seed::root(2).rng(0)).unwrap() {
        let number = replay.step(draw.step).unwrap().reward as u64;
        assert!((draw.probability - law(number)).abs() < 1e-9, "step {number}");
    }
}

#[test]
fn full_importance_weights_undo_the_law_of_the_draws() {
    let replay = uneven();
    let value = |number: f64| (number * 0.37).sin() + number / 100.0;
    let want = (0..280).map(|number| value(f64::from(number))).sum::<f64>() / 280.0;
    let (rounds, count) = (400, 256);
    let mut sum = 0.0;
    for round in 0..rounds {
        for draw in replay.draw(count, 0.5, &mut Seed::root(3).rng(round)).unwrap() {
            let number = f64::from(replay.step(draw.step).unwrap().reward);
            sum += value(number) / (280.0 * draw.probability);
        }
    }
    let found = sum / (rounds as f64 * count as f64);
    assert!((found - want).abs() < 0.02, "{found} is not the population's mean {want}");
}

#[test]
fn every_step_of_the_drawn_fragments_is_as_likely_as_every_other() {
    let shape = Shape { obs: 2, action: 1, options: 3, fragment: 10 };
    let mut replay = Replay::new(shape, 200, Priority::Uniform).unwrap();
    let mut number = 0;
    for steps in [1, 10, 3, 7, 2, 10, 5] {
        replay.insert(&fragment(number, steps, &[], |_| 1)).unwrap();
        number += steps as u64;
    }
    let mut tally = vec![0usize; number as usize];
    let rounds = 2000;
    for round in 0..rounds {
        for picked in replay.pick(8, 4, &mut Seed::root(9).rng(round)).unwrap() {
            assert_eq!(picked.steps.len(), 4);
            for &step in &picked.steps {
                tally[replay.of(&picked, step).reward as usize] += 1;
            }
            let first = replay.of(&picked, 0).reward;
            let all: Vec<f32> = (0..picked.len).map(|step| replay.of(&picked, step).reward).collect();
            assert!(all.iter().enumerate().all(|(at, reward)| *reward == first + at as f32), "one fragment, in order");
        }
    }
    let want = rounds as f64 * 32.0 / number as f64;
    for (step, count) in tally.iter().enumerate() {
        assert!((*count as f64 - want).abs() < 6.0 * (4.0 * want).sqrt(), "step {step}: {count}, not {want}");
    }
}

#[test]
fn nothing_is_drawn_from_nothing() {
    let replay = Replay::new(super::SHAPE, 64, Priority::Uniform).unwrap();
    let mut rng = Seed::root(1).rng(0);
    assert!(replay.draw(4, 0.5, &mut rng).unwrap_err().to_string().contains("without steps"));
    assert!(replay.pick(1, 1, &mut rng).is_err());
    assert!(every(&replay).is_empty());
}
