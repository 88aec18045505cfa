//! Small recordings of our own messages, written by hand.

use crate::bag::{Message, Qos, Topic, Writer};
use crate::contract::Snapshot;
use crate::data::Batch;
use crate::data::{JointState, OptionState};
use bytes::Bytes;
use std::path::PathBuf;

/// Writes values as little-endian CDR, by hand.
#[derive(Default)]
pub(crate) struct Cdr(Vec<u8>);

impl Cdr {
    fn align(mut self, size: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(size), 0);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        let mut own = self.align(4);
        own.0.extend(value.to_le_bytes());
        own
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        let mut own = self.align(8);
        own.0.extend(value.to_le_bytes());
        own
    }

    pub(crate) fn text(self, text: &str) -> Self {
        let mut own = self.u32(text.len() as u32 + 1);
        own.0.extend(text.as_bytes());
        own.0.push(0);
        own
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn f32s(self, values: &[f32]) -> Self {
        values.iter().fold(self.u32(values.len() as u32), |own, value| own.u32(value.to_bits()))
    }

    pub(crate) fn f64s(self, values: &[f64]) -> Self {
        values.iter().fold(self.u32(values.len() as u32), |own, value| own.u64(value.to_bits()))
    }

    pub(crate) fn message(self) -> Bytes {
        [&[0, 1, 0, 0], &self.0[..]].concat().into()
    }
}

fn header(stamp_secs: f64, frame: &str) -> Cdr {
    let nanos = (stamp_secs * 1e9).round() as i64;
    Cdr::default().u32((nanos / 1_000_000_000) as u32).u32((nanos % 1_000_000_000) as u32).text(frame)
}

/// sensor_msgs/JointState.
pub(crate) fn joints(state: &JointState) -> Bytes {
    let cdr = header(state.stamp_secs, "").u32(state.names.len() as u32);
    let cdr = state.names.iter().fold(cdr, |cdr, name| cdr.text(name));
    cdr.f64s(&state.position).f64s(&state.velocity).f64s(&[]).message()
}

/// geometry_msgs/PoseStamped, not turned.
pub(crate) fn goal(frame: &str, position: [f64; 3]) -> Bytes {
    let cdr = header(0.0, frame);
    position.iter().chain(&[0.0, 0.0, 0.0, 1.0]).fold(cdr, |cdr, value| cdr.u64(value.to_bits())).message()
}

/// msg/OptionState.msg.
pub(crate) fn option(state: &OptionState) -> Bytes {
    let cdr = header(state.stamp_secs, "").u64(state.version).u32(state.env).bytes(&[state.option]).u32(state.duration);
    let cdr = cdr.bytes(&[state.switched.into()]).u32(state.termination_prob.to_bits());
    cdr.f32s(&state.option_probs).f32s(&state.option_values).message()
}

/// msg/PolicyWeights.msg, field by field.
pub(crate) fn weights(snapshot: &Snapshot) -> Bytes {
    let cdr = Cdr::default().text(&snapshot.run.to_string()).u32(snapshot.life).u64(snapshot.version);
    let cdr = cdr.u64(snapshot.updates).u64(snapshot.env_steps).bytes(&[snapshot.random_warmup.into()]);
    let cdr = cdr.text(&snapshot.contract.to_json()).bytes(&snapshot.contract.hash());
    let normaliser = &snapshot.normaliser;
    let cdr = cdr.f32s(&normaliser.mean).f32s(&normaliser.std).u32(normaliser.clip.to_bits());
    cdr.u64(normaliser.count.to_bits()).f32s(&snapshot.parameters).bytes(&snapshot.hash()).message()
}

/// msg/TransitionBatch.msg with its fragments, without episodes.
pub(crate) fn batch(batch: &Batch) -> Bytes {
    let cdr = Cdr::default().text(&batch.run.to_string()).u32(batch.life).text(&batch.stream.rollout);
    let cdr = [batch.stream.incarnation, batch.seq, batch.base, batch.first_step, batch.phase]
        .into_iter()
        .fold(cdr, |cdr, number| cdr.u64(number));
    let mut cdr = cdr.bytes(&batch.contract_hash).u32(batch.fragments.len() as u32);
    for fragment in &batch.fragments {
        let steps = &fragment.steps;
        let action = steps.first().map_or(0, |step| step.choice.action.len() as u32);
        let count = steps.len() as u32;
        cdr = cdr.u32(fragment.env).u64(fragment.first).u32(count).u32(fragment.obs_size as u32).u32(action);
        let u64s = |cdr: Cdr, values: Vec<u64>| values.iter().fold(cdr.u32(count), |cdr, value| cdr.u64(*value));
        let u32s = |cdr: Cdr, values: Vec<u32>| values.iter().fold(cdr.u32(count), |cdr, value| cdr.u32(*value));
        let u8s = |cdr: Cdr, values: Vec<u8>| cdr.u32(count).bytes(&values);
        cdr = u64s(cdr, steps.iter().map(|step| step.version).collect());
        cdr = u64s(cdr, steps.iter().map(|step| step.episode).collect());
        cdr = u32s(cdr, steps.iter().map(|step| step.t).collect());
        cdr = u64s(cdr, steps.iter().map(|step| step.stamp_secs.to_bits()).collect());
        cdr = u8s(cdr, steps.iter().map(|step| step.choice.option_prev).collect());
        cdr = u8s(cdr, steps.iter().map(|step| step.choice.option).collect());
        cdr = u8s(cdr, steps.iter().map(|step| step.choice.option_terminated.into()).collect());
        cdr = u8s(cdr, steps.iter().map(|step| step.choice.forced as u8).collect());
        cdr = u32s(cdr, steps.iter().map(|step| step.choice.option_age).collect());
        cdr = cdr.f32s(&steps.iter().flat_map(|step| step.choice.proposal.clone()).collect::<Vec<_>>());
        cdr = cdr.f32s(&steps.iter().flat_map(|step| step.choice.action.clone()).collect::<Vec<_>>());
        cdr = u8s(cdr, steps.iter().map(|step| step.filtered.into()).collect());
        cdr = u8s(cdr, steps.iter().map(|step| step.intervened.into()).collect());
        cdr = cdr.f32s(&steps.iter().map(|step| step.reward).collect::<Vec<_>>());
        cdr = u8s(cdr, steps.iter().map(|step| step.end as u8).collect());
        cdr = cdr.f32s(&steps.iter().map(|step| step.choice.log_prob_action).collect::<Vec<_>>());
        cdr = cdr.f32s(&steps.iter().map(|step| step.choice.log_prob_option).collect::<Vec<_>>());
        cdr = cdr.f32s(&steps.iter().map(|step| step.choice.log_prob_termination).collect::<Vec<_>>());
        cdr = cdr.f32s(&steps.iter().map(|step| step.choice.log_prob_mixture).collect::<Vec<_>>());
        cdr = cdr.f32s(&steps.iter().map(|step| step.choice.termination_prob).collect::<Vec<_>>());
        cdr = cdr.f32s(&fragment.observations).u32(fragment.finals.len() as u32);
        cdr = fragment.finals.iter().fold(cdr, |cdr, last| cdr.u32(last.step as u32));
        cdr = cdr.f32s(&fragment.finals.iter().flat_map(|last| last.observation.clone()).collect::<Vec<_>>());
    }
    cdr.u32(0).message()
}

/// What becomes a bag.
pub(crate) struct Recording {
    folder: tempfile::TempDir,
    topics: Vec<Topic>,
    messages: Vec<Message>,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), topics: Vec::new(), messages: Vec::new() }
    }

    pub(crate) fn topic(&mut self, name: &str, type_name: &str) -> usize {
        let offers = vec![Qos { reliable: Some(true), transient_local: Some(false), depth: Some(1) }];
        let (name, type_name, format) = (name.into(), type_name.into(), "cdr".into());
        self.topics.push(Topic { name, type_name, format, offers, type_hash: String::new(), definition: None });
        self.topics.len() - 1
    }

    pub(crate) fn add(&mut self, topic: usize, time_ns: i64, data: Bytes) {
        self.messages.push(Message { topic, time_ns, sent_ns: time_ns, data });
    }

    /// The same with these topics alone.
    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let kept: Vec<usize> =
            (0..self.topics.len()).filter(|&index| names.contains(&self.topics[index].name.as_str())).collect();
        let place = |topic: usize| kept.iter().position(|&kept| kept == topic);
        let messages = self
            .messages
            .iter()
            .filter_map(|message| Some(Message { topic: place(message.topic)?, ..message.clone() }));
        let messages = messages.collect();
        Self { topics: kept.iter().map(|&index| self.topics[index].clone()).collect(), messages, ..Self::new() }
    }

    /// The bag; it goes with this value.
    pub(crate) fn write(&self) -> PathBuf {
        let path = self.folder.path().join("a.mcap");
        let mut writer = Writer::new(&path, std::fs::File::create(&path).unwrap(), &self.topics).unwrap();
        for message in &self.messages {
            writer.write(message).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}
