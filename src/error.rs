//! The library's one error: each says in a sentence what was found, where, and what would be right.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

/// Result of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong below the program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value from outside does not fit; the sentence names the thing, the value and what would be right.
    #[error("{0}")]
    Invalid(String),
    /// Two sides disagree on the contract; one line a difference, each with both values.
    #[error("the contracts differ: {0}")]
    Contract(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// An [`Error::Invalid`] from anything that reads as a sentence.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::Invalid(sentence.into())
    }

    /// Ties a system error to its file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Ties a system error to what lies in a run folder; the kinds that a person meets are told in a sentence, as
    /// [`Error::Invalid`].
    pub fn of_run(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| {
            let path_text = path.display();
            match source.kind() {
                ErrorKind::ReadOnlyFilesystem => {
                    Self::invalid(format!("{path_text} is on a read-only file system; a run folder must be writable"))
                }
                ErrorKind::PermissionDenied => Self::invalid(format!(
                    "this user may not open {path_text}; a run folder must belong to the user who trains"
                )),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    Self::invalid(format!("there is no space left to write {path_text}; free some and resume the run"))
                }
                _ => Self::Io { path, source },
            }
        }
    }

    /// Ties a system error to a file or folder that somebody asked to be written; where another name would do, it is [`Error::Invalid`].
    pub fn unwritable(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| {
            let why = match source.kind() {
                ErrorKind::AlreadyExists => "it exists already",
                ErrorKind::NotFound => "its folder does not exist or takes nothing new",
                ErrorKind::NotADirectory => "what it lies in is no folder",
                ErrorKind::IsADirectory => "it is a folder",
                ErrorKind::PermissionDenied => "that is not permitted",
                ErrorKind::ReadOnlyFilesystem => "that is read-only",
                _ => return Self::Io { path, source },
            };
            Self::invalid(format!("{} cannot be written, as {why}: give another name", path.display()))
        }
    }
}

/// Refuses a setting out of range, with its key, its value and what would be right.
pub(crate) fn range<T: PartialOrd + Debug>(key: &str, value: T, allowed: impl RangeBounds<T>) -> Result<()> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let edge = |bound: Bound<&T>, closed: &str, open: &str| match bound {
        Bound::Included(edge) => format!("{closed} {edge:?}"),
        Bound::Excluded(edge) => format!("{open} {edge:?}"),
        Bound::Unbounded => "anything".into(),
    };
    Err(Error::invalid(format!(
        "{key} = {value:?} is out of range: it must be {} and {}",
        edge(allowed.start_bound(), "at least", "over"),
        edge(allowed.end_bound(), "at most", "under")
    )))
}
