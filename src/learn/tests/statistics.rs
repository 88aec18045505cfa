use crate::config::{self, Seed};
use crate::learn::Moments;
use crate::learn::estimate::option_weights;
use crate::learn::init;
use crate::policy::tests::contract;

#[test]
fn batches_merge_into_the_statistics_of_the_whole() {
    let rows: Vec<f32> = (0..60).map(|i| ((i * i) as f32 * 0.37).sin() + 100.0 * (i % 2) as f32).collect();
    let mut moments = Moments::new(2);
    for batch in [&rows[..2], &rows[2..20], &rows[20..20], &rows[20..]] {
        moments.merge(batch).unwrap();
    }
    for component in 0..2 {
        let values: Vec<f64> = rows[component..].iter().step_by(2).map(|&value| f64::from(value)).collect();
        let mean = values.iter().sum::<f64>() / 30.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 30.0;
        assert!((moments.mean[component] - mean).abs() < 1e-9);
        assert!((moments.std(component) - (variance + 1e-8).sqrt()).abs() < 1e-9);
    }
    assert_eq!(moments.count, 30.0);
    let normaliser = moments.normaliser(5.0);
    let mut whole = rows;
    normaliser.apply(&mut whole);
    assert!(whole.iter().sum::<f32>().abs() < 1e-3);
    assert!((whole.iter().map(|x| x * x).sum::<f32>() / 60.0 - 1.0).abs() < 1e-3);
}

#[test]
fn what_is_not_finite_leaves_the_statistics_alone() {
    let mut moments = Moments::new(2);
    moments.merge(&[1.0, 2.0]).unwrap();
    let before = moments.clone();
    assert!(moments.merge(&[1.0, 2.0, 3.0, f32::NAN]).unwrap_err().to_string().contains("component 1"));
    assert_eq!(moments, before);
}

/// Uniform about 0 with standard deviation 1.
fn noise(rows: usize, offset: f32) -> Vec<f32> {
    // the golden ratio's multiples are evenly spread
    (0..rows).map(|i| offset + 12f32.sqrt() * ((i as f64 * 0.618_033_988_749_894_9).fract() as f32 - 0.5)).collect()
}

#[test]
fn one_absurd_observation_among_many_leaves_the_statistics_usable() {
    let mut moments = Moments::new(1);
    for batch in noise(20_000, 0.0).chunks(1000) {
        moments.merge_observations(batch).unwrap();
    }
    assert!((moments.std(0) - 1.0).abs() < 1e-3, "{}", moments.std(0));
    moments.merge_observations(&[1e6]).unwrap();
    assert!(moments.std(0) < 1.01 && moments.mean[0] < 1e-3, "{} {}", moments.std(0), moments.mean[0]);
    let mut blinded = moments.clone();
    blinded.merge(&[1e6]).unwrap();
    assert!(7000.0 < blinded.std(0), "what it would do");
}

#[test]
fn observations_that_really_moved_are_followed() {
    let (mut limited, mut exact) = (Moments::new(1), Moments::new(1));
    let mut seen = noise(20_000, 0.0);
    limited.merge_observations(&seen).unwrap();
    for _ in 0..10 {
        let moved = noise(2000, 100.0);
        limited.merge_observations(&moved).unwrap();
        seen.extend(moved);
    }
    exact.merge(&seen).unwrap();
    // Half of what was seen is at 0, half at 100.
    assert!((exact.mean[0] - 50.0).abs() < 0.1 && (exact.std(0) - 50.0).abs() < 0.1);
    let (mean, std) = (limited.mean[0] / exact.mean[0], limited.std(0) / exact.std(0));
    assert!(0.75 < mean && mean < 1.01 && 0.75 < std && std < 1.05, "{mean} {std}");
}

#[test]
fn what_lies_within_the_limit_merges_bit_by_bit_as_without_one() {
    let (mut limited, mut plain) = (Moments::new(2), Moments::new(2));
    for batch in noise(60_000, 3.0).chunks(500) {
        limited.merge_observations(batch).unwrap();
        plain.merge(batch).unwrap();
    }
    assert_eq!(limited, plain);
}

#[test]
fn nothing_seen_normalises_nothing() {
    let mut observation = [3.0, -4.0];
    Moments::new(2).normaliser(10.0).apply(&mut observation);
    assert_eq!(observation, [3.0, -4.0]);
}

#[test]
fn weights_lift_rare_options_within_bounds_and_keep_the_mean() {
    assert_eq!(option_weights(&[50, 50]), [1.0, 1.0]);
    let weights = option_weights(&[90, 10, 0]);
    assert!((weights[0] * 90.0 + weights[1] * 10.0 - 100.0).abs() < 1e-12);
    assert!((weights[1] / weights[0] - 3.0).abs() < 1e-12, "square root of 90 to 10");
    let weights = option_weights(&[100_000, 1]);
    assert!((weights[1] / weights[0] - 4.0 / 0.5f64.sqrt()).abs() < 1e-3, "4 at most");
}

#[test]
fn trunks_start_orthogonal_and_heads_small() {
    let contract = contract(3, &[8, 5]);
    let config = config::HsPpo { log_std_init: -0.5, termination_bias_init: -2.0, ..config::HsPpo::default() };
    let parameters = init::parameters(&contract, &config, Seed::root(1));
    let layout = contract.layout();
    let segment = |name: &str| layout.segments.iter().find(|segment| segment.name == name).unwrap();
    for (name, gain) in [
        ("actor.0", 2f32.sqrt()),
        ("actor.1", 2f32.sqrt()),
        ("critic.1", 2f32.sqrt()),
        ("over_options", 0.01),
        ("critic.value", 0.01),
        ("option.1.mean", 0.01),
    ] {
        let segment = segment(&format!("{name}.weight"));
        let (rows, columns) = (segment.shape[0], segment.shape[1]);
        let weight = &parameters[segment.range()];
        let entry = |row: usize, column: usize| weight[row * columns + column];
        let short = rows.min(columns);
        for a in 0..short {
            for b in 0..short {
                let dot: f32 = if rows <= columns {
                    (0..columns).map(|column| entry(a, column) * entry(b, column)).sum()
                } else {
                    (0..rows).map(|row| entry(row, a) * entry(row, b)).sum()
                };
                let want = if a == b { gain * gain } else { 0.0 };
                assert!((dot - want).abs() < 1e-5 * gain, "{name}: row {a} times row {b} is {dot}");
            }
        }
    }
    assert!(parameters[segment("termination.bias").range()].iter().all(|&bias| bias == -2.0));
    assert!(parameters[segment("option.2.log_std").range()].iter().all(|&log_std| log_std == -0.5));
    assert!(parameters[segment("actor.0.bias").range()].iter().all(|&bias| bias == 0.0));
    assert_ne!(
        parameters[segment("option.0.mean.weight").range()],
        parameters[segment("option.1.mean.weight").range()]
    );
}
