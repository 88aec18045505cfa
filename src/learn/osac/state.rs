//! What a checkpoint keeps of the learner, beside the snapshot and the replay.

use super::Osac;
use crate::contract::{Inheritance, Snapshot};
use crate::data::Vectors;
use crate::error::{Error, Result};
use crate::learn::state::{OBSERVATIONS, adam, moments, put_adam, put_moments};
use crate::replay::spoiled;

const CRITICS: &str = "critics";
const SLOW_CRITICS: &str = "slow_critics";
const SLOW_ACTOR: &str = "slow_actor";
const TEMPERATURES: &str = "temperatures";
const COUNTS: &str = "counts";
const WARM: &str = "warm";

/// Of the steps that were ever put in, a replay holds no more than its capacity.
pub(super) fn forgotten(inserts: u64, capacity: usize, warmup: u64) -> String {
    let held = inserts.min(capacity as u64);
    format!(
        "goes on without its replay: up to {held} recorded steps are forgotten, and nothing is learned before {warmup} new ones are \
         there"
    )
}

impl Osac {
    pub(super) fn pack(&self) -> Vectors {
        let mut packed = Vectors::default();
        packed.floats.insert(CRITICS.into(), self.critics.parameters.clone());
        packed.floats.insert(SLOW_CRITICS.into(), self.networks.slow_critics.parameters());
        packed.floats.insert(SLOW_ACTOR.into(), self.networks.slow_actor.parameters());
        packed.floats.insert(TEMPERATURES.into(), self.temperatures.parameters.clone());
        let optimisers = [("actor", &self.actor), (CRITICS, &self.critics), (TEMPERATURES, &self.temperatures)];
        for (name, learned) in optimisers {
            put_adam(&mut packed, &format!("{name}.adam"), learned.adam.state().clone());
        }
        put_moments(&mut packed, OBSERVATIONS, self.observations.clone());
        let (inserts, samples) = self.limiter.counts();
        let counts = [inserts, samples, self.gradient_steps, self.skipped].map(|count| count as f64);
        packed.doubles.insert(COUNTS.into(), counts.to_vec());
        packed.doubles.insert(WARM.into(), vec![f64::from(u8::from(self.warm))]);
        packed
    }

    /// Goes on exactly; refuses other sizes. Without the replay, the warm-up's number of steps is recorded anew, by the
    /// policy, before anything is learned.
    pub(super) fn unpack(&mut self, snapshot: &Snapshot, saved: &Vectors, replay: Option<&Vectors>) -> Result<()> {
        let sized = |name: &str, want: usize| {
            let found = saved.floats(name)?;
            if found.len() == want && found.iter().all(|float| float.is_finite()) {
                return Ok(found);
            }
            let found = found.len();
            Err(Error::invalid(format!("the checkpoint's {name} are {found} numbers; {want} finite ones are needed")))
        };
        let &[inserts, samples, gradient_steps, skipped] = saved.doubles(COUNTS)? else {
            return Err(Error::invalid("the checkpoint's counts are not those of option soft actor-critic"));
        };
        let observations = moments(saved, OBSERVATIONS)?;
        observations.check("observation", self.contract.obs_size())?;
        if snapshot.parameters.len() != self.actor.parameters.len() {
            let (found, want) = (snapshot.parameters.len(), self.actor.parameters.len());
            return Err(Error::invalid(format!("the checkpoint has {found} parameters; this network has {want}")));
        }
        let critics = sized(CRITICS, self.critics.parameters.len())?;
        let slow_critics = sized(SLOW_CRITICS, self.critics.parameters.len())?;
        let slow_actor = sized(SLOW_ACTOR, self.actor.parameters.len())?;
        let temperatures = sized(TEMPERATURES, self.temperatures.parameters.len())?;
        self.actor.adam.restore(adam(saved, "actor.adam")?)?;
        self.critics.adam.restore(adam(saved, "critics.adam")?)?;
        self.temperatures.adam.restore(adam(saved, "temperatures.adam")?)?;
        if let Some(replay) = replay {
            self.replay.restore(replay).map_err(|error| spoiled(&error))?;
            self.limiter.restore((inserts as u64, samples as u64));
        } else {
            tracing::warn!("{}", forgotten(inserts as u64, self.config.capacity, self.config.warmup_steps));
        }
        self.actor.parameters.copy_from_slice(&snapshot.parameters);
        self.critics.parameters.copy_from_slice(critics);
        self.temperatures.parameters.copy_from_slice(temperatures);
        self.networks.actor.load(&snapshot.parameters);
        self.networks.slow_actor.load(slow_actor);
        self.networks.critics.load(critics);
        self.networks.slow_critics.load(slow_critics);
        self.observations = observations;
        (self.updates, self.env_steps) = (snapshot.updates, snapshot.env_steps);
        (self.gradient_steps, self.skipped) = (gradient_steps as u64, skipped as u64);
        self.warm = saved.number(WARM)? != 0.0;
        Ok(())
    }

    /// Where the whole policy fits, it acts from the first step on, and nothing is recorded at random.
    pub(super) fn take_over(&mut self, fits: &Inheritance, snapshot: &Snapshot, saved: &Vectors) -> Result<()> {
        if fits.normaliser {
            self.observations = moments(saved, OBSERVATIONS)?;
            self.observations.check("observation", self.contract.obs_size())?;
        }
        fits.take_policy(&snapshot.parameters, &mut self.actor.parameters);
        self.networks.actor.load(&self.actor.parameters);
        self.networks.slow_actor.load(&self.actor.parameters);
        self.warm = fits.fitting() == self.actor.parameters.len();
        if snapshot.contract.network.architecture == self.contract.network.architecture {
            fits.take_critics(saved.floats(CRITICS)?, &mut self.critics.parameters);
            self.networks.critics.load(&self.critics.parameters);
            self.networks.slow_critics.load(&self.critics.parameters);
            let temperatures = saved.floats(TEMPERATURES)?;
            self.temperatures.parameters.copy_from_slice(temperatures);
        }
        Ok(())
    }
}
