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
                while commands.try_recv().is_ok() {} // they are from before
                tracing::info!("reset: time is 0");
            }
            // each has another stamp: told once
            Some(command) = commands.recv() => if let Err(error) = paced.push(command) && paced.untimely() == 1 {
                tracing::warn!("{error}");
            },
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
                    let counts = vec![
                        ("dropped_commands", paced.dropped()),
                        ("refused_commands", refused),
                        ("untimely_commands", paced.untimely()),
                    ];
                    let phase = "in its own time".into();
                    report(&Report { phase, waits: true, progress, waits_for: Vec::new(), counts });
                }
                due = (due + period).max(Instant::now().checked_sub(10 * period).unwrap_or(due));
                watch.turn_to(Activity::Waiting);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::robot::Robot;

    #[test]
    fn a_reset_voids_the_commands_on_their_way() {
        let paced = Paced::new(Robot::Panda, &config::Sim::default()).unwrap();
        let (tell, commands) = mpsc::channel(4);
        let (reset, resets) = mpsc::channel(1);
        let command = |stamp_secs| JointState {
            stamp_secs,
            names: vec!["panda_joint1".into()],
            position: vec![0.5],
            velocity: vec![],
        };
        tell.try_send(command(0.0)).unwrap();
        reset.try_send(()).unwrap();
        let (stopper, shutdown) = Shutdown::new();
        let (said, heard) = std::sync::mpsc::channel();
        let mut ticks = 0;
        let states: Output<JointState> = Box::new(move |state| {
            ticks += 1;
            said.send(state.position[0]).unwrap();
            match ticks {
                3 => tell.try_send(command(6.85)).unwrap(), // it was on the wire
                30 => tell.try_send(command(0.0)).unwrap(),
                60 => stopper.stop(),
                _ => {}
            }
        });
        let wires = Wires {
            commands,
            resets,
            states,
            clock: Box::new(|_| ()),
            report: Box::new(|_| ()),
            times: Times::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(paced, 4.0, wires, shutdown)).unwrap();
        let joint: Vec<f64> = heard.into_iter().collect();
        assert!(joint[..30].iter().all(|at| at.abs() < 1e-3), "it stays where the reset left it: {joint:?}");
        assert!(joint[59] > 0.2, "a command after the reset is obeyed: {joint:?}");
    }
}
