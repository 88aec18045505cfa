//! What a robot's topics look like: which carry states and commands, how its joints are called, when a command is due.
//! Pure: messages come as [`JointState`]. Joints are found by name, never by place; what does not fit is refused in a sentence.

mod command;
mod description;
mod joints;
mod rate;

pub use command::{Command, Form, Point, Trajectory};
pub use description::described_limits;
pub use joints::{Joints, Measured, OUT_OF_ORDER_SECS, shown};
pub use rate::{Due, Rate};

use crate::error::{Error, Result};
use crate::guard;
use crate::robot::{ARM_DOF, Robot};
use serde::{Deserialize, Serialize};

/// Where franka_ros2 tells its robot's state, the mode among it (v3.4.0, franka_robot_state_broadcaster), relative to the namespace.
pub const ROBOT_STATE: &str = "franka_robot_state_broadcaster/robot_state";

/// The robots' ways of speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The embedded arm, paced.
    Sim,
    /// Isaac Sim, the graph of its ROS 2 tutorials.
    Isaac,
    /// Isaac Sim, its MoveIt example.
    IsaacMoveit,
    /// crisp_controllers over ros2_control, on hardware.
    Crisp,
    /// franka_ros2's FR3 with a joint trajectory controller.
    FrankaFr3,
}

/// One robot's way of speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Topic of the states (sensor_msgs/JointState), relative to the namespace.
    pub states: &'static str,
    /// Topic of the commands, relative to the namespace.
    pub commands: &'static str,
    /// What a command is.
    pub form: Form,
    /// Whether the states' writer is reliable; a best-effort reader hears either.
    pub reliable_states: bool,
    /// When a command is due.
    pub rate: Rate,
    /// Whether it moves nothing but pixels.
    pub simulated: bool,
    /// The node of franka_ros2's package franka_gripper, relative to the namespace; none: there is none that could be asked.
    pub hand: Option<&'static str>,
}

impl Preset {
    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Isaac => "isaac",
            Self::IsaacMoveit => "isaac_moveit",
            Self::Crisp => "crisp",
            Self::FrankaFr3 => "franka_fr3",
        }
    }

    /// The only arm that speaks so, if there is only one.
    pub fn arm(self) -> Option<Robot> {
        (self == Self::FrankaFr3).then_some(Robot::Fr3)
    }

    /// Topics, rate, and whether it is a simulation.
    pub fn link(self) -> Link {
        // Isaac Sim: isaacsim.ros2.bridge, OgnROS2PublishJointState and OgnROS2SubscribeJointState; its moveit.py
        let simulated = Link {
            states: "joint_states",
            commands: "joint_command",
            form: Form::Positions,
            reliable_states: true,
            rate: Rate::PerState,
            simulated: true,
            hand: None,
        };
        match self {
            Self::Sim | Self::Isaac => simulated,
            Self::IsaacMoveit => Link { states: "isaac_joint_states", commands: "isaac_joint_commands", ..simulated },
            // crisp_controllers, cartesian_controller.cpp: positions are copied by place, so exactly the arm's joints in order
            Self::Crisp => Link {
                states: "joint_states",
                commands: "target_joint",
                form: Form::Positions,
                reliable_states: false,
                rate: Rate::Fixed,
                simulated: false,
                hand: None,
            },
            // franka_ros2 v3.4.0: franka.launch.py remaps the 1 kHz broadcaster so; fr3_ros_controllers.yaml names the controller
            Self::FrankaFr3 => Link {
                states: "franka/joint_states",
                commands: "fr3_arm_controller/joint_trajectory",
                form: Form::Trajectory,
                reliable_states: false,
                rate: Rate::Fixed,
                simulated: false,
                hand: Some("franka_gripper"),
            },
        }
    }

    /// [`Self::link`], where this arm speaks so.
    pub fn link_of(self, arm: Robot) -> Result<Link> {
        match self.arm().filter(|only| *only != arm) {
            None => Ok(self.link()),
            Some(only) => Err(Error::invalid(format!(
                "policy.link = {} with robot = {}; that link serves the {} only",
                self.name(),
                arm.prefix(),
                only.prefix()
            ))),
        }
    }

    /// Refuses a guard by the clock of a simulator where there is none, and the other way round.
    pub fn check_clock(self, guard: &guard::Config) -> Result<()> {
        let (simulated, given) = (self.link().simulated, guard.use_sim_time);
        if simulated == given {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "guard.use_sim_time = {given} with policy.link = {}, which is {}",
            self.name(),
            if simulated { "a simulator with a /clock: true is right" } else { "hardware: false is right" }
        )))
    }

    /// The guard's settings where nothing else is said. A simulation has the whole of the limits, and may be slower than time;
    /// hardware has a fifth. The leash is short: a policy that was trained without limits of acceleration swings about its goal when
    /// its target may run ahead of the arm.
    pub fn guard(self) -> guard::Config {
        const LEASH_RAD: f64 = 0.1;
        if self.link().simulated {
            guard::Config {
                command_rate_hz: 60.0,
                state_timeout_secs: 0.5,
                policy_timeout_secs: 1.0,
                late_ratio: 1.0,
                leash_rad: LEASH_RAD,
                ..guard::Config::simulation()
            }
        } else {
            // not every driver tells a robot mode, nor does every build hear it
            guard::Config {
                command_rate_hz: 100.0,
                require_mode: false,
                leash_rad: LEASH_RAD,
                ..guard::Config::default()
            }
        }
    }
}

/// The arm's joint names with another prefix than its own; an empty one is its own.
pub fn joint_names(robot: Robot, prefix: &str) -> Result<[String; ARM_DOF]> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !prefix.chars().all(fits) {
        return Err(Error::invalid(format!(
            "policy.joint_prefix = {prefix:?} is no prefix of joint names; letters, digits and _ are right, e.g. fer"
        )));
    }
    let prefix = if prefix.is_empty() { robot.prefix() } else { prefix };
    Ok(std::array::from_fn(|joint| format!("{prefix}_joint{}", joint + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Preset; 5] = [Preset::Sim, Preset::Isaac, Preset::IsaacMoveit, Preset::Crisp, Preset::FrankaFr3];

    #[test]
    fn simulations_get_the_whole_of_the_limits_and_hardware_a_fifth() {
        for preset in ALL {
            let (guard, link) = (preset.guard(), preset.link());
            guard.validate().unwrap();
            assert_eq!(guard.scale, if link.simulated { 1.0 } else { 0.2 }, "{preset:?}");
            assert_eq!(guard.use_sim_time, link.simulated, "{preset:?}");
        }
    }

    #[test]
    fn only_simulations_are_commanded_state_by_state() {
        for preset in ALL {
            let link = preset.link();
            assert_eq!(link.rate == Rate::PerState, link.simulated, "{preset:?}");
            assert!(!link.states.starts_with('/') && !link.commands.starts_with('/'), "{preset:?}: namespaces");
        }
        assert_eq!(Preset::Isaac.link().commands, "joint_command");
        assert_eq!(Preset::IsaacMoveit.link().states, "isaac_joint_states");
        assert_eq!(Preset::Crisp.link().commands, "target_joint");
        let fr3 = Preset::FrankaFr3.link();
        assert_eq!((fr3.states, fr3.form), ("franka/joint_states", Form::Trajectory));
        assert!(ALL.iter().all(|preset| preset.arm().is_none() == (*preset != Preset::FrankaFr3)));
    }

    #[test]
    fn a_preset_is_written_as_it_is_named() {
        for preset in ALL {
            assert_eq!(serde_json::to_value(preset).unwrap(), preset.name());
        }
    }

    #[test]
    fn a_prefix_replaces_the_arms_own() {
        assert_eq!(joint_names(Robot::Panda, "").unwrap()[0], "panda_joint1");
        assert_eq!(joint_names(Robot::Panda, "left_fer").unwrap()[6], "left_fer_joint7");
        assert!(joint_names(Robot::Fr3, "a/b").unwrap_err().to_string().contains("a/b"));
    }
}
