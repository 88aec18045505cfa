//! mcap files, whole or broken, chunked or not, in any order.

mod piece;
mod read;
mod records;
mod resync;
mod scan;
mod topics;
mod window;

use super::storage::{Look, Selection, Stream};
use crate::error::{Error, Result};
use scan::Scan;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An mcap file that has been looked at.
#[derive(Clone, Debug)]
pub(super) struct Mcap {
    scan: Arc<Scan>,
    stored: PathBuf,
}

impl Mcap {
    pub(super) const MAGIC: &[u8] = records::MAGIC;

    /// `path` is the file as the user knows it; `stored` where it can be read.
    pub(super) fn open(path: &Path, stored: &Path) -> Result<Self> {
        let file = File::open(stored).map_err(Error::io(path))?;
        Ok(Self { scan: Arc::new(scan::scan(path, &file)?), stored: stored.to_owned() })
    }

    pub(super) fn look(&self) -> Look {
        let Scan { pieces, topics, damage, stated, .. } = &*self.scan;
        let spans = || pieces.iter().map(|piece| piece.span_ns).filter(|(start, end)| start <= end);
        let start = spans().map(|(start, _)| start).min();
        let end = spans().map(|(_, end)| end).max();
        Look { topics: topics.list.clone(), span_ns: start.zip(end), stated: *stated, damage: damage.clone() }
    }

    pub(super) fn read(&self, selection: Selection) -> Result<Box<dyn Stream>> {
        let file = File::open(&self.stored).map_err(Error::io(&self.stored))?;
        Ok(Box::new(read::Messages::new(self.scan.clone(), file, selection)))
    }
}
