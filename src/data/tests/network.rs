//! A scripted network: it drops, repeats, delays and therefore reorders, and it can be cut.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// How bad a link is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    /// Part of the messages that never arrive.
    pub(super) drop: f64,
    /// Part of the messages that arrive twice.
    pub(super) repeat: f64,
    /// Messages arrive up to this much later.
    pub(super) delay_secs: f64,
}

impl Faults {
    pub(super) const NONE: Self = Self { drop: 0.0, repeat: 0.0, delay_secs: 0.0 };
}

/// One direction of one topic.
pub(super) struct Link<T> {
    pub(super) faults: Faults,
    pub(super) cut: bool,
    waiting: Vec<(Duration, T)>,
}

impl<T: Clone> Link<T> {
    pub(super) fn new(faults: Faults) -> Self {
        Self { faults, cut: false, waiting: Vec::new() }
    }

    pub(super) fn send(&mut self, message: T, now: Duration, rng: &mut ChaCha8Rng) {
        let copies = if rng.random_bool(self.faults.repeat) { 2 } else { 1 };
        for _ in 0..copies {
            if !self.cut && !rng.random_bool(self.faults.drop) {
                let delay = Duration::from_secs_f64(rng.random::<f64>() * self.faults.delay_secs);
                self.waiting.push((now + delay, message.clone()));
            }
        }
    }

    /// What arrives by now, in order of arrival.
    pub(super) fn arrived(&mut self, now: Duration) -> Vec<T> {
        let (mut here, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(at, _)| *at <= now);
        self.waiting = later;
        here.sort_by_key(|(at, _)| *at);
        here.into_iter().map(|(_, message)| message).collect()
    }

    pub(super) fn heal(&mut self) {
        self.faults = Faults::NONE;
        self.cut = false;
    }

    /// All messages under way are gone: the process at the other end is.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
