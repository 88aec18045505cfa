//! The MuJoCo model: the arm's limits and names, the cube, and the variation of an episode.

use crate::config::Seed;
use crate::contract::Told;
use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Robot};
use mujoco_rs::logging::set_log_handler;
use mujoco_rs::prelude::{MjData, MjModel};
use mujoco_rs::wrappers::mj_logging::{MjLogMessage, MjtLogLevel};
use rand::RngExt as _;
use std::sync::Once;

const ARM: &str = include_str!("../../model/panda.xml");
const CUBE: &str = include_str!("../../model/cube.xml");

/// The arm on its table with `robot`'s names and limits, with or without the cube.
pub(super) fn load(robot: Robot, timestep_secs: f64, cube: bool) -> Result<MjModel> {
    log_to_tracing();
    let mut xml = ARM.replace("panda_", &format!("{}_", robot.prefix()));
    if cube {
        xml = xml.replace("<!-- cube -->", CUBE);
    }
    let mut model = MjModel::from_xml_string(&xml)
        .map_err(|error| Error::invalid(format!("MuJoCo refuses model/panda.xml: {error}")))?;
    model.opt_mut().timestep = timestep_secs;
    let limits = robot.limits();
    for joint in 0..ARM_DOF {
        let range = [limits.position_min_rad[joint], limits.position_max_rad[joint]];
        model.jnt_range_mut()[joint] = range;
        model.actuator_ctrlrange_mut()[joint] = range;
    }
    Ok(model)
}

/// Whether `told` asks for another model in each episode.
pub(super) fn varies(told: &Told) -> bool {
    told.mass_range > 0.0 || told.friction_range > 0.0
}

/// The model of one episode: mass and inertia of each link, and damping of each joint of the arm, are scaled by factors
/// drawn from `seed`. Gravity compensation stays that of the nominal masses, as the real controller knows no others.
pub(super) fn vary(nominal: &MjModel, told: &Told, seed: Seed) -> Result<MjModel> {
    let mut model = nominal.clone();
    let mut rng = seed.rng(0);
    let mut factor = |range: f64| 1.0 + range * rng.random_range(-1.0..=1.0);
    for body in 0..model.body_mass().len() {
        if model.body_gravcomp()[body] == 0.0 {
            continue;
        }
        let factor = factor(told.mass_range);
        model.body_mass_mut()[body] *= factor;
        model.body_inertia_mut()[body].iter_mut().for_each(|inertia| *inertia *= factor);
        model.body_gravcomp_mut()[body] /= factor;
    }
    for damping in &mut model.dof_damping_mut()[..ARM_DOF] {
        *damping *= factor(told.friction_range);
    }
    MjData::try_new(&mut model)
        .map_err(|error| Error::invalid(format!("MuJoCo cannot vary its model: {error}")))?
        .set_const();
    Ok(model)
}

/// MuJoCo's messages go to tracing; by itself it writes to the terminal and to a file in the working folder.
#[expect(unsafe_code, reason = "a global of MuJoCo's: set once, before the first model is loaded")]
fn log_to_tracing() {
    static ONCE: Once = Once::new();
    let handler = |message: &MjLogMessage| match message.level() {
        MjtLogLevel::mjLOG_WARNING | MjtLogLevel::mjLOG_ERROR => {
            tracing::warn!(target: "mujoco", "{}", message.subject());
        }
        _ => tracing::debug!(target: "mujoco", "{}", message.subject()),
    };
    // SAFETY: every use of MuJoCo in this crate begins with `load`, which waits here until the handler is set.
    ONCE.call_once(|| unsafe { set_log_handler(handler) });
}
