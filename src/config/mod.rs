//! Typed configuration: what can be set, its default, its range. One ROS parameter file serves every node and serial mode.

mod hs_ppo;
mod learner;
mod load;
mod nodes;
mod offline;
mod osac;
mod seed;
mod validate;

pub use hs_ppo::HsPpo;
pub use learner::{Learner, UpdateMode};
pub use load::{assign, from_parameters, from_yaml, parameters_of, to_yaml};
pub use nodes::{Policy, Rollout, Sim, SimMode, Train};
pub use offline::Offline;
pub use osac::{Osac, Prioritisation};
pub use seed::{Purpose, Seed};

use crate::contract::{self, ActionMeaning, Architecture, Contract, Network};
use crate::guard;
use crate::robot::Robot;
use serde::{Deserialize, Serialize};

/// Everything that can be set. Sections are the parameters' prefixes: `learner.gamma`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Seed of the run; every random draw hangs below it.
    pub seed: u64,
    /// Set by ROS launch; the control ticks follow header stamps either way.
    pub use_sim_time: bool,
    /// Note the fate of every transition by its id, below the run folder's `logs/audit`.
    pub audit: bool,
    /// What is trained: its name in `task`.
    pub task: String,
    /// How it is trained.
    pub algo: Algo,
    /// Which arm's limits hold.
    pub robot: Robot,
    /// What an action means.
    pub action: Action,
    /// The core that a node stays on, counted from 0; -1: any.
    pub core: i64,
    /// Decisions per second [Hz].
    pub control_rate_hz: f64,
    /// The option process.
    pub options: Options,
    /// Widths of the hidden layers, actor and critics alike.
    pub hidden: Vec<usize>,
    /// The embedded simulator.
    pub sim: Sim,
    /// Rollout nodes.
    pub rollout: Rollout,
    /// The learner node.
    pub learner: Learner,
    /// `handoff train`: the whole graph.
    pub train: Train,
    /// The policy node.
    pub policy: Policy,
    /// What may reach the arm; its defaults are those of `policy.link`.
    pub guard: guard::Config,
}

/// Algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algo {
    /// Half-step PPO over options.
    HsPpo,
    /// The same with one option.
    Ppo,
    /// Option soft actor-critic, off-policy.
    Osac,
    /// The same with one option.
    Sac,
    /// Implicit Q-learning over options, from bags.
    Iql,
    /// Behaviour cloning, from bags.
    Bc,
}

impl Algo {
    /// As it is written in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::HsPpo => "hs_ppo",
            Self::Ppo => "ppo",
            Self::Osac => "osac",
            Self::Sac => "sac",
            Self::Iql => "iql",
            Self::Bc => "bc",
        }
    }

    /// Whether it learns from replay.
    pub fn off_policy(self) -> bool {
        matches!(self, Self::Osac | Self::Sac)
    }

    /// Whether it learns from bags.
    pub fn offline(self) -> bool {
        matches!(self, Self::Iql | Self::Bc)
    }

    /// Whether one goes on where the other stopped: a flat algorithm is the one with options, with one.
    pub fn continues(self, other: Self) -> bool {
        let with_options = |algo| match algo {
            Self::Ppo => Self::HsPpo,
            Self::Sac => Self::Osac,
            other => other,
        };
        with_options(self) == with_options(other)
    }
}

/// What an action means; `scale` is in the unit of `meaning`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Action {
    /// `joint_delta` [rad a tick] or `joint_velocity` [rad/s].
    pub meaning: Meaning,
    /// Largest joint step or speed, at action 1.
    pub scale: f64,
}

/// The option process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// K.
    pub count: usize,
    /// d_min: control ticks before an option may end.
    pub min_steps: u32,
    /// d_max: control ticks after which it must end.
    pub max_steps: u32,
}

/// See [`ActionMeaning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// A step of the commanded joint position in each tick [rad].
    JointDelta,
    /// A speed of the commanded joint position [rad/s].
    JointVelocity,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            use_sim_time: false,
            audit: false,
            task: "reach".into(),
            algo: Algo::HsPpo,
            robot: Robot::Panda,
            action: Action::default(),
            core: -1,
            control_rate_hz: 20.0,
            options: Options::default(),
            hidden: vec![128, 128],
            sim: Sim::default(),
            rollout: Rollout::default(),
            learner: Learner::default(),
            train: Train::default(),
            policy: Policy::default(),
            guard: Policy::default().link.guard(),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { count: 4, min_steps: 2, max_steps: 50 }
    }
}

impl Default for Action {
    fn default() -> Self {
        Self { meaning: Meaning::JointDelta, scale: 0.05 }
    }
}

impl Config {
    /// The defaults of an algorithm. Off-policy: few environments, short fragments, updates without waiting.
    pub fn of(algo: Algo) -> Self {
        let mut config = Self { algo, ..Self::default() };
        if algo.off_policy() {
            config.rollout.fragment_steps = 8;
            config.learner.update_mode = UpdateMode::Async;
            config.learner.num_steps_per_env = 8;
            config.learner.batch_steps = 32;
            config.learner.save_interval = 500;
            config.train.rollouts = 1;
            config.train.envs = 4;
        }
        if algo.offline() {
            // its budget is learner.offline.gradient_steps
            config.train.minutes = 0.0;
        }
        if algo == Algo::Osac {
            // K options cost the critics K rows a step.
            config.learner.osac.batch_size = 128;
            config.learner.osac.actor_batch_size = 64;
        }
        config
    }

    /// K: a flat algorithm has one option.
    pub fn option_count(&self) -> usize {
        if matches!(self.algo, Algo::Ppo | Algo::Sac) { 1 } else { self.options.count }
    }

    /// How lockstep simulators follow targets; none: at once.
    pub fn lead(&self) -> Option<&guard::Config> {
        self.sim.led.then_some(&self.guard)
    }

    /// How far references may run ahead of the arm in lockstep [rad]; none: as they like.
    pub fn leash_rad(&self) -> Option<f64> {
        self.lead().map(|guard| guard.leash_rad)
    }

    /// The contract of this configuration; `observation` is the task's.
    pub fn contract(&self) -> crate::error::Result<Contract> {
        let task = crate::task::find(&self.task)?;
        Ok(Contract {
            robot: self.robot,
            joints: self.robot.joint_names().to_vec(),
            task: self.task.clone(),
            observation: task.observation(),
            action: match self.action.meaning {
                Meaning::JointDelta => ActionMeaning::JointDelta { scale_rad: self.action.scale },
                Meaning::JointVelocity => ActionMeaning::JointVelocity { scale_rad_per_sec: self.action.scale },
            },
            control_period_secs: 1.0 / self.control_rate_hz,
            options: contract::Options {
                count: self.option_count(),
                min_steps: self.options.min_steps,
                max_steps: self.options.max_steps,
            },
            network: Network {
                architecture: if self.algo.off_policy() { Architecture::OffPolicy } else { Architecture::OnPolicy },
                hidden: self.hidden.clone(),
            },
            told: self.sim.told.clone(),
        })
    }
}
