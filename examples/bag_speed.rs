//! Reads a bag and decodes each of its JointStates; prints messages, bytes, seconds and the most memory used, as JSON.
//! `cargo run --release --no-default-features --example bag_speed BAG`
#![expect(clippy::print_stdout, reason = "the result of a program")]

use handoff::bag::message::JointState;
use handoff::bag::{Bag, Schema, Select, decode};
use handoff::error::{Error, Result};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| Error::invalid("give a bag"))?;
    let begin = Instant::now();
    let bag = Bag::open(&path)?;
    let schemas: Vec<Schema> = bag.topics().iter().map(|topic| Schema::of(topic, &[])).collect::<Result<_>>()?;
    let (mut count, mut bytes, mut sum) = (0u64, 0, 0.0);
    let mut messages = bag.read(&Select::default())?;
    while let Some(message) = messages.read()? {
        let state: JointState<'_> = decode(&schemas[message.topic], &message.data)?;
        sum += state.position.iter().sum::<f64>();
        count += 1;
        bytes += message.data.len();
    }
    let secs = begin.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    let mb = peak.unwrap_or(f64::NAN) / 1024.0;
    println!(
        "{{\"messages\": {count}, \"bytes\": {bytes}, \"secs\": {secs:.3}, \"peak_mb\": {mb:.1}, \"sum\": {sum}}}"
    );
    Ok(())
}
