//! What a bag has lost, said in messages and bytes.

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// One place where something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in it [bytes]; 0 if the whole file is meant.
    pub offset: u64,
    /// What was found.
    pub what: String,
    /// Bytes that could not be used.
    pub bytes: u64,
    /// Messages that were in them; none: nobody knows.
    pub messages: Option<u64>,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at byte {}: {}; lost {} bytes, ", self.file.display(), self.offset, self.what, self.bytes)?;
        match self.messages {
            Some(messages) => write!(out, "{messages} messages"),
            None => write!(out, "an unknown number of messages"),
        }
    }
}
