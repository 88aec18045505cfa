//! `handoff train --offline`: learns from bags, in one process and without ROS.

use super::watch::Watch;
use crate::analysis::{Recorded, transitions};
use crate::config::{Algo, Config, Purpose, Seed};
use crate::data::Part;
use crate::error::{Error, Result};
use crate::learn::{Dataset, Offline};
use crate::node::learner::{Lesson, Work};
use crate::node::trainer::Trainer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Reads the bags of a configuration; says what was lost, and how the episodes fall.
pub fn algorithm(config: &Config, prefixes: &[PathBuf]) -> Result<Offline> {
    let offline = &config.learner.offline;
    if offline.bags.is_empty() {
        let name = config.algo.name();
        return Err(Error::invalid(format!("algo = {name} learns from bags: name them, --offline BAG...")));
    }
    crate::policy::set_threads(config.learner.torch_threads);
    let contract = Arc::new(config.contract()?);
    let Recorded { logged, left_out, damage } = transitions(&offline.paths(), &contract, prefixes)?;
    damage.iter().for_each(|damage| tracing::warn!("{damage}"));
    for (reason, count) in &left_out {
        let count = if *count == 0 { "an unknown number of".into() } else { count.to_string() };
        tracing::warn!("{count} transitions were left out: {reason}");
    }
    let dataset = Dataset::new(&contract, &logged, &config.learner)?;
    let words =
        [(Part::Train, "to train"), (Part::Validation, "to validate"), (Part::Test, "to test")].map(|(part, what)| {
            let (episodes, steps) = dataset.count(part);
            format!("{episodes} episodes ({steps} steps) {what}")
        });
    tracing::info!("{}", words.join(", "));
    let seed = Seed::root(config.seed).of(Purpose::Parameters);
    Offline::new(contract, &config.learner, dataset, config.algo == Algo::Bc, seed)
}

/// Learns until the budget is spent, and saves.
pub fn train(config: &Config, algorithm: Offline) -> Result<()> {
    let mut watch = Watch::new(Path::new(&config.learner.run_dir), config.option_count(), "");
    let (mut trainer, _) = Trainer::open_with(config, Box::new(algorithm))?;
    let start = Instant::now();
    let steps = config.learner.offline.gradient_steps * config.learner.offline.batch_size as u64;
    let late = || 0.0 < config.train.minutes && config.train.minutes * 60.0 <= start.elapsed().as_secs_f64();
    while trainer.env_steps() < steps && !late() {
        trainer.work(Work::Update(Lesson::default()))?;
        watch.show()?;
    }
    trainer.save()?;
    watch.finish();
    Ok(())
}
