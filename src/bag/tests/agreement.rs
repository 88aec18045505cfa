//! Bags of every combination, made by and read with other programs: `rosbags` and the `mcap` package of Python.

use crate::bag::{Bag, Schema, Select, decode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::process::Command;

/// Topic, time, sha256 of the bytes.
type Line = (String, i64, String);

fn generate(folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bags/generate.py");
    let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(script).arg(folder).output().unwrap();
    assert!(
        output.status.success(),
        "this test needs other readers of bags: `{python} -m pip install -r scripts/requirements/tests.txt`, or HANDOFF_PYTHON naming \
         a Python that has them; it said:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(super) fn read(bag: &Bag) -> Vec<Line> {
    let mut messages = bag.read(&Select::default()).unwrap();
    let mut lines = Vec::new();
    while let Some(message) = messages.read().unwrap() {
        let hash = hex::encode(Sha256::digest(&message.data));
        lines.push((bag.topics()[message.topic].name.clone(), message.time_ns, hash));
    }
    assert_eq!(messages.damage(), []);
    lines
}

#[derive(Deserialize)]
struct Decoded {
    #[serde(rename = "type")]
    type_name: String,
    text: String,
    data: String,
    value: serde_json::Value,
}

#[test]
fn every_combination_is_read_and_decoded_as_other_readers_do() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    let mut bags = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let expected = entry.unwrap().path();
        if expected.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = expected.file_stem().unwrap().to_str().unwrap();
        let single = folder.path().join(format!("{name}.mcap"));
        let path = if single.exists() { single } else { folder.path().join(name) };
        let bag = Bag::open(&path).unwrap();
        let lines: Vec<Line> = serde_json::from_slice(&std::fs::read(&expected).unwrap()).unwrap();
        let ours = read(&bag);
        assert_eq!((ours.len(), lines.len() % 60), (lines.len(), 0), "{name}");
        for (index, (ours, theirs)) in ours.iter().zip(&lines).enumerate() {
            assert_eq!(ours, theirs, "{name}, message {index}");
        }
        let latched: Vec<&str> =
            bag.topics().iter().filter(|topic| topic.latched()).map(|topic| topic.name.as_str()).collect();
        let has_offers = !["sqlite-1-1", "sqlite-1-2", "sqlite-1-3"].contains(&name);
        assert_eq!(latched, if has_offers { vec!["/policy_weights"] } else { vec![] }, "{name}");
        bags += 1;
    }
    assert_eq!(bags, 14 + 36 + 12 + 1 + 16);

    let decoded: Vec<Decoded> =
        serde_json::from_slice(&std::fs::read(folder.path().join("decoded.list")).unwrap()).unwrap();
    assert!(decoded.len() > 200);
    for Decoded { type_name, text, data, value } in decoded {
        let data = hex::decode(data).unwrap();
        let schema = Schema::parse(&type_name, &text).unwrap();
        let mut ours: serde_json::Value = decode(&schema, &data).unwrap();
        if let Some(map) =
            ours.as_object_mut().filter(|map| map.len() == value.as_object().map_or(0, |map| map.len()) + 1)
        {
            map.remove("structure_needs_at_least_one_member");
        }
        assert_eq!(ours, value, "{type_name}");
        if let Ok(known) = Schema::known(&type_name) {
            assert_eq!(known.structs, schema.structs, "{type_name}");
        }
    }
}
