//! Time of a prioritised draw of 256 steps out of a million: `cargo run --release --no-default-features --example replay_speed`.

use handoff::config::Seed;
use handoff::data::{Choice, End, Forced, Fragment, Transition};
use handoff::error::Result;
use handoff::replay::{Priority, Replay, Shape, StepId};
use std::time::Instant;

const OBS: usize = 64;
const ACTION: usize = 8;
const OPTIONS: u64 = 4;
const STEPS: usize = 16;
const ROUNDS: u64 = 2000;

fn main() -> Result<()> {
    let shape = Shape { obs: OBS, action: ACTION, options: OPTIONS as usize, fragment: STEPS };
    let mut replay = Replay::new(shape, 1_070_000, Priority::Proportional { alpha: 0.6 })?;
    for number in 0..1_000_000 / STEPS as u64 {
        replay.insert(&fragment(number))?;
    }
    let mut rng = Seed::root(1).rng(0);
    let (mut drawing, mut updating) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let draws = replay.draw(256, 0.5, &mut rng)?;
        drawing.push(begun.elapsed().as_secs_f64());
        let steps: Vec<StepId> = draws.iter().map(|draw| draw.step).collect();
        let errors: Vec<f64> = (0..steps.len() as u64).map(|step| ((step * 7 + round) % 13) as f64).collect();
        let begun = Instant::now();
        replay.update(&steps, &errors);
        updating.push(begun.elapsed().as_secs_f64());
    }
    let (draw, update) = (median_micros(drawing), median_micros(updating));
    let megabytes = replay.bytes() as f64 / 1e6;
    print(&format!(
        "{} transitions of {OBS} floats in {megabytes:.0} MB: a draw of 256 takes {draw:.1} us, new priorities {update:.1} us",
        replay.len()
    ))
}

fn median_micros(mut secs: Vec<f64>) -> f64 {
    secs.sort_by(f64::total_cmp);
    secs.get(secs.len() / 2).map_or(0.0, |secs| secs * 1e6)
}

fn fragment(number: u64) -> Fragment {
    let step = |t: u64| Transition {
        version: 1,
        episode: number,
        t: t as u32,
        stamp_secs: 0.0,
        choice: Choice {
            option_prev: 0,
            option: ((number + t / 4) % OPTIONS) as u8,
            option_terminated: false,
            forced: Forced::Free,
            option_age: 1,
            proposal: vec![0.1; ACTION],
            action: vec![0.1; ACTION],
            log_prob_action: 0.0,
            log_prob_option: 0.0,
            log_prob_termination: 0.0,
            log_prob_mixture: 0.0,
            termination_prob: 0.0,
        },
        filtered: false,
        intervened: false,
        reward: 0.0,
        end: End::None,
    };
    Fragment {
        env: 0,
        first: number * STEPS as u64,
        obs_size: OBS,
        steps: (0..STEPS as u64).map(step).collect(),
        observations: vec![0.5; (STEPS + 1) * OBS],
        finals: Vec::new(),
    }
}

fn print(line: &str) -> Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout().lock(), "{line}").map_err(handoff::error::Error::io("standard output"))
}
