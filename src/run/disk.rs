//! Writing that survives a power cut: whole or not at all.

use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Ties a system error to its path; the kinds that a person meets are told in a sentence.
pub(super) fn explain(path: &Path, error: io::Error) -> Error {
    let path_text = path.display();
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            Error::invalid(format!("{path_text} is on a read-only file system; a run folder must be writable"))
        }
        ErrorKind::PermissionDenied => Error::invalid(format!(
            "this user may not open {path_text}; a run folder must belong to the user who trains"
        )),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::invalid(format!("there is no space left to write {path_text}; free some and resume the run"))
        }
        _ => Error::io(path)(error),
    }
}

/// Writes a new file and waits until it is on the disk.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until a folder's entries are on the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Replaces `folder/name` whole: a reader sees the old bytes or the new ones.
pub(super) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, new) = (folder.join(name), folder.join(format!(".{name}.new")));
    write(&new, bytes)
        .and_then(|()| fs::rename(&new, &path))
        .and_then(|()| sync_folder(folder))
        .map_err(|error| explain(&path, error))
}
