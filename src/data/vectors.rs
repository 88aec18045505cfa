//! Named vectors: how a state goes into a checkpoint and back.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// What a learner or a replay needs to go on exactly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    /// Single-precision vectors by name.
    pub floats: BTreeMap<String, Vec<f32>>,
    /// Double-precision vectors by name; no name may be in both.
    pub doubles: BTreeMap<String, Vec<f64>>,
}

impl Vectors {
    /// A vector of floats; refuses what was saved without it.
    pub fn floats(&self, name: &str) -> Result<&[f32]> {
        self.floats.get(name).map(Vec::as_slice).ok_or_else(|| missing(name))
    }

    /// A vector of doubles.
    pub fn doubles(&self, name: &str) -> Result<&[f64]> {
        self.doubles.get(name).map(Vec::as_slice).ok_or_else(|| missing(name))
    }

    /// The first number of a vector of doubles.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.doubles(name)?.first().copied().ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> Error {
    Error::invalid(format!("the checkpoint has no `{name}`: it is of another algorithm"))
}
