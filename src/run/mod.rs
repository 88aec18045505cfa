//! The run folder: where a training lives on disk. Layout, life counter, checkpoints.
//!
//! ```text
//! runs/<task>__<algo>__<seed>__<unix seconds>/
//!   config.yaml            the full configuration, resolved
//!   life                   starts of the learner, +1 before anything is sent
//!   checkpoints/<updates>/ policy.safetensors, learner.safetensors, manifest.json; replay.safetensors off-policy
//!   streams.jsonl          how far the learner got in each stream
//!   metrics.jsonl, events.out.tfevents.*   written by `report`
//!   logs/                  one file a node
//! ```

mod checkpoint;
mod dir;
mod disk;
mod journal;
mod load;
mod manifest;
mod tensors;
#[cfg(test)]
mod tests;

pub use checkpoint::{Checkpoint, save};
pub use dir::{Held, RunDir, Which};
pub use journal::{Journal, Mark};
pub use load::{load, load_replay, load_snapshot, require_contract};
pub use manifest::{File, Manifest};
