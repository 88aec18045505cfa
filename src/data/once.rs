//! Batches by their numbers, so that one that was sent again counts once.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers that were met, by run, rollout and incarnation.
#[derive(Clone, Debug, Default)]
pub struct Once(BTreeMap<(String, String, u64), BTreeSet<u64>>);

impl Once {
    /// Whether the batch of this number comes for the first time.
    pub fn first(&mut self, run: &str, rollout: &str, incarnation: u64, seq: u64) -> bool {
        self.0.entry((run.to_owned(), rollout.to_owned(), incarnation)).or_default().insert(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_in_its_stream_and_run() {
        let mut once = Once::default();
        let met = [("a", "r0", 1, 0), ("a", "r0", 1, 1), ("a", "r0", 2, 0), ("a", "r1", 1, 0), ("b", "r0", 1, 0)];
        assert!(met.iter().all(|&(run, rollout, incarnation, seq)| once.first(run, rollout, incarnation, seq)));
        assert!(!met.iter().any(|&(run, rollout, incarnation, seq)| once.first(run, rollout, incarnation, seq)));
    }
}
