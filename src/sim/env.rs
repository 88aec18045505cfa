//! One environment: an arm, its episode's variation, the commands still on their way, the noise of its sensors.

use super::model::{varies, vary};
use crate::config::{Purpose, Seed};
use crate::contract::Told;
use crate::data::STATE_DOF;
use crate::error::{Error, Result};
use crate::guard::{Lead, Led};
use crate::robot::{ARM_DOF, READY};
use mujoco_rs::prelude::{MjData, MjModel, MjtState};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::f64::consts::PI;
use std::sync::Arc;

/// The ready pose with open fingers: where an environment stands before its first reset [rad, m].
pub const HOME: [f64; STATE_DOF] = [READY[0], READY[1], READY[2], READY[3], READY[4], READY[5], READY[6], 0.04, 0.04];

const EVERYTHING: u32 = MjtState::mjSTATE_INTEGRATION as u32;

/// What the draws of an episode are for: children of its seed.
const VARIATION: u64 = 1;
const NOISE: u64 = 2;
const CUBE: u64 = 3;

/// What all environments have in common.
pub(super) struct Setup {
    pub(super) model: Arc<MjModel>,
    pub(super) substeps: usize,
    pub(super) told: Told,
    pub(super) cube: bool,
    /// How targets are followed; none: at once.
    pub(super) lead: Option<Lead>,
}

/// All of an environment's state: a restored one continues bit for bit. Floats are kept as bits, which every format keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvState {
    /// MuJoCo's integration state.
    physics: Vec<u64>,
    /// Commands that have not taken effect, oldest first.
    pending: Vec<[u64; STATE_DOF]>,
    /// The commanded motion: position, velocity and acceleration of each joint.
    led: [[u64; 3]; ARM_DOF],
    /// Of the episode.
    seed: u64,
    /// Control ticks since the reset.
    tick: u64,
}

/// One environment.
pub(super) struct Env {
    data: MjData<Arc<MjModel>>,
    pending: VecDeque<[f64; STATE_DOF]>,
    led: Led,
    seed: u64,
    noise: Seed,
    tick: u64,
}

impl Env {
    /// An arm at [`HOME`].
    pub(super) fn new(setup: &Setup, seed: u64) -> Result<Self> {
        let data = MjData::try_new(Arc::clone(&setup.model))
            .map_err(|error| Error::invalid(format!("MuJoCo cannot make an environment: {error}")))?;
        let led = Led::at(&READY);
        let mut env = Self { data, pending: VecDeque::new(), led, seed, noise: episode(seed).child(NOISE), tick: 0 };
        env.reset(setup, &HOME, seed)?;
        Ok(env)
    }

    /// Places the arm at `position` at rest, forgets commands, draws the episode's variation and the cube's place.
    pub(super) fn reset(&mut self, setup: &Setup, position: &[f64; STATE_DOF], seed: u64) -> Result<()> {
        self.begin(setup, seed)?;
        self.data.reset();
        self.data.qpos_mut()[..STATE_DOF].copy_from_slice(position);
        self.data.ctrl_mut().copy_from_slice(position);
        self.pending = vec![*position; setup.told.latency_ticks as usize].into();
        self.led = Led::at(&std::array::from_fn(|joint| position[joint]));
        if setup.cube {
            let mut rng = episode(seed).child(CUBE).rng(0);
            let half_yaw = 0.5 * rng.random_range(-PI..PI);
            let pose = &mut self.data.qpos_mut()[STATE_DOF..];
            // on the table, within reach, clear of the base
            pose[0] = rng.random_range(0.35..0.65);
            pose[1] = rng.random_range(-0.25..0.25);
            pose[3] = half_yaw.cos();
            pose[6] = half_yaw.sin();
        }
        Ok(())
    }

    /// Takes the episode's seed and the model drawn from it.
    fn begin(&mut self, setup: &Setup, seed: u64) -> Result<()> {
        (self.seed, self.tick, self.noise) = (seed, 0, episode(seed).child(NOISE));
        if varies(&setup.told) {
            let model = Arc::new(vary(&setup.model, &setup.told, episode(seed).child(VARIATION))?);
            self.data
                .try_swap_model(model)
                .map_err(|error| Error::invalid(format!("MuJoCo refuses the episode's model: {error}")))?;
        }
        Ok(())
    }

    /// Drives to `target` for one control period, `latency_ticks` later.
    pub(super) fn step(&mut self, setup: &Setup, target: &[f64; STATE_DOF]) {
        self.pending.push_back(*target);
        let to = self.pending.pop_front().unwrap_or(*target);
        self.data.ctrl_mut().copy_from_slice(&to);
        let arm = std::array::from_fn(|joint| to[joint]);
        let mut commands = 0;
        for substep in 0..setup.substeps {
            if let Some(lead) = &setup.lead {
                while commands < lead.ticks() && commands * setup.substeps <= substep * lead.ticks() {
                    let position = lead.tick(&mut self.led, &arm);
                    self.data.ctrl_mut()[..ARM_DOF].copy_from_slice(&position);
                    commands += 1;
                }
            }
            self.data.step();
        }
        self.tick += 1;
    }

    /// Joint positions [rad, m] and velocities [rad/s, m/s] as the sensors tell them: with noise on the arm's joints,
    /// drawn anew in each control tick.
    pub(super) fn measure(&self, told: &Told) -> ([f64; STATE_DOF], [f64; STATE_DOF]) {
        let mut position: [f64; STATE_DOF] = std::array::from_fn(|joint| self.data.qpos()[joint]);
        let mut velocity: [f64; STATE_DOF] = std::array::from_fn(|joint| self.data.qvel()[joint]);
        if told.position_noise_rad > 0.0 || told.velocity_noise_rad_per_sec > 0.0 {
            let mut rng = self.noise.rng(self.tick);
            let mut add = |row: &mut [f64; STATE_DOF], deviation: f64| {
                for value in &mut row[..ARM_DOF] {
                    let normal: f64 = StandardNormal.sample(&mut rng);
                    *value += deviation * normal;
                }
            };
            add(&mut position, told.position_noise_rad);
            add(&mut velocity, told.velocity_noise_rad_per_sec);
        }
        (position, velocity)
    }

    /// x y z [m], qw qx qy qz of the cube in the base frame.
    pub(super) fn cube(&self) -> [f64; 7] {
        std::array::from_fn(|i| self.data.qpos()[STATE_DOF + i])
    }

    /// All of its state.
    pub(super) fn state(&self) -> EnvState {
        EnvState {
            physics: self.data.state(EVERYTHING).iter().map(|value| value.to_bits()).collect(),
            pending: self.pending.iter().map(|row| row.map(f64::to_bits)).collect(),
            led: self.led.numbers().map(|joint| joint.map(f64::to_bits)),
            seed: self.seed,
            tick: self.tick,
        }
    }

    /// Continues from `state`, which must be of an environment with the same setup.
    pub(super) fn set_state(&mut self, setup: &Setup, state: &EnvState) -> Result<()> {
        let (floats, latency) = (setup.model.state_size(EVERYTHING), setup.told.latency_ticks as usize);
        if state.physics.len() != floats || state.pending.len() != latency {
            return Err(Error::invalid(format!(
                "a saved environment has {} numbers and {} pending commands; this simulator has {floats} and {latency} \
                 (other cube, latency or version)",
                state.physics.len(),
                state.pending.len(),
            )));
        }
        self.begin(setup, state.seed)?;
        self.data.reset();
        let physics: Vec<f64> = state.physics.iter().map(|&bits| f64::from_bits(bits)).collect();
        self.data
            .set_state(&physics, EVERYTHING)
            .map_err(|error| Error::invalid(format!("MuJoCo refuses a saved environment: {error}")))?;
        self.pending = state.pending.iter().map(|row| row.map(f64::from_bits)).collect();
        self.led = Led::of_numbers(state.led.map(|joint| joint.map(f64::from_bits)));
        self.tick = state.tick;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn data(&mut self) -> &mut MjData<Arc<MjModel>> {
        &mut self.data
    }
}

fn episode(seed: u64) -> Seed {
    Seed::root(seed).of(Purpose::Simulator)
}
