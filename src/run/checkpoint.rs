//! A checkpoint: the snapshot and all that the learner needs to go on, saved whole or not at all.

use super::disk;
use super::manifest::{self, File, Manifest};
use super::tensors;
use super::{RunDir, dir};
use crate::config::Config;
use crate::contract::Snapshot;
use crate::data::Vectors;
use crate::error::{Error, Result};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the policy's file in a checkpoint's folder.
pub(super) const POLICY: &str = "policy.safetensors";
/// Name of the learner's file in a checkpoint's folder.
pub(super) const LEARNER: &str = "learner.safetensors";
/// Name of the replay's file in a checkpoint's folder.
pub(super) const REPLAY: &str = "replay.safetensors";
/// Prefix of a folder that is being written.
const WRITING: &str = ".writing-";
/// Prefix of a folder that is being replaced.
const REPLACED: &str = ".replaced-";

/// Everything that a stopped run needs to go on exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The policy; names run, life, version, updates, steps and contract.
    pub snapshot: Snapshot,
    /// The configuration that it was trained with.
    pub config: Config,
    /// What `best` goes by, finite; higher is better.
    pub score: Option<f64>,
    /// Counters, admission table: the learner's own business.
    pub learner: Value,
    /// Moments of the optimiser and other vectors.
    pub state: Vectors,
    /// What off-policy learning remembers; [`super::load_replay`] reads it, apart from the rest.
    pub replay: Option<Vectors>,
}

impl Checkpoint {
    fn encode(&self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let snapshot = &self.snapshot;
        snapshot.check()?;
        if self.score.is_some_and(|score| !score.is_finite()) {
            return Err(Error::invalid("a checkpoint's score must be finite; leave it out if there is none"));
        }
        let policy = tensors::encode_policy(&snapshot.contract, &snapshot.parameters, &snapshot.normaliser)?;
        let learner = tensors::encode_learner(&self.state)?;
        let replay = self.replay.as_ref().map(tensors::encode_learner).transpose()?;
        let mut files: Vec<(&'static str, Vec<u8>)> = vec![(POLICY, policy), (LEARNER, learner)];
        files.extend(replay.map(|replay| (REPLAY, replay)));
        let config = serde_json::to_value(&self.config)
            .map_err(|error| Error::invalid(format!("the configuration cannot be written as JSON: {error}")))?;
        let manifest = Manifest {
            program: env!("CARGO_PKG_VERSION").into(),
            run: snapshot.run,
            life: snapshot.life,
            version: snapshot.version,
            updates: snapshot.updates,
            env_steps: snapshot.env_steps,
            random_warmup: snapshot.random_warmup,
            score: self.score,
            weights_hash: hex::encode(snapshot.hash()),
            contract_hash: hex::encode(snapshot.contract.hash()),
            contract: (*snapshot.contract).clone(),
            files: files.iter().map(|(name, bytes)| ((*name).into(), File::of(bytes))).collect(),
            config,
            learner: self.learner.clone(),
        };
        files.push((manifest::NAME, manifest.encode()?));
        Ok(files)
    }
}

/// Saves a checkpoint as `checkpoints/<updates>` and then deletes all but the newest `keep` (at least one) and the best.
/// Whole or not at all: the files are on the disk before their folder gets its name. Calls `written` as it gets on.
/// Returns the folder.
pub fn save(run: &RunDir, checkpoint: &Checkpoint, keep: usize, written: &dyn Fn()) -> Result<PathBuf> {
    let folder = run.checkpoint_folder();
    let files = checkpoint.encode()?;
    tidy(&folder)?;
    let name = format!("{:010}", checkpoint.snapshot.updates);
    let saved = install(&folder, &name, &files, |path, bytes| disk::write(path, bytes, written))?;
    prune(&folder, keep)?;
    Ok(saved)
}

/// Writes `files` under `folder/name`, at once for every reader. `write` is [`disk::write`] but in tests.
pub(super) fn install(
    folder: &Path,
    name: &str,
    files: &[(&str, Vec<u8>)],
    write: impl Fn(&Path, &[u8]) -> io::Result<()>,
) -> Result<PathBuf> {
    let (target, writing) = (folder.join(name), folder.join(format!("{WRITING}{name}")));
    let replaced = folder.join(format!("{REPLACED}{name}"));
    let attempt = || -> Result<()> {
        fs::create_dir(&writing).map_err(Error::of_run(&writing))?;
        for (file, bytes) in files {
            let path = writing.join(file);
            write(&path, bytes).map_err(Error::of_run(&path))?;
        }
        let swap = || -> io::Result<()> {
            disk::sync_folder(&writing)?;
            if target.exists() {
                fs::rename(&target, &replaced)?;
            }
            fs::rename(&writing, &target)?;
            disk::sync_folder(folder)
        };
        swap().map_err(Error::of_run(&target))
    };
    let outcome = attempt();
    tidy(folder)?;
    outcome.map(|()| target)
}

/// Clears what a killed learner left: deletes half-written folders, and puts back what was about to be replaced.
pub(super) fn tidy(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::of_run(folder))? {
        let path = entry.map_err(Error::of_run(folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let target = name.strip_prefix(REPLACED).map(|name| folder.join(name));
        match target {
            Some(target) if !target.exists() => fs::rename(&path, target),
            Some(_) => fs::remove_dir_all(&path),
            None if name.starts_with(WRITING) => fs::remove_dir_all(&path),
            None => Ok(()),
        }
        .map_err(Error::of_run(&path))?;
    }
    Ok(())
}

fn prune(folder: &Path, keep: usize) -> Result<()> {
    let found = dir::list(folder)?;
    let best = dir::best(&found);
    let old = found.len().saturating_sub(keep.max(1));
    for (_, path) in found.iter().take(old).filter(|(_, path)| Some(path.as_path()) != best) {
        fs::remove_dir_all(path).map_err(Error::of_run(path))?;
    }
    Ok(())
}
