//! Reading a checkpoint back: refuses what is cut, edited, foreign or of another format, each with a sentence.

use super::checkpoint::{Checkpoint, LEARNER, POLICY, REPLAY};
use super::manifest::{File, Manifest};
use super::tensors;
use crate::contract::{Contract, Snapshot};
use crate::data::Vectors;
use crate::error::{Error, Result};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Loads a checkpoint from its folder (see [`super::RunDir::resolve`]), all but the replay. With `ours`, its contract must
/// agree.
pub fn load(folder: &Path, ours: Option<&Contract>) -> Result<Checkpoint> {
    let manifest = Manifest::read(folder)?;
    let snapshot = snapshot(folder, &manifest, ours)?;
    let state = read(folder, &manifest, LEARNER, tensors::decode_learner)?;
    let config = serde_path_to_error::deserialize(&manifest.config).map_err(|error| {
        Error::invalid(format!(
            "the configuration in {}, written by version {}, does not fit this program: {error}",
            folder.display(),
            manifest.program
        ))
    })?;
    Ok(Checkpoint { snapshot, config, score: manifest.score, learner: manifest.learner, state, replay: None })
}

/// Loads what off-policy learning remembered; none where the checkpoint has no such part.
pub fn load_replay(folder: &Path) -> Result<Option<Vectors>> {
    let manifest = Manifest::read(folder)?;
    let there = manifest.files.contains_key(REPLAY);
    there.then(|| read(folder, &manifest, REPLAY, tensors::decode_learner)).transpose()
}

/// Loads the policy alone, as deployment needs it. With `ours`, its contract must agree.
pub fn load_snapshot(folder: &Path, ours: Option<&Contract>) -> Result<Snapshot> {
    snapshot(folder, &Manifest::read(folder)?, ours)
}

/// Refuses a checkpoint of another contract than ours; reads no more of it than that.
pub fn require_contract(folder: &Path, ours: &Contract) -> Result<()> {
    same(folder, &Manifest::read(folder)?, ours)
}

fn same(folder: &Path, manifest: &Manifest, ours: &Contract) -> Result<()> {
    ours.require_same("this configuration", &manifest.contract, &format!("the checkpoint {}", folder.display()))
}

fn snapshot(folder: &Path, manifest: &Manifest, ours: Option<&Contract>) -> Result<Snapshot> {
    if let Some(ours) = ours {
        same(folder, manifest, ours)?;
    }
    let (parameters, normaliser) =
        read(folder, manifest, POLICY, |bytes| tensors::decode_policy(bytes, &manifest.contract))?;
    let snapshot = Snapshot {
        run: manifest.run,
        life: manifest.life,
        version: manifest.version,
        updates: manifest.updates,
        env_steps: manifest.env_steps,
        random_warmup: manifest.random_warmup,
        contract: Arc::new(manifest.contract.clone()),
        normaliser,
        parameters: parameters.into(),
    };
    snapshot.check()?;
    let found = hex::encode(snapshot.hash());
    if found != manifest.weights_hash {
        return Err(Error::invalid(format!(
            "the weights in {} hash to {found}, and the manifest says {}",
            folder.display(),
            manifest.weights_hash
        )));
    }
    Ok(snapshot)
}

/// Reads one file whose length and hash are as the manifest says.
fn read<T>(folder: &Path, manifest: &Manifest, name: &str, decode: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
    let path = folder.join(name);
    let told = manifest
        .files
        .get(name)
        .ok_or_else(|| Error::invalid(format!("the manifest in {} does not list {name}", folder.display())))?;
    let length = fs::metadata(&path).map_err(Error::of_run(&path))?.len();
    if length != told.bytes {
        return Err(Error::invalid(format!(
            "{} has {length} bytes; the manifest says {}: it was cut or replaced",
            path.display(),
            told.bytes
        )));
    }
    let bytes = fs::read(&path).map_err(Error::of_run(&path))?;
    let found = File::of(&bytes);
    if found != *told {
        return Err(Error::invalid(format!(
            "{} hashes to {}; the manifest says {}: it was edited",
            path.display(),
            found.sha256,
            told.sha256
        )));
    }
    decode(&bytes).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
}
