//! One file of a bag, whatever its storage.

use super::damage::Damage;
use super::files::{Unpacked, front};
use super::mcap::Mcap;
use super::sqlite::Sqlite;
use super::storage::{Look, Raw, Selection, Stream};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// A file that has been looked at.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) look: Look,
    pub(super) storage: &'static str,
    /// Kept unless it was unpacked: an unpacked file is thrown away, and made again to be read.
    opened: Option<Opened>,
}

#[derive(Clone, Debug)]
enum Opened {
    Mcap(Mcap),
    Sqlite(Sqlite),
    /// Nothing in it can be read.
    Nothing(Damage),
}

impl Part {
    /// Looks at a file. Refuses what is neither mcap nor sqlite3 if it is all that there is of the bag.
    pub(super) fn open(path: &Path, alone: bool) -> Result<Self> {
        let (unpacked, opened) = open(path, alone)?;
        let mut look = opened.look();
        look.damage.extend(unpacked.damage.clone());
        let storage = match opened {
            Opened::Mcap(_) => "mcap",
            Opened::Sqlite(_) => "sqlite3",
            Opened::Nothing(_) => "nothing",
        };
        let opened = (unpacked.path() == path).then_some(opened);
        Ok(Self { path: path.to_owned(), look, storage, opened })
    }

    /// Its messages.
    pub(super) fn read(&self, selection: Selection) -> Result<Box<dyn Stream>> {
        match &self.opened {
            Some(opened) => opened.read(selection),
            None => {
                let (unpacked, opened) = open(&self.path, false)?;
                let damage = self.look.damage.clone();
                Ok(Box::new(FromUnpacked { stream: opened.read(selection)?, damage, seen: 0, _unpacked: unpacked }))
            }
        }
    }
}

fn open(path: &Path, alone: bool) -> Result<(Unpacked, Opened)> {
    let unpacked = Unpacked::new(path)?;
    let stored = unpacked.path();
    let front = front(stored)?;
    let opened = if front.starts_with(Mcap::MAGIC) {
        Opened::Mcap(Mcap::open(path, stored)?)
    } else if front.starts_with(Sqlite::MAGIC) {
        Opened::Sqlite(Sqlite::open(path, stored)?)
    } else {
        let bytes = std::fs::metadata(path).map_err(Error::io(path))?.len();
        let what = match bytes {
            0 => "it is empty: its recorder was killed before it wrote, or has not yet".to_owned(),
            _ => format!("it is neither mcap nor sqlite3, as it begins with {}", hex::encode(&front)),
        };
        if alone && bytes != 0 && unpacked.damage.is_none() {
            return Err(Error::invalid(format!("{} is no bag: {what}", path.display())));
        }
        Opened::Nothing(Damage { file: path.to_owned(), offset: 0, what, bytes, messages: None })
    };
    Ok((unpacked, opened))
}

impl Opened {
    fn look(&self) -> Look {
        match self {
            Self::Mcap(file) => file.look(),
            Self::Sqlite(file) => file.look(),
            Self::Nothing(damage) => Look { damage: vec![damage.clone()], ..Look::default() },
        }
    }

    fn read(&self, selection: Selection) -> Result<Box<dyn Stream>> {
        match self {
            Self::Mcap(file) => file.read(selection),
            Self::Sqlite(file) => file.read(selection),
            Self::Nothing(damage) => Ok(Box::new(Nothing(vec![damage.clone()]))),
        }
    }
}

/// A stream that keeps its temporary file.
struct FromUnpacked {
    stream: Box<dyn Stream>,
    /// Of the packed file, then of the unpacked one.
    damage: Vec<Damage>,
    seen: usize,
    _unpacked: Unpacked,
}

impl Stream for FromUnpacked {
    fn next(&mut self) -> Result<Option<Raw>> {
        let raw = self.stream.next();
        let found = self.stream.damage();
        for damage in &found[self.seen.min(found.len())..] {
            if !self.damage.contains(damage) {
                self.damage.push(damage.clone());
            }
        }
        self.seen = found.len();
        raw
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

/// A file without a message that can be read.
struct Nothing(Vec<Damage>);

impl Stream for Nothing {
    fn next(&mut self) -> Result<Option<Raw>> {
        Ok(None)
    }

    fn damage(&self) -> &[Damage] {
        &self.0
    }
}
