//! The simulator in its own time.

use super::{Activity, Output, Report, Shutdown, Stopwatch, Times};
use crate::data::JointState;
use crate::error::Result;
use crate::sim::Paced;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Period of the report.
const STATUS: Duration = Duration::from_millis(200);

/// What a paced simulator hears and says.
pub struct Wires {
    /// Commands.
    pub commands: mpsc::Receiver<JointState>,
    /// Each message is a reset.
    pub resets: mpsc::Receiver<()>,
    /// The state after each tick.
    pub states: Output<JointState>,
    /// Its time after each tick [s].
    pub clock: Output<f64>,
    /// How it goes.
    pub report: Output<Report>,
    /// Where its time goes.
    pub times: Times,
}

/// Runs until `shutdown`: `real_time_factor` of its seconds in one of ours. Late ticks are made up for, ten at most.
pub async fn run(mut paced: Paced, real_time_factor: f64, wires: Wires, mut shutdown: Shutdown) -> Result<()> {
    let Wires { mut commands, mut resets, mut states, mut clock, mut report, times } = wires;
    let (mut said, mut progress, mut refused) = (None::<Instant>, 0, 0);
    let period = Duration::from_secs_f64(paced.tick_secs() / real_time_factor);
    let mut due = Instant::now() + period;
    let mut told = String::new();
    let mut watch = Stopwatch::new(&times);
    watch.start();
    loop {
        tokio::select! {
            biased;
            () = shutdown.wait() => return Ok(()),
            Some(()) = resets.recv() => {
                paced.reset()?;
                tracing::info!("reset: time is 0");
            }
            Some(command) = commands.recv() => paced.push(command),
            () = tokio::time::sleep_until(due) => {
                watch.turn_to(Activity::Physics);
                let (state, wrong) = paced.step()?;
                if let Some(error) = wrong {
                    refused += 1;
                    if told != error.to_string() {
                        told = error.to_string();
                        tracing::warn!("{told}");
                    }
                }
                watch.turn_to(Activity::Transport);
                clock(&paced.clock_secs());
                states(&state);
                progress += 1;
                if said.is_none_or(|said| STATUS <= said.elapsed()) {
                    said = Some(Instant::now());
                    let counts = vec![("dropped_commands", paced.dropped()), ("refused_commands", refused)];
                    let phase = "in its own time".into();
                    report(&Report { phase, waits: true, progress, waits_for: Vec::new(), counts });
                }
                due = (due + period).max(Instant::now().checked_sub(10 * period).unwrap_or(due));
                watch.turn_to(Activity::Waiting);
            }
        }
    }
}
