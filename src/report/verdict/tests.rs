use super::*;
use crate::config::Algo;
use crate::report::Clock;
use std::collections::BTreeMap;

/// 40 updates of a healthy half-step PPO run with 4 options; `change` makes it ill, by update from 0.
fn rows(change: impl Fn(usize, &mut BTreeMap<String, f64>)) -> Vec<Row> {
    (0..40).map(|update| row(update, &change)).collect()
}

fn row(update: usize, change: &impl Fn(usize, &mut BTreeMap<String, f64>)) -> Row {
    let mut values: BTreeMap<String, f64> = [
        ("charts/episodic_return", -18.0 + 0.5 * update as f64),
        ("charts/success", 0.01 * update as f64),
        ("charts/learning_rate", 7e-4),
        ("losses/clipfrac", 0.03),
        ("losses/approx_kl", 0.002),
        ("losses/explained_variance", 0.9),
        ("losses/gradient_steps", 80.0),
        ("losses/skipped_minibatches", 0.0),
        ("losses/entropy", 6.4),
        ("lag/mean", 0.0),
        ("lag/ess_action", 1.0),
        ("lag/ess_option", 1.0),
        ("options/spread", 0.3),
        ("time/waiting_share", 0.5),
        ("stream/admitted", 1000.0 * (update + 1) as f64),
        ("stream/lost", 0.0),
        ("stream/refused", 0.0),
        ("stream/dropped", 0.0),
        ("check/log_prob_error", 2e-6),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for option in 0..4 {
        values.insert(format!("options/{option}/share"), 0.25);
        values.insert(format!("options/{option}/beta_mean"), 0.12);
    }
    change(update, &mut values);
    let updates = update as u64 + 1;
    Row { clock: Clock { updates, env_steps: 1000 * updates, wall_secs: updates as f64 }, values }
}

fn set(name: &'static str, value: f64) -> impl Fn(usize, &mut BTreeMap<String, f64>) {
    move |_, values| put(values, name, value)
}

fn put(values: &mut BTreeMap<String, f64>, name: &str, value: f64) {
    values.insert(name.into(), value);
}

fn ppo() -> Config {
    Config::of(Algo::HsPpo)
}

fn asynchronous() -> Config {
    let mut config = ppo();
    config.learner.update_mode = UpdateMode::Async;
    config
}

/// What is said beside learning.
fn about(rows: &[Row], config: &Config) -> Vec<&'static str> {
    keys_exist(rows, config);
    verdicts(rows, config)[1..].iter().map(|verdict| verdict.about).collect()
}

fn only(rows: &[Row], config: &Config, about: &str) -> Verdict {
    keys_exist(rows, config);
    let found = verdicts(rows, config);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].about, about);
    found[1].clone()
}

/// Every key that is named is one.
fn keys_exist(rows: &[Row], config: &Config) {
    let tree = serde_json::to_value(config).unwrap();
    for verdict in verdicts(rows, config) {
        let words = verdict.change.split(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c));
        for key in
            words.filter(|word| word.trim_end_matches('.').contains('.') && word.starts_with(char::is_alphabetic))
        {
            assert!(tree.pointer(&format!("/{}", key.replace('.', "/"))).is_some(), "{key} is no key");
        }
    }
}

fn learning(rows: &[Row], config: &Config) -> Verdict {
    keys_exist(rows, config);
    verdicts(rows, config)[0].clone()
}

fn returns(course: impl Fn(usize) -> f64) -> Vec<Row> {
    rows(|update, values| {
        values.insert("charts/episodic_return".into(), course(update));
        values.insert("charts/success".into(), 0.4);
    })
}

/// Noise that is the same each time: -1 to 1.
fn noise(update: usize) -> f64 {
    ((update * 7919 + 13) % 101) as f64 / 50.0 - 1.0
}

#[test]
fn a_healthy_run_is_learning_and_nothing_else_is_said() {
    let healthy = rows(|_, _| {});
    assert_eq!(about(&healthy, &ppo()), [] as [&str; 0]);
    assert_eq!(
        learning(&healthy, &ppo()),
        Verdict {
            about: "learning",
            level: Level::Good,
            seen: "Learning: the return rose from -16.25 to -0.25; success is 38 %.".into(),
            change: String::new(),
        }
    );
}

#[test]
fn learning_is_a_rise_beyond_the_noise() {
    let learns = learning(&returns(|update| -10.0 + 0.2 * update as f64 + noise(update)), &ppo());
    assert!(learns.level == Level::Good && learns.seen.starts_with("Learning:"), "{learns:?}");
    let noisy = learning(&returns(noise), &ppo());
    assert!(noisy.level == Level::Look && noisy.seen.starts_with("Not learning:"), "{noisy:?}");
    let constant = learning(&returns(|_| -17.5), &ppo());
    assert_eq!(constant.seen, "Not learning: the return was -17.50 and is -17.50; success is 40 %.");
}

#[test]
fn a_mean_of_a_hundred_episodes_wanders_by_their_std() {
    let wanders = |std: f64| {
        let rows = rows(|update, values| {
            put(values, "charts/episodic_return", -18.0 + 0.05 * update as f64);
            put(values, "charts/episodic_return_std", std);
        });
        learning(&rows, &ppo()).level
    };
    // It rises by 1.6; three standard deviations of a difference of two means are 0.42 std.
    assert_eq!((wanders(5.0), wanders(3.0)), (Level::Look, Level::Good));
}

#[test]
fn no_progress_over_fifty_updates_is_bad() {
    let long: Vec<Row> =
        (0..60).map(|update| row(update, &|_, values| put(values, "charts/episodic_return", noise(update)))).collect();
    assert_eq!(learning(&long, &ppo()).level, Level::Bad);
}

#[test]
fn a_run_that_rose_and_rises_no_more_stands_still() {
    let stands = learning(&returns(|update| -18.0 + (update as f64).min(12.0) + 0.1 * noise(update)), &ppo());
    assert!(stands.level == Level::Look && stands.seen.starts_with("Stands still:"), "{stands:?}");
    let slowly = learning(&returns(|update| -18.0 + (update as f64).sqrt() + 0.1 * noise(update)), &ppo());
    assert!(slowly.seen.starts_with("Learning:"), "{slowly:?}");
}

#[test]
fn a_fall_from_the_best_is_bad_and_a_dip_is_not() {
    let falls = learning(&returns(|update| if update < 28 { update as f64 } else { 6.0 }), &ppo());
    assert!(falls.level == Level::Bad && falls.seen.starts_with("Getting worse: the return fell from"), "{falls:?}");
    assert!(falls.change.contains("learner.hs_ppo.lr (0.0007)"), "{}", falls.change);
    let dips = learning(&returns(|update| update as f64 - if update == 36 { 4.0 } else { 0.0 }), &ppo());
    assert_eq!(dips.level, Level::Good, "{dips:?}");
}

#[test]
fn a_task_is_learned_at_95_percent() {
    let learned = rows(|_, values| {
        values.insert("charts/success".into(), 0.96);
        values.insert("charts/success_strict".into(), 0.5);
    });
    assert_eq!(
        learning(&learned, &ppo()).seen,
        "Learned: success is 96 %, the stricter success 50 %; the return is -0.25."
    );
    assert!(learning(&rows(set("charts/success", 0.94)), &ppo()).seen.starts_with("Learning:"));
}

#[test]
fn the_first_ten_records_are_too_early() {
    assert_eq!(
        learning(&rows(|_, _| {})[..9], &ppo()).seen,
        "Too early to say: finished episodes are in 9 of 9 records; it takes 10 of them."
    );
    assert!(learning(&rows(|_, _| {})[..10], &ppo()).seen.starts_with("Learning:"));
    assert!(learning(&[], &ppo()).seen.contains("in 0 of 0 records"));
}

#[test]
fn what_holds_learning_up_is_told_by_the_other_metrics() {
    let stuck = |name: &'static str, value: f64| {
        let rows = rows(|update, values| {
            values.insert("charts/episodic_return".into(), noise(update));
            values.insert(name.into(), value);
        });
        learning(&rows, &ppo()).change
    };
    assert!(stuck("losses/clipfrac", 0.5).starts_with("50 % of the ratios are clipped"));
    assert!(stuck("losses/explained_variance", 0.05).starts_with("the critic explains 0.05"));
    assert!(stuck("charts/learning_rate", 7e-5).contains("learner.hs_ppo.lr_anneal_steps (1500000)"));
    assert!(stuck("losses/entropy", 6.0).starts_with("try twice or half of learner.hs_ppo.lr"));
    let warming = rows(|_, values| {
        values.insert("charts/episodic_return".into(), -1.0);
        values.insert("losses/gradient_steps".into(), 0.0);
    });
    assert!(learning(&warming, &Config::of(Algo::Osac)).change.contains("learner.osac.warmup_steps (1000)"));
}

#[test]
fn one_option_with_nine_tenths_of_the_steps_is_a_collapse() {
    let collapse = |most: f64| {
        rows(move |_, values| {
            values.insert("options/2/share".into(), most);
            [0, 1, 3].iter().for_each(|o| put(values, &format!("options/{o}/share"), (1.0 - most) / 3.0));
        })
    };
    let found = only(&collapse(0.94), &ppo(), "option collapse");
    assert!(found.level == Level::Bad && found.seen == "Option 2 has 94 % of the steps.", "{found:?}");
    assert!(found.change.contains("learner.hs_ppo.load_balance_coef (1)"), "{}", found.change);
    assert_eq!(about(&collapse(0.85), &ppo()), [] as [&str; 0]);
    assert!(about(&collapse(0.94), &Config::of(Algo::Ppo)).is_empty(), "one option cannot collapse");
    let past = rows(|update, values| {
        if update < 30 {
            values.insert("options/2/share".into(), 0.97);
        }
    });
    assert!(about(&past, &ppo()).is_empty(), "what was is not what is");
}

#[test]
fn options_without_steps_are_named() {
    let unused = rows(|_, values| {
        for (option, share) in [(0, 0.6), (1, 0.0), (2, 0.394), (3, 0.006)] {
            values.insert(format!("options/{option}/share"), share);
        }
    });
    let found = only(&unused, &ppo(), "unused options");
    assert_eq!(found.seen, "Of 4 options, options 1 and 3 had at most 0.60 % of the steps each.");
    assert!(about(&rows(set("options/1/share", 0.02)), &ppo()).is_empty());
}

#[test]
fn terminations_at_one_and_at_zero_are_seen_option_by_option() {
    let found = only(&rows(set("options/1/beta_mean", 0.97)), &ppo(), "terminations at 1");
    assert!(found.level == Level::Look, "{found:?}");
    assert_eq!(found.seen, "At every chance option 1 ends: the mean probability is 0.970.");
    assert!(found.change.contains("learner.hs_ppo.deliberation_cost (0.02)"), "{}", found.change);
    let all = rows(|_, values| (0..4).for_each(|o| put(values, &format!("options/{o}/beta_mean"), 0.003)));
    let found = only(&all, &ppo(), "terminations at 0");
    assert!(found.level == Level::Bad && found.seen.contains("options 0, 1, 2 and 3 hardly ever end"), "{found:?}");
    assert!(about(&rows(set("options/1/beta_mean", 0.85)), &ppo()).is_empty());
    assert!(about(&rows(set("options/1/beta_mean", 0.02)), &ppo()).is_empty());
    let unused = rows(|_, values| {
        values.insert("options/1/beta_mean".into(), 0.0);
        values.insert("options/1/share".into(), 0.005);
    });
    assert_eq!(about(&unused, &ppo()), ["unused options"], "an option that never arrives has no probability");
}

#[test]
fn clones_must_have_been_alike_for_long() {
    let found = only(&rows(set("options/spread", 0.011)), &ppo(), "clones");
    assert!(found.seen.contains("by 0.011 of their std"), "{found:?}");
    assert!(about(&rows(set("options/spread", 0.03)), &ppo()).is_empty());
    let lately = rows(|update, values| {
        if 25 <= update {
            values.insert("options/spread".into(), 0.011);
        }
    });
    assert!(about(&lately, &ppo()).is_empty());
    assert!(about(&rows(set("options/spread", 0.011))[..15], &ppo()).is_empty());
}

#[test]
fn noise_that_is_gone_before_the_task_is_learned_is_a_collapse() {
    // std 0.04 in all 7 joints: 7 (log 0.04 + 1.4189)
    let narrow = 7.0 * (0.04_f64.ln() + 1.418_938_533);
    let found = only(&rows(set("losses/entropy", narrow)), &ppo(), "entropy collapse");
    assert!(found.seen.contains("down to 0.040"), "{found:?}");
    assert!(about(&rows(set("losses/entropy", narrow + 7.0 * 1.5_f64.ln())), &ppo()).is_empty());
    let learned = rows(|_, values| {
        values.insert("losses/entropy".into(), narrow);
        values.insert("charts/success".into(), 0.97);
    });
    assert!(about(&learned, &ppo()).is_empty(), "a learned task needs no noise");
    let osac = Config::of(Algo::Osac);
    let found = only(&rows(set("losses/entropy", -15.0)), &osac, "entropy collapse");
    assert!(found.seen.contains("-2.14 for each joint"), "{found:?}");
    assert!(about(&rows(set("losses/entropy", -7.0)), &osac).is_empty());
}

#[test]
fn data_is_stale_where_weighing_leaves_less_than_half() {
    let found = only(&rows(set("lag/ess_option", 0.4)), &asynchronous(), "staleness");
    assert!(found.seen.contains("of the options leave 40 %"), "{found:?}");
    assert!(found.change.contains("learner.max_lag (8)"), "{}", found.change);
    assert!(about(&rows(set("lag/ess_option", 0.6)), &asynchronous()).is_empty());
    let osac = Config::of(Algo::Osac);
    assert!(only(&rows(set("lag/mean", 150.0)), &osac, "staleness").seen.contains("150 versions"));
    assert!(about(&rows(set("lag/mean", 20.0)), &osac).is_empty());
}

#[test]
fn data_dropped_lately_counts_against_what_came_lately() {
    let dropping = |share: f64| {
        rows(move |update, values| {
            values.insert("stream/dropped".into(), share * 1000.0 * update.saturating_sub(30) as f64);
        })
    };
    let found = only(&dropping(0.1), &asynchronous(), "dropped data");
    assert_eq!(found.seen, "10 % of the transitions were dropped unlearned lately.");
    assert!(about(&dropping(0.04), &asynchronous()).is_empty());
    assert!(about(&rows(set("stream/dropped", 9000.0)), &asynchronous()).is_empty(), "long ago");
}

#[test]
fn a_learner_that_waits_starves_and_one_that_never_does_starves_the_rollouts() {
    let found = only(&rows(set("time/waiting_share", 0.9)), &ppo(), "starving learner");
    assert!(found.seen.contains("90 %") && found.change.contains("train.rollouts (2)"), "{found:?}");
    let found = only(&rows(set("time/waiting_share", 0.03)), &ppo(), "starving rollouts");
    assert!(found.seen.contains("97 %") && found.change.contains("num_learning_epochs (5)"), "{found:?}");
    for share in [0.15, 0.75] {
        assert!(about(&rows(set("time/waiting_share", share)), &ppo()).is_empty());
    }
    assert!(about(&rows(set("time/waiting_share", 0.9))[..9], &ppo()).is_empty(), "too early");
}

#[test]
fn a_learner_that_is_busy_on_purpose_starves_nobody() {
    assert!(about(&rows(set("time/waiting_share", 0.0)), &Config::of(Algo::Osac)).is_empty());
    let busy = |ill: &'static str, value: f64| {
        rows(move |update, values| {
            for (name, value) in [("time/waiting_share", 0.074), ("lag/mean", 1.6), ("charts/success", 1.0)] {
                put(values, name, value);
            }
            put(values, ill, if ill == "stream/dropped" { value * update as f64 } else { value });
        })
    };
    assert!(about(&busy("lag/ess_option", 0.9), &asynchronous()).is_empty());
    assert_eq!(about(&busy("lag/ess_option", 0.4), &asynchronous()), ["staleness", "starving rollouts"]);
    assert_eq!(about(&busy("stream/dropped", 100.0), &asynchronous()), ["dropped data", "starving rollouts"]);
}

#[test]
fn skipped_minibatches_are_counted_as_each_algorithm_does() {
    let each = rows(|update, values| put(values, "losses/skipped_minibatches", f64::from(u8::from(update == 5))));
    let found = only(&each, &ppo(), "skipped minibatches");
    assert_eq!(found.seen, "Loss or gradient was not finite in 1 minibatches, 0 of them lately.");
    assert_eq!(found.level, Level::Look);
    let since = rows(|update, values| put(values, "losses/skipped_minibatches", update.saturating_sub(36) as f64));
    let found = only(&since, &Config::of(Algo::Osac), "skipped minibatches");
    assert_eq!(found.seen, "Loss or gradient was not finite in 3 minibatches, 3 of them lately.");
    assert_eq!(found.level, Level::Bad);
}

#[test]
fn every_lost_or_refused_transition_is_told() {
    let found = only(&rows(set("stream/lost", 40.0)), &ppo(), "lost transitions");
    assert_eq!(
        (found.level, found.seen.as_str()),
        (Level::Look, "40 transitions were lost on their way: 0.10 % of all.")
    );
    let found = only(&rows(set("stream/refused", 10_000.0)), &ppo(), "refused transitions");
    assert_eq!((found.level, found.seen.as_str()), (Level::Bad, "10000 transitions were refused: 20 % of all."));
}

#[test]
fn a_log_probability_that_differs_is_never_forgotten() {
    let once = rows(|update, values| {
        if update == 3 {
            values.insert("check/log_prob_error".into(), 0.02);
        }
    });
    let found = only(&once, &ppo(), "disagreement");
    assert!(found.level == Level::Bad && found.seen.contains("2.0e-2") && found.change.contains("joint order"));
    assert!(about(&rows(set("check/log_prob_error", 9e-5)), &ppo()).is_empty());
}

#[test]
fn the_table_has_a_row_for_each_verdict_and_keeps_its_width() {
    let ill = rows(set("options/1/beta_mean", 0.97));
    let text = table(&verdicts(&ill, &ppo()));
    assert!(text.contains("terminations at 1") && text.contains("→ raise learner.hs_ppo.deliberation_cost"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
    assert!(text.lines().count() < 9, "{text}");
}
