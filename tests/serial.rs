//! The serial mode: deterministic, and made of the same state machines as the nodes.

use handoff::app::serial::Serial;
use handoff::config::Config;
use handoff::node::learner::Learner;
use handoff::node::trainer::Trainer;
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
    flat.algo = handoff::config::Algo::Ppo;
    assert_eq!(train(&flat, 2).len(), flat.contract().unwrap().layout().len());
    let mut lagged = config(3);
    lagged.learner.update_mode = handoff::config::UpdateMode::Async;
    lagged.learner.batch_steps = 240;
    train(&lagged, 2);
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

#[test]
fn a_run_stopped_at_any_update_and_resumed_is_the_uninterrupted_one() {
    let mut config = config(5);
    // Everything that a simulator can hold on to: noise, late commands, varied arms.
    config.sim.told.latency_ticks = 1;
    config.sim.told.position_noise_rad = 0.001;
    config.sim.told.mass_range = 0.2;
    let whole = tempfile::tempdir().unwrap();
    let expected = go_on(whole.path(), &config, 5);
    for stop in 1..5 {
        let folder = tempfile::tempdir().unwrap();
        go_on(folder.path(), &config, stop);
        assert!(go_on(folder.path(), &config, 5) == expected, "other bytes after a stop at update {stop}");
    }
}
