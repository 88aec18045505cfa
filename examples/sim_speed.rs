//! Prints how fast the embedded simulator steps on one thread, and how far its coarse physics step is from a fine one.
//!
//! `cargo run --release --no-default-features --features sim --example sim_speed`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use handoff::config::{Seed, Sim};
use handoff::contract::Told;
use handoff::data::{Operation, STATE_DOF};
use handoff::error::Result;
use handoff::link::Preset;
use handoff::robot::{ARM_DOF, Robot};
use handoff::sim::{Arms, HOME};
use rand::RngExt as _;

const ENVS: usize = 16;
const TICKS: u64 = 1000;
const EPISODE: u64 = 50;
const PERIOD_SECS: f64 = 0.05;
const SCALE_RAD: f64 = 0.08;

/// Episodes of 50 ticks: start within 0.1 rad of ready, then random joint deltas; the same for every simulator.
/// Gives positions and velocities of the arms' joints after each tick.
fn run(arms: &mut Arms) -> Result<[Vec<f64>; 2]> {
    let limits = Robot::Panda.limits();
    let mut target = [HOME; ENVS];
    let mut seen = [Vec::new(), Vec::new()];
    for tick in 0..TICKS {
        let reset = tick % EPISODE == 0;
        let mut rng = Seed::root(3).rng(tick);
        for row in &mut target {
            let (from, step) = if reset { (HOME, 0.1) } else { (*row, SCALE_RAD) };
            let moved = std::array::from_fn(|joint| from[joint] + step * rng.random_range(-1.0..1.0));
            row[..ARM_DOF].copy_from_slice(&limits.clamp_position(&moved, 0.0));
            row[ARM_DOF..STATE_DOF].copy_from_slice(&HOME[ARM_DOF..]);
        }
        let operation = [if reset { Operation::Reset } else { Operation::Step }; ENVS];
        arms.step(&operation, &target, &[tick; ENVS])?;
        for (seen, rows) in seen.iter_mut().zip([arms.position(), arms.velocity()]) {
            seen.extend(rows.iter().flat_map(|row| &row[..ARM_DOF]));
        }
    }
    Ok(seen)
}

/// Time that this thread has run [s], whatever else the machine does (Linux: schedstat's first number, in ns).
fn cpu_secs() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedstat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| 1e-9 * ns)
}

fn arms(timestep_secs: f64, told: Told, cube: bool) -> Result<Arms> {
    Arms::new(ENVS, Robot::Panda, &Sim { timestep_secs, threads: 1, told, ..Sim::default() }, PERIOD_SECS, cube)
}

fn main() -> Result<()> {
    let varied = Told { mass_range: 0.3, friction_range: 0.5, ..Told::default() };
    let guard = Preset::Sim.guard();
    for (name, told, cube, lead) in [
        ("arm", Told::default(), false, None),
        ("arm, led by the guard's law", Told::default(), false, Some(&guard)),
        ("arm, varied", varied, false, None),
        ("arm and cube", Told::default(), true, None),
    ] {
        let mut arms = arms(1.0 / 240.0, told, cube)?.led(lead)?;
        let start_secs = cpu_secs();
        run(&mut arms)?;
        let speed = ENVS as f64 * TICKS as f64 / (cpu_secs() - start_secs);
        println!("{name}: {speed:.0} env steps per second of one core, at 20 Hz and 1/240 s");
    }
    let at = |timestep_secs| run(&mut arms(timestep_secs, Told::default(), false)?);
    let rms =
        |a: &[f64], b: &[f64]| (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt();
    let runs = [("1/240 s", at(1.0 / 240.0)?), ("1/500 s", at(1.0 / 500.0)?), ("0.1 ms", at(1e-4)?)];
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let [position, velocity] = [0, 1].map(|kind| 1e3 * rms(&runs[a].1[kind], &runs[b].1[kind]));
        let (a, b) = (runs[a].0, runs[b].0);
        println!("physics steps of {a} and {b} differ by {position:.2} mrad and {velocity:.1} mrad/s RMS");
    }
    Ok(())
}
