//! The critic's half of a minibatch on a thread of its own. Actor and critic share no parameter, so the gradients are
//! those of the sum of their losses, bit for bit.

use super::batch::Minibatch;
use super::loss::value_loss;
use crate::error::{Error, Result};
use crate::policy::{Critic, floats};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A thread that holds the critic. It ends when this is dropped.
pub(super) struct Beside {
    jobs: Sender<Minibatch>,
    done: Receiver<(f64, Vec<f32>)>,
    range: Range<usize>,
}

impl Beside {
    /// `critic` shares its leaves with the network that is trained; the gradient is that of `coef` times the loss.
    pub(super) fn new(critic: Critic, coef: f64) -> Result<Self> {
        let (jobs, inbox) = channel::<Minibatch>();
        let (done_out, done) = channel();
        let range = critic.range();
        let end = range.end;
        let work = move || {
            while let Ok(batch) = inbox.recv() {
                let kept = critic.forward(&batch.input);
                let (loss, slopes) = value_loss(&floats(kept.output()), &batch, coef);
                let mut gradient = vec![0.0; end];
                critic.backward(&kept, &slopes, &mut gradient);
                if done_out.send((loss, gradient)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("critic".into())
            .spawn(work)
            .map_err(|error| Error::invalid(format!("the critic's thread cannot start: {error}")))?;
        Ok(Self { jobs, done, range })
    }

    /// Starts on a minibatch; [`Self::finish`] must follow.
    pub(super) fn start(&self, batch: &Minibatch) -> Result<()> {
        self.jobs.send(batch.share()).map_err(|_| gone())
    }

    /// Waits for the loss, and writes the critic's part of the gradient.
    pub(super) fn finish(&self, gradient: &mut [f32]) -> Result<f64> {
        let (loss, found) = self.done.recv().map_err(|_| gone())?;
        gradient[self.range.clone()].copy_from_slice(&found[self.range.clone()]);
        Ok(loss)
    }
}

fn gone() -> Error {
    Error::invalid("the critic's thread has stopped")
}
