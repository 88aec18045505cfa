//! Whether a bag is fit for what follows, and if not, why not.

use super::survey::{JOINT_STATE, Survey, TRANSITIONS, TopicSurvey};
use crate::contract::Contract;
use crate::robot::Robot;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const ARM_STATES: &str = "handoff/msg/ArmStates";
const ARM_COMMANDS: &str = "handoff/msg/ArmCommands";

/// What a bag is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To see what happened and what a policy would do.
    Analysis,
    /// To train from it.
    Learning,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it matters for.
    pub purpose: Purpose,
    /// It is as it should be. What is merely worth knowing is fit.
    pub fit: bool,
    /// What was found, and what would be right.
    pub sentence: String,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Judges a survey. `namespace`: the robot that is meant; `contract`: from outside of the bag.
    pub fn new(survey: &Survey, namespace: Option<&str>, contract: Option<&Contract>) -> Self {
        let mut verdict = Self::default();
        verdict.health(survey);
        verdict.analysis(survey, namespace, contract);
        verdict.learning(survey, contract);
        verdict
    }

    /// Nothing speaks against it.
    pub fn fit(&self, purpose: Purpose) -> bool {
        self.findings.iter().all(|finding| finding.fit || finding.purpose != purpose)
    }

    fn say(&mut self, purpose: Purpose, fit: bool, sentence: impl Into<String>) {
        self.findings.push(Finding { purpose, fit, sentence: sentence.into() });
    }

    /// What is worth knowing, but spoils nothing.
    fn health(&mut self, survey: &Survey) {
        let jumps = survey.clock_jump_count;
        if 0 < jumps {
            let s = if jumps == 1 { "" } else { "s" };
            self.say(
                Purpose::Analysis,
                true,
                format!("the clock jumps back {jumps} time{s}: what runs over a jump is split there"),
            );
        }
        for topic in survey.topics.iter().filter(|topic| topic.type_name == JOINT_STATE) {
            let TopicSurvey { name, repeated_stamps, stamps_back, gaps, .. } = topic;
            if 0 < *repeated_stamps {
                self.say(
                    Purpose::Analysis,
                    true,
                    format!("{name} repeats a stamp {repeated_stamps} times: the first counts"),
                );
            }
            if 0 < *stamps_back {
                self.say(Purpose::Analysis, true, format!("the stamps of {name} go back {stamps_back} times"));
            }
            if let (true, Some(longest)) = (0 < *gaps, topic.longest_interval_secs) {
                self.say(Purpose::Analysis, true, format!("{name} has {gaps} gaps; the longest is {longest:.3} s"));
            }
        }
    }

    fn analysis(&mut self, survey: &Survey, namespace: Option<&str>, contract: Option<&Contract>) {
        if survey.messages == 0 {
            self.say(Purpose::Analysis, false, "it holds no message");
            return;
        }
        let contract = self.contract(survey, contract);
        let Some((namespace, states)) = self.robot(survey, namespace) else { return };
        let names: Vec<&str> = states.iter().map(|topic| topic.name.as_str()).collect();
        self.say(Purpose::Analysis, true, format!("the states of {namespace} are in {}", names.join(", ")));
        if let Some(contract) = contract {
            for topic in states {
                if let Some(sentence) = foreign(topic, &contract) {
                    self.say(Purpose::Analysis, false, sentence);
                }
            }
        }
        let commands =
            |topic: &&TopicSurvey| 0 < topic.messages && is_command(topic) && robot_of(&topic.name) == namespace;
        match survey.topics.iter().find(commands) {
            Some(topic) => {
                self.say(Purpose::Analysis, true, format!("the commands of {namespace} are in {}", topic.name))
            }
            None => {
                let sentence = format!(
                    "{namespace} has no commands: record joint_command ({JOINT_STATE}) or arm_commands ({ARM_COMMANDS})"
                );
                self.say(Purpose::Analysis, false, sentence);
            }
        }
    }

    /// The one contract.
    fn contract(&mut self, survey: &Survey, given: Option<&Contract>) -> Option<Contract> {
        if let Some(given) = given {
            return Some(given.clone());
        }
        match survey.contracts.len() {
            1 => {
                let sentence = "the weights in it carry its contract";
                self.say(Purpose::Analysis, true, sentence);
            }
            0 => {
                let refused = survey.weights.iter().find_map(|weights| weights.problem.as_ref());
                let because = refused
                    .map_or("no weights are in it".to_owned(), |problem| format!("its weights are refused: {problem}"));
                self.say(Purpose::Analysis, false, format!("no contract ({because}): give the run with --run RUN"));
            }
            several => {
                self.say(
                    Purpose::Analysis,
                    false,
                    format!("it carries {several} contracts: say which holds with --run RUN"),
                );
            }
        }
        survey.contracts.values().next().filter(|_| survey.contracts.len() == 1).cloned()
    }

    /// The robot that is meant and the topics of its states.
    fn robot<'a>(&mut self, survey: &'a Survey, wanted: Option<&str>) -> Option<(String, Vec<&'a TopicSurvey>)> {
        let states = survey.topics.iter().filter(|topic| 0 < topic.messages && is_state(topic));
        let mut robots: BTreeMap<String, Vec<&TopicSurvey>> = BTreeMap::new();
        for topic in states {
            robots.entry(robot_of(&topic.name)).or_default().push(topic);
        }
        let known: Vec<String> = robots.keys().cloned().collect();
        if known.is_empty() {
            let others = survey.topics.iter().filter(|topic| topic.type_name == JOINT_STATE && 0 < topic.messages);
            let others: Vec<String> =
                others.map(|topic| format!("{} speaks of {}", topic.name, joints(topic))).collect();
            let others = if others.is_empty() { "there is no JointState at all".into() } else { others.join("; ") };
            self.say(Purpose::Analysis, false, format!("no joint states of an arm with 7 joints: {others}"));
            return None;
        }
        if let Some(wanted) = wanted {
            let wanted = format!("/{}", wanted.trim_matches('/'));
            let found = robots.remove_entry(&wanted);
            if found.is_none() {
                self.say(
                    Purpose::Analysis,
                    false,
                    format!("no robot in the namespace {wanted}; there is {}", known.join(", ")),
                );
            }
            return found;
        }
        if 1 < known.len() {
            let sentence =
                format!("{} robots are in it: say which with --namespace, one of {}", known.len(), known.join(", "));
            self.say(Purpose::Analysis, false, sentence);
            return None;
        }
        robots.pop_first()
    }

    fn learning(&mut self, survey: &Survey, contract: Option<&Contract>) {
        let given = contract.map(|contract| hex::encode(contract.hash()));
        let known = |hash: &String| survey.contracts.contains_key(hash) || given.as_ref() == Some(hash);
        let (mut usable, mut strange) = (0, 0);
        for (hash, steps) in &survey.transitions {
            *(if known(hash) { &mut usable } else { &mut strange }) += steps;
        }
        if usable == 0 && strange == 0 {
            self.say(Purpose::Learning, false, format!("it holds no transitions: record transitions ({TRANSITIONS})"));
        }
        if 0 < strange {
            let sentence = format!(
                "{strange} transitions are of a contract that is not in it: record policy_weights, or give the run with --run RUN"
            );
            self.say(Purpose::Learning, false, sentence);
        }
        if 0 < usable {
            self.say(Purpose::Learning, true, format!("it holds {usable} transitions"));
        }
    }
}

fn is_command(topic: &TopicSurvey) -> bool {
    let name = topic.name.rsplit('/').next().unwrap_or_default();
    topic.type_name == ARM_COMMANDS
        || (topic.type_name == JOINT_STATE && (name.contains("command") || name.contains("target")))
}

fn is_state(topic: &TopicSurvey) -> bool {
    topic.type_name == ARM_STATES || (topic.type_name == JOINT_STATE && !is_command(topic) && !arms(topic).is_empty())
}

/// The namespace of a robot: that of its topic, without franka_ros2's inner one.
fn robot_of(topic: &str) -> String {
    let namespace = topic.rsplit_once('/').map_or("", |(namespace, _)| namespace);
    let namespace = namespace.strip_suffix("/franka").unwrap_or(namespace);
    if namespace.is_empty() { "/".into() } else { namespace.into() }
}

/// Prefixes before `joint1` to `joint7` of the arms whose joints are all in one message.
fn arms(topic: &TopicSurvey) -> BTreeSet<&str> {
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
fn foreign(topic: &TopicSurvey, contract: &Contract) -> Option<String> {
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
