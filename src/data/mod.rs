//! What is remembered and how it travels: transitions, fragments, batches, and the protocol's pure state machines.
//! Every state machine takes the time as an argument and touches neither clock, network nor file.

mod arm;
mod fragment;

pub use arm::{ArmCommands, ArmStates, HAND_DOF, Operation, STATE_DOF};
pub use fragment::{Batch, End, EpisodeStats, Final, Forced, Fragment, NO_OPTION, StreamId, Transition};
