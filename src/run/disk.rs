//! Writing that survives a power cut: whole or not at all.

use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// What is waited for at once [bytes]; a slow card takes a second for it.
pub(super) const PIECE: usize = 8 << 20;

/// Writes a new file and waits until it is on the disk. Calls `written` after each piece that is.
pub(super) fn write(path: &Path, bytes: &[u8], written: &dyn Fn()) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    for piece in bytes.chunks(PIECE) {
        file.write_all(piece)?;
        file.sync_data()?;
        written();
    }
    file.sync_all()
}

/// Waits until a folder's entries are on the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Replaces `folder/name` whole: a reader sees the old bytes or the new ones.
pub(super) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, new) = (folder.join(name), folder.join(format!(".{name}.new")));
    write(&new, bytes, &|| {})
        .and_then(|()| fs::rename(&new, &path))
        .and_then(|()| sync_folder(folder))
        .map_err(Error::of_run(&path))
}
