//! The embedded simulator: N Panda or FR3 arms in MuJoCo, stepped by control ticks, over all cores. The only room that
//! names mujoco_rs.
//!
//! `model/panda.xml` is the arm; [`Arms`] are N environments; [`Lockstep`] serves them to one rollout.

mod arms;
mod env;
mod lockstep;
mod model;

pub use arms::Arms;
pub use env::{EnvState, HOME};
pub use lockstep::{Answer, Lockstep};

#[cfg(test)]
mod tests;
