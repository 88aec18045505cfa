//! A sentence is said once, until another comes.

use crate::error::Result;

/// The sentence that was said last.
#[derive(Default)]
pub(super) struct Told(String);

impl Told {
    /// What came out, or else why not, in the log.
    pub(super) fn tell<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                if self.is_new(&error.to_string()) {
                    tracing::error!("{error}");
                }
                None
            }
        }
    }

    /// A warning.
    pub(super) fn warn(&mut self, sentence: &str) {
        if self.is_new(sentence) {
            tracing::warn!("{sentence}");
        }
    }

    fn is_new(&mut self, sentence: &str) -> bool {
        let new = self.0 != sentence;
        if new {
            self.0 = sentence.into();
        }
        new
    }
}
