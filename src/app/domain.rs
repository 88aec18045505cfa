//! The ROS domain of a training.

use super::cli;
use crate::error::{Error, Result};
use std::net::UdpSocket;
use uuid::Uuid;

/// Domains that are safe on Linux.
const DOMAINS: u32 = 101;

/// A training of ours meets nobody: a domain of its own on this machine alone, unless told otherwise.
pub(super) struct Domain {
    /// Its number.
    pub(super) number: String,
    /// Others may be there: the domain was told, or hosts that may join.
    pub(super) shared: bool,
    /// Nodes meet as we say, on this machine.
    pub(super) ours: bool,
    /// What nodes are told of it.
    pub(super) environment: Vec<(String, String)>,
}

impl Domain {
    /// The domain that the environment names, else one whose discovery port nobody here listens on (RTPS: 7400 + 250 d).
    /// Robots that are `there` already are in the environment's, which is 0 unless it says so.
    pub(super) fn choose(arguments: &cli::Train, there: bool) -> Result<Self> {
        let told = std::env::var("ROS_DOMAIN_ID").ok().or_else(|| there.then(|| "0".into()));
        let number = match &told {
            Some(number) => match number.parse::<u32>() {
                Ok(number @ 0..=DOMAINS) => number,
                _ => {
                    return Err(Error::invalid(format!(
                        "ROS_DOMAIN_ID = {number:?}: a number from 0 to {DOMAINS} is right"
                    )));
                }
            },
            None => free()?,
        };
        let mut environment = vec![("ROS_DOMAIN_ID", number.to_string())];
        let hosts = arguments.peers.as_ref().map(|peers| ("ROS_STATIC_PEERS", peers.clone()));
        let hosts =
            hosts.or(arguments.discovery_server.as_ref().map(|server| ("ROS_DISCOVERY_SERVER", server.clone())));
        let shared = told.is_some() || hosts.is_some();
        let ranged = std::env::var_os("ROS_AUTOMATIC_DISCOVERY_RANGE").is_some();
        if (told.is_none() || hosts.is_some()) && !ranged {
            environment.push(("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST".into()));
        }
        environment.extend(hosts);
        let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { number: number.to_string(), shared, ours: !shared && !ranged, environment })
    }
}

fn free() -> Result<u32> {
    let first = Uuid::new_v4().as_u128() as u32 % DOMAINS;
    (0..DOMAINS)
        .map(|step| 1 + (first + step) % DOMAINS)
        .find(|domain| UdpSocket::bind(("0.0.0.0", (7400 + 250 * domain) as u16)).is_ok())
        .ok_or_else(|| Error::invalid("all ROS domains from 1 to 101 are in use here; set ROS_DOMAIN_ID"))
}
