//! Snapshots of the policy.

use crate::contract::{PolicyWeights, Snapshot};
use crate::error::{Error, Result};
use r2r::handoff::msg;

impl From<&Snapshot> for msg::PolicyWeights {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            run: snapshot.run.to_string(),
            life: snapshot.life,
            version: snapshot.version,
            updates: snapshot.updates,
            env_steps: snapshot.env_steps,
            random_warmup: snapshot.random_warmup,
            contract: snapshot.contract.to_json(),
            contract_hash: snapshot.contract.hash().to_vec(),
            normaliser_mean: snapshot.normaliser.mean.clone(),
            normaliser_std: snapshot.normaliser.std.clone(),
            normaliser_clip: snapshot.normaliser.clip,
            normaliser_count: snapshot.normaliser.count,
            parameters: snapshot.parameters.to_vec(),
            hash: snapshot.hash().to_vec(),
        }
    }
}

impl TryFrom<msg::PolicyWeights> for Snapshot {
    type Error = Error;

    /// Checks all but the dry forward: contract, shapes, finiteness, both hashes.
    fn try_from(message: msg::PolicyWeights) -> Result<Self> {
        PolicyWeights {
            run: message.run,
            life: message.life,
            version: message.version,
            updates: message.updates,
            env_steps: message.env_steps,
            random_warmup: message.random_warmup,
            contract: message.contract,
            contract_hash: message.contract_hash,
            normaliser_mean: message.normaliser_mean,
            normaliser_std: message.normaliser_std,
            normaliser_clip: message.normaliser_clip,
            normaliser_count: message.normaliser_count,
            parameters: message.parameters,
            hash: message.hash,
        }
        .try_into()
    }
}
