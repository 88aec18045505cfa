//! The one pass over a bag.

mod messages;

use super::episodes::Record;
use super::health::Watch;
use super::judge::Judge;
use super::lead::Lead;
use super::logged::contracts;
use super::options::Process;
use super::replay::{Places, Replay};
use super::rows::Block;
use super::topics::{self, Role, Topics};
use super::trace::Axis;
use super::{Analysis, PolicyName, attention};
use crate::bag::{Bag, Order, Select, Survey, decode, robots};
use crate::contract::{Contract, Hash, PolicyWeights, Snapshot};
use crate::data::wire::Stamp;
use crate::data::{Once, OptionState};
use crate::error::{Error, Result};
use crate::policy::Sampling;
use crate::robot::{self, ARM_DOF, REACH_M};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

pub use super::judge::Rewards;
/// What the present policy decides on a recorded state.
pub type Decision = OptionState;

/// A policy from outside of the bag.
#[derive(Clone, Debug)]
pub struct Present {
    /// Where it is from, for people.
    pub from: String,
    /// It.
    pub snapshot: Arc<Snapshot>,
    /// Its critic has learned; that of a clone has not.
    pub critic: bool,
    /// How its critic was taught; none where that is not known.
    pub rewards: Option<Rewards>,
}

/// How a bag is looked at.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The robot that is meant, where there are several.
    pub namespace: Option<String>,
    /// The policy of today; without it the newest of the bag.
    pub present: Option<Present>,
    /// Another policy.
    pub against: Option<Present>,
    /// Where the tool shall go, if the bag does not say [m, base frame].
    pub goal: Option<[f64; 3]>,
    /// Of the present policy's draws, as the node's `seed`.
    pub seed: u64,
    /// How actions are taken.
    pub sampling: Sampling,
    /// Where types may be looked up (AMENT_PREFIX_PATH).
    pub prefixes: Vec<PathBuf>,
}

impl Default for Setup {
    /// The bag alone.
    fn default() -> Self {
        let sampling = Sampling::MeanAction;
        Self { namespace: None, present: None, against: None, goal: None, seed: 1, sampling, prefixes: Vec::new() }
    }
}

/// Analyses a bag. `each` is given every decision of the present policy on recorded states; `progress` the messages read, of two passes.
/// Refuses a bag that holds neither states of an arm nor transitions, a namespace without a robot, and policies whose contracts disagree.
pub fn analyse(
    bag: &Bag,
    setup: &Setup,
    each: &mut dyn FnMut(&Decision),
    progress: &mut dyn FnMut(u64),
) -> Result<Analysis> {
    let survey = Survey::take(bag, &setup.prefixes, progress)?;
    let robot = robots::meant(&survey, setup.namespace.as_deref());
    let topics = Topics::of(bag, &survey, robot.as_ref().ok(), &setup.prefixes);
    let told = topics.has(Role::States);
    if let (Some(_), Err(why)) = (&setup.namespace, &robot) {
        return Err(Error::invalid(format!("{}: {why}", bag.path().display())));
    }
    if !told && !topics.has(Role::Transitions) {
        let why =
            robot.as_ref().err().cloned().unwrap_or_else(|| "its states are those of a lockstep simulator".into());
        return Err(Error::invalid(format!(
            "{} holds nothing to analyse: {why}; and no transitions. configs/record.yaml says what to record",
            bag.path().display()
        )));
    }
    // sorted by time, what was before a clock was set back and what was after would be one another's neighbours
    let order = if survey.clock_jump_count == 0 { Order::Time } else { Order::Recorded };
    let present = match &setup.present {
        Some(given) => Some(given.clone()),
        None => newest(bag, &topics, order)?,
    };
    if let (Some(present), Some(against)) = (&present, &setup.against) {
        alike(&present.snapshot.contract, &present.from, &against.snapshot.contract, &against.from)?;
    }
    let unclear = robot.as_ref().err().cloned();
    let robot = robot.ok().filter(|_| told);
    let mut walk = Walk::new(&survey, &topics, setup, present.as_ref(), robot.as_ref())?;
    if let Some(ours) = walk.contract.as_ref().filter(|_| topics.has(Role::Transitions)) {
        let mut known = contracts(bag, ours, &setup.prefixes)?;
        known.retain(|_, theirs| alike(ours, "the policy", theirs, "the bag").is_ok());
        walk.contracts = known;
    }
    let states =
        survey.topics.iter().any(|topic| topic.type_name == "sensor_msgs/msg/JointState" && 0 < topic.messages);
    walk.notes
        .extend(unclear.filter(|_| states).map(|why| format!("the transitions alone, as no robot is clear: {why}")));
    let select = Select { topics: Some(topics.roles.keys().copied().collect()), order, ..Select::default() };
    let mut messages = bag.read(&select)?;
    let mut count = survey.messages;
    while let Some(message) = messages.read()? {
        count += 1;
        progress(count);
        if let Some((role, schema)) = topics.roles.get(&message.topic) {
            walk.message(*role, schema, &message, each)?;
        }
    }
    walk.finish(survey, present.as_ref())
}

/// The newest weights of the bag.
fn newest(bag: &Bag, topics: &Topics, order: Order) -> Result<Option<Present>> {
    if !topics.has(Role::Weights) {
        return Ok(None);
    }
    let select = Select { topics: Some(topics.of_role(Role::Weights)), order, ..Select::default() };
    let mut found: Option<Arc<Snapshot>> = None;
    for message in bag.read(&select)? {
        let message = message?;
        let Some((_, schema)) = topics.roles.get(&message.topic) else { continue };
        let snapshot = decode::<PolicyWeights>(schema, &message.data).and_then(Snapshot::try_from);
        found = snapshot.ok().map(Arc::new).or(found);
    }
    Ok(found.map(|snapshot| Present { from: "the bag".into(), snapshot, critic: true, rewards: None }))
}

/// Refuses two contracts that differ in more than their networks.
pub(super) fn alike(one: &Contract, ours: &str, other: &Contract, theirs: &str) -> Result<()> {
    let network = one.network.clone();
    one.require_same(ours, &Contract { network, ..other.clone() }, theirs)
}

fn name(policy: &Present) -> PolicyName {
    let Present { from, snapshot, .. } = policy;
    PolicyName { from: from.clone(), run: snapshot.run.to_string(), version: snapshot.age() }
}

struct Walk<'a> {
    setup: &'a Setup,
    start_ns: i64,
    contract: Option<Arc<Contract>>,
    /// Those of which batches may be: they differ from it in networks at most.
    contracts: BTreeMap<Hash, Contract>,
    judge: Option<Judge>,
    replay: Option<Replay>,
    joints: Option<[String; ARM_DOF]>,
    places: [Places; 2],
    record: Record,
    process: Process,
    watch: Watch,
    /// Options were published: they say what the policy did. Else its decisions of today stand for them.
    published: bool,
    /// Where targets were recorded. Else all commands lead, as they do in a node that the bag is played into.
    lead: Option<Lead>,
    /// Of the newest state.
    last_stamp: Stamp,
    /// Of the message before.
    last_ns: i64,
    /// The newest version that was published, by run and life.
    newest: BTreeMap<(Uuid, u32), u64>,
    /// Run and life of the last weights.
    recent: Option<(Uuid, u32)>,
    envs: BTreeMap<(Uuid, String, u32), usize>,
    /// The step that comes next, by environment.
    expected: BTreeMap<usize, u64>,
    /// Pieces of transitions that came behind later ones.
    late: u64,
    /// Last receipt by environment [s].
    received: BTreeMap<usize, f64>,
    /// Batches that were refused, and those that were taken.
    met: [Once; 2],
    refused: BTreeMap<String, u64>,
    transitions: u64,
    notes: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(
        survey: &Survey,
        topics: &Topics,
        setup: &'a Setup,
        present: Option<&Present>,
        robot: Option<&robots::RobotTopics<'_>>,
    ) -> Result<Self> {
        let axis = Axis { secs: survey.duration_secs };
        let contract = present.map(|present| present.snapshot.contract.clone());
        let options = survey.topics.iter().find(|topic| topic.type_name == "handoff/msg/OptionState");
        let period = contract.as_ref().map(|contract| contract.control_period_secs);
        let period = period.or_else(|| options.and_then(|topic| topic.median_interval_secs)).unwrap_or(0.05);
        let mut walk = Self {
            setup,
            start_ns: survey.start_ns.unwrap_or(0),
            contract: contract.clone(),
            contracts: BTreeMap::new(),
            judge: None,
            replay: None,
            joints: None,
            places: Default::default(),
            record: Record::new(axis),
            process: Process::new(axis, period, contract.as_ref().map_or(0, |contract| contract.options.count)),
            watch: Watch::new(axis),
            published: topics.has(Role::Options),
            lead: topics.has(Role::Target).then(|| Lead::new(period)),
            last_stamp: Stamp::default(),
            last_ns: i64::MIN,
            newest: BTreeMap::new(),
            recent: None,
            envs: BTreeMap::new(),
            expected: BTreeMap::new(),
            late: 0,
            received: BTreeMap::new(),
            met: Default::default(),
            refused: BTreeMap::new(),
            transitions: 0,
            notes: Vec::new(),
        };
        if robot.is_some() {
            walk.envs.insert((Uuid::nil(), String::new(), 0), 0); // the robot is the first
            walk.joints = robot.and_then(topics::joints);
        }
        let Some(present) = present else {
            walk.notes.push("no policy: neither are weights in the bag, nor was a run given (--run RUN)".into());
            return Ok(walk);
        };
        let against = setup.against.as_ref().map(|against| &*against.snapshot);
        walk.judge = Some(Judge::new(axis, present, against)?);
        if let Some(robot) = robot {
            let (arm, prefix, joints) = topics::arm(robot, &present.snapshot.contract)?;
            let base_frame = joints[0].replace("_joint1", "_link0");
            let mut replay = Replay::new(&present.snapshot.contract, arm, &prefix, setup.seed, setup.sampling)?;
            if setup.present.is_some() {
                replay.weights(&present.snapshot);
            }
            if let Some(goal) = setup.goal {
                replay.goal(&crate::data::GoalPose::new(0.0, base_frame, goal, [1.0, 0.0, 0.0, 0.0])?);
                let away_m = robot::from_shoulder_m(&goal);
                if REACH_M < away_m {
                    let [x, y, z] = goal;
                    walk.notes.push(format!(
                        "--goal {x},{y},{z} is out of reach: it lies {away_m:.2} m from the shoulder, and the tool comes {REACH_M:.2} m far"
                    ));
                }
            } else if !topics.has(Role::Goal) {
                let goal = format!("{}/goal_pose", robot.namespace.trim_end_matches('/'));
                walk.notes
                    .push(format!("no goal was recorded on {goal}, so nothing is decided: give it with --goal X,Y,Z"));
            }
            if !topics.has(Role::Commands) && !topics.has(Role::Target) {
                walk.notes.push("no joint commands, no target: actions are taken to start where the arm stands".into());
            }
            (walk.replay, walk.joints) = (Some(replay), Some(joints));
        }
        if present.snapshot.contract.network.architecture == crate::contract::Architecture::OffPolicy {
            walk.notes.push("the critics of off-policy learning stay with the learner: no values".into());
        } else if !present.critic {
            walk.notes.push("the critic of a clone has not learned: no values".into());
        } else if present.rewards.is_none() {
            walk.notes.push("the scale of rewards is not in the bag: give the run (--run RUN) for TD errors".into());
        }
        Ok(walk)
    }

    fn judge(&mut self, block: &Block) -> Result<()> {
        self.judge.as_mut().map_or(Ok(()), |judge| judge.look(block))
    }

    fn finish(mut self, survey: Survey, present: Option<&Present>) -> Result<Analysis> {
        let mut decisions = 0;
        if let Some(mut replay) = self.replay.take() {
            if let Some(block) = replay.block(true) {
                self.judge(&block)?;
            }
            replay.end().iter().for_each(|episode| self.record.add(episode));
            decisions = replay.decisions;
            if let Some(refusal) = replay.refusal {
                self.notes.push(format!(
                    "{} messages were refused, as a node refuses them; the first: {refusal}",
                    replay.refused
                ));
            }
        }
        for (reason, count) in self.refused.iter().filter(|(_, count)| 0 < **count).take(3) {
            self.notes.push(format!("{count} transitions were left out: {reason}"));
        }
        if 0 < self.late {
            self.notes.push(format!(
                "{} pieces of transitions came behind later ones: what runs over their places is not joined",
                self.late
            ));
        }
        let source = match (decisions, self.transitions) {
            (0, 0) => "messages alone".into(),
            (decisions, 0) => format!("{decisions} decisions on recorded states"),
            (0, transitions) => format!("{transitions} transitions"),
            (decisions, transitions) => format!("{decisions} decisions on recorded states, {transitions} transitions"),
        };
        let options = self.process.finish();
        if options.is_some() && !self.published && self.transitions == 0 {
            self.notes
                .push("no option_state was recorded: the options are those that the present policy would take".into());
        }
        let untold = self.judge.as_ref().map_or(0, |judge| judge.untold);
        if 0 < untold {
            self.notes.push(format!(
                "{untold} actions have no divergence: they are not seen to be drawn at random, and the weights that took them are not in the bag"
            ));
        }
        let (now, between, critic) = self.judge.map_or((None, None, None), Judge::finish);
        let mut found = Analysis {
            survey,
            source,
            present: present.map(name),
            against: self.setup.against.as_ref().map(name),
            attention: Vec::new(),
            notes: self.notes,
            episodes: self.record.finish(),
            options,
            decisions,
            now,
            between,
            critic,
            health: self.watch.finish(),
        };
        found.attention = attention(&found);
        Ok(found)
    }
}
