//! What passes between sim and rollout.

use super::{header, length, size, stream, unknown};
use crate::data::{ArmCommands, ArmStates, Operation, STATE_DOF};
use crate::error::{Error, Result};
use crate::ros::time;
use r2r::handoff::msg;

fn rows<const N: usize>(flat: &[f64]) -> Vec<[f64; N]> {
    flat.as_chunks().0.to_vec()
}

fn dof(found: u32) -> Result<()> {
    if found as usize == STATE_DOF {
        Ok(())
    } else {
        Err(Error::invalid(format!("a row has {found} joints; {STATE_DOF} are right: the arm, then the fingers")))
    }
}

impl From<&ArmStates> for msg::ArmStates {
    fn from(states: &ArmStates) -> Self {
        let (rollout, incarnation) =
            states.bound.as_ref().map_or_else(Default::default, |bound| (bound.rollout.clone(), bound.incarnation));
        Self {
            header: header(states.stamp_secs, ""),
            sim_life: states.sim_life,
            tick: states.tick,
            bound_rollout: rollout,
            bound_incarnation: incarnation,
            num_envs: states.position.len() as u32,
            dof: STATE_DOF as u32,
            position: states.position.as_flattened().to_vec(),
            velocity: states.velocity.as_flattened().to_vec(),
            object_pose: states.object_pose.as_flattened().to_vec(),
            told: serde_json::to_string(&states.told).unwrap_or_default(),
        }
    }
}

impl TryFrom<msg::ArmStates> for ArmStates {
    type Error = Error;

    fn try_from(message: msg::ArmStates) -> Result<Self> {
        dof(message.dof)?;
        let envs = message.num_envs as usize;
        let joints = size("position", envs, STATE_DOF)?;
        length("position", message.position.len(), joints)?;
        length("velocity", message.velocity.len(), joints)?;
        if !message.object_pose.is_empty() {
            length("object_pose", message.object_pose.len(), size("object_pose", envs, 7)?)?;
        }
        let bound = match message.bound_rollout.is_empty() {
            true => None,
            false => Some(stream(message.bound_rollout, message.bound_incarnation)?),
        };
        Ok(Self {
            sim_life: message.sim_life,
            tick: message.tick,
            stamp_secs: time::secs(&message.header.stamp)?,
            bound,
            position: rows(&message.position),
            velocity: rows(&message.velocity),
            object_pose: rows(&message.object_pose),
            told: serde_json::from_str(&message.told)
                .map_err(|error| Error::invalid(format!("told is not what a sim tells: {error}")))?,
        })
    }
}

impl From<&ArmCommands> for msg::ArmCommands {
    fn from(commands: &ArmCommands) -> Self {
        Self {
            sim_life: commands.sim_life,
            tick: commands.tick,
            rollout: commands.stream.rollout.clone(),
            incarnation: commands.stream.incarnation,
            num_envs: commands.operation.len() as u32,
            dof: STATE_DOF as u32,
            operation: commands.operation.iter().map(|&operation| operation as u8).collect(),
            position: commands.position.as_flattened().to_vec(),
            seed: commands.seed.clone(),
        }
    }
}

impl TryFrom<msg::ArmCommands> for ArmCommands {
    type Error = Error;

    fn try_from(message: msg::ArmCommands) -> Result<Self> {
        dof(message.dof)?;
        let envs = message.num_envs as usize;
        length("operation", message.operation.len(), envs)?;
        length("position", message.position.len(), size("position", envs, STATE_DOF)?)?;
        length("seed", message.seed.len(), envs)?;
        Ok(Self {
            sim_life: message.sim_life,
            tick: message.tick,
            stream: stream(message.rollout, message.incarnation)?,
            operation: message.operation.iter().map(|&code| operation(code)).collect::<Result<_>>()?,
            position: rows(&message.position),
            seed: message.seed,
        })
    }
}

fn operation(code: u8) -> Result<Operation> {
    match code {
        0 => Ok(Operation::Step),
        1 => Ok(Operation::Reset),
        2 => Ok(Operation::Hold),
        _ => Err(unknown("operation", code)),
    }
}
