//! The stages of a managed node: https://design.ros2.org/articles/node_lifecycle.html

use std::fmt;

/// Where a managed node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is loaded.
    Unconfigured,
    /// Loaded and checked; it does nothing.
    Inactive,
    /// At work.
    Active,
    /// At the end; nothing leads back.
    Finalized,
}

/// What leads from one stage to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Load and check.
    Configure,
    /// Forget what was loaded.
    CleanUp,
    /// Begin to work.
    Activate,
    /// Stop working.
    Deactivate,
    /// For good.
    Shutdown,
}

/// A change that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// What was done.
    pub change: Change,
    /// Where the node was.
    pub from: Stage,
    /// Where it is.
    pub to: Stage,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Configure, Self::CleanUp, Self::Activate, Self::Deactivate, Self::Shutdown];

    /// Where it leads from a stage, if it can be asked for there.
    pub fn leads(self, from: Stage) -> Option<Stage> {
        match (self, from) {
            (Self::Configure, Stage::Unconfigured) | (Self::Deactivate, Stage::Active) => Some(Stage::Inactive),
            (Self::CleanUp, Stage::Inactive) => Some(Stage::Unconfigured),
            (Self::Activate, Stage::Inactive) => Some(Stage::Active),
            (Self::Shutdown, Stage::Unconfigured | Stage::Inactive | Stage::Active) => Some(Stage::Finalized),
            _ => None,
        }
    }
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unconfigured, Self::Inactive, Self::Active, Self::Finalized];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unconfigured => "unconfigured",
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Finalized => "finalized",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configure => "configure",
            Self::CleanUp => "cleanup",
            Self::Activate => "activate",
            Self::Deactivate => "deactivate",
            Self::Shutdown => "shutdown",
        })
    }
}
