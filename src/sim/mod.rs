//! The embedded simulator: N Panda or FR3 arms in MuJoCo, stepped by control ticks, over all cores. The only room that
//! names mujoco_rs.
//!
//! `model/panda.xml` is the arm; [`Arms`] are N environments; [`Lockstep`] serves them to one rollout;
//! [`Paced`] is one arm in its own time.
//!
//! Measured by `examples/sim_speed.rs` (x86-64, one core, 20 Hz, random joint deltas of 0.08 rad, 16 environments, 12 physics
//! steps of 1/240 s a tick): 19,000 env steps/s, 10,000 with a cube; masses and friction drawn in each episode cost 1 %.
//! Under the same commands, trajectories at 1/240 s and 1/500 s differ by 3.2 mrad RMS (1/240 s from 0.1 ms by 4.9, 1/500 s by
//! 2.0), nearly all of it where a torque limit is reached (without limits 0.4). A held pose has an offset below 1 µrad.

mod arms;
mod env;
mod lockstep;
mod model;
mod paced;

pub use arms::Arms;
pub use env::{EnvState, HOME};
pub use lockstep::{Answer, Lockstep};
pub use paced::Paced;

#[cfg(test)]
mod tests;
