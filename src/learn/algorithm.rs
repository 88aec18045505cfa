//! The seam between what learns and what runs it: trainer, checkpoint and serial mode know no algorithm.

use super::{HsPpo, Metrics, Osac, state};
use crate::config::{Config, Purpose, Seed};
use crate::contract::{Contract, Inheritance, Snapshot};
use crate::data::{Fragment, Gathered, Vectors};
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use uuid::Uuid;

/// An algorithm and all that it has learned. Lives on one thread; the caller sets torch's threads.
pub trait Algorithm: Send {
    /// What acts, as version `version` of a run's life.
    fn snapshot(&self, run: Uuid, life: u32, version: u64) -> Snapshot;
    /// Updates done.
    fn updates(&self) -> u64;
    /// Transitions learned from, or remembered.
    fn env_steps(&self) -> u64;
    /// Gradient steps begun, ever: moves on while an update is under way.
    fn pulse(&self) -> Arc<AtomicU64>;
    /// One update from rows, sorted by the caller; `version` is the one that was published last.
    fn learn(&mut self, rows: Vec<Gathered>, version: u64) -> Result<Metrics>;
    /// Keeps rows in its replay without learning from them; what has none has no use for them.
    fn remember(&mut self, _rows: &[Gathered]) -> Result<()> {
        Ok(())
    }
    /// What a checkpoint keeps beside the snapshot.
    fn save(&self) -> Vectors;
    /// What it remembers, for a file of its own; none where nothing is.
    fn save_replay(&self) -> Option<Vectors>;
    /// Goes on exactly from the snapshot, [`Self::save`] and [`Self::save_replay`] of one checkpoint; without the last
    /// one, as told in the log.
    fn restore(&mut self, snapshot: &Snapshot, saved: &Vectors, replay: Option<&Vectors>) -> Result<()>;
    /// Starts with what fits of another run's snapshot and [`Self::save`]; optimisers and counts begin anew.
    fn inherit(&mut self, fits: &Inheritance, snapshot: &Snapshot, saved: &Vectors) -> Result<()>;
}

/// The algorithm of a configuration that learns online, at its start.
pub fn algorithm(config: &Config, contract: Arc<Contract>) -> Result<Box<dyn Algorithm>> {
    let seed = Seed::root(config.seed).of(Purpose::Parameters);
    if config.algo.offline() {
        let name = config.algo.name();
        return Err(Error::invalid(format!("algo = {name} learns from bags alone: handoff train --offline BAG")));
    }
    Ok(if config.algo.off_policy() {
        Box::new(Osac::new(contract, &config.learner.osac, config.limiter()?, seed)?)
    } else {
        Box::new(HsPpo::new(contract, &config.learner.hs_ppo, seed)?)
    })
}

impl Algorithm for HsPpo {
    fn snapshot(&self, run: Uuid, life: u32, version: u64) -> Snapshot {
        Self::snapshot(self, run, life, version)
    }

    fn updates(&self) -> u64 {
        Self::updates(self)
    }

    fn env_steps(&self) -> u64 {
        Self::env_steps(self)
    }

    fn pulse(&self) -> Arc<AtomicU64> {
        Self::pulse(self)
    }

    fn learn(&mut self, rows: Vec<Gathered>, version: u64) -> Result<Metrics> {
        let rows: Vec<Fragment> = rows.into_iter().map(|row| row.fragment).collect();
        self.update(&rows, version)
    }

    fn save(&self) -> Vectors {
        state::pack(self.state())
    }

    fn save_replay(&self) -> Option<Vectors> {
        None
    }

    fn restore(&mut self, snapshot: &Snapshot, saved: &Vectors, _none: Option<&Vectors>) -> Result<()> {
        Self::restore(self, state::unpack(snapshot, saved)?)
    }

    fn inherit(&mut self, fits: &Inheritance, snapshot: &Snapshot, saved: &Vectors) -> Result<()> {
        let mut state = self.state();
        fits.take_policy(&snapshot.parameters, &mut state.parameters);
        if fits.normaliser {
            state.observations = state::moments(saved, state::OBSERVATIONS)?;
        }
        if fits.critic() {
            state.returns = state::moments(saved, state::RETURNS)?;
        }
        Self::restore(self, state)
    }
}
