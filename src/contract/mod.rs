//! What training and deployment must agree on, and the immutable snapshot of a policy that carries it.

mod inherit;
mod layout;
mod snapshot;
mod weights;

pub use inherit::Inheritance;
pub use layout::{Group, Layout, Segment};
pub use snapshot::{Normaliser, Snapshot};
pub use weights::PolicyWeights;

use crate::error::{Error, Result};
use crate::robot::Robot;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A sha256.
pub type Hash = [u8; 32];

/// One named piece of the observation vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Name and unit, e.g. `joint_position_rad`.
    pub name: String,
    /// Floats that it takes.
    pub len: usize,
}

/// What an action in `[-1, 1]` means. Both are position targets, integrated from the *commanded* reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "meaning")]
pub enum ActionMeaning {
    /// `reference += scale_rad * action` at each control tick.
    JointDelta {
        /// Largest step of a joint in one control tick [rad].
        scale_rad: f64,
    },
    /// `reference += scale_rad_per_sec * action * control period`.
    JointVelocity {
        /// Largest speed of a joint [rad/s].
        scale_rad_per_sec: f64,
    },
}

impl ActionMeaning {
    /// Largest change of the reference in one control tick [rad].
    pub fn step_rad(self, control_period_secs: f64) -> f64 {
        match self {
            Self::JointDelta { scale_rad } => scale_rad,
            Self::JointVelocity { scale_rad_per_sec } => scale_rad_per_sec * control_period_secs,
        }
    }
}

/// The option process: how many, and how long they run at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// K, at least 1. K = 1 is a flat policy.
    pub count: usize,
    /// d_min: control ticks that an option runs before it may end.
    pub min_steps: u32,
    /// d_max: control ticks after which it must end.
    pub max_steps: u32,
}

/// Which networks the flat parameters describe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Which heads there are.
    pub architecture: Architecture,
    /// Widths of the hidden layers, actor and critics alike.
    pub hidden: Vec<usize>,
}

/// Families of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// tanh trunks; log_std is a parameter per option; the critic is Q(s, .) over options.
    OnPolicy,
    /// ReLU trunk; log_std is a head of each option. The critics stay with the learner.
    OffPolicy,
}

/// What the simulation adds to physics. Told to the reader, never compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Told {
    /// Commands take effect this many control ticks late.
    pub latency_ticks: u32,
    /// Standard deviation of the noise on measured joint positions [rad].
    pub position_noise_rad: f64,
    /// Standard deviation of the noise on measured joint velocities [rad/s].
    pub velocity_noise_rad_per_sec: f64,
    /// Link masses are scaled by a factor in `1 ± this`, drawn at each reset.
    pub mass_range: f64,
    /// Joint friction is scaled by a factor in `1 ± this`, drawn at each reset.
    pub friction_range: f64,
}

/// All that must agree between training and deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// The arm and with it the limits.
    pub robot: Robot,
    /// Joint names in the order of every vector.
    pub joints: Vec<String>,
    /// The task, which fixes observation and goal.
    pub task: String,
    /// Layout of the observation.
    pub observation: Vec<Field>,
    /// Meaning of the action; one float a joint.
    pub action: ActionMeaning,
    /// Time between two decisions [s].
    pub control_period_secs: f64,
    /// The option process.
    pub options: Options,
    /// The networks.
    pub network: Network,
    /// What the simulation adds; told, never compared.
    #[serde(default)]
    pub told: Told,
}

impl Contract {
    /// D: floats of an observation.
    pub fn obs_size(&self) -> usize {
        self.observation.iter().map(|field| field.len).sum()
    }

    /// A: floats of an action.
    pub fn action_size(&self) -> usize {
        self.joints.len()
    }

    /// The flat parameter vector's segments.
    pub fn layout(&self) -> Layout {
        Layout::new(self)
    }

    /// sha256 over the compared part.
    pub fn hash(&self) -> Hash {
        let compared = Self { told: Told::default(), ..self.clone() };
        Sha256::digest(compared.to_json()).into()
    }

    /// Canonical JSON: fields in the order of the struct.
    #[expect(clippy::expect_used, reason = "plain structs of numbers, strings and lists always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a contract serialises")
    }

    /// Reads what [`Self::to_json`] wrote; sizes that no policy has are refused.
    pub fn from_json(json: &str) -> Result<Self> {
        let contract: Self =
            serde_json::from_str(json).map_err(|error| Error::invalid(format!("this is no contract: {error}")))?;
        contract.bounded()?;
        Ok(contract)
    }

    /// Refuses sizes before anything is allocated by them.
    fn bounded(&self) -> Result<()> {
        const WIDEST: usize = 1 << 16;
        let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0);
        for (what, found, most) in [
            ("joints", self.joints.len(), 64),
            ("observation fields", self.observation.len(), 256),
            ("floats in its widest field", widest(&mut self.observation.iter().map(|field| field.len)), WIDEST),
            ("options", self.options.count, 254),
            ("hidden layers", self.network.hidden.len(), 16),
            ("units in its widest layer", widest(&mut self.network.hidden.iter().copied()), WIDEST),
        ] {
            if found > most {
                return Err(Error::invalid(format!("this contract has {found} {what}; at most {most} are right")));
            }
        }
        if self.options.count == 0 {
            return Err(Error::invalid("this contract has 0 options; a flat policy has 1"));
        }
        Ok(())
    }

    /// Refuses a contract that differs in the compared part, with a line for each difference that names both values.
    pub fn require_same(&self, ours: &str, other: &Self, theirs: &str) -> Result<()> {
        let parts = |contract: &Self| {
            let Ok(serde_json::Value::Object(map)) = serde_json::to_value(contract) else { return Vec::new() };
            map.into_iter().filter(|(key, _)| key != "told").collect::<Vec<_>>()
        };
        let differences: Vec<String> = parts(self)
            .into_iter()
            .zip(parts(other))
            .filter(|((_, a), (_, b))| a != b)
            .map(|((key, a), (_, b))| format!("{key} is {a} in {ours} and {b} in {theirs}"))
            .collect();
        if differences.is_empty() { Ok(()) } else { Err(Error::Contract(differences.join("; "))) }
    }
}
