//! The tree of seeds: each draw has a key of its own, so that drawing more in one place changes no other.

use crate::defect::defect;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};

/// A node of the tree. Children are named by numbers; a leaf gives a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed([u8; 32]);

/// What the draws below a node are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial parameters.
    Parameters = 1,
    /// Order of minibatches.
    Minibatches = 2,
    /// Decisions of a rollout: options, terminations, actions.
    Decisions = 3,
    /// Start pose and goal of an episode.
    Episodes = 4,
    /// Latency, noise and randomisation of the simulator.
    Simulator = 5,
    /// Evaluation.
    Evaluation = 6,
    /// Draws from replay.
    Replay = 7,
    /// Actions that a learner imagines.
    Imagination = 8,
}

impl Seed {
    /// The root of a run.
    pub fn root(seed: u64) -> Self {
        let seed = if defect("seed_ignored") { uuid::Uuid::new_v4().as_u64_pair().0 } else { seed };
        Self(Sha256::digest(seed.to_le_bytes()).into())
    }

    /// A child by number.
    pub fn child(self, number: u64) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(number.to_le_bytes());
        Self(hasher.finalize().into())
    }

    /// A child by purpose.
    pub fn of(self, purpose: Purpose) -> Self {
        self.child(purpose as u64)
    }

    /// A generator keyed by this node, at draw number `tick`: the same (node, tick) gives the same numbers,
    /// whatever was drawn before.
    pub fn rng(self, tick: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(tick);
        rng
    }

    /// The node as one number, for a message.
    pub fn number(self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|byte| self.0[byte]))
    }
}
