//! A simulator's service that resets it, whichever of two types it is of.

use super::{Client, Node, srv};
use crate::error::{Error, Result};
use std::time::Duration;

/// The name that simulation_interfaces gives to its service (Isaac Sim has it as `/reset_simulation`).
const STANDARD: &str = "reset_simulation";

/// simulation_interfaces/Result of what was done; its name has changed between versions.
#[cfg(simulation_interfaces)]
const OK: u8 = 1;

/// Resets a simulator.
pub enum Resetter {
    /// std_srvs/Trigger.
    Trigger(Client<srv::Trigger::Service>),
    /// simulation_interfaces/ResetSimulation, where the program was built beside it.
    #[cfg(simulation_interfaces)]
    Standard(Client<r2r::simulation_interfaces::srv::ResetSimulation::Service>),
}

impl Node {
    /// The service `name`: one that is called `reset_simulation` is of simulation_interfaces, any other of std_srvs/Trigger.
    pub fn resetter(&mut self, name: &str) -> Result<Resetter> {
        if name.rsplit('/').next() != Some(STANDARD) {
            return self.client(name).map(Resetter::Trigger);
        }
        #[cfg(simulation_interfaces)]
        return self.client(name).map(Resetter::Standard);
        #[cfg(not(simulation_interfaces))]
        Err(Error::invalid(format!(
            "service {name} is of simulation_interfaces, without which this program was built: source them and build again"
        )))
    }
}

impl Resetter {
    /// Waits for the answer at most `patience`; an error says why there was no reset.
    pub async fn reset(&self, patience: Duration) -> Result<()> {
        let refused = |why: String| Error::invalid(format!("the simulator was not reset: {why}"));
        match self {
            Self::Trigger(client) => {
                let answer = client.call(&srv::Trigger::Request::default(), patience).await?;
                if answer.success { Ok(()) } else { Err(refused(answer.message)) }
            }
            #[cfg(simulation_interfaces)]
            Self::Standard(client) => {
                let everything = r2r::simulation_interfaces::srv::ResetSimulation::Request::default();
                let answer = client.call(&everything, patience).await?.result;
                if answer.result == OK { Ok(()) } else { Err(refused(answer.error_message)) }
            }
        }
    }
}
