//! Snapshots of the policy.

use super::{hash, run};
use crate::contract::{Contract, Normaliser, Snapshot};
use crate::error::{Error, Result};
use r2r::handoff::msg;
use std::sync::Arc;

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
        let (life, version) = (message.life, message.version);
        from_message(message).map_err(|error| Error::invalid(format!("weights {life}.{version} are refused: {error}")))
    }
}

fn from_message(message: msg::PolicyWeights) -> Result<Snapshot> {
    let contract = Contract::from_json(&message.contract)?;
    same("contract_hash", &message.contract_hash, &contract.hash())?;
    let snapshot = Snapshot {
        run: run(&message.run)?,
        life: message.life,
        version: message.version,
        updates: message.updates,
        env_steps: message.env_steps,
        random_warmup: message.random_warmup,
        contract: Arc::new(contract),
        normaliser: Normaliser {
            mean: message.normaliser_mean,
            std: message.normaliser_std,
            clip: message.normaliser_clip,
            count: message.normaliser_count,
        },
        parameters: message.parameters.into(),
    };
    snapshot.check()?;
    same("hash", &message.hash, &snapshot.hash())?;
    Ok(snapshot)
}

fn same(what: &str, stated: &[u8], computed: &[u8; 32]) -> Result<()> {
    let stated = hash(what, stated)?;
    if stated == *computed {
        return Ok(());
    }
    let short = |hash: &[u8; 32]| hex::encode(&hash[..4]);
    Err(Error::invalid(format!("{what} is {} but the content has {}", short(&stated), short(computed))))
}
