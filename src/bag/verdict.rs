//! Whether a bag is fit for what follows, and if not, why not.

use super::robots::{self, foreign};
use super::survey::{JOINT_STATE, JOINT_TRAJECTORY, Survey, TopicSurvey};
use crate::contract::{Architecture, Contract, Network};
use serde::Serialize;

/// What a bag holds that cannot be learned from, and what would be right.
pub const NO_TRANSITIONS: &str = "no transitions (handoff/msg/TransitionBatch), and joint states and commands alone do not tell the option, \
                                  action, reward and end of each step that learning needs: record a rollout's as configs/record.yaml says, \
                                  or make some with `handoff eval RUN --record BAG`";

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
        // transitions are analysed whatever else is there, and without a contract, too
        let carried: u64 = survey.transitions.values().sum();
        let enough = 0 < carried;
        if enough {
            self.say(Purpose::Analysis, true, format!("it holds {carried} transitions, which can be analysed alone"));
        }
        let contract = self.contract(survey, contract, enough);
        let robot = match robots::meant(survey, namespace) {
            Ok(robot) => robot,
            Err(sentence) => return self.say(Purpose::Analysis, enough && namespace.is_none(), sentence),
        };
        let namespace = &robot.namespace;
        if !robot.states.iter().any(|topic| topic.type_name == JOINT_STATE) {
            let sentence = format!(
                "the states of {namespace} are those of a lockstep simulator, which tell no time: record transitions"
            );
            return self.say(Purpose::Analysis, enough, sentence);
        }
        let names: Vec<&str> = robot.states.iter().map(|topic| topic.name.as_str()).collect();
        self.say(Purpose::Analysis, true, format!("the states of {namespace} are in {}", names.join(", ")));
        if let Some(contract) = contract {
            for topic in &robot.states {
                if let Some(sentence) = foreign(topic, &contract) {
                    self.say(Purpose::Analysis, false, sentence);
                }
            }
        }
        match robot.commands.first() {
            Some(topic) => {
                self.say(Purpose::Analysis, true, format!("the commands of {namespace} are in {}", topic.name))
            }
            None => {
                let sentence = format!(
                    "{namespace} has no commands: record joint_command ({JOINT_STATE}) or joint_trajectory ({JOINT_TRAJECTORY})"
                );
                self.say(Purpose::Analysis, enough, sentence);
            }
        }
    }

    /// The one contract; `spared`: nothing depends on it.
    fn contract(&mut self, survey: &Survey, given: Option<&Contract>, spared: bool) -> Option<Contract> {
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
                let because = refused.map_or("no weights are in it", String::as_str);
                self.say(Purpose::Analysis, spared, format!("no contract ({because}): give the run with --run RUN"));
            }
            several => {
                self.say(
                    Purpose::Analysis,
                    spared,
                    format!("it carries {several} contracts: say which holds with --run RUN"),
                );
            }
        }
        survey.contracts.values().next().filter(|_| survey.contracts.len() == 1).cloned()
    }

    fn learning(&mut self, survey: &Survey, contract: Option<&Contract>) {
        let given = contract.map(|contract| hex::encode(contract.hash()));
        // learning from a bag goes by all but the networks; without its weights, the families of ours are tried
        let fits = |contract: &Contract, hash: &String| {
            let network = &contract.network;
            let family = |architecture| Network { architecture, ..network.clone() };
            let of = |network| hex::encode(Contract { network, ..contract.clone() }.hash());
            let known = survey.contracts.get(hash).map(|own| Contract { network: network.clone(), ..own.clone() });
            known.is_some_and(|own| contract.require_same("the run", &own, "the bag").is_ok())
                || [Architecture::OnPolicy, Architecture::OffPolicy].into_iter().any(|one| of(family(one)) == *hash)
        };
        let (mut usable, mut strange) = (0, 0);
        for (hash, steps) in survey.transitions.iter().filter(|(_, steps)| 0 < **steps) {
            match contract.zip(given.as_ref()) {
                Some((contract, given)) if !fits(contract, hash) => {
                    let [theirs, ours] = [hash, given].map(|hash| hash.get(..8).unwrap_or(hash));
                    let sentence =
                        format!("{steps} transitions are of the contract {theirs}, not of the run's ({ours})");
                    self.say(Purpose::Learning, false, sentence);
                }
                None if !survey.contracts.contains_key(hash) => strange += steps,
                _ => usable += steps,
            }
        }
        if survey.transitions.values().all(|&steps| steps == 0) {
            self.say(Purpose::Learning, false, format!("it holds {NO_TRANSITIONS}"));
        }
        if 0 < strange {
            let sentence = format!(
                "{strange} transitions are of a contract that is not in it: record policy_weights, or give the run with --run RUN"
            );
            self.say(Purpose::Learning, false, sentence);
        }
        let unusable: u64 = survey.unusable.values().sum();
        if 0 < usable {
            self.say(Purpose::Learning, unusable < usable, format!("it holds {usable} transitions"));
        }
        for (reason, steps) in survey.unusable.iter().take(3) {
            self.say(Purpose::Learning, unusable < usable, format!("{steps} transitions would be left out: {reason}"));
        }
    }
}
