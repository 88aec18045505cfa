//! Bags of every combination, made by and read with other programs: `rosbags` and the `mcap` package of Python.

use crate::bag::{Bag, Damage, Schema, Select, decode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::process::Command;

/// Topic, time, sha256 of the bytes.
type Line = (String, i64, String);

/// What other readers read of a bag.
#[derive(Deserialize)]
struct Expected {
    /// Whether it says which topics are latched.
    latched: bool,
    messages: Vec<Line>,
}

/// Runs a script that makes bags in the folder.
pub(super) fn make(script: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bags").join(script);
    let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(script).arg(folder).output().unwrap();
    assert!(
        output.status.success(),
        "this test needs other readers of bags: `{python} -m pip install -r scripts/requirements/tests.txt`, or HANDOFF_PYTHON naming \
         a Python that has them; it said:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// All messages, and what was lost.
fn read(bag: &Bag) -> (Vec<Line>, Vec<Damage>) {
    let mut messages = bag.read(&Select::default()).unwrap();
    let mut lines = Vec::new();
    while let Some(message) = messages.read().unwrap() {
        let hash = hex::encode(Sha256::digest(&message.data));
        lines.push((bag.topics()[message.topic].name.clone(), message.time_ns, hash));
    }
    (lines, messages.damage())
}

#[derive(Deserialize)]
struct Decoded {
    #[serde(rename = "type")]
    type_name: String,
    text: String,
    data: String,
    value: serde_json::Value,
}

/// tests/bags/matrix.py has the product of storages, compressions, versions of metadata.yaml (none is one), files and forms of the offers,
/// without what cannot be.
const MATRIX: usize = {
    let (packed_by_itself, versions, early, files, forms) = (4, 10, 2, 2, 2);
    let unpacked = versions + packed_by_itself * (versions - early);
    let (databases, databases_without_offers, chunks) = (3, 1, 2 * versions);
    (files * forms) * (databases * unpacked + unpacked + chunks) + files * databases_without_offers * unpacked
};

#[test]
fn every_combination_is_read_as_other_readers_do() {
    let folder = tempfile::tempdir().unwrap();
    make("generate.py", folder.path());
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
        let Expected { latched, messages } = serde_json::from_slice(&std::fs::read(&expected).unwrap()).unwrap();
        let (ours, damage) = read(&bag);
        assert_eq!((ours.len(), messages.len()), (60, 60), "{name}");
        for (index, (ours, theirs)) in ours.iter().zip(&messages).enumerate() {
            assert_eq!(ours, theirs, "{name}, message {index}");
        }
        let lost: Vec<bool> = damage.iter().map(|damage| damage.file.ends_with("metadata.yaml")).collect();
        assert_eq!(lost, if name.contains("-None-") { vec![true] } else { vec![] }, "{name}: {damage:?}");
        let found: Vec<&str> =
            bag.topics().iter().filter(|topic| topic.latched()).map(|topic| topic.name.as_str()).collect();
        assert_eq!(found, if latched { vec!["/policy_weights"] } else { vec![] }, "{name}");
        bags += 1;
    }
    let (of_rosbags, single_files) = (14, 1 + 12);
    assert_eq!(bags, MATRIX + of_rosbags + single_files);
}

#[test]
fn messages_of_many_types_are_decoded_as_another_reader_does() {
    let folder = tempfile::tempdir().unwrap();
    make("decoded.py", folder.path());
    let decoded = std::fs::read(folder.path().join("decoded.json")).unwrap();
    let decoded: Vec<Decoded> = serde_json::from_slice(&decoded).unwrap();
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
