//! What a bag holds and how healthy it is, in one pass in the order of recording.

use super::damage::Damage;
use super::decode::decode;
use super::message::{PolicyWeights, TransitionHead};
use super::qos::Qos;
use super::reader::{Bag, Message, Select};
use super::schema::Schemas;
use super::storage::Order;
use super::track::{Track, secs};
use crate::contract::{Contract, Snapshot};
use crate::data::Once;
use crate::error::Result;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Types that a survey looks into.
pub(super) const JOINT_STATE: &str = "sensor_msgs/msg/JointState";
pub(super) const JOINT_TRAJECTORY: &str = "trajectory_msgs/msg/JointTrajectory";
const WEIGHTS: &str = "handoff/msg/PolicyWeights";
pub(super) const TRANSITIONS: &str = "handoff/msg/TransitionBatch";
pub(super) const ARM_STATES: &str = "handoff/msg/ArmStates";
pub(super) const ARM_COMMANDS: &str = "handoff/msg/ArmCommands";

/// A step back of the recorder's clock by more than this is a jump; less is the order in which threads came to write [ns].
const JUMP_NS: i64 = 100_000_000;

/// From the time of one message to that of the next in the order of recording: how far the clock was set back, if it was [ns].
pub fn jump_back(last_ns: i64, time_ns: i64) -> Option<i64> {
    let back = last_ns.saturating_sub(time_ns);
    (JUMP_NS < back).then_some(back)
}

/// Jumps that are listed; all are counted.
const MAX_JUMPS: usize = 100;

/// Everything that `bag info` says. Times are seconds since the earliest message unless they are named otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Survey {
    /// The folder or file.
    pub path: PathBuf,
    /// `mcap`, `sqlite3`.
    pub storages: BTreeSet<&'static str>,
    /// Its files.
    pub files: usize,
    /// Version of metadata.yaml; none: it is missing.
    pub metadata_version: Option<u64>,
    /// Who recorded it, if it says so.
    pub ros_distro: Option<String>,
    /// Messages read.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Messages that the bag says it has.
    pub stated_messages: Option<u64>,
    /// Messages from before there was a clock, at the time 0: they are in no length and no rate.
    pub untimed: u64,
    /// Earliest message [ns since the epoch].
    pub start_ns: Option<i64>,
    /// Latest message [ns since the epoch].
    pub end_ns: Option<i64>,
    /// Between them [s].
    pub duration_secs: f64,
    /// Topics by name.
    pub topics: Vec<TopicSurvey>,
    /// Steps back of the clock of recording, at most 100.
    pub clock_jumps: Vec<Jump>,
    /// All of them.
    pub clock_jump_count: u64,
    /// Weights, by topic, run and contract.
    pub weights: Vec<Weights>,
    /// Contracts in the bag, by hash (hex).
    pub contracts: BTreeMap<String, Contract>,
    /// Transitions for learning, those that were sent again once, by the hash of their contract (hex).
    pub transitions: BTreeMap<String, u64>,
    /// Of these, what learning would leave out, by the reason; see [`Self::check_transitions`].
    pub unusable: BTreeMap<String, u64>,
    /// What was lost.
    pub damage: Vec<Damage>,
    /// Bytes that were lost.
    pub lost_bytes: u64,
    /// Messages that were lost; none: nobody knows.
    pub lost_messages: Option<u64>,
}

/// One topic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TopicSurvey {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_name: String,
    /// Its encoding.
    pub format: String,
    /// What was offered.
    pub offers: Vec<Qos>,
    /// Late subscribers were to get its last messages.
    pub latched: bool,
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Messages a second between the first and the last.
    pub rate_hz: Option<f64>,
    /// Half of the intervals in which time went on are shorter [s].
    pub median_interval_secs: Option<f64>,
    /// Intervals of more than three medians.
    pub gaps: u64,
    /// The longest interval [s].
    pub longest_interval_secs: Option<f64>,
    /// When it began.
    pub longest_interval_at_secs: Option<f64>,
    /// Messages with the stamp of the one before.
    pub repeated_stamps: u64,
    /// Messages with an earlier stamp than the one before.
    pub stamps_back: u64,
    /// Messages that do not decode.
    pub malformed: u64,
    /// Why none, or the first that does not, decodes.
    pub problem: Option<String>,
    /// Lists of joints that its JointStates speak of, at most 4.
    pub joints: Vec<Vec<String>>,
}

/// A step back in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Jump {
    /// Time before it.
    pub at_secs: f64,
    /// How far back [s].
    pub back_secs: f64,
}

/// Weights of one run under one contract on one topic.
#[derive(Clone, Debug, Serialize)]
pub struct Weights {
    /// Where.
    pub topic: String,
    /// uuid of the run.
    pub run: String,
    /// Hash of the contract, hex.
    pub contract: String,
    /// Oldest (life, version).
    pub first: (u32, u64),
    /// Newest (life, version).
    pub last: (u32, u64),
    /// Messages.
    pub messages: u64,
    /// Messages that are refused.
    pub refused: u64,
    /// Why the first of them is.
    pub problem: Option<String>,
}

impl Survey {
    /// Reads the whole bag. `prefixes`: where types may be looked up (AMENT_PREFIX_PATH). `progress` is told the messages read.
    pub fn take(bag: &Bag, prefixes: &[PathBuf], progress: &mut dyn FnMut(u64)) -> Result<Self> {
        let mut survey = Self {
            path: bag.path().to_owned(),
            storages: bag.storages(),
            files: bag.files().count(),
            metadata_version: bag.metadata().map(|metadata| metadata.version),
            ros_distro: bag.metadata().map(|metadata| metadata.ros_distro.clone()).filter(|distro| !distro.is_empty()),
            stated_messages: bag.stated(),
            ..Self::default()
        };
        let mut schemas = Schemas::new(prefixes);
        let mut tracks: Vec<Track> = bag.topics().iter().map(|topic| Track::new(topic, &mut schemas)).collect();
        survey.start_ns = bag.start_ns()?;
        let start_ns = survey.start_ns.unwrap_or(i64::MIN);
        let mut messages = bag.read(&Select { order: Order::Recorded, ..Select::default() })?;
        let (mut jumps, mut once) = (Vec::new(), Once::default());
        let mut last_ns = None;
        while let Some(message) = messages.read()? {
            if let Some(last) = last_ns.replace(message.time_ns)
                && let Some(back) = jump_back(last, message.time_ns)
            {
                survey.clock_jump_count += 1;
                if jumps.len() < MAX_JUMPS {
                    jumps.push((last, back));
                }
            }
            let track = &mut tracks[message.topic];
            let timed = start_ns <= message.time_ns;
            survey.untimed += u64::from(!timed);
            track.add(&message, timed);
            survey.look_into(track, &message, &mut once);
            survey.messages += 1;
            survey.bytes += message.data.len() as u64;
            progress(survey.messages);
        }
        survey.damage = messages.damage();
        survey.finish(tracks, &jumps);
        Ok(survey)
    }

    fn look_into(&mut self, track: &mut Track, message: &Message, once: &mut Once) {
        let Some(schema) = &track.schema else { return };
        match track.survey.type_name.as_str() {
            WEIGHTS => {
                if let Ok(weights) = decode::<PolicyWeights>(schema, &message.data) {
                    self.add_weights(&track.survey.name, weights);
                }
            }
            TRANSITIONS => {
                if let Ok(batch) = decode::<TransitionHead>(schema, &message.data)
                    && once.first(&batch.run, &batch.rollout, batch.incarnation, batch.seq)
                {
                    let steps = batch.fragments.iter().map(|fragment| u64::from(fragment.num_steps)).sum::<u64>();
                    *self.transitions.entry(hex::encode(batch.contract_hash)).or_default() += steps;
                }
            }
            _ => {}
        }
    }

    fn add_weights(&mut self, topic: &str, message: PolicyWeights) {
        let age = (message.life, message.version);
        let (run, contract) = (message.run.clone(), hex::encode(&message.contract_hash));
        let checked = Snapshot::try_from(message);
        let known = self
            .weights
            .iter_mut()
            .find(|known| (known.topic.as_str(), &known.run, &known.contract) == (topic, &run, &contract));
        let index = match known {
            Some(known) => {
                known.messages += 1;
                (known.first, known.last) = (known.first.min(age), known.last.max(age));
                known
            }
            None => {
                let topic = topic.to_owned();
                let contract = contract.clone();
                self.weights.push(Weights {
                    topic,
                    run,
                    contract,
                    first: age,
                    last: age,
                    messages: 1,
                    refused: 0,
                    problem: None,
                });
                match self.weights.last_mut() {
                    Some(new) => new,
                    None => return,
                }
            }
        };
        match checked {
            Ok(snapshot) => {
                self.contracts.entry(contract).or_insert_with(|| (*snapshot.contract).clone());
            }
            Err(error) => {
                index.refused += 1;
                index.problem.get_or_insert(error.to_string());
            }
        }
    }

    fn finish(&mut self, tracks: Vec<Track>, jumps: &[(i64, i64)]) {
        self.end_ns = tracks.iter().filter_map(|track| track.span_ns).map(|(_, end)| end).max();
        let start = self.start_ns.unwrap_or(0);
        let since = |time_ns: i64| secs(time_ns.saturating_sub(start));
        self.duration_secs = self.end_ns.map_or(0.0, since);
        self.clock_jumps = jumps.iter().map(|&(at, back)| Jump { at_secs: since(at), back_secs: secs(back) }).collect();
        self.topics = tracks.into_iter().map(|track| track.finish(since)).collect();
        self.topics.sort_by(|a, b| (&a.name, &a.type_name).cmp(&(&b.name, &b.type_name)));
        self.lost_bytes = self.damage.iter().map(|damage| damage.bytes).fold(0, u64::saturating_add);
        let said = self.damage.iter().try_fold(0, |sum: u64, damage| Some(sum.saturating_add(damage.messages?)));
        let missing = self.stated_messages.map(|stated| stated.saturating_sub(self.messages));
        self.lost_messages = said.into_iter().chain(missing.filter(|&missing| 0 < missing)).max();
    }

    /// Whether something was lost, or fewer messages were found than the bag says it has.
    pub fn damaged(&self) -> bool {
        !self.damage.is_empty() || self.stated_messages.is_some_and(|stated| self.messages < stated)
    }
}
