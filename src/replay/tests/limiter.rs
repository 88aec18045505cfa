use crate::replay::Limiter;
use proptest::prelude::*;

#[test]
fn slack_that_could_stop_both_sides_is_refused_with_the_numbers() {
    let small = Limiter::new(256.0, 100, 31, 32, 256).unwrap_err().to_string();
    assert!(small.contains("31") && small.contains("at least 32"), "{small}");
    let draw = Limiter::new(0.5, 100, 100, 32, 256).unwrap_err().to_string();
    assert!(draw.contains("at least 512"), "{draw}");
    assert!(Limiter::new(256.0, 100, 32, 32, 256).is_ok());
}

#[test]
fn nothing_is_drawn_and_nothing_held_back_before_the_warm_up() {
    let mut limiter = Limiter::new(2.0, 100, 50, 10, 4).unwrap();
    assert!(limiter.may_insert(1_000_000));
    limiter.inserted(99);
    assert!(!limiter.may_sample(1) && limiter.may_insert(1_000_000));
    limiter.inserted(1);
    // At the warm-up: 50 steps either way are 100 samples.
    assert!(limiter.may_sample(100) && !limiter.may_sample(101));
    assert!(limiter.may_insert(50) && !limiter.may_insert(51));
    limiter.sampled(100);
    assert!(!limiter.may_sample(1) && limiter.may_insert(100) && !limiter.may_insert(101));
}

#[test]
fn counts_are_all_that_it_remembers() {
    let mut limiter = Limiter::new(2.0, 10, 50, 10, 4).unwrap();
    limiter.inserted(40);
    limiter.sampled(17);
    let mut other = Limiter::new(2.0, 10, 50, 10, 4).unwrap();
    other.restore(limiter.counts());
    assert_eq!(limiter, other);
}

#[test]
fn counts_of_another_ratio_are_brought_within_its_slack() {
    // 1000 steps after the warm-up at 2 samples a step; now 8, or 0.5, with 50 steps of slack
    for (ratio, samples) in [(8.0, 8000 - 400), (0.5, 500 + 25)] {
        let mut limiter = Limiter::new(ratio, 10, 50, 10, 4).unwrap();
        limiter.restore((1010, 2000));
        assert_eq!(limiter.counts(), (1010, samples));
        assert!(limiter.may_insert(1) || limiter.may_sample(4));
    }
}

proptest! {
    /// Whatever the order in which both sides come, one of them may always go on, and the ratio stays bounded.
    #[test]
    fn one_side_may_always_go_on_and_both_stay_bounded(
        ratio in 0.1f64..300.0, warmup in 0u64..500, arriving in 1u64..100, drawn in 1u64..512,
        more in 0u64..50, turns in prop::collection::vec((any::<bool>(), 1u64..100), 300),
    ) {
        let slack = arriving.max((drawn as f64 / ratio).ceil() as u64) + more;
        let mut limiter = Limiter::new(ratio, warmup, slack, arriving, drawn).unwrap();
        for (learns, steps) in turns {
            let steps = steps.min(arriving);
            prop_assert!(limiter.may_insert(steps) || limiter.may_sample(drawn));
            if learns && limiter.may_sample(drawn) {
                limiter.sampled(drawn);
            } else if limiter.may_insert(steps) {
                limiter.inserted(steps);
            }
            let (inserts, samples) = limiter.counts();
            let earned = ratio * inserts.saturating_sub(warmup) as f64;
            prop_assert!(samples == 0 || warmup <= inserts);
            prop_assert!(samples as f64 <= earned + ratio * slack as f64);
            // A batch that crosses the warm-up is let in whole.
            prop_assert!(earned <= samples as f64 + ratio * slack as f64 + 1e-6);
        }
    }
}
