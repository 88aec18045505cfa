//! Our own messages, encoded as rosbag2 records them: little-endian XCDR1 (OMG DDS-XTypes 1.3, 7.4.3), fields in the order of the
//! `.msg` files.

use crate::contract::Snapshot;
use crate::data::{Batch, EpisodeStats, Fragment, Transition};
use bytes::Bytes;

/// What has been encoded so far; positions count from behind the header.
#[derive(Default)]
pub(crate) struct Cdr(Vec<u8>);

impl Cdr {
    fn align(mut self, size: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(size), 0);
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.align(4).bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.align(8).bytes(&value.to_le_bytes())
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.u32(value.to_bits())
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.u64(value.to_bits())
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.u32(text.len() as u32 + 1).bytes(text.as_bytes()).u8(0)
    }

    pub(crate) fn stamp(self, secs: f64) -> Self {
        let nanos = (secs * 1e9).round() as i64;
        self.u32(nanos.div_euclid(1_000_000_000) as u32).u32(nanos.rem_euclid(1_000_000_000) as u32)
    }

    /// As they are, without their number.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// Their number, then each.
    pub(crate) fn each<T>(self, values: &[T], one: impl Fn(Self, &T) -> Self) -> Self {
        values.iter().fold(self.u32(values.len() as u32), one)
    }

    pub(crate) fn f32s(self, values: &[f32]) -> Self {
        self.each(values, |cdr, value| cdr.f32(*value))
    }

    #[cfg(test)]
    pub(crate) fn f64s(self, values: &[f64]) -> Self {
        self.each(values, |cdr, value| cdr.f64(*value))
    }

    pub(crate) fn u32s(self, values: &[u32]) -> Self {
        self.each(values, |cdr, value| cdr.u32(*value))
    }

    /// With the header.
    pub(crate) fn message(self) -> Bytes {
        [&[0, 1, 0, 0], &self.0[..]].concat().into()
    }
}

/// handoff/PolicyWeights.
pub fn weights(snapshot: &Snapshot) -> Bytes {
    let cdr = Cdr::default().text(&snapshot.run.to_string()).u32(snapshot.life).u64(snapshot.version);
    let cdr = cdr.u64(snapshot.updates).u64(snapshot.env_steps).u8(snapshot.random_warmup.into());
    let cdr = cdr.text(&snapshot.contract.to_json()).bytes(&snapshot.contract.hash());
    let normaliser = &snapshot.normaliser;
    let cdr = cdr.f32s(&normaliser.mean).f32s(&normaliser.std).f32(normaliser.clip).f64(normaliser.count);
    cdr.f32s(&snapshot.parameters).bytes(&snapshot.hash()).message()
}

/// handoff/TransitionBatch.
pub fn batch(batch: &Batch) -> Bytes {
    let cdr = Cdr::default().text(&batch.run.to_string()).u32(batch.life).text(&batch.stream.rollout);
    let numbers = [batch.stream.incarnation, batch.seq, batch.base, batch.first_step, batch.phase];
    let cdr = numbers.into_iter().fold(cdr, Cdr::u64).bytes(&batch.contract_hash);
    cdr.each(&batch.fragments, fragment).each(&batch.episodes, episode).message()
}

/// handoff/EpisodeStats.
#[cfg(all(test, feature = "torch"))]
pub(crate) fn stats(stats: &EpisodeStats) -> Bytes {
    episode(Cdr::default(), stats).message()
}

fn fragment(cdr: Cdr, fragment: &Fragment) -> Cdr {
    let steps = &fragment.steps;
    let action = steps.first().map_or(0, |step| step.choice.action.len() as u32);
    let cdr = cdr.u32(fragment.env).u64(fragment.first).u32(steps.len() as u32);
    let mut cdr = cdr.u32(fragment.obs_size as u32).u32(action);
    let floats = |of: fn(&Transition) -> &[f32]| steps.iter().flat_map(of).copied().collect::<Vec<f32>>();
    cdr = cdr.each(steps, |cdr, step| cdr.u64(step.version));
    cdr = cdr.each(steps, |cdr, step| cdr.u64(step.episode));
    cdr = cdr.each(steps, |cdr, step| cdr.u32(step.t));
    cdr = cdr.each(steps, |cdr, step| cdr.f64(step.stamp_secs));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.choice.option_prev));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.choice.option));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.choice.option_terminated.into()));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.choice.forced as u8));
    cdr = cdr.each(steps, |cdr, step| cdr.u32(step.choice.option_age));
    cdr = cdr.f32s(&floats(|step| &step.choice.proposal)).f32s(&floats(|step| &step.choice.action));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.filtered.into()));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.intervened.into()));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.reward));
    cdr = cdr.each(steps, |cdr, step| cdr.u8(step.end as u8));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.choice.log_prob_action));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.choice.log_prob_option));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.choice.log_prob_termination));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.choice.log_prob_mixture));
    cdr = cdr.each(steps, |cdr, step| cdr.f32(step.choice.termination_prob));
    cdr = cdr.f32s(&fragment.observations).each(&fragment.finals, |cdr, last| cdr.u32(last.step as u32));
    cdr.f32s(&fragment.finals.iter().flat_map(|last| last.observation.clone()).collect::<Vec<_>>())
}

fn episode(cdr: Cdr, stats: &EpisodeStats) -> Cdr {
    let cdr = cdr.stamp(stats.stamp_secs).text(&stats.rollout).u32(stats.env).u64(stats.episode).u64(stats.version);
    let cdr = cdr.f32(stats.episode_return).u32(stats.length).u8(stats.end as u8).f32(stats.final_error);
    let cdr = cdr.u8(stats.success.into()).u8(stats.success_strict.into()).u32(stats.first_success_step);
    cdr.u32s(&stats.option_steps).u32s(&stats.option_runs).u32(stats.forced_ends)
}
