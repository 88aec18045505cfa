//! The simulator in lockstep: answers commands with the next states, and repeats states that nobody answers.

use super::{Activity, Output, Report, Shutdown, Stopwatch, Times};
use crate::data::{ArmCommands, ArmStates};
use crate::sim::{Answer, Lockstep};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often the shell looks whether the states are due again.
const POLL: Duration = Duration::from_millis(50);

/// Period of the report.
const STATUS: Duration = Duration::from_millis(200);

/// Between two steps it waits; a hang inside one shows as silence.
fn of(lockstep: &Lockstep) -> Report {
    let states = lockstep.states();
    Report {
        phase: match &states.bound {
            Some(stream) => format!("serving {stream}"),
            None => "waiting for a rollout".into(),
        },
        waits: true,
        progress: states.tick,
        waits_for: Vec::new(),
        counts: vec![("tick", states.tick), ("refused_commands", lockstep.refused())],
    }
}

/// Runs until `shutdown`. Refusals of a second rollout are told once for each sentence.
pub async fn run(
    mut lockstep: Lockstep,
    mut commands: mpsc::Receiver<ArmCommands>,
    mut states: Output<ArmStates>,
    mut report: Output<Report>,
    times: &Times,
    mut shutdown: Shutdown,
) {
    let start = Instant::now();
    let mut told = String::new();
    let mut watch = Stopwatch::new(times);
    let mut said: Option<Instant> = None;
    states(&lockstep.states());
    loop {
        let command = tokio::select! {
            biased;
            () = shutdown.wait() => return,
            command = tokio::time::timeout(POLL, commands.recv()) => command,
        };
        let now = start.elapsed().as_secs_f64();
        match command {
            Ok(None) => return,
            Ok(Some(command)) => match step(&mut lockstep, now, &command, &mut watch) {
                Answer::Stepped | Answer::Repeat => states(&lockstep.states()),
                Answer::Held => {}
                Answer::Refused(sentence) => {
                    if told != sentence {
                        tracing::error!("{sentence}");
                        told = sentence;
                    }
                }
            },
            Err(_) => {}
        }
        if lockstep.due(now) {
            states(&lockstep.states());
        }
        if said.is_none_or(|said| STATUS <= said.elapsed()) {
            report(&of(&lockstep));
            said = Some(Instant::now());
        }
        watch.turn_to(Activity::Waiting);
    }
}

/// Obeys a command. Time counts from the first step; what follows is transport.
fn step(lockstep: &mut Lockstep, now: f64, command: &ArmCommands, watch: &mut Stopwatch) -> Answer {
    watch.turn_to(Activity::Physics);
    let answer = lockstep.command(now, command);
    watch.turn_to(Activity::Transport);
    if answer == Answer::Stepped {
        watch.start();
    }
    answer
}
