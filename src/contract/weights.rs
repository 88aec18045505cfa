//! A snapshot as it is published and recorded: the fields of msg/PolicyWeights.msg.

use super::{Contract, Hash, Normaliser, Snapshot};
use crate::error::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;

/// handoff/PolicyWeights. As a [`Snapshot`] it has been checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/PolicyWeights.msg")]
pub struct PolicyWeights {
    pub run: String,
    pub life: u32,
    pub version: u64,
    pub updates: u64,
    pub env_steps: u64,
    pub random_warmup: bool,
    pub contract: String,
    pub contract_hash: Vec<u8>,
    pub normaliser_mean: Vec<f32>,
    pub normaliser_std: Vec<f32>,
    pub normaliser_clip: f32,
    pub normaliser_count: f64,
    pub parameters: Vec<f32>,
    pub hash: Vec<u8>,
}

impl TryFrom<PolicyWeights> for Snapshot {
    type Error = Error;

    /// Checks all but the dry forward: contract, shapes, finiteness, both hashes.
    fn try_from(message: PolicyWeights) -> Result<Self> {
        let (life, version) = (message.life, message.version);
        snapshot(message).map_err(|error| Error::invalid(format!("weights {life}.{version} are refused: {error}")))
    }
}

fn snapshot(message: PolicyWeights) -> Result<Snapshot> {
    let contract = Contract::from_json(&message.contract)?;
    same("contract_hash", &message.contract_hash, &contract.hash())?;
    let run = Uuid::parse_str(&message.run).map_err(|_| Error::invalid(format!("run {:?} is no uuid", message.run)))?;
    let snapshot = Snapshot {
        run,
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

fn same(what: &str, stated: &[u8], computed: &Hash) -> Result<()> {
    if stated.len() != computed.len() {
        return Err(Error::invalid(format!("{what} has {} bytes; 32 are right", stated.len())));
    }
    if stated == computed {
        return Ok(());
    }
    let (stated, computed) = (hex::encode(&stated[..4]), hex::encode(&computed[..4]));
    Err(Error::invalid(format!("{what} is {stated} but the content has {computed}")))
}
