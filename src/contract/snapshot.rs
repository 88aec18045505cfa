//! The snapshot: everything that acts, in one immutable piece, checked on arrival and swapped whole.

use super::{Contract, Hash};
use crate::error::{Error, Result};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use uuid::Uuid;

/// Statistics of the observation; they belong to the snapshot and are frozen inside a fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct Normaliser {
    /// Mean of each float.
    pub mean: Vec<f32>,
    /// Standard deviation of each float, positive.
    pub std: Vec<f32>,
    /// Normalised floats are clipped to `± clip`.
    pub clip: f32,
    /// Observations behind the statistics.
    pub count: f64,
}

impl Normaliser {
    /// Changes nothing but the clip.
    pub fn identity(obs_size: usize, clip: f32) -> Self {
        Self { mean: vec![0.0; obs_size], std: vec![1.0; obs_size], clip, count: 0.0 }
    }

    /// Normalises one or more observations, row-major, in place.
    pub fn apply(&self, observations: &mut [f32]) {
        for row in observations.chunks_exact_mut(self.mean.len()) {
            for ((value, mean), std) in row.iter_mut().zip(&self.mean).zip(&self.std) {
                *value = ((*value - mean) / std).clamp(-self.clip, self.clip);
            }
        }
    }
}

/// One version of the policy. Immutable; share it behind an `Arc`.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The run that it belongs to.
    pub run: Uuid,
    /// Start of the learner in this run.
    pub life: u32,
    /// Monotone within a life; newer = greater (life, version).
    pub version: u64,
    /// Updates that made it.
    pub updates: u64,
    /// Transitions that it has learned from.
    pub env_steps: u64,
    /// Act at random with it (off-policy warm-up).
    pub random_warmup: bool,
    /// What must agree.
    pub contract: Arc<Contract>,
    /// Statistics of the observation.
    pub normaliser: Normaliser,
    /// Flat, in the order of [`Contract::layout`].
    pub parameters: Arc<[f32]>,
}

impl Snapshot {
    /// (life, version): what makes it newer than another of the same run.
    pub fn age(&self) -> (u32, u64) {
        (self.life, self.version)
    }

    /// sha256 over everything that acts and everything that names it.
    pub fn hash(&self) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(self.run.as_bytes());
        hasher.update(self.life.to_le_bytes());
        hasher.update(self.version.to_le_bytes());
        hasher.update(self.updates.to_le_bytes());
        hasher.update(self.env_steps.to_le_bytes());
        hasher.update([u8::from(self.random_warmup)]);
        hasher.update(self.contract.to_json());
        hasher.update(self.normaliser.clip.to_le_bytes());
        hasher.update(self.normaliser.count.to_le_bytes());
        for floats in [&self.normaliser.mean[..], &self.normaliser.std[..], &self.parameters[..]] {
            hasher.update((floats.len() as u64).to_le_bytes());
            // a kilobyte at a time: a call for each float costs more than its hash
            let mut bytes = [0; 1024];
            for part in floats.chunks(bytes.len() / size_of::<f32>()) {
                for (place, float) in bytes.as_chunks_mut().0.iter_mut().zip(part) {
                    *place = float.to_le_bytes();
                }
                hasher.update(&bytes[..size_of_val(part)]);
            }
        }
        hasher.finalize().into()
    }

    /// Refuses what could not act: wrong shapes, non-finite floats, a normaliser that divides by nothing.
    pub fn check(&self) -> Result<()> {
        let (obs, want) = (self.contract.obs_size(), self.contract.layout().len());
        if self.parameters.len() != want {
            return Err(Error::invalid(format!(
                "snapshot {}.{} has {} parameters; its contract needs {want}",
                self.life,
                self.version,
                self.parameters.len()
            )));
        }
        if self.normaliser.mean.len() != obs || self.normaliser.std.len() != obs {
            return Err(Error::invalid(format!(
                "snapshot {}.{} normalises {} floats; its contract observes {obs}",
                self.life,
                self.version,
                self.normaliser.mean.len()
            )));
        }
        let finite = |floats: &[f32]| floats.iter().all(|float| float.is_finite());
        if !finite(&self.parameters) || !finite(&self.normaliser.mean) {
            return Err(Error::invalid(format!(
                "snapshot {}.{} holds a float that is not finite",
                self.life, self.version
            )));
        }
        let clips = 0.0 < self.normaliser.clip; // infinite: clips nothing
        if !self.normaliser.std.iter().all(|&std| std.is_finite() && 0.0 < std) || !clips {
            return Err(Error::invalid(format!(
                "snapshot {}.{} has a normaliser whose std or clip is not positive",
                self.life, self.version
            )));
        }
        Ok(())
    }
}
