//! `manifest.json`: what a checkpoint is, readable by people, sealed by a hash.

use crate::contract::Contract;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use uuid::Uuid;

/// Name of the file in a checkpoint's folder.
pub(super) const NAME: &str = "manifest.json";
/// The format that this program writes and reads.
const FORMAT: u32 = 1;

/// What is known of a file beside the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its length.
    pub bytes: u64,
    /// Its sha256, hex.
    pub sha256: String,
}

impl File {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: hex::encode(Sha256::digest(bytes)) }
    }
}

/// Everything of a checkpoint but its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program that wrote it.
    pub program: String,
    /// The run.
    pub run: Uuid,
    /// Start of the learner in this run.
    pub life: u32,
    /// Version of the weights within the life.
    pub version: u64,
    /// Updates made.
    pub updates: u64,
    /// Transitions learned from.
    pub env_steps: u64,
    /// Act at random with these weights.
    pub random_warmup: bool,
    /// What `best` goes by; higher is better.
    pub score: Option<f64>,
    /// Hash of the snapshot, hex: the same as on the wire.
    pub weights_hash: String,
    /// Hash of the contract, hex.
    pub contract_hash: String,
    /// What must agree.
    pub contract: Contract,
    /// The files beside it.
    pub files: BTreeMap<String, File>,
    /// The configuration.
    pub config: Value,
    /// Counters, admission table and whatever else the learner wants back; its own business.
    pub learner: Value,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    format: u32,
    sha256: String,
    manifest: Manifest,
}

/// Just enough of a file to know whether the rest can be understood.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Manifest {
    fn seal(&self) -> Result<String> {
        Ok(hex::encode(Sha256::digest(serde_json::to_vec(self).map_err(unwritable)?)))
    }

    /// The file's bytes.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let sealed = Sealed { format: FORMAT, sha256: self.seal()?, manifest: self.clone() };
        serde_json::to_vec_pretty(&sealed).map_err(unwritable)
    }

    /// Reads the manifest of a checkpoint's folder; refuses another format, a cut or an edited one.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let bytes = fs::read(&path).map_err(Error::of_run(&path))?;
        let broken = |error| Error::invalid(format!("{} is cut or no manifest: {error}", path.display()));
        let Format { format } = serde_json::from_slice(&bytes).map_err(broken)?;
        if format != FORMAT {
            return Err(Error::invalid(format!(
                "{} has format {format}; this program ({}) reads format {FORMAT}",
                path.display(),
                env!("CARGO_PKG_VERSION")
            )));
        }
        let Sealed { sha256, manifest, .. } = serde_json::from_slice(&bytes).map_err(broken)?;
        let found = manifest.seal()?;
        if found != sha256 {
            return Err(Error::invalid(format!(
                "{} was edited: its contents hash to {found}, and it says {sha256}",
                path.display()
            )));
        }
        let found = hex::encode(manifest.contract.hash());
        if found != manifest.contract_hash {
            return Err(Error::invalid(format!(
                "the contract in {} hashes to {found}, and the manifest says {}",
                path.display(),
                manifest.contract_hash
            )));
        }
        Ok(manifest)
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::invalid(format!("the manifest cannot be written as JSON: {error}"))
}

/// The score alone; the rest of the manifest is not checked for it.
#[derive(Deserialize)]
pub(super) struct Score {
    score: Option<f64>,
}

impl Score {
    /// Of a checkpoint's folder; none if it has none or cannot be read.
    pub(super) fn of(folder: &Path) -> Option<f64> {
        #[derive(Deserialize)]
        struct Outer {
            manifest: Score,
        }
        let bytes = fs::read(folder.join(NAME)).ok()?;
        serde_json::from_slice::<Outer>(&bytes).ok()?.manifest.score
    }
}
