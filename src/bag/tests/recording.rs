//! Small recordings of our own messages, written by hand.

pub(crate) use crate::bag::encode::{Cdr, batch, weights};
use crate::bag::{Message, Qos, Topic, Writer};
use crate::data::{JointState, OptionState};
use bytes::Bytes;
use std::path::PathBuf;

fn header(stamp_secs: f64, frame: &str) -> Cdr {
    Cdr::default().stamp(stamp_secs).text(frame)
}

/// sensor_msgs/JointState.
pub(crate) fn joints(state: &JointState) -> Bytes {
    let cdr = header(state.stamp_secs, "").u32(state.names.len() as u32);
    let cdr = state.names.iter().fold(cdr, |cdr, name| cdr.text(name));
    cdr.f64s(&state.position).f64s(&state.velocity).f64s(&[]).message()
}

/// trajectory_msgs/JointTrajectory of one point, stamped 0, half a second ahead.
pub(crate) fn trajectory(names: &[&str], position: &[f64]) -> Bytes {
    let cdr = names.iter().fold(header(0.0, "").u32(names.len() as u32), |cdr, name| cdr.text(name));
    cdr.u32(1).f64s(position).f64s(&[]).f64s(&[]).f64s(&[]).stamp(0.5).message()
}

/// msg/ArmStates.msg of no environment.
#[cfg(feature = "torch")]
pub(crate) fn arm_states() -> Bytes {
    let cdr = header(0.0, "").u64(1).u64(0).text("").u64(0).u32(0).u32(7);
    cdr.f64s(&[]).f64s(&[]).f64s(&[]).text("").message()
}

/// geometry_msgs/PoseStamped, not turned.
pub(crate) fn goal(frame: &str, position: [f64; 3]) -> Bytes {
    let cdr = header(0.0, frame);
    position.iter().chain(&[0.0, 0.0, 0.0, 1.0]).fold(cdr, |cdr, value| cdr.f64(*value)).message()
}

/// msg/OptionState.msg.
pub(crate) fn option(state: &OptionState) -> Bytes {
    let cdr = header(state.stamp_secs, "").u64(state.version).u32(state.env).bytes(&[state.option]).u32(state.duration);
    let cdr = cdr.bytes(&[state.switched.into()]).u32(state.termination_prob.to_bits());
    cdr.f32s(&state.option_probs).f32s(&state.option_values).message()
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

    /// All of it once more, at the same times: the clock was set back.
    pub(crate) fn again(&mut self) {
        self.messages.extend_from_within(..);
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
