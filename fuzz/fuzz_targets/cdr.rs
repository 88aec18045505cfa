//! A definition and a message of it: the bytes before the first zero are its text. Then the message as types that we know.
#![no_main]

use handoff::bag::message::{JointState, PolicyWeights, TransitionHead};
use handoff::bag::{Schema, decode};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static KNOWN: LazyLock<[Schema; 3]> = LazyLock::new(|| {
    ["sensor_msgs/msg/JointState", "handoff/msg/PolicyWeights", "handoff/msg/TransitionBatch"].map(|name| Schema::known(name).unwrap())
});

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    let (text, message) = bytes.split_at(split);
    if let Ok(schema) = Schema::parse("a/msg/A", &String::from_utf8_lossy(text)) {
        let _ = decode::<serde_json::Value>(&schema, message);
    }
    let [state, weights, batch] = &*KNOWN;
    let _ = decode::<JointState<'_>>(state, message);
    let _ = decode::<PolicyWeights>(weights, message);
    let _ = decode::<TransitionHead>(batch, message);
    let _ = decode::<serde_json::Value>(batch, message);
});
