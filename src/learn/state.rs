//! The algorithms' states as the named vectors of a checkpoint, and back.

use super::estimate::Scale;
use super::{AdamState, Moments, State};
use crate::config;
use crate::contract::Snapshot;
use crate::data::Vectors;
use crate::error::Result;

/// The optimiser of an on-policy network.
pub(super) const ADAM: &str = "adam";
/// Statistics of the observation: alike in all algorithms.
pub(super) const OBSERVATIONS: &str = "observations";
/// Statistics of the discounted return.
pub(super) const RETURNS: &str = "returns";
/// Gradient steps that were not made.
pub(super) const SKIPPED: &str = "skipped";

/// Files an optimiser under a name.
pub(super) fn put_adam(vectors: &mut Vectors, name: &str, adam: AdamState) {
    vectors.floats.insert(format!("{name}.first"), adam.first);
    vectors.floats.insert(format!("{name}.second"), adam.second);
    vectors.doubles.insert(format!("{name}.steps"), adam.steps.into_iter().map(|steps| steps as f64).collect());
}

/// What [`put_adam`] filed.
pub(super) fn adam(vectors: &Vectors, name: &str) -> Result<AdamState> {
    Ok(AdamState {
        first: vectors.floats(&format!("{name}.first"))?.to_vec(),
        second: vectors.floats(&format!("{name}.second"))?.to_vec(),
        steps: vectors.doubles(&format!("{name}.steps"))?.iter().map(|&steps| steps as u64).collect(),
    })
}

/// Files statistics under a name.
pub(super) fn put_moments(vectors: &mut Vectors, name: &str, moments: Moments) {
    vectors.doubles.insert(format!("{name}.count"), vec![moments.count]);
    vectors.doubles.insert(format!("{name}.mean"), moments.mean);
    vectors.doubles.insert(format!("{name}.square"), moments.square);
}

/// What [`put_moments`] filed.
pub(super) fn moments(vectors: &Vectors, name: &str) -> Result<Moments> {
    Ok(Moments {
        count: vectors.number(&format!("{name}.count"))?,
        mean: vectors.doubles(&format!("{name}.mean"))?.to_vec(),
        square: vectors.doubles(&format!("{name}.square"))?.to_vec(),
    })
}

/// All of half-step PPO but the parameters and the counts, which the snapshot holds.
pub(super) fn pack(state: State) -> Vectors {
    let State { adam, observations, returns, skipped, .. } = state;
    let mut packed = Vectors::default();
    put_adam(&mut packed, ADAM, adam);
    packed.doubles.insert(SKIPPED.into(), vec![skipped as f64]);
    put_moments(&mut packed, OBSERVATIONS, observations);
    put_moments(&mut packed, RETURNS, returns);
    packed
}

/// What [`pack`] packed, with the snapshot of the same checkpoint.
pub(super) fn unpack(snapshot: &Snapshot, packed: &Vectors) -> Result<State> {
    Ok(State {
        parameters: snapshot.parameters.to_vec(),
        adam: adam(packed, ADAM)?,
        observations: moments(packed, OBSERVATIONS)?,
        returns: moments(packed, RETURNS)?,
        updates: snapshot.updates,
        env_steps: snapshot.env_steps,
        skipped: packed.number(SKIPPED)? as u64,
    })
}

/// The scale in which the critic of half-step PPO learned, out of a checkpoint; none of another algorithm's.
pub fn reward_scale(snapshot: &Snapshot, packed: &Vectors, config: &config::HsPpo) -> Option<Scale> {
    let returns = moments(packed, RETURNS).ok()?;
    Some(Scale::of(config, snapshot.contract.options.count, &returns))
}
