//! Typed configuration: what can be set, its default, its range. One ROS parameter file serves every node and serial mode.

mod load;
mod seed;
mod validate;

pub use load::{assign, from_parameters, from_yaml, parameters_of, to_yaml};
pub use seed::{Purpose, Seed};

use crate::contract::{self, ActionMeaning, Architecture, Contract, Network, Told};
use crate::guard;
use crate::link::Preset;
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
}

impl Algo {
    /// As it is written in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::HsPpo => "hs_ppo",
            Self::Ppo => "ppo",
            Self::Osac => "osac",
            Self::Sac => "sac",
        }
    }

    /// Whether it learns from replay.
    pub fn off_policy(self) -> bool {
        matches!(self, Self::Osac | Self::Sac)
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

/// The embedded simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sim {
    /// Physics step [s]; must divide the control period.
    pub timestep_secs: f64,
    /// Threads that step environments; 0: one a core.
    pub threads: usize,
    /// What it adds to physics.
    pub told: Told,
    /// Who keeps the time.
    pub mode: SimMode,
    /// Paced: states and commands taken a second of its time.
    pub state_rate_hz: f64,
    /// Paced: how much faster its time goes than ours.
    pub real_time_factor: f64,
    /// Paced: values are rounded to multiples of this; Isaac Sim: 1e-4; 0: not at all.
    pub rounding: f64,
    /// Paced: publishes `/clock`.
    pub clock: bool,
}

/// Who keeps the simulator's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimMode {
    /// A rollout: each tick waits for its command.
    Lockstep,
    /// A clock, as with Isaac Sim or a robot.
    Paced,
}

/// The policy node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Run folder, or one of its checkpoints; empty: the weights that a learner publishes.
    pub run: String,
    /// The robot's way of speaking.
    pub link: Preset,
    /// Of the joint names on the wire; empty: the arm's own.
    pub joint_prefix: String,
    /// Namespace of the learner's topics.
    pub learner_ns: String,
    /// Sample the actions, too; otherwise they are the mean.
    pub stochastic: bool,
}

/// Rollout nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rollout {
    /// Name in the protocol; empty: the node's fully qualified name.
    pub id: String,
    /// Number among the rollouts of a run; part of its seed.
    pub index: u64,
    /// Times that this rollout was started before in this run; part of its seed.
    pub restarts: u64,
    /// Environments of this rollout.
    pub num_envs: usize,
    /// Control ticks of a fragment before it is shipped.
    pub fragment_steps: usize,
    /// Batches in flight, 1 to 8.
    pub window: usize,
    /// The run to follow; empty: the first one heard.
    pub run: String,
    /// Namespace of the learner's topics.
    pub learner_ns: String,
    /// Act with the mean action and ship nothing; goals come from `goal_pose` once one was heard.
    pub evaluate: bool,
}

/// When data is learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// All fragments of an update come from one version.
    Sync,
    /// No waiting; lag is corrected and bounded.
    Async,
}

/// The learner node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Learner {
    /// The run folder; empty: checkpoints nothing.
    pub run_dir: String,
    /// The run's uuid; empty: a new one.
    pub run: String,
    /// When data is learned from.
    pub update_mode: UpdateMode,
    /// Rollouts that a phase waits for at first.
    pub min_rollouts: usize,
    /// Valid steps of each environment for one update.
    pub num_steps_per_env: usize,
    /// Transitions for one update in the asynchronous mode.
    pub batch_steps: usize,
    /// Older data is dropped in the asynchronous mode [versions].
    pub max_lag: u64,
    /// Updates between two checkpoints.
    pub save_interval: u64,
    /// Checkpoints kept besides the best.
    pub keep: usize,
    /// Threads of libtorch.
    pub torch_threads: usize,
    /// Resume without the replay of the checkpoint.
    pub without_replay: bool,
    /// Half-step PPO.
    pub hs_ppo: HsPpo,
    /// Option soft actor-critic.
    pub osac: Osac,
}

/// How replay prefers steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prioritisation {
    /// All alike.
    Uniform,
    /// By the error, with importance weights.
    Proportional,
    /// By the error where it is large.
    Lap,
}

/// Option soft actor-critic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Osac {
    /// Discount of a control tick.
    pub gamma: f64,
    /// Adam's learning rate of critics, options and temperatures.
    pub lr: f64,
    /// Learning rate of the termination and policy-over-options heads.
    pub lr_option: f64,
    /// Steps of one gradient.
    pub batch_size: usize,
    /// Gradient steps for each recorded step, in the mean.
    pub update_to_data: f64,
    /// Steps that recording may be ahead of learning, or behind: at least one full batch of every stream.
    pub slack_steps: u64,
    /// Steps recorded at random before the first gradient.
    pub warmup_steps: u64,
    /// Observations that replay holds; a fragment of n steps takes n + 1.
    pub capacity: usize,
    /// Longest fragment in replay [steps].
    pub fragment_steps: usize,
    /// How the critics' steps are drawn.
    pub prioritisation: Prioritisation,
    /// Exponent of the priorities.
    pub priority_exponent: f64,
    /// Exponent of the importance weights at first; 1 after `anneal_steps`.
    pub importance_exponent: f64,
    /// Share of the critics' draws that is spread evenly over the options.
    pub option_share: f64,
    /// Share of the way that target networks go in a gradient step.
    pub tau: f64,
    /// Errors over this count linearly in the critics' loss; 0: none do.
    pub huber_delta: f64,
    /// Weight of the executed option in the critics' loss; the rest is spread over all.
    pub executed_weight: f64,
    /// Fragments behind the actor's steps of one gradient.
    pub actor_fragments: usize,
    /// Share of the responsibilities that is spread over all options.
    pub responsibility_floor: f64,
    /// Temperatures at the start.
    pub temperature_init: f64,
    /// Entropy that an option's action shall have, of each joint.
    pub target_entropy: f64,
    /// Entropy that the policy over options shall have at first, as a share of log K.
    pub option_entropy_start: f64,
    /// The same after `anneal_steps`.
    pub option_entropy_end: f64,
    /// Recorded steps in which shares and exponents go from their first to their last value.
    pub anneal_steps: u64,
    /// Temperature of the terminations' entropy, as a fraction of the values' standard deviation.
    pub termination_temperature: f64,
    /// Deliberation cost of a termination, as a fraction of the values' standard deviation.
    pub deliberation_cost: f64,
    /// Termination logit at the start.
    pub termination_bias_init: f64,
    /// Normalised observations are clipped to this.
    pub observation_clip: f64,
}

/// Half-step PPO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HsPpo {
    /// Discount of a control tick.
    pub gamma: f64,
    /// Trace decay over actions.
    pub lam: f64,
    /// Trace decay over option decisions.
    pub lam_option: f64,
    /// Adam's learning rate.
    pub lr: f64,
    /// Environment steps over which the learning rate falls linearly; 0: it stays.
    pub lr_anneal_steps: u64,
    /// Where it falls to, relative to `lr`.
    pub lr_final: f64,
    /// Learning rate of the termination and policy-over-options heads, relative to `lr`.
    pub lr_option_scale: f64,
    /// Passes over the data of an update.
    pub num_learning_epochs: usize,
    /// Steps of one gradient.
    pub minibatch_size: usize,
    /// PPO's clip of the action ratio.
    pub clip_param: f64,
    /// PPO's clip of the option-transition ratio.
    pub option_clip_param: f64,
    /// Weight of the critic's loss.
    pub value_loss_coef: f64,
    /// Weight of the entropy of the options' actions.
    pub entropy_coef: f64,
    /// Weight of the entropy of the policy over options.
    pub option_entropy_coef: f64,
    /// Weight of KL(mean p^ || uniform).
    pub load_balance_coef: f64,
    /// Weight of the anchor on options with too little data.
    pub anchor_coef: f64,
    /// Options with fewer steps in an update are not stepped.
    pub min_option_steps: usize,
    /// Deliberation cost of a change of option, as a fraction of the returns' standard deviation.
    pub deliberation_cost: f64,
    /// Global gradient norm.
    pub max_grad_norm: f64,
    /// The update stops when KL(policy at its start || new) of the actions is over this; 0: never.
    pub desired_kl: f64,
    /// The update stops when KL of the option transition is over this; 0: never.
    pub desired_option_kl: f64,
    /// Truncation of V-trace's importance ratios (rho bar = c bar).
    pub rho_clip: f64,
    /// log of the actions' standard deviation at the start.
    pub log_std_init: f64,
    /// Termination logit at the start.
    pub termination_bias_init: f64,
    /// Normalised observations are clipped to this.
    pub observation_clip: f64,
    /// Divide rewards by the running standard deviation of the discounted return.
    pub normalise_reward: bool,
    /// Weigh options by their share of the data.
    pub option_weights: bool,
}

/// `handoff train`: the whole graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Train {
    /// Rollouts, each with its own sim.
    pub rollouts: usize,
    /// Environments, over all rollouts.
    pub envs: usize,
    /// Keep each rollout and its simulator, which take turns, on one core.
    pub pin: bool,
    /// Time to train, from the first environment step [min]; 0: no limit.
    pub minutes: f64,
    /// Environment steps to train; 0: no limit.
    pub env_steps: u64,
    /// Episodes of the evaluation at the end.
    pub eval_episodes: usize,
    /// A process that says nothing, or makes no progress where it does not wait, is restarted after this [s]; 0: never.
    pub watchdog_secs: f64,
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

impl Default for Policy {
    fn default() -> Self {
        Self {
            run: String::new(),
            link: Preset::Sim,
            joint_prefix: String::new(),
            learner_ns: "/".into(),
            stochastic: false,
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
        Self { meaning: Meaning::JointDelta, scale: 0.08 }
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self {
            timestep_secs: 1.0 / 240.0,
            threads: 0,
            told: Told::default(),
            mode: SimMode::Lockstep,
            state_rate_hz: 60.0,
            real_time_factor: 1.0,
            rounding: 0.0,
            clock: true,
        }
    }
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            id: String::new(),
            index: 0,
            restarts: 0,
            num_envs: 16,
            fragment_steps: 32,
            window: 4,
            run: String::new(),
            learner_ns: "/".into(),
            evaluate: false,
        }
    }
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            run_dir: String::new(),
            run: String::new(),
            update_mode: UpdateMode::Sync,
            min_rollouts: 1,
            num_steps_per_env: 64,
            batch_steps: 1024,
            max_lag: 8,
            save_interval: 20,
            keep: 3,
            torch_threads: 1,
            without_replay: false,
            hs_ppo: HsPpo::default(),
            osac: Osac::default(),
        }
    }
}

impl Default for Osac {
    fn default() -> Self {
        Self {
            gamma: 0.95,
            lr: 7e-4,
            lr_option: 1e-4,
            batch_size: 256,
            update_to_data: 1.0,
            slack_steps: 256,
            warmup_steps: 1000,
            capacity: 1_000_000,
            fragment_steps: 16,
            prioritisation: Prioritisation::Lap,
            priority_exponent: 0.4,
            importance_exponent: 0.4,
            option_share: 0.5,
            tau: 0.005,
            huber_delta: 1.0,
            executed_weight: 0.5,
            actor_fragments: 32,
            responsibility_floor: 0.1,
            temperature_init: 0.1,
            target_entropy: -1.0,
            option_entropy_start: 0.5,
            option_entropy_end: 0.5,
            anneal_steps: 50_000,
            termination_temperature: 0.05,
            deliberation_cost: 0.02,
            termination_bias_init: -2.0,
            observation_clip: 10.0,
        }
    }
}

impl Default for HsPpo {
    fn default() -> Self {
        Self {
            gamma: 0.95,
            lam: 0.85,
            lam_option: 1.0,
            lr: 7e-4,
            lr_anneal_steps: 1_500_000,
            lr_final: 0.1,
            lr_option_scale: 1.0,
            num_learning_epochs: 5,
            minibatch_size: 128,
            clip_param: 0.2,
            option_clip_param: 0.1,
            value_loss_coef: 0.5,
            entropy_coef: 0.0,
            option_entropy_coef: 0.005,
            load_balance_coef: 1.0,
            anchor_coef: 0.1,
            min_option_steps: 64,
            deliberation_cost: 0.02,
            max_grad_norm: 0.5,
            desired_kl: 0.0,
            desired_option_kl: 0.0,
            rho_clip: 1.0,
            log_std_init: -0.5,
            termination_bias_init: -2.0,
            observation_clip: 10.0,
            normalise_reward: true,
            option_weights: true,
        }
    }
}

impl Default for Train {
    fn default() -> Self {
        Self { rollouts: 2, envs: 16, pin: false, minutes: 6.0, env_steps: 0, eval_episodes: 300, watchdog_secs: 20.0 }
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
        if algo == Algo::Osac {
            // K options cost the critics K rows a step.
            config.learner.osac.batch_size = 128;
        }
        config
    }

    /// K: a flat algorithm has one option.
    pub fn option_count(&self) -> usize {
        if matches!(self.algo, Algo::Ppo | Algo::Sac) { 1 } else { self.options.count }
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
