//! What is asked: observation layout, reward, success, end, reset distribution. One file a task.

use crate::contract::Field;
use crate::error::{Error, Result};

/// A task. Pure: plain numbers in, plain numbers out.
pub trait Task: Send + Sync {
    /// Layout of the observation.
    fn observation(&self) -> Vec<Field>;
}

/// The task of that name.
pub fn find(name: &str) -> Result<&'static dyn Task> {
    Err(Error::invalid(format!("there is no task `{name}`")))
}
