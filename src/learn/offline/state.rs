//! What a checkpoint keeps of the learner, beside the snapshot. The recorded steps stay in their bags.

use super::Offline;
use crate::contract::Snapshot;
use crate::data::Vectors;
use crate::error::{Error, Result};
use crate::learn::state::{ADAM, OBSERVATIONS, RETURNS, SKIPPED, adam, moments, put_adam, put_moments};

const CRITICS: &str = "critics";
const SLOW_CRITICS: &str = "slow_critics";
const GRADIENT_STEPS: &str = "gradient_steps";

impl Offline {
    pub(super) fn pack(&self) -> Vectors {
        let mut packed = Vectors::default();
        put_adam(&mut packed, ADAM, self.actor.adam.state().clone());
        put_moments(&mut packed, OBSERVATIONS, self.dataset.observations.clone());
        put_moments(&mut packed, RETURNS, self.dataset.returns.clone());
        packed.doubles.insert(SKIPPED.into(), vec![self.skipped as f64]);
        packed.doubles.insert(GRADIENT_STEPS.into(), vec![self.gradient_steps as f64]);
        if let Some(critics) = &self.critics {
            packed.floats.insert(CRITICS.into(), critics.learned.parameters.clone());
            packed.floats.insert(SLOW_CRITICS.into(), critics.slow.parameters());
            put_adam(&mut packed, &format!("{CRITICS}.adam"), critics.learned.adam.state().clone());
        }
        packed
    }

    /// Goes on exactly; refuses other sizes, and other recorded steps than those that it learned from.
    pub(super) fn unpack(&mut self, snapshot: &Snapshot, saved: &Vectors) -> Result<()> {
        let same = moments(saved, OBSERVATIONS)? == self.dataset.observations
            && moments(saved, RETURNS)? == self.dataset.returns;
        if !same {
            return Err(Error::invalid(
                "the bags hold other steps than those that this run learned from: give the same ones, whole, or start a new run",
            ));
        }
        let sized = |what: &str, found: &[f32], want: usize| {
            if found.len() == want && found.iter().all(|float| float.is_finite()) {
                return Ok(());
            }
            let found = found.len();
            Err(Error::invalid(format!("the checkpoint's {what} are {found} numbers; {want} finite ones are needed")))
        };
        sized("parameters", &snapshot.parameters, self.actor.parameters.len())?;
        let (skipped, gradient_steps) = (saved.number(SKIPPED)?, saved.number(GRADIENT_STEPS)?);
        self.actor.adam.restore(adam(saved, ADAM)?)?;
        if let Some(critics) = &mut self.critics {
            let (own, slow) = (saved.floats(CRITICS)?, saved.floats(SLOW_CRITICS)?);
            sized(CRITICS, own, critics.learned.parameters.len())?;
            sized(SLOW_CRITICS, slow, critics.learned.parameters.len())?;
            critics.learned.adam.restore(adam(saved, &format!("{CRITICS}.adam"))?)?;
            critics.learned.parameters.copy_from_slice(own);
            critics.twin.load(own);
            critics.slow.load(slow);
        }
        self.actor.parameters.copy_from_slice(&snapshot.parameters);
        self.network.load(&snapshot.parameters);
        self.updates = snapshot.updates;
        (self.skipped, self.gradient_steps) = (skipped as u64, gradient_steps as u64);
        Ok(())
    }
}
