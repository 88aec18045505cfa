//! Any bytes behind the mark of SQLite: read to the end and looked into, in both orders.
#![no_main]

mod bound;

use handoff::bag::{Bag, Order, Select, Survey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new().unwrap();
    let marked =
        if bytes.starts_with(b"SQLite format 3\0") { bytes.to_vec() } else { [b"SQLite format 3\0", bytes].concat() };
    std::fs::write(file.path(), &marked).unwrap();
    bound::within(320 * marked.len() + (192 << 20), || {
        let Ok(bag) = Bag::open(file.path()) else { return };
        let _ = Survey::take(&bag, &[], &mut |_| {});
        if let Ok(messages) = bag.read(&Select { order: Order::Time, ..Select::default() }) {
            messages.flatten().for_each(drop);
        }
    });
});
