//! Whether recorded transitions are what their contract says, as learning from them asks.

use super::decode::decode;
use super::message::{BatchMessage, TransitionHead};
use super::reader::{Bag, Select};
use super::schema::Schemas;
use super::survey::{Survey, TRANSITIONS};
use crate::contract::{Architecture, Contract, Hash, Network};
use crate::data::{Batch, Once, check};
use crate::error::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Survey {
    /// Reads the transitions and notes those that learning would leave out: malformed or not finite under their contract, which is one of
    /// the bag's or, whatever its networks, `given`.
    pub fn check_transitions(&mut self, bag: &Bag, given: Option<&Contract>, prefixes: &[PathBuf]) -> Result<()> {
        let family = |own: &Contract, architecture| Contract {
            network: Network { architecture, ..own.network.clone() },
            ..own.clone()
        };
        let families = [Architecture::OnPolicy, Architecture::OffPolicy];
        let ours = given.into_iter().flat_map(|own| families.map(|architecture| family(own, architecture)));
        let known: BTreeMap<Hash, Contract> =
            self.contracts.values().cloned().chain(ours).map(|contract| (contract.hash(), contract)).collect();
        let (mut schemas, mut once) = (Schemas::new(prefixes), Once::default());
        for topic in bag.topics_of(TRANSITIONS) {
            let Ok(schema) = schemas.of(&bag.topics()[topic]) else { continue };
            for message in bag.read(&Select { topics: Some(vec![topic]), ..Select::default() })? {
                let message = message?;
                let Ok(head) = decode::<TransitionHead>(&schema, &message.data) else { continue };
                if !once.first(&head.run, &head.rollout, head.incarnation, head.seq) {
                    continue;
                }
                let batch = decode::<BatchMessage>(&schema, &message.data).and_then(Batch::try_from);
                let reason = match &batch {
                    Err(error) => Some(error.to_string()),
                    Ok(batch) => known.get(&batch.contract_hash).and_then(|contract| {
                        check(batch, contract, &batch.contract_hash).err().map(|refusal| refusal.to_string())
                    }),
                };
                if let Some(reason) = reason {
                    let steps: u64 = head.fragments.iter().map(|fragment| u64::from(fragment.num_steps)).sum();
                    *self.unusable.entry(reason).or_default() += steps;
                }
            }
        }
        Ok(())
    }
}
