//! What is asked: observation layout, reward, success, end, reset distribution. One file a task; `find` names them.

mod reach;

pub use reach::Reach;

use crate::contract::Field;
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Limits};
use nalgebra::Isometry3;
use rand_chacha::ChaCha8Rng;

/// What a task sees of one arm at one control tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Measured joint positions [rad].
    pub position: [f64; ARM_DOF],
    /// Measured joint velocities [rad/s].
    pub velocity: [f64; ARM_DOF],
    /// Commanded joint positions that the next action is added to [rad].
    pub reference: [f64; ARM_DOF],
    /// Tool centre point at the measured positions.
    pub base_from_tcp: Isometry3<f64>,
    /// The cube, where the task has one.
    pub base_from_object: Option<Isometry3<f64>>,
}

impl Arm {
    /// Computes the tool centre point from the measured positions.
    pub fn new(position: [f64; ARM_DOF], velocity: [f64; ARM_DOF], reference: [f64; ARM_DOF]) -> Self {
        let base_from_tcp = crate::robot::tcp(&position);
        Self { position, velocity, reference, base_from_tcp, base_from_object: None }
    }
}

/// How an episode begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Joint positions, at rest [rad].
    pub position: [f64; ARM_DOF],
    /// Where the arm is told to go.
    pub base_from_goal: Isometry3<f64>,
}

/// What one step was worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Reward of the step.
    pub reward: f64,
    /// The task ended the episode: no value beyond.
    pub terminated: bool,
    /// How far the task is from done, in its own unit.
    pub error: f64,
    /// Success at this step.
    pub success: bool,
    /// A stricter success at this step.
    pub success_strict: bool,
}

/// A task. Pure: the same numbers give the same numbers.
pub trait Task: Send + Sync {
    /// Its name in configuration and contract.
    fn name(&self) -> &'static str;
    /// Layout of the observation.
    fn observation(&self) -> Vec<Field>;
    /// Whether the simulation holds a cube.
    fn cube(&self) -> bool;
    /// Control ticks after which an episode is truncated.
    fn episode_steps(&self) -> u32;
    /// Draws the start of an episode inside the limits.
    fn start(&self, limits: &Limits, rng: &mut ChaCha8Rng) -> Start;
    /// Appends the raw observation, in the order of [`Self::observation`].
    fn observe(&self, arm: &Arm, base_from_goal: &Isometry3<f64>, observation: &mut Vec<f32>);
    /// Judges the step that led to `arm` by an action in `[-1, 1]`.
    fn judge(&self, arm: &Arm, base_from_goal: &Isometry3<f64>, action: &[f32]) -> Judgement;
}

const TASKS: [&dyn Task; 1] = [&Reach];

/// The task of that name.
pub fn find(name: &str) -> Result<&'static dyn Task> {
    TASKS.into_iter().find(|task| task.name() == name).ok_or_else(|| {
        let names = TASKS.map(Task::name).join(", ");
        Error::invalid(format!("task = {name:?} is unknown: there is {names}"))
    })
}
