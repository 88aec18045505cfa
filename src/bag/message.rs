//! Messages that handoff reads, as [`decode`](super::decode) gives them; their texts stay where they are. Fields: the `.msg` files of the same names.

use crate::contract::{Contract, Hash, Normaliser, Snapshot};
use crate::error::{Error, Result};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;

/// builtin_interfaces/Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stamp {
    /// Seconds.
    pub sec: i32,
    /// Nanoseconds on top.
    pub nanosec: u32,
}

impl Stamp {
    /// In nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        i64::from(self.sec) * 1_000_000_000 + i64::from(self.nanosec)
    }
}

/// std_msgs/Header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Header<'a> {
    /// When what follows was so.
    pub stamp: Stamp,
    /// The frame.
    pub frame_id: &'a str,
}

/// sensor_msgs/JointState: states and commands alike. An array may be empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JointState<'a> {
    /// Stamp of the state.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// Joints, in any order.
    #[serde(borrow)]
    pub name: Vec<&'a str>,
    /// [rad], [m].
    pub position: Vec<f64>,
    /// [rad/s], [m/s].
    pub velocity: Vec<f64>,
    /// [N·m], [N].
    pub effort: Vec<f64>,
}

/// The joints that a JointState speaks of, and nothing else of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct JointNames<'a> {
    /// Joints, in any order.
    #[serde(borrow)]
    pub name: Vec<&'a str>,
}

/// geometry_msgs/Point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Point {
    /// [m]
    pub x: f64,
    /// [m]
    pub y: f64,
    /// [m]
    pub z: f64,
}

/// geometry_msgs/Quaternion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the parts of a quaternion")]
pub struct Quaternion {
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub w: f64,
}

/// geometry_msgs/Pose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Pose {
    /// Where.
    pub position: Point,
    /// Which way.
    pub orientation: Quaternion,
}

/// geometry_msgs/PoseStamped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PoseStamped<'a> {
    /// Stamp and frame.
    #[serde(borrow)]
    pub header: Header<'a>,
    /// The pose in that frame.
    pub pose: Pose,
}

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
        let contract = Contract::from_json(&message.contract)?;
        same("contract_hash", &message.contract_hash, &contract.hash())?;
        let run =
            Uuid::parse_str(&message.run).map_err(|_| Error::invalid(format!("run {:?} is no uuid", message.run)))?;
        let snapshot = Self {
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
}

fn same(what: &str, stated: &[u8], computed: &Hash) -> Result<()> {
    if stated == computed {
        return Ok(());
    }
    let short = |hash: &[u8]| hex::encode(&hash[..hash.len().min(4)]);
    Err(Error::invalid(format!("{what} is {} but the content has {}", short(stated), short(computed))))
}

/// What a handoff/TransitionBatch holds, without its rows.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "msg/TransitionBatch.msg")]
pub struct TransitionHead {
    pub run: String,
    pub life: u32,
    pub rollout: String,
    pub incarnation: u64,
    pub seq: u64,
    pub contract_hash: Vec<u8>,
    pub fragments: Vec<FragmentHead>,
}

/// What a handoff/Fragment holds, without its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "msg/Fragment.msg")]
pub struct FragmentHead {
    pub env: u32,
    pub num_steps: u32,
    pub obs_size: u32,
    pub action_size: u32,
}
