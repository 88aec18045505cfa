//! The actors as synchronous state machines, with thin async shells `run(config, inputs, outputs, shutdown)` over
//! channels. Nothing here names r2r or a topic: the same machines run over ROS, in the serial loop and in tests.

#[cfg(feature = "torch")]
pub mod learner;
#[cfg(feature = "sim")]
pub mod paced;
#[cfg(feature = "torch")]
pub mod policy;
#[cfg(feature = "torch")]
pub mod rollout;
#[cfg(feature = "sim")]
pub mod simulator;
mod stopwatch;
#[cfg(feature = "torch")]
mod told;
#[cfg(feature = "torch")]
pub mod trainer;

pub use stopwatch::{Activity, Stopwatch, Times};
#[cfg(feature = "torch")]
use told::Told;

use crate::data::audit;
use tokio::sync::watch;

/// What an actor says of itself to whoever looks after it, at 5 Hz.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What it does, or what it waits for.
    pub phase: String,
    /// It waits for others: that nothing moves is no fault of its own.
    pub waits: bool,
    /// Moves on as long as work gets done.
    pub progress: u64,
    /// Whom it waits for longer than usual, each in a few words.
    pub waits_for: Vec<String>,
    /// Queue lengths, drops and other counts, by name.
    pub counts: Vec<(&'static str, u64)>,
}

/// Where an actor puts what it makes: a publisher, a queue, a test.
pub type Output<T> = Box<dyn FnMut(&T) + Send>;

/// Where an actor writes the notes of an audit. An error ends it: an audit with gaps proves nothing.
pub type Notes = Box<dyn FnMut(Vec<audit::Note>) -> crate::error::Result<()> + Send>;

/// Tells an actor to stop.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The other end: stops every actor that holds a [`Shutdown`] of it.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Shutdown {
    /// A pair.
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Returns once told to stop, or once nobody could tell any more.
    pub async fn wait(&mut self) {
        let _gone = self.0.wait_for(|&stop| stop).await;
    }

    /// Whether told to stop.
    pub fn requested(&self) -> bool {
        *self.0.borrow()
    }
}

impl Stopper {
    /// Tells everyone to stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
