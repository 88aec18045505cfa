//! What is remembered and how it travels: transitions, fragments, batches, and the protocol's pure state machines.
//! Every state machine takes the time as an argument (`now`: steady, since any start) and touches neither clock,
//! network nor file; counters are public.
//!
//! **A rollout** keeps a [`Follow`] and an [`Outbox`]. On each learner status: [`Follow::status`]; if it says
//! [`Heard::Adopted`], [`Outbox::adopt`], and open fragments end. On offered weights: [`Follow::offered`] (the same),
//! [`Follow::wants`], check the snapshot, [`Follow::holds`]. On each ack: [`Outbox::acknowledge`]. At each control tick:
//! [`Follow::may_act`] with [`Outbox::full`], then [`Follow::may_step`] and [`Follow::stepped`] for each environment;
//! what is recorded goes to [`Outbox::push`] when a fragment is full, when the phase changes, and on [`Wait::Quota`].
//! In between: send all of [`Outbox::due`], and pull weights when [`Follow::pull_due`].
//!
//! **A learner** keeps an [`Admission`], a [`Gather`] and, in the synchronous mode, a [`Coordinator`]. On each batch:
//! [`Admission::receive`] with [`Coordinator::accept`] (or [`Accept::Life`]); if admitted, [`Coordinator::admitted`] and
//! [`Gather::put`]; then every pair of [`Gather::moved`] to [`Admission::consumed`]. On each rollout status:
//! [`Admission::require_newest`], [`Admission::heard`], [`Coordinator::status`]. After each of these, and at 5 Hz: act on
//! the events of [`Coordinator::tick`] and send [`Admission::acks_due`]. On [`PhaseEvent::Complete`] (asynchronous:
//! whenever idle) [`Gather::take`], [`join`], learn, publish, [`Coordinator::published`]. A checkpoint holds
//! [`Admission::table`]; once it is on disk, [`Admission::durable`].

mod admission;
mod arm;
pub mod audit;
mod check;
mod episodes;
mod follow;
mod fragment;
mod gather;
mod ledger;
mod lifecycle;
mod link;
mod once;
mod phase;
mod pieces;
mod status;
mod stream;
mod suspects;
#[cfg(test)]
mod tests;
mod vectors;
pub mod wire;

pub use admission::{Accept, Admission, AdmissionTotals, Table, Verdict};
pub use arm::{ArmCommands, ArmStates, HAND_DOF, Operation, STATE_DOF};
pub use check::{Refusal, check};
pub use episodes::{Logged, Part};
pub use follow::{Act, Follow, Heard, Wait};
pub use fragment::{Batch, Choice, End, EpisodeStats, Final, Forced, Fragment, NO_OPTION, StreamId, Transition};
pub use gather::{Gather, GatherCounters, Gathered, join};
pub use lifecycle::{Change, Moved, Stage};
pub use link::{GoalPose, JointState, OptionState, Scene};
pub use once::Once;
pub use phase::{Coordinator, Out, PhaseEvent};
pub use pieces::MAX_BATCH_BYTES;
pub use status::{Ack, LearnerStatus, Refused, RolloutStatus};
pub use stream::{Hold, Origin, Outbox, OutboxCounters};
pub use vectors::Vectors;
