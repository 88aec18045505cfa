//! How far the learner got in each stream, on disk before its acknowledgements go out: what a killed learner had beyond
//! its newest checkpoint is then known, also of streams that ended before.

use super::disk;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const NAME: &str = "streams.jsonl";
/// Lines after which only the newest of each stream are kept.
const LINES: usize = 4096;

/// A stream, and the transitions of it that the learner has judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Rollout id.
    pub rollout: String,
    /// Its incarnation.
    pub incarnation: u64,
    /// Transitions.
    pub position: u64,
}

/// The file `streams.jsonl` of a run folder. A line is in the page cache when [`Self::append`] returns: it survives the
/// process, though not a power cut.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    file: File,
    newest: BTreeMap<(String, u64), u64>,
    lines: usize,
}

impl Journal {
    /// Opens the journal of a run folder, which the lives before have written. A line that a kill cut is left out.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(Error::of_run(&path))?,
        };
        let mut newest = BTreeMap::new();
        for mark in text.lines().filter_map(|line| serde_json::from_str::<Mark>(line).ok()) {
            let position: &mut u64 = newest.entry((mark.rollout, mark.incarnation)).or_default();
            *position = mark.position.max(*position);
        }
        let file = rewrite(folder, &newest)?;
        Ok(Self { folder: folder.to_owned(), file, newest, lines: 0 })
    }

    /// The newest mark of each stream.
    pub fn marks(&self) -> Vec<Mark> {
        let mark = |((rollout, incarnation), position): (&(String, u64), &u64)| Mark {
            rollout: rollout.clone(),
            incarnation: *incarnation,
            position: *position,
        };
        self.newest.iter().map(mark).collect()
    }

    /// Writes marks down.
    pub fn append(&mut self, marks: &[Mark]) -> Result<()> {
        let mut lines = Vec::new();
        for mark in marks {
            let position = self.newest.entry((mark.rollout.clone(), mark.incarnation)).or_default();
            *position = mark.position.max(*position);
            lines.extend(line(mark));
        }
        self.lines += marks.len();
        if LINES <= self.lines {
            self.file = rewrite(&self.folder, &self.newest)?;
            self.lines = 0;
            return Ok(());
        }
        self.file.write_all(&lines).map_err(Error::of_run(&self.folder.join(NAME)))
    }
}

fn line(mark: &Mark) -> Vec<u8> {
    let mut line = serde_json::to_vec(mark).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The file anew with the newest marks alone, open at its end.
fn rewrite(folder: &Path, newest: &BTreeMap<(String, u64), u64>) -> Result<File> {
    let mut text = Vec::new();
    for ((rollout, incarnation), position) in newest {
        text.extend(line(&Mark { rollout: rollout.clone(), incarnation: *incarnation, position: *position }));
    }
    disk::replace(folder, NAME, &text)?;
    let path = folder.join(NAME);
    OpenOptions::new().append(true).open(&path).map_err(Error::of_run(&path))
}
