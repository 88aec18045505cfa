//! N environments, stepped together.

use super::env::{Env, EnvState, Setup};
use super::model;
use crate::config;
use crate::contract::Told;
use crate::data::{Operation, STATE_DOF};
use crate::error::{Error, Result};
use crate::guard::{self, Lead};
use crate::robot::Robot;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelRefMutIterator as _, ParallelIterator as _};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// N simulated arms, each in a world of its own. The result of a step does not depend on the number of threads.
pub struct Arms {
    robot: Robot,
    control_period_secs: f64,
    setup: Setup,
    envs: Vec<Env>,
    pool: Option<ThreadPool>,
}

impl Arms {
    /// `num_envs` arms at [`super::HOME`], each with a cube on its table or without.
    ///
    /// Refuses zero environments and a physics step that does not divide the control period (to 0.1 %, so that a decimal
    /// fraction will do; the step is then the period over the whole number).
    pub fn new(
        num_envs: usize,
        robot: Robot,
        config: &config::Sim,
        control_period_secs: f64,
        cube: bool,
    ) -> Result<Self> {
        if num_envs == 0 {
            return Err(Error::invalid("num_envs is 0; a simulator needs at least one environment"));
        }
        let substeps = control_period_secs / config.timestep_secs;
        if !(substeps.round() >= 1.0 && (substeps - substeps.round()).abs() < 1e-3 * substeps) {
            return Err(Error::invalid(format!(
                "sim.timestep_secs {} does not divide the control period of {control_period_secs} s",
                config.timestep_secs
            )));
        }
        let substeps = substeps.round() as usize;
        let setup = Setup {
            model: Arc::new(model::load(robot, control_period_secs / substeps as f64, cube)?),
            substeps,
            told: config.told.clone(),
            cube,
            lead: None,
        };
        let envs = (0..num_envs).map(|env| Env::new(&setup, env as u64)).collect::<Result<_>>()?;
        Ok(Self { robot, control_period_secs, setup, envs, pool: pool(config.threads)? })
    }

    /// From now on targets are followed as a guard with these settings leads an arm, not at once; none changes nothing.
    pub fn led(mut self, guard: Option<&guard::Config>) -> Result<Self> {
        if let Some(guard) = guard {
            self.setup.lead = Some(Lead::new(guard, self.robot, self.control_period_secs)?);
        }
        Ok(self)
    }

    /// N.
    pub fn num_envs(&self) -> usize {
        self.envs.len()
    }

    /// Time between two control ticks [s].
    pub fn control_period_secs(&self) -> f64 {
        self.control_period_secs
    }

    /// What is added to physics.
    pub fn told(&self) -> &Told {
        &self.setup.told
    }

    /// One control tick: each environment drives to its row of `position` (clipped to the limits), is reset there with its
    /// `seed`, or is left alone. Positions are of the arm [rad], then of the fingers [m]; those of a HOLD are not read.
    ///
    /// Refuses, before anything moves, rows that are not N, a position that is not finite, and a reset outside the limits.
    pub fn step(&mut self, operation: &[Operation], position: &[[f64; STATE_DOF]], seed: &[u64]) -> Result<()> {
        self.check(operation, position, seed)?;
        let setup = &self.setup;
        let one = |(env, index): (&mut Env, usize)| match operation[index] {
            Operation::Step => {
                env.step(setup, &position[index]);
                Ok(())
            }
            Operation::Reset => env.reset(setup, &position[index], seed[index]),
            Operation::Hold => Ok(()),
        };
        match &self.pool {
            None => self.envs.iter_mut().zip(0..).try_for_each(one),
            Some(pool) => {
                let rows = 0..operation.len();
                pool.install(|| self.envs.par_iter_mut().zip(rows).try_for_each(one))
            }
        }
    }

    fn check(&self, operation: &[Operation], position: &[[f64; STATE_DOF]], seed: &[u64]) -> Result<()> {
        let (n, rows) = (self.envs.len(), [operation.len(), position.len(), seed.len()]);
        if rows != [n; 3] {
            return Err(Error::invalid(format!(
                "the command has {} operations, {} positions and {} seeds; this simulator has {n} environments",
                rows[0], rows[1], rows[2]
            )));
        }
        for (env, (operation, row)) in operation.iter().zip(position).enumerate() {
            if *operation == Operation::Hold {
                continue;
            }
            if let Some(joint) = row.iter().position(|value| !value.is_finite()) {
                return Err(Error::invalid(format!(
                    "the command of environment {env} has {} for {}; it must be finite",
                    row[joint],
                    self.joint_name(joint)
                )));
            }
            let limits = self.robot.limits();
            let arm = std::array::from_fn(|joint| row[joint]);
            if let (Operation::Reset, Some(joint)) = (operation, limits.outside(&arm)) {
                return Err(Error::invalid(format!(
                    "environment {env} cannot be reset with {} at {} rad; its limits are {} to {} rad",
                    self.joint_name(joint),
                    arm[joint],
                    limits.position_min_rad[joint],
                    limits.position_max_rad[joint]
                )));
            }
        }
        Ok(())
    }

    fn joint_name(&self, joint: usize) -> String {
        self.robot.joint_names().into_iter().chain(self.robot.finger_joint_names()).nth(joint).unwrap_or_default()
    }

    /// Measured joint positions [rad], fingers [m], and velocities [rad/s], fingers [m/s]; one row an environment. The same
    /// until the next step.
    pub fn measure(&self) -> (Vec<[f64; STATE_DOF]>, Vec<[f64; STATE_DOF]>) {
        self.envs.iter().map(|env| env.measure(&self.setup.told)).unzip()
    }

    /// Measured joint positions [rad], fingers [m]; one row an environment.
    pub fn position(&self) -> Vec<[f64; STATE_DOF]> {
        self.measure().0
    }

    /// Measured joint velocities [rad/s], fingers [m/s]; one row an environment.
    pub fn velocity(&self) -> Vec<[f64; STATE_DOF]> {
        self.measure().1
    }

    /// x y z [m], qw qx qy qz of the cube in the base frame, without noise; empty without a cube.
    pub fn object_pose(&self) -> Vec<[f64; 7]> {
        if self.setup.cube { self.envs.iter().map(Env::cube).collect() } else { Vec::new() }
    }

    /// All of an environment's state; refuses an environment that is not there.
    pub fn state(&self, env: usize) -> Result<EnvState> {
        self.envs.get(env).map(Env::state).ok_or_else(|| missing(env, self.envs.len()))
    }

    /// Continues an environment from a state of one with the same configuration: the two continuations are bit-equal.
    /// Refuses an environment that is not there, and a state of another configuration.
    pub fn set_state(&mut self, env: usize, state: &EnvState) -> Result<()> {
        let n = self.envs.len();
        self.envs.get_mut(env).ok_or_else(|| missing(env, n))?.set_state(&self.setup, state)
    }

    #[cfg(test)]
    pub(super) fn env(&mut self, env: usize) -> &mut Env {
        &mut self.envs[env]
    }
}

fn missing(env: usize, num_envs: usize) -> Error {
    Error::invalid(format!("there is no environment {env}; this simulator has {num_envs}, counted from 0"))
}

/// `threads` of our own, 0: one a core; none for a single thread.
fn pool(threads: usize) -> Result<Option<ThreadPool>> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    if threads == 1 {
        return Ok(None);
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|thread| format!("sim-{thread}"));
    let pool = builder.build().map_err(|error| Error::invalid(format!("no {threads} threads for the sim: {error}")))?;
    Ok(Some(pool))
}
