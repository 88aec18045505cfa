//! The library's one error: each says in a sentence what was found, where, and what would be right.

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
}
