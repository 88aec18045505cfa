//! Episodes out of recordings: whose they are, and what they are for.

use super::{Fragment, StreamId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A fragment out of a recording, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// The run whose weights decided it.
    pub run: Uuid,
    /// Who recorded it.
    pub stream: StreamId,
    /// Successive steps of one environment.
    pub fragment: Fragment,
}

/// What an episode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// To learn from.
    Train,
    /// To see whether what is learned holds elsewhere.
    Validation,
    /// To look at once, in the end.
    Test,
}

impl Part {
    /// Where an episode belongs, by the hash of its identity alone: the same in every bag that has it, in every order, on every machine.
    /// `validation` and `test` are shares of all episodes.
    pub fn of(logged: &Logged, episode: u64, validation: f64, test: f64) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(logged.run.as_bytes());
        hasher.update(logged.stream.incarnation.to_le_bytes());
        hasher.update(logged.fragment.env.to_le_bytes());
        hasher.update(episode.to_le_bytes());
        hasher.update(logged.stream.rollout.as_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        let first = hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        match first as f64 / u64::MAX as f64 {
            at if at < validation => Self::Validation,
            at if at < validation + test => Self::Test,
            _ => Self::Train,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(rollout: &str, incarnation: u64, env: u32) -> Logged {
        let fragment = Fragment { env, first: 0, obs_size: 1, steps: vec![], observations: vec![], finals: vec![] };
        Logged { run: Uuid::from_u128(7), stream: StreamId { rollout: rollout.into(), incarnation }, fragment }
    }

    #[test]
    fn shares_are_kept_and_a_larger_share_of_validation_takes_from_the_rest_alone() {
        let parts = |validation: f64, test: f64| -> Vec<Part> {
            (0..20_000).map(|episode| Part::of(&logged("r0", 5, 3), episode, validation, test)).collect()
        };
        let some = parts(0.1, 0.2);
        let share = |part: Part| some.iter().filter(|own| **own == part).count() as f64 / some.len() as f64;
        // three standard deviations of a share of 0.1 are 0.0064, of 0.2 0.0085
        assert!((share(Part::Validation) - 0.1).abs() < 0.0064 && (share(Part::Test) - 0.2).abs() < 0.0085);
        let more = parts(0.3, 0.2);
        assert!(some.iter().zip(&more).all(|(some, more)| *some != Part::Validation || *more == Part::Validation));
        assert!(parts(0.0, 0.0).iter().all(|part| *part == Part::Train));
    }

    #[test]
    fn the_part_is_that_of_the_first_build_for_ever() {
        // worked out with Python: hashlib.sha256(run + incarnation + env + episode + rollout), little-endian
        let found: Vec<Part> = (0..8).map(|episode| Part::of(&logged("r0", 5, 3), episode, 0.3, 0.3)).collect();
        let known = [
            Part::Train,
            Part::Test,
            Part::Test,
            Part::Validation,
            Part::Train,
            Part::Validation,
            Part::Test,
            Part::Train,
        ];
        assert_eq!(found, known);
    }

    #[test]
    fn every_word_of_the_identity_counts() {
        let parts =
            |logged: Logged| -> Vec<Part> { (0..64).map(|episode| Part::of(&logged, episode, 0.3, 0.3)).collect() };
        let one = parts(logged("r0", 5, 3));
        for other in [logged("r1", 5, 3), logged("r0", 6, 3), logged("r0", 5, 4)] {
            assert_ne!(parts(other), one);
        }
        assert_ne!(parts(Logged { run: Uuid::nil(), ..logged("r0", 5, 3) }), one);
    }
}
