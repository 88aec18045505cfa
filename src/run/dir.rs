//! One run folder: made, opened, its life counted, its checkpoints found.

use super::disk;
use super::manifest::Score;
use crate::error::{Error, Result};
use std::fs::{self, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const CONFIG: &str = "config.yaml";
const LIFE: &str = "life";
const CHECKPOINTS: &str = "checkpoints";
const LOGS: &str = "logs";

/// A run folder that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// A folder that no other learner writes into; the lock ends with the process at the latest.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "its life is the lock's")] fs::File);

/// Which checkpoint of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with the most updates.
    Newest,
    /// The one with the highest score; the newest if none has a score.
    Best,
}

impl RunDir {
    /// Makes `<parent>/<task>__<algo>__<seed>__<unix seconds>/` with its configuration, on the disk when this returns.
    /// Refuses a folder that is there already.
    pub fn create(
        parent: &Path,
        task: &str,
        algo: &str,
        seed: u64,
        now: SystemTime,
        config_yaml: &str,
    ) -> Result<Self> {
        let secs = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let path = parent.join(format!("{task}__{algo}__{seed}__{secs}"));
        Self::create_at(&path, config_yaml)
    }

    /// The same, at a path of the caller's choice.
    pub fn create_at(path: &Path, config_yaml: &str) -> Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(Error::of_run(parent))?;
        fs::create_dir(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Error::invalid(format!("the run folder {} exists already; a new run needs a new one", path.display()))
            }
            _ => Error::of_run(path)(error),
        })?;
        for folder in [CHECKPOINTS, LOGS] {
            fs::create_dir(path.join(folder)).map_err(Error::of_run(&path.join(folder)))?;
        }
        disk::replace(path, LIFE, b"0\n")?;
        disk::replace(path, CONFIG, config_yaml.as_bytes())?;
        disk::sync_folder(parent).map_err(Error::of_run(parent))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Opens a run folder; nothing is written, so that a read-only copy serves too.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(Error::invalid(format!("{} is a file; a run folder was expected", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::invalid(format!("there is no run folder {}", path.display())));
            }
            Err(error) => return Err(Error::of_run(&path)(error)),
        }
        match [CONFIG, LIFE, CHECKPOINTS].into_iter().find(|name| !path.join(name).exists()) {
            Some(missing) => Err(Error::invalid(format!("{} is no run folder: it has no {missing}", path.display()))),
            None => Ok(Self { path }),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the checkpoints.
    pub fn checkpoint_folder(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// Folder of the logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join(LOGS)
    }

    /// The configuration as text.
    pub fn config_yaml(&self) -> Result<String> {
        let path = self.path.join(CONFIG);
        fs::read_to_string(&path).map_err(Error::of_run(&path))
    }

    /// Replaces the configuration, at once for every reader.
    pub fn write_config(&self, config_yaml: &str) -> Result<()> {
        disk::replace(&self.path, CONFIG, config_yaml.as_bytes())
    }

    /// Starts of the learner so far; 0 before the first.
    pub fn life(&self) -> Result<u32> {
        let path = self.path.join(LIFE);
        let text = fs::read_to_string(&path).map_err(Error::of_run(&path))?;
        text.trim().parse().map_err(|_| {
            Error::invalid(format!(
                "{} holds `{}`; it should hold a whole number below 2^32",
                path.display(),
                text.trim()
            ))
        })
    }

    /// Keeps the folder for one learner while the returned value lives. Refused while another has it.
    pub fn hold(&self) -> Result<Held> {
        let folder = fs::File::open(&self.path).map_err(Error::of_run(&self.path))?;
        match folder.try_lock() {
            Ok(()) => Ok(Held(folder)),
            Err(TryLockError::WouldBlock) => Err(Error::invalid(format!(
                "the run {} is being trained by another process; wait until that ends, or stop it",
                self.path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(Error::of_run(&self.path)(error)),
        }
    }

    /// Counts one more start of the learner, on the disk when this returns, and clears what a killed one left half
    /// written. Two learners that start at once get two lives.
    pub fn start_life(&self) -> Result<u32> {
        let config = self.path.join(CONFIG);
        let lock = OpenOptions::new().read(true).write(true).open(&config);
        let lock = lock.and_then(|file| file.lock().map(|()| file)).map_err(Error::of_run(&config))?;
        let life = self.life()?.checked_add(1).ok_or_else(|| {
            Error::invalid(format!("the learner of {} has had all its 2^32 - 1 lives", self.path.display()))
        })?;
        disk::replace(&self.path, LIFE, format!("{life}\n").as_bytes())?;
        super::checkpoint::tidy(&self.checkpoint_folder())?;
        drop(lock);
        Ok(life)
    }

    /// Checkpoints, oldest first: updates and folder. What is half written is not among them.
    pub fn checkpoints(&self) -> Result<Vec<(u64, PathBuf)>> {
        list(&self.checkpoint_folder())
    }

    /// One checkpoint's folder; none if there are no checkpoints yet.
    pub fn checkpoint(&self, which: Which) -> Result<Option<PathBuf>> {
        let found = self.checkpoints()?;
        let best = match which {
            Which::Newest => None,
            Which::Best => best(&found),
        };
        Ok(best.map(Path::to_owned).or_else(|| found.last().map(|(_, path)| path.clone())))
    }

    /// The checkpoint that a person means: a checkpoint's folder itself, or one of a run's folder.
    pub fn resolve(path: &Path, which: Which) -> Result<PathBuf> {
        if path.join(super::manifest::NAME).exists() {
            return Ok(path.to_owned());
        }
        Self::open(path)?
            .checkpoint(which)?
            .ok_or_else(|| Error::invalid(format!("the run {} has no checkpoint yet", path.display())))
    }
}

/// Folders whose names are numbers, in their order.
pub(super) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::of_run(folder))? {
        let path = entry.map_err(Error::of_run(folder))?.path();
        let updates = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        found.extend(updates.map(|updates| (updates, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// The highest score; the newer of equals.
pub(super) fn best(found: &[(u64, PathBuf)]) -> Option<&Path> {
    let scored = found.iter().filter_map(|(_, path)| Score::of(path).map(|score| (score, path.as_path())));
    scored.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, path)| path)
}
