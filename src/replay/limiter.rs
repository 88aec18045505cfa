//! Keeps samples drawn from replay and steps put into it in a fixed ratio, bounded both ways.

use crate::error::{Error, Result};

/// The samples-per-insert limiter (as Reverb's `SampleToInsertRatio`, Cassirer et al. 2021, arXiv 2102.04736).
/// Before `warmup` steps nothing is drawn and nothing is held back.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter {
    samples_per_insert: f64,
    warmup: u64,
    /// In samples.
    slack: f64,
    inserts: u64,
    samples: u64,
}

impl Limiter {
    /// `slack_steps`: how many steps recording may be ahead of learning, or behind. Refused where both sides could wait
    /// for each other: it must hold `arriving` steps, one full batch of every stream, and one draw of `drawn` samples.
    pub fn new(samples_per_insert: f64, warmup: u64, slack_steps: u64, arriving: u64, drawn: u64) -> Result<Self> {
        let draw_steps = (drawn as f64 / samples_per_insert).ceil() as u64;
        for (least, what) in [
            (arriving, "one full batch of every stream"),
            (draw_steps, "one draw at this ratio of gradient steps to recorded steps"),
        ] {
            if slack_steps < least {
                return Err(Error::invalid(format!(
                    "a replay slack of {slack_steps} steps is too small: recording and learning could wait for each \
                     other; {what} is {least} steps, so at least {least} is right"
                )));
            }
        }
        let slack = samples_per_insert * slack_steps as f64;
        Ok(Self { samples_per_insert, warmup, slack, inserts: 0, samples: 0 })
    }

    /// Whether `steps` more may be put in.
    pub fn may_insert(&self, steps: u64) -> bool {
        let owed = self.samples_per_insert * (self.inserts + steps).saturating_sub(self.warmup) as f64;
        self.inserts < self.warmup || owed <= self.samples as f64 + self.slack
    }

    /// Whether `samples` more may be drawn.
    pub fn may_sample(&self, samples: u64) -> bool {
        self.warmup <= self.inserts && (self.samples + samples) as f64 <= self.earned() + self.slack
    }

    /// Samples that the ratio grants for what was put in.
    fn earned(&self) -> f64 {
        self.samples_per_insert * self.inserts.saturating_sub(self.warmup) as f64
    }

    /// Steps were put in.
    pub fn inserted(&mut self, steps: u64) {
        self.inserts += steps;
    }

    /// Samples were drawn.
    pub fn sampled(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// Steps put in, and samples drawn: all that changes.
    pub fn counts(&self) -> (u64, u64) {
        (self.inserts, self.samples)
    }

    /// Goes on from [`Self::counts`]; those of another ratio are brought within the slack of this one, so that neither learning
    /// nor recording has to catch up.
    pub fn restore(&mut self, (inserts, samples): (u64, u64)) {
        self.inserts = inserts;
        let (least, most) = (self.earned() - self.slack, self.earned() + self.slack);
        self.samples = (samples as f64).clamp(least.max(0.0), most) as u64;
    }
}
