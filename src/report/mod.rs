//! What a person sees: metrics, statistics, evaluation, progress, learning curves, logs.

pub mod audit;
mod curve;
mod evaluation;
mod events;
pub mod logs;
mod metrics;
mod progress;
pub mod stats;

pub use curve::{Curve, draw};
pub use evaluation::{Evaluation, OptionUse};
pub use metrics::{Clock, Recorder, Row, names, read};
pub use progress::{Progress, Status, line};
