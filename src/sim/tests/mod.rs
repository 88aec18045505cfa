mod arms;
mod lockstep;
mod model;
mod paced;

use super::{Arms, HOME};
use crate::config::Sim;
use crate::contract::Told;
use crate::data::STATE_DOF;
use crate::robot::{ARM_DOF, Robot};
use rand::{Rng, RngExt as _};

/// Everything that is simulated besides physics.
fn all_told() -> Told {
    Told {
        latency_ticks: 2,
        position_noise_rad: 1e-3,
        velocity_noise_rad_per_sec: 1e-2,
        mass_range: 0.3,
        friction_range: 0.5,
    }
}

fn panda(num_envs: usize, threads: usize, told: Told, cube: bool) -> Arms {
    let sim = Sim { threads, told, ..Sim::default() };
    Arms::new(num_envs, Robot::Panda, &sim, 0.05, cube).unwrap()
}

/// The row with each joint of the arm moved by up to `step_rad`, inside the Panda's limits.
fn moved(row: &[f64; STATE_DOF], step_rad: f64, rng: &mut impl Rng) -> [f64; STATE_DOF] {
    let arm = std::array::from_fn(|joint| row[joint] + step_rad * rng.random_range(-1.0..1.0));
    let arm = Robot::Panda.limits().clamp_position(&arm, 0.0);
    std::array::from_fn(|joint| if joint < ARM_DOF { arm[joint] } else { HOME[joint] })
}
