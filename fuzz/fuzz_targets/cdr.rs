//! A definition and a message of it: the bytes before the first zero are its text. Then the message as types that we know.
#![no_main]

mod bound;

use handoff::bag::message::{JointState, PolicyWeights, TransitionHead};
use handoff::bag::{Schema, decode};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static KNOWN: LazyLock<[Schema; 3]> = LazyLock::new(|| {
    ["sensor_msgs/msg/JointState", "handoff/msg/PolicyWeights", "handoff/msg/TransitionBatch"]
        .map(|name| Schema::known(name).unwrap())
});

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    let (text, message) = bytes.split_at(split);
    let text = String::from_utf8_lossy(text);
    let [state, weights, batch] = &*KNOWN;
    bound::within(1000 * bytes.len() + (1 << 20), || {
        if let Ok(schema) = Schema::parse("a/msg/A", &text) {
            let _ = decode::<serde_json::Value>(&schema, message);
        }
        let _ = decode::<serde_json::Value>(batch, message);
    });
    bound::within(16 * message.len() + (64 << 10), || drop(decode::<JointState<'_>>(state, message)));
    bound::within(16 * message.len() + (64 << 10), || drop(decode::<PolicyWeights>(weights, message)));
    bound::within(16 * message.len() + (64 << 10), || drop(decode::<TransitionHead>(batch, message)));
});
