//! Ten minutes of one arm at 1 kHz, states and commands: time and memory of `handoff bag analyse`.
//! `cargo run --release --no-default-features --features torch --example analyse_speed [SECS]`
#![expect(clippy::print_stdout, reason = "an example prints")]

use handoff::analysis::{Present, Setup, analyse};
use handoff::bag::{Bag, Folder, Message, Split, Topic};
use handoff::config::{Config, Seed};
use handoff::contract::{Normaliser, Snapshot};
use handoff::report;
use handoff::robot::{ARM_DOF, READY, Robot};
use rand::RngExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// A sensor_msgs/JointState in little-endian CDR.
fn state(stamp_ns: i64, position: &[f64; ARM_DOF], velocity: &[f64]) -> Vec<u8> {
    let mut out = vec![];
    let word = |out: &mut Vec<u8>, value: u32| {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(value.to_le_bytes());
    };
    word(&mut out, (stamp_ns / 1_000_000_000) as u32);
    word(&mut out, (stamp_ns % 1_000_000_000) as u32);
    let text = |out: &mut Vec<u8>, text: &str| {
        word(out, text.len() as u32 + 1);
        out.extend(text.bytes().chain([0]));
    };
    text(&mut out, "");
    word(&mut out, ARM_DOF as u32);
    Robot::Panda.joint_names().iter().for_each(|name| text(&mut out, name));
    for values in [&position[..], velocity, &[]] {
        word(&mut out, values.len() as u32);
        if !values.is_empty() {
            out.resize(out.len().next_multiple_of(8), 0);
            values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
    }
    [&[0, 1, 0, 0], &out[..]].concat()
}

fn record(out: &Path, secs: u64) -> handoff::error::Result<()> {
    let topic = |name: &str| {
        let (name, type_name, format) = (name.into(), "sensor_msgs/msg/JointState".into(), "cdr".into());
        Topic { name, type_name, format, offers: vec![], type_hash: String::new(), definition: None }
    };
    let mut bag = Folder::create(out, &[topic("/joint_states"), topic("/joint_command")], Split::default())?;
    for tick in 0..secs as i64 * 1000 {
        let (time_ns, at) = (1_000_000_000_000 + tick * 1_000_000, tick as f64 * 1e-3);
        let wave = |at: f64| READY.map(|ready| ready + 0.2 * (at + 3.0 * ready).sin());
        let velocity = READY.map(|ready| 0.2 * (at + 3.0 * ready).cos());
        for (topic, time_ns, data) in [
            (0, time_ns, state(time_ns, &wave(at), &velocity)),
            (1, time_ns + 300_000, state(time_ns, &wave(at + 0.01), &[])),
        ] {
            bag.write(&Message { topic, time_ns, sent_ns: time_ns, data: data.into() })?;
        }
    }
    bag.finish()
}

/// VmHWM [MB].
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    format!("{} MB", kilobytes / 1000)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secs = std::env::args().nth(1).map_or(Ok(600), |word| word.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bag");
    record(&path, secs)?;
    let contract = Arc::new(Config::default().contract()?);
    let mut rng = Seed::root(1).rng(0);
    let parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.1..0.1)).collect();
    let normaliser = Normaliser::identity(contract.obs_size(), 10.0);
    let snapshot = Snapshot {
        run: Uuid::nil(),
        life: 1,
        version: 1,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        contract,
        normaliser,
        parameters: parameters.into(),
    };
    let present = Present { from: "random weights".into(), snapshot: Arc::new(snapshot), critic: true, rewards: None };
    handoff::policy::set_threads(1);
    let setup = Setup { present: Some(present), goal: Some([0.45, 0.15, 0.4]), ..Setup::default() };
    let start = Instant::now();
    let found = analyse(&Bag::open(&path)?, &setup, &mut |_| {}, &mut |_| {})?;
    let page = report::analysis::page(&found)?;
    let (took, bytes) = (start.elapsed().as_secs_f64(), page.len() / 1000);
    println!(
        "{secs} s of an arm at 1 kHz, {} decisions: {took:.2} s, {}, page of {bytes} kB",
        found.decisions,
        most_memory()
    );
    if let Some(out) = std::env::args().nth(2) {
        std::fs::write(out, page)?;
    }
    Ok(())
}
