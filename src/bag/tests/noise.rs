//! Arbitrary bytes and changed bags: nothing panics, nothing grows without bound, and what is read is in order.

use super::make::{LAYOUTS, items, mcap, read, rng, sqlite};
use crate::bag::message::{JointState, PolicyWeights, TransitionHead};
use crate::bag::{Metadata, Schema, decode};
use proptest::prelude::*;

use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::time::{Duration, Instant};

/// Changes, removes, repeats or overwrites some bytes.
fn mutate(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..bytes.len());
        let end = (at + rng.random_range(1..40)).min(bytes.len());
        match rng.random_range(0..6) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.next_u32() as u8,
            2 => bytes[at..end].fill(*[0, 0xff].get(rng.random_range(0..2usize)).unwrap()),
            3 if end - at < bytes.len() - 16 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let large = [u64::MAX, 1 << 32, 1 << 62, 255][rng.random_range(0..4usize)].to_le_bytes();
                let count = large.len().min(bytes.len() - at);
                bytes[at..at + count].copy_from_slice(&large[..count]);
            }
        }
    }
}

/// Reads mutated bags until the time or the rounds are over; answers with the rounds made.
fn rounds(most: usize, time: Duration, seed: u64) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let items = items(120);
    let mut sources: Vec<Vec<u8>> = LAYOUTS.iter().map(|layout| mcap(&items, *layout)).collect();
    let base = folder.path().join("base.db3");
    drop(sqlite(&base, &items));
    sources.push(std::fs::read(&base).unwrap());
    sources.push(zstd::encode_all(&sources[0][..], 1).unwrap());
    let string = Schema::known("std_msgs/msg/String").unwrap();
    let path = folder.path().join("a");
    let mut rng = rng(seed);
    let begin = Instant::now();
    for round in 0..most {
        if time < begin.elapsed() {
            return round;
        }
        let mut bytes = sources[round % sources.len()].clone();
        mutate(&mut bytes, &mut rng);
        std::fs::write(&path, &bytes).unwrap();
        one(&path, &string);
    }
    most
}

fn one(path: &Path, string: &Schema) {
    if let Ok((found, _)) = read(path) {
        for (_, _, data) in found {
            let _ = decode::<serde_json::Value>(string, &data);
        }
    }
}

#[test]
fn changed_bags_are_read_without_a_panic() {
    assert!(100 < rounds(1500, Duration::from_secs(8), 1));
}

/// For as long as HANDOFF_FUZZ_SECS says: the loop behind the fuzz targets where no nightly compiler is.
#[test]
#[ignore = "minutes of random changes"]
fn changed_bags_are_read_without_a_panic_for_long() {
    let secs = std::env::var("HANDOFF_FUZZ_SECS").ok().and_then(|secs| secs.parse().ok()).unwrap_or(300);
    let rounds = rounds(usize::MAX, Duration::from_secs(secs), 2);
    eprintln!("{rounds} rounds");
    assert!(1000 < rounds);
}

fn message_bytes() -> impl Strategy<Value = Vec<u8>> {
    let header = prop::sample::select(vec![[0u8, 1, 0, 0], [0, 0, 0, 0], [0, 7, 0, 0], [0, 6, 0, 0]]);
    let small = prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..300);
    (header, small).prop_map(|(header, body)| [&header[..], &body[..]].concat())
}

proptest! {
    #[test]
    fn any_bytes_decode_or_are_refused(bytes in prop_oneof![message_bytes(), prop::collection::vec(any::<u8>(), 0..300)]) {
        let known = |name: &str| Schema::known(name).unwrap();
        let _ = decode::<JointState<'_>>(&known("sensor_msgs/msg/JointState"), &bytes);
        let _ = decode::<PolicyWeights>(&known("handoff/msg/PolicyWeights"), &bytes);
        let _ = decode::<TransitionHead>(&known("handoff/msg/TransitionBatch"), &bytes);
        for name in ["handoff/msg/TransitionBatch", "diagnostic_msgs/msg/DiagnosticArray", "std_msgs/msg/Float64MultiArray"] {
            if let Ok(value) = decode::<serde_json::Value>(&known(name), &bytes) {
                prop_assert!(elements(&value) <= 60 + 2 * bytes.len());
            }
        }
    }

    #[test]
    fn any_text_is_a_schema_or_is_refused(text in "([a-zA-Z0-9_/<=]{1,12}(\\[[0-9<=]{0,4}\\])? [a-z=]{1,6}\n){0,6}", noise in ".{0,60}") {
        let _ = Schema::parse("a/msg/A", &text);
        let _ = Schema::parse("a/msg/A", &noise);
    }

    #[test]
    fn any_text_is_metadata_or_is_refused(text in "(rosbag2_bagfile_information:\n)?(  (version|files|relative_file_paths|message_count): [-0-9a-z\\[\\]{}:& *]{0,12}\n){0,5}") {
        let _ = Metadata::parse(&text);
    }
}

/// Values in a value.
fn elements(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(list) => 1 + list.iter().map(elements).sum::<usize>(),
        serde_json::Value::Object(map) => 1 + map.values().map(elements).sum::<usize>(),
        _ => 1,
    }
}
