//! The serial mode: deterministic, and made of the same state machines as the nodes.

use handoff::app::serial::Serial;
use handoff::config::{Algo, Config, UpdateMode};
use handoff::node::learner::Learner;
use handoff::node::trainer::Trainer;
use handoff::report::verdict::{LOG_PROB_LIMIT, Level, Verdict, verdicts};
use handoff::report::{names, read};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

fn config(seed: u64) -> Config {
    let mut config = Config { seed, hidden: vec![16, 16], ..Config::default() };
    config.train.envs = 4;
    config.sim.threads = 1;
    config.learner.num_steps_per_env = 60;
    config.learner.hs_ppo.minibatch_size = 64;
    config
}

/// The bytes of the parameters after some updates.
fn train(config: &Config, updates: usize) -> Vec<u32> {
    let contract = Arc::new(config.contract().unwrap());
    let trainer = Trainer::new(config, contract.clone(), Uuid::nil(), 1).unwrap();
    let learner = Learner::new(Uuid::nil(), 1, contract, &config.learner, Default::default());
    let mut serial = Serial::new(config, trainer, learner).unwrap();
    serial.publish();
    let mut made = 0;
    for _ in 0..10_000 {
        made += usize::from(serial.tick().unwrap());
        if made == updates {
            return serial.snapshot().parameters.iter().map(|value| value.to_bits()).collect();
        }
    }
    panic!("{made} updates of {updates} in 10,000 ticks");
}

#[test]
fn same_seed_same_bytes() {
    let first = train(&config(3), 3);
    assert!(first == train(&config(3), 3), "the same seed gave other bytes");
    assert!(first != train(&config(4), 3), "another seed gave the same bytes");
    assert!(first != train(&config(3), 2), "the third update changed nothing");
}

#[test]
fn the_flat_policy_and_the_asynchronous_mode_train_too() {
    let mut flat = config(3);
    flat.algo = Algo::Ppo;
    assert_eq!(train(&flat, 2).len(), flat.contract().unwrap().layout().len());
    let mut lagged = config(3);
    lagged.learner.update_mode = UpdateMode::Async;
    lagged.learner.batch_steps = 240;
    train(&lagged, 2);
}

fn off_policy(algo: Algo) -> Config {
    let mut config = Config { seed: 5, hidden: vec![16, 16], ..Config::of(algo) };
    config.sim.threads = 1;
    config.options.count = 3;
    config.learner.update_mode = UpdateMode::Sync;
    config.learner.osac.batch_size = 32;
    config.learner.osac.actor_batch_size = 32;
    config.learner.osac.actor_fragments = 8;
    config.learner.osac.warmup_steps = 64;
    // Small enough to be written over.
    config.learner.osac.capacity = 160;
    config.learner.osac.update_to_data = 0.25;
    config
}

/// Replay, limiter, target networks and temperatures included, from the warm-up on.
#[test]
fn an_off_policy_run_stopped_at_any_update_and_resumed_is_the_uninterrupted_one() {
    for algo in [Algo::Osac, Algo::Sac] {
        let config = off_policy(algo);
        let whole = tempfile::tempdir().unwrap();
        let expected = go_on(whole.path(), &config, 6);
        for stop in [1, 3, 5] {
            let folder = tempfile::tempdir().unwrap();
            let before = go_on(folder.path(), &config, stop);
            assert!(before != expected, "update {stop} is not the last that learns");
            assert!(
                go_on(folder.path(), &config, 6) == expected,
                "{algo:?}: other bytes after a stop at update {stop}"
            );
        }
    }
}

#[test]
fn a_corrupt_replay_is_refused_and_the_rest_goes_on_without_it() {
    let config = off_policy(Algo::Sac);
    let folder = tempfile::tempdir().unwrap();
    let saved = go_on(folder.path(), &config, 4);
    let checkpoint = folder.path().join("run/checkpoints/0000000004");
    let path = checkpoint.join("replay.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let mut config = config;
    config.learner.run_dir = folder.path().join("run").display().to_string();
    let refusal = Trainer::open(&config).err().unwrap().to_string();
    assert!(refusal.contains("replay.safetensors") && refusal.contains("--without-replay"), "{refusal}");
    config.learner.without_replay = true;
    let (trainer, _) = Trainer::open(&config).unwrap();
    let parameters: Vec<u32> = trainer.snapshot().parameters.iter().map(|value| value.to_bits()).collect();
    assert!(parameters == saved, "the rest is what was saved");
    assert_eq!((trainer.updates(), trainer.snapshot().random_warmup), (4, false));
}

#[test]
fn a_checkpoint_of_another_algorithm_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    go_on(folder.path(), &off_policy(Algo::Sac), 1);
    let mut other = Config { algo: Algo::Ppo, ..off_policy(Algo::Sac) };
    other.learner.run_dir = folder.path().join("run").display().to_string();
    let refusal = Trainer::open(&other).err().unwrap().to_string();
    assert!(refusal.contains("algo = sac") && refusal.contains("algo = ppo"), "{refusal}");
}

#[test]
fn a_new_run_starts_with_what_fits_of_another() {
    for algo in [Algo::HsPpo, Algo::Osac] {
        let old = if algo.off_policy() { off_policy(algo) } else { Config { algo, ..config(5) } };
        let folder = tempfile::tempdir().unwrap();
        let saved = go_on(folder.path(), &old, 2);
        let mut new = Config { seed: 6, ..old };
        new.learner.init_from = folder.path().join("run").display().to_string();
        let open = |config: &Config, name: &str| {
            let mut config = config.clone();
            config.learner.run_dir = folder.path().join(name).display().to_string();
            Trainer::open(&config).unwrap().0.snapshot()
        };
        let bits = |floats: &[f32]| floats.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
        let first = open(&new, "same");
        assert!(bits(&first.parameters) == saved, "{algo:?}");
        assert_eq!((first.updates, first.env_steps, first.random_warmup), (0, 0, false));
        assert!(0.0 < first.normaliser.count, "the statistics came along");

        // It learns, is stopped, and goes on as a run of its own.
        let stopped = tempfile::tempdir().unwrap();
        let whole = tempfile::tempdir().unwrap();
        go_on(stopped.path(), &new, 2);
        assert!(go_on(stopped.path(), &new, 4) == go_on(whole.path(), &new, 4), "{algo:?}");

        new.options.count = 1;
        let one = open(&new, "one");
        let trunk = one.contract.layout().segments[0].range();
        assert_eq!(bits(&one.parameters[trunk.clone()]), saved[trunk]);
        let other = Config { learner: new.learner, ..off_policy(Algo::Sac) };
        let other = Config { algo: if algo == Algo::Osac { Algo::Ppo } else { Algo::Sac }, ..other };
        assert_eq!(open(&other, "other").normaliser.mean, first.normaliser.mean);
    }
}

#[test]
fn off_policy_trains_asynchronously_too() {
    let mut config = off_policy(Algo::Osac);
    config.learner.update_mode = UpdateMode::Async;
    assert!(train(&config, 2) != train(&config, 5));
}

/// Opens the run of `folder`, makes updates until there are `updates`, saves; returns the bytes of the parameters.
fn go_on(folder: &std::path::Path, config: &Config, updates: u64) -> Vec<u32> {
    let mut config = config.clone();
    config.learner.run_dir = folder.join("run").display().to_string();
    let (trainer, table) = Trainer::open(&config).unwrap();
    let (run, life) = trainer.identity();
    let learner = Learner::new(run, life, Arc::new(config.contract().unwrap()), &config.learner, table);
    let mut serial = Serial::new(&config, trainer, learner).unwrap();
    serial.resume().unwrap();
    serial.publish();
    while serial.snapshot().updates < updates {
        serial.tick().unwrap();
    }
    serial.save().unwrap();
    serial.snapshot().parameters.iter().map(|value| value.to_bits()).collect()
}

/// The scores in each record of the run of `folder`.
fn charts(folder: &std::path::Path) -> Vec<BTreeMap<String, f64>> {
    let score = |name: &String| name.starts_with("charts/") && name != names::STEPS_PER_SEC;
    let rows = read(&folder.join("run")).unwrap();
    rows.into_iter().map(|row| row.values.into_iter().filter(|(name, _)| score(name)).collect()).collect()
}

#[test]
fn a_forced_lag_is_the_lag_that_is_learned_from() {
    for (lag, want) in [(0, 0.0), (3, 3.0)] {
        let mut config = config(5);
        config.learner.update_mode = UpdateMode::Async;
        config.learner.batch_steps = 240;
        config.train.forced_lag = lag;
        config.learner.save_interval = if lag == 0 { 100 } else { 1 };
        let folder = tempfile::tempdir().unwrap();
        go_on(folder.path(), &config, 8);
        let rows = read(&folder.path().join("run")).unwrap();
        let last = &rows.last().unwrap().values;
        assert!((want..want + 1.0).contains(&last["lag/mean"]), "{last:?}");
        assert_eq!(last["lag/min"], want);
    }
}

#[test]
fn a_run_stopped_at_any_update_and_resumed_is_the_uninterrupted_one() {
    let mut config = config(5);
    // Everything that a simulator can hold on to: noise, late commands, varied arms.
    config.sim.told.latency_ticks = 1;
    config.sim.told.position_noise_rad = 0.001;
    config.sim.told.mass_range = 0.2;
    let whole = tempfile::tempdir().unwrap();
    let expected = go_on(whole.path(), &config, 5);
    let charts = charts(whole.path());
    assert!(2 < charts.iter().filter(|row| row.contains_key(names::RETURN_STD)).count(), "{charts:?}");
    for stop in 1..5 {
        let folder = tempfile::tempdir().unwrap();
        go_on(folder.path(), &config, stop);
        assert!(go_on(folder.path(), &config, 5) == expected, "other bytes after a stop at update {stop}");
        assert_eq!(self::charts(folder.path()), charts, "other scores after a stop at update {stop}");
    }
}

/// Verdicts on a short training, whose rollout and learner agree.
fn judged(lr: f64) -> Vec<Verdict> {
    let mut config = Config { hidden: vec![64, 64], ..Config::default() };
    config.train.envs = 16;
    config.sim.threads = 1;
    config.learner.hs_ppo.lr = lr;
    let folder = tempfile::tempdir().unwrap();
    go_on(folder.path(), &config, 24);
    let rows = read(&folder.path().join("run")).unwrap();
    let errors: Vec<f64> = rows.iter().filter_map(|row| row.values.get(names::LOG_PROB_ERROR).copied()).collect();
    assert_eq!(errors.len(), 24, "every record has the check");
    assert!(errors.iter().all(|error| *error < LOG_PROB_LIMIT / 10.0), "{errors:?}");
    verdicts(&rows, &config)
}

#[test]
fn a_short_training_is_judged_to_learn_and_one_that_takes_no_steps_is_not() {
    let learns = judged(7e-4);
    assert!(learns[0].level == Level::Good && learns[0].seen.starts_with("Learning:"), "{learns:?}");
    assert!(learns.iter().all(|verdict| verdict.level != Level::Bad), "{learns:?}");
    let stands = judged(1e-9);
    assert!(stands[0].level != Level::Good && !stands[0].change.is_empty(), "{stands:?}");
}
