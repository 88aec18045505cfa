//! Any text as metadata.yaml.
#![no_main]

mod bound;

use handoff::bag::Metadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    bound::within(1000 * bytes.len() + (16 << 20), || drop(Metadata::parse(&text)));
});
