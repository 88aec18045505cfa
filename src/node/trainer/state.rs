//! The algorithm's state as the named vectors of a checkpoint, and back.

use crate::contract::Snapshot;
use crate::error::{Error, Result};
use crate::learn::{AdamState, Moments, State};
use crate::run::LearnerState;

const FIRST: &str = "adam.first";
const SECOND: &str = "adam.second";
const STEPS: &str = "adam.steps";
const OBSERVATIONS: &str = "observations";
const RETURNS: &str = "returns";
const SKIPPED: &str = "skipped";

/// All but the parameters and the counts, which the snapshot holds.
pub(super) fn pack(state: State) -> LearnerState {
    let State { adam, observations, returns, skipped, .. } = state;
    let mut packed = LearnerState::default();
    packed.floats.insert(FIRST.into(), adam.first);
    packed.floats.insert(SECOND.into(), adam.second);
    packed.doubles.insert(STEPS.into(), adam.steps.into_iter().map(|steps| steps as f64).collect());
    packed.doubles.insert(SKIPPED.into(), vec![skipped as f64]);
    for (name, moments) in [(OBSERVATIONS, observations), (RETURNS, returns)] {
        packed.doubles.insert(format!("{name}.count"), vec![moments.count]);
        packed.doubles.insert(format!("{name}.mean"), moments.mean);
        packed.doubles.insert(format!("{name}.square"), moments.square);
    }
    packed
}

/// What [`pack`] packed, with the snapshot of the same checkpoint.
pub(super) fn unpack(snapshot: &Snapshot, packed: &LearnerState) -> Result<State> {
    let floats = |name: &str| packed.floats.get(name).cloned().ok_or_else(|| missing(name));
    let doubles = |name: &str| packed.doubles.get(name).cloned().ok_or_else(|| missing(name));
    let number = |name: &str| doubles(name)?.first().copied().ok_or_else(|| missing(name));
    let moments = |name: &str| {
        Ok::<_, Error>(Moments {
            count: number(&format!("{name}.count"))?,
            mean: doubles(&format!("{name}.mean"))?,
            square: doubles(&format!("{name}.square"))?,
        })
    };
    Ok(State {
        parameters: snapshot.parameters.to_vec(),
        adam: AdamState {
            first: floats(FIRST)?,
            second: floats(SECOND)?,
            steps: doubles(STEPS)?.into_iter().map(|steps| steps as u64).collect(),
        },
        observations: moments(OBSERVATIONS)?,
        returns: moments(RETURNS)?,
        updates: snapshot.updates,
        env_steps: snapshot.env_steps,
        skipped: number(SKIPPED)? as u64,
    })
}

fn missing(name: &str) -> Error {
    Error::invalid(format!("the checkpoint's learner has no `{name}`: it is of another algorithm"))
}
