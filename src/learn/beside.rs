//! The critic's half of a minibatch on a thread of its own. Actor and critic share no parameter, so the gradients are
//! those of the sum of their losses, bit for bit.

use super::batch::Batch;
use super::loss::value_loss;
use crate::error::{Error, Result};
use crate::policy::Critic;
use std::sync::mpsc::{Receiver, Sender, channel};
use tch::Tensor;

/// A thread that holds the critic. It ends when this is dropped.
pub(super) struct Beside {
    jobs: Sender<Batch>,
    losses: Receiver<Tensor>,
    done: Receiver<()>,
}

impl Beside {
    /// `critic` shares its leaves with the network that is trained; the gradient is that of `coef` times the loss.
    pub(super) fn new(critic: Critic, coef: f64) -> Result<Self> {
        let (jobs, inbox) = channel::<Batch>();
        let (losses_out, losses) = channel();
        let (done_out, done) = channel();
        let work = move || {
            while let Ok(batch) = inbox.recv() {
                let loss = value_loss(&critic, &batch);
                let told = losses_out.send(loss.detach());
                (loss * coef).backward();
                if told.is_err() || done_out.send(()).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("critic".into())
            .spawn(work)
            .map_err(|error| Error::invalid(format!("the critic's thread cannot start: {error}")))?;
        Ok(Self { jobs, losses, done })
    }

    /// Starts on a minibatch; [`Self::loss`] and [`Self::finish`] must follow.
    pub(super) fn start(&self, batch: &Batch) -> Result<()> {
        self.jobs.send(batch.share()).map_err(|_| gone())
    }

    /// The loss, without its graph.
    pub(super) fn loss(&self) -> Result<Tensor> {
        self.losses.recv().map_err(|_| gone())
    }

    /// Waits until the gradient is at its leaves.
    pub(super) fn finish(&self) -> Result<()> {
        self.done.recv().map_err(|_| gone())
    }
}

fn gone() -> Error {
    Error::invalid("the critic's thread has stopped")
}
