//! Which robots a bag speaks of, and on which topics.

use super::survey::{ARM_COMMANDS, ARM_STATES, JOINT_STATE, JOINT_TRAJECTORY, Survey, TopicSurvey};
use crate::contract::Contract;
use crate::robot::Robot;
use std::collections::{BTreeMap, BTreeSet};

/// One robot's topics, all with messages.
#[derive(Clone, Debug, Default)]
pub struct RobotTopics<'a> {
    /// Its namespace, beginning with a slash.
    pub namespace: String,
    /// Where it tells its states; at least one.
    pub states: Vec<&'a TopicSurvey>,
    /// Where it is told what to do.
    pub commands: Vec<&'a TopicSurvey>,
    /// Namespaces of the other robots.
    pub others: Vec<String>,
}

impl RobotTopics<'_> {
    /// Whether a topic is this robot's: of all robots' namespaces that it lies in, this one's is the innermost.
    pub fn owns(&self, topic: &str) -> bool {
        let inner = |other: &String| self.namespace.len() < other.len() && lies_in(topic, other);
        lies_in(topic, &self.namespace) && !self.others.iter().any(inner)
    }
}

fn lies_in(topic: &str, namespace: &str) -> bool {
    topic.strip_prefix(namespace.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// The one robot of a bag, or that of a namespace; else a sentence that says what there is.
pub fn meant<'a>(survey: &'a Survey, wanted: Option<&str>) -> Result<RobotTopics<'a>, String> {
    let mut robots: BTreeMap<String, RobotTopics<'_>> = BTreeMap::new();
    let spoken = || survey.topics.iter().filter(|topic| 0 < topic.messages);
    for topic in spoken().filter(|topic| is_state(topic)) {
        robots.entry(robot_of(&topic.name)).or_default().states.push(topic);
    }
    for topic in spoken().filter(|topic| is_command(topic)) {
        if let Some(robot) = robots.get_mut(&robot_of(&topic.name)) {
            robot.commands.push(topic);
        }
    }
    let known: Vec<String> = robots.keys().cloned().collect();
    let named = |(namespace, topics): (String, _)| {
        let others = known.iter().filter(|other| **other != namespace).cloned().collect();
        RobotTopics { namespace, others, ..topics }
    };
    if known.is_empty() {
        let others = spoken().filter(|topic| topic.type_name == JOINT_STATE);
        let others: Vec<String> = others.map(|topic| format!("{} speaks of {}", topic.name, joints(topic))).collect();
        let others = if others.is_empty() { "there is no JointState at all".into() } else { others.join("; ") };
        return Err(format!("no joint states of an arm with 7 joints: {others}"));
    }
    if let Some(wanted) = wanted {
        let wanted = format!("/{}", wanted.trim_matches('/'));
        let none = || format!("no robot in the namespace {wanted}; there is {}", known.join(", "));
        return robots.remove_entry(&wanted).map(named).ok_or_else(none);
    }
    if 1 < known.len() {
        return Err(format!(
            "{} robots are in it: say which with --namespace, one of {}",
            known.len(),
            known.join(", ")
        ));
    }
    robots.pop_first().map(named).ok_or_else(|| "no robot is in it".into())
}

fn is_command(topic: &TopicSurvey) -> bool {
    let name = topic.name.rsplit('/').next().unwrap_or_default();
    [ARM_COMMANDS, JOINT_TRAJECTORY].contains(&topic.type_name.as_str())
        || (topic.type_name == JOINT_STATE && (name.contains("command") || name.contains("target")))
}

/// What a controller wants (franka_ros2's `desired_joint_states`) is no state.
fn is_state(topic: &TopicSurvey) -> bool {
    let told = !is_command(topic) && !topic.name.rsplit('/').next().is_some_and(|name| name.starts_with("desired_"));
    topic.type_name == ARM_STATES || (topic.type_name == JOINT_STATE && told && !arms(topic).is_empty())
}

/// Namespaces of franka_ros2's nodes within a robot's.
const INNER: [&str; 2] = ["/franka", "/franka_robot_state_broadcaster"];

/// The namespace of a robot: that of its topic, without those of franka_ros2's nodes, and of the controller that takes trajectories.
fn robot_of(topic: &str) -> String {
    let namespace = topic.rsplit_once('/').map_or("", |(namespace, _)| namespace);
    let inner = INNER.iter().find_map(|inner| namespace.strip_suffix(inner));
    let controller = || {
        let (outer, node) = topic.strip_suffix("/joint_trajectory")?.rsplit_once('/')?;
        node.ends_with("_controller").then_some(outer)
    };
    let namespace = inner.or_else(controller).unwrap_or(namespace);
    if namespace.is_empty() { "/".into() } else { namespace.into() }
}

/// Prefixes before `joint1` to `joint7` of the arms whose joints are all in one message.
pub(crate) fn arms(topic: &TopicSurvey) -> BTreeSet<&str> {
    let prefixes = |names: &'_ [String]| -> BTreeSet<String> {
        let prefix = |name: &String| name.strip_suffix("joint1").map(str::to_owned);
        let whole = |prefix: &String| (1..=7).all(|joint| names.contains(&format!("{prefix}joint{joint}")));
        names.iter().filter_map(prefix).filter(whole).collect()
    };
    let found: BTreeSet<String> = topic.joints.iter().flat_map(|names| prefixes(names)).collect();
    let names = topic.joints.iter().flatten();
    names.filter_map(|name| name.strip_suffix("joint1")).filter(|prefix| found.contains(*prefix)).collect()
}

fn joints(topic: &TopicSurvey) -> String {
    let names: BTreeSet<&str> = topic.joints.iter().flatten().map(String::as_str).collect();
    if names.is_empty() { "no joint".into() } else { names.into_iter().collect::<Vec<_>>().join(" ") }
}

/// Why the joints of a topic are not those of a contract.
pub(super) fn foreign(topic: &TopicSurvey, contract: &Contract) -> Option<String> {
    if topic.type_name == ARM_STATES {
        return None;
    }
    let arms = arms(topic);
    if 1 < arms.len() {
        let arms: Vec<&str> = arms.into_iter().collect();
        return Some(format!("{} speaks of {} arms: {}", topic.name, arms.len(), arms.join(" ")));
    }
    let has = |joints: &[String]| topic.joints.iter().any(|names| joints.iter().all(|joint| names.contains(joint)));
    let either =
        || contract.robot == Robot::Both && [Robot::Panda, Robot::Fr3].iter().any(|robot| has(&robot.joint_names()));
    if has(&contract.joints) || either() {
        return None;
    }
    Some(format!("{} speaks of {}; the contract is for {}", topic.name, joints(topic), contract.joints.join(" ")))
}
