//! The transitions of bags, to learn from.

use super::walk::alike;
use crate::bag::{Bag, Damage, Message, NO_TRANSITIONS, Schema, Schemas, Select, decode, message};
use crate::contract::{Architecture, Contract, Hash, Network, PolicyWeights};
use crate::data::{Batch, Logged, check};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

const TRANSITIONS: &str = "handoff/msg/TransitionBatch";
const WEIGHTS: &str = "handoff/msg/PolicyWeights";

/// What was recorded and can be used, and what not.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Checked against the contract; a batch that was sent twice is there twice.
    pub logged: Vec<Logged>,
    /// Transitions that were left out, by the reason; 0: nobody knows how many.
    pub left_out: BTreeMap<String, u64>,
    /// What could not be read.
    pub damage: Vec<Damage>,
}

/// Reads the transitions of bags, broken ones too, for a policy of `ours`, whose networks alone may be others than those that recorded.
/// Contracts are those of the weights in the bags, and ours. Refuses a bag without transitions, and one of another contract.
pub fn transitions(bags: &[PathBuf], ours: &Contract, prefixes: &[PathBuf]) -> Result<Recorded> {
    let mut all = Recorded::default();
    for path in bags {
        let bag = Bag::open(path)?;
        let known = contracts(&bag, ours, prefixes)?;
        let before = all.logged.len();
        each(&bag, TRANSITIONS, prefixes, &mut all.damage, &mut |schema, message| {
            take(schema, message, &known, ours, &mut all.logged, &mut all.left_out)
        })?;
        if all.logged.len() == before {
            let path = path.display();
            return Err(Error::invalid(match all.left_out.keys().next() {
                Some(reason) => format!("{path} holds no transitions that fit: {reason}"),
                None => format!("{path} holds {NO_TRANSITIONS}"),
            }));
        }
    }
    Ok(all)
}

/// Every contract by its hash that a batch may name: those of the bag's weights, and ours with either family of networks.
pub(super) fn contracts(bag: &Bag, ours: &Contract, prefixes: &[PathBuf]) -> Result<BTreeMap<Hash, Contract>> {
    let mut known = BTreeMap::new();
    for architecture in [Architecture::OnPolicy, Architecture::OffPolicy] {
        let network = Network { architecture, ..ours.network.clone() };
        let contract = Contract { network, ..ours.clone() };
        known.insert(contract.hash(), contract);
    }
    // what is lost of them is said when the transitions are read
    each(bag, WEIGHTS, prefixes, &mut Vec::new(), &mut |schema, message| {
        let weights = decode::<PolicyWeights>(schema, &message.data);
        if let Ok(contract) = weights.and_then(|weights| Contract::from_json(&weights.contract)) {
            known.insert(contract.hash(), contract);
        }
        Ok(())
    })?;
    Ok(known)
}

/// Gives every message of a type to `to`.
fn each(
    bag: &Bag,
    type_name: &str,
    prefixes: &[PathBuf],
    damage: &mut Vec<Damage>,
    to: &mut dyn FnMut(&Schema, &Message) -> Result<()>,
) -> Result<()> {
    let (mut known, mut schemas) = (Schemas::new(prefixes), BTreeMap::new());
    for topic in bag.topics_of(type_name) {
        schemas.insert(topic, known.of(&bag.topics()[topic])?);
    }
    let mut messages = bag.read(&Select { topics: Some(schemas.keys().copied().collect()), ..Select::default() })?;
    while let Some(message) = messages.read()? {
        if let Some(schema) = schemas.get(&message.topic) {
            to(schema, &message)?;
        }
    }
    damage.extend(messages.damage());
    Ok(())
}

/// Transitions that a batch says it has, which is malformed; 0 where not even that can be read.
pub(super) fn steps(schema: &Schema, message: &Message) -> u64 {
    let head = decode::<message::TransitionHead>(schema, &message.data);
    head.map_or(0, |head| head.fragments.iter().map(|fragment| u64::from(fragment.num_steps)).sum())
}

fn take(
    schema: &Schema,
    message: &Message,
    known: &BTreeMap<Hash, Contract>,
    ours: &Contract,
    logged: &mut Vec<Logged>,
    left_out: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let batch = match decode::<message::BatchMessage>(schema, &message.data).and_then(Batch::try_from) {
        Ok(batch) => batch,
        Err(error) => {
            *left_out.entry(error.to_string()).or_default() += steps(schema, message);
            return Ok(());
        }
    };
    let Some(contract) = known.get(&batch.contract_hash) else {
        let hash = hex::encode(&batch.contract_hash[..4]);
        let reason = format!(
            "they are of the contract {hash}, whose weights the bag lacks, and which is not this configuration's"
        );
        *left_out.entry(reason).or_default() += batch.steps();
        return Ok(());
    };
    alike(ours, "this configuration", contract, "the bag").map_err(|error| {
        let (own, theirs) = (ours.options.count, contract.options.count);
        let hint = if own == theirs { String::new() } else { format!("; --options {theirs} is the bag's K") };
        Error::Contract(format!("{error}{hint}").trim_start_matches("the contracts differ: ").to_owned())
    })?;
    if let Err(refusal) = check(&batch, contract, &batch.contract_hash) {
        *left_out.entry(refusal.to_string()).or_default() += batch.steps();
        return Ok(());
    }
    let Batch { run, stream, fragments, .. } = batch;
    logged.extend(fragments.into_iter().map(|fragment| Logged { run, stream: stream.clone(), fragment }));
    Ok(())
}
