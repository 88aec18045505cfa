//! Who may stop a process: a signal, or a parent that goes away.

use crate::error::{Error, Result};
use crate::node::Stopper;
use std::io::Read as _;
use tokio::signal::unix::{SignalKind, signal};

/// Stops when standard input closes: the parent stopped on purpose, or died.
pub(super) fn when_stdin_closes(stopper: Stopper) -> Result<()> {
    let watch = move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes), Ok(count) if 0 < count) {}
        stopper.stop();
    };
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(watch)
        .map(drop)
        .map_err(|error| Error::invalid(format!("no thread can watch standard input: {error}")))
}

/// Stops at Ctrl-C, SIGTERM or when the terminal closes; goes on watching, so that it never ends by itself but on an error.
pub(super) async fn when_signalled(stopper: Stopper) -> Result<()> {
    let watch = |kind| signal(kind).map_err(|error| Error::invalid(format!("signals cannot be watched: {error}")));
    let (mut interrupt, mut terminate) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
    let mut hangup = watch(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        stopper.stop();
    }
}
