//! Which topics of a bag say what.

use crate::bag::robots::{RobotTopics, arms};
use crate::bag::{Bag, Schema, Schemas, Survey};
use crate::contract::Contract;
use crate::error::{Error, Result};
use crate::link::joint_names;
use crate::robot::{ARM_DOF, Robot};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What a topic says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    States,
    Commands,
    /// Commands to a trajectory controller, which no policy node hears.
    Trajectories,
    /// Where the policy wanted the arm to go.
    Target,
    Goal,
    Options,
    Diagnostics,
    Weights,
    Transitions,
    /// Statistics of episodes, where no transitions carry them.
    Episodes,
}

/// Topics that are read, with how to decode them.
pub(super) struct Topics {
    /// By index in the bag.
    pub(super) roles: BTreeMap<usize, (Role, Arc<Schema>)>,
}

impl Topics {
    /// Of a bag; `robot` is the one that is meant, if there is one.
    pub(super) fn of(bag: &Bag, survey: &Survey, robot: Option<&RobotTopics<'_>>, prefixes: &[PathBuf]) -> Self {
        let busiest = robot.and_then(|robot| {
            let told = robot.states.iter().filter(|topic| topic.type_name == "sensor_msgs/msg/JointState");
            told.max_by_key(|topic| topic.messages).map(|topic| topic.name.as_str())
        });
        let below = |name: &str, end: &str| robot.is_some_and(|robot| robot.owns(name)) && name.ends_with(end);
        let carried = survey.transitions.values().any(|&steps| 0 < steps);
        let commanded = |name: &str| robot.is_some_and(|robot| robot.commands.iter().any(|topic| topic.name == name));
        let role = |name: &str, type_name: &str| match type_name {
            "sensor_msgs/msg/JointState" if Some(name) == busiest => Some(Role::States),
            "sensor_msgs/msg/JointState" if below(name, "/target") => Some(Role::Target),
            "sensor_msgs/msg/JointState" => commanded(name).then_some(Role::Commands),
            "trajectory_msgs/msg/JointTrajectory" => commanded(name).then_some(Role::Trajectories),
            "geometry_msgs/msg/PoseStamped" => below(name, "/goal_pose").then_some(Role::Goal),
            "handoff/msg/OptionState" => below(name, "/option_state").then_some(Role::Options),
            "diagnostic_msgs/msg/DiagnosticArray" => Some(Role::Diagnostics),
            "handoff/msg/PolicyWeights" => Some(Role::Weights),
            "handoff/msg/TransitionBatch" => Some(Role::Transitions),
            "handoff/msg/EpisodeStats" => (!carried).then_some(Role::Episodes),
            _ => None,
        };
        let said = |name: &str| survey.topics.iter().any(|topic| topic.name == name && 0 < topic.messages);
        let all = bag.topics().iter().enumerate().filter(|(_, topic)| said(&topic.name));
        let mut schemas = Schemas::new(prefixes);
        let known = |(at, topic): (usize, &crate::bag::Topic)| {
            Some((at, (role(&topic.name, &topic.type_name)?, schemas.of(topic).ok()?)))
        };
        Self { roles: all.filter_map(known).collect() }
    }

    /// Indices of the topics that say this.
    pub(super) fn of_role(&self, role: Role) -> Vec<usize> {
        self.roles.iter().filter(|(_, (own, _))| *own == role).map(|(at, _)| *at).collect()
    }

    /// Whether something says this.
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.values().any(|(own, _)| *own == role)
    }
}

/// Joint names of the first arm that a robot's states speak of.
pub(super) fn joints(robot: &RobotTopics<'_>) -> Option<[String; ARM_DOF]> {
    let prefix = robot.states.iter().flat_map(|topic| arms(topic)).next()?;
    Some(std::array::from_fn(|joint| format!("{prefix}joint{}", joint + 1)))
}

/// The arm of a robot that a contract is for: which, the prefix of its joints, and their names.
pub(super) fn arm(robot: &RobotTopics<'_>, contract: &Contract) -> Result<(Robot, String, [String; ARM_DOF])> {
    let prefixes: Vec<&str> = robot.states.iter().flat_map(|topic| arms(topic)).collect();
    let own = |robot: Robot| format!("{}_", robot.prefix());
    let candidates = match contract.robot {
        Robot::Both => vec![Robot::Panda, Robot::Fr3],
        one => vec![one],
    };
    let named = candidates.iter().find(|robot| prefixes.contains(&own(**robot).as_str()));
    let (arm, prefix) = match (named, prefixes.as_slice()) {
        (Some(arm), _) => (*arm, arm.prefix().to_owned()),
        // another name for the same arm, as franka_ros2's `fer`
        (None, [prefix]) if *prefix != own(Robot::Panda) && *prefix != own(Robot::Fr3) => {
            (candidates[0], prefix.trim_end_matches('_').to_owned())
        }
        (None, prefixes) => {
            let (found, wanted) = (prefixes.join(", "), contract.joints.join(" "));
            return Err(Error::invalid(format!("the arms of the bag are {found}...; the policy is for {wanted}")));
        }
    };
    let names = joint_names(arm, &prefix)?;
    Ok((arm, prefix, names))
}
