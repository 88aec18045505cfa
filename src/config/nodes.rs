//! What can be set of simulator, rollout, policy node, and of the whole graph.

use crate::contract::Told;
use crate::link::Preset;
use serde::{Deserialize, Serialize};

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
    /// Lockstep: targets are followed as the guard leads an arm, with its rate, smoothing and limits; otherwise at once.
    pub led: bool,
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
    /// Latched topic of the robot's URDF, whose joint limits hold where they are tighter; empty: none is waited for.
    pub robot_description: String,
    /// Namespace of the learner's topics.
    pub learner_ns: String,
    /// Sample the actions, too; otherwise they are the mean.
    pub stochastic: bool,
    /// Configure and activate as soon as there are weights that fit; arming stays apart.
    pub autostart: bool,
    /// Of SCHED_FIFO, 1 to 99, for what moves an arm: this node, and a rollout on a link; 0: as everything else. The default
    /// is below the 50 of ros2_control's controller manager. Where the machine does not permit it, that is said.
    pub realtime_priority: u32,
}

/// Rollout nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rollout {
    /// Name in the protocol; empty: the node's fully qualified name.
    pub id: String,
    /// Number among the rollouts of a run; part of its seed.
    pub index: u64,
    /// Times that this rollout was started before in this run; part of its seed. -1: each start draws otherwise.
    pub restarts: i64,
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
    /// Act on the robot of `policy.link`, through the guard; otherwise in lockstep with a sim.
    pub on_link: bool,
    /// On a simulator's link: arm without being asked, after a stop too. Hardware always waits for `~/arm`.
    pub arms_itself: bool,
    /// On a link: service that resets the simulator before each episode, `.../reset_simulation` of simulation_interfaces or any
    /// other std_srvs/Trigger; empty: the arm moves to its start.
    pub reset: String,
    /// Act with the mean action and ship nothing; goals come from `goal_pose` once one was heard.
    pub evaluate: bool,
}

/// `handoff train`: the whole graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Train {
    /// Rollouts, each with its own sim.
    pub rollouts: usize,
    /// Environments, over all rollouts.
    pub envs: usize,
    /// On a link: namespaces of the robots, apart by commas, one rollout each; empty: one robot without a namespace.
    pub namespaces: String,
    /// Keep each rollout and its simulator, which take turns, on one core.
    pub pin: bool,
    /// Time to train, from the first environment step [min]; 0: no limit.
    pub minutes: f64,
    /// Environment steps to train; 0: no limit.
    pub env_steps: u64,
    /// In serial mode: updates by which the acting weights lag behind; for comparison.
    pub forced_lag: u64,
    /// Episodes of the evaluation at the end.
    pub eval_episodes: usize,
    /// A process that says nothing, or makes no progress where it does not wait, is restarted after this [s]; 0: never.
    pub watchdog_secs: f64,
}

impl Train {
    /// The robots' namespaces on a link, as absolute names.
    pub fn robots(&self) -> Vec<String> {
        let names = self.namespaces.split(',').map(|name| name.trim().trim_matches('/'));
        names.map(|name| format!("/{name}")).collect()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            run: String::new(),
            link: Preset::Sim,
            joint_prefix: String::new(),
            robot_description: String::new(),
            learner_ns: "/".into(),
            stochastic: false,
            autostart: false,
            realtime_priority: 40,
        }
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self {
            timestep_secs: 1.0 / 240.0,
            threads: 0,
            told: Told::default(),
            led: true,
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
            restarts: -1,
            num_envs: 16,
            fragment_steps: 16,
            window: 2,
            run: String::new(),
            learner_ns: "/".into(),
            on_link: false,
            arms_itself: true,
            reset: String::new(),
            evaluate: false,
        }
    }
}

impl Default for Train {
    fn default() -> Self {
        Self {
            rollouts: 2,
            envs: 32,
            namespaces: String::new(),
            pin: false,
            minutes: 6.0,
            env_steps: 0,
            forced_lag: 0,
            eval_episodes: 300,
            watchdog_secs: 20.0,
        }
    }
}
