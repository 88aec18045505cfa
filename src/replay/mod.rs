//! What off-policy learning remembers: fragments of steps in bounded memory, drawn by priority, and the limiter that
//! keeps learning and recording in step. Pure: generators come in as arguments.

mod draw;
mod limiter;
mod state;
mod store;
mod sum_tree;
#[cfg(test)]
mod tests;

pub use draw::{Draw, Picked, importance};
pub use limiter::Limiter;
pub use state::spoiled;
pub use store::{Priority, Replay, Shape, Step, StepId};
pub use sum_tree::SumTree;
