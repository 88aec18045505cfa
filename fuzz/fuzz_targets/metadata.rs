//! Any text as metadata.yaml.
#![no_main]

use handoff::bag::Metadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Metadata::parse(&String::from_utf8_lossy(bytes));
});
