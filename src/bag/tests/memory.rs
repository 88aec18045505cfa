//! What reading allocates at its highest, of small files made to take as much as they can. A test has its process for itself, as nextest
//! runs it.

use super::make::{items, sqlite};
use crate::bag::message::{JointState, TransitionHead};
use crate::bag::{Bag, Order, Schema, Select, Survey, decode};
use mcap::records::MessageHeader;
use mcap::{Compression, WriteOptions};
use peak_alloc::PeakAlloc;
use std::collections::BTreeMap;
use std::path::Path;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Bytes that it takes at its highest.
fn most<T>(read: impl FnOnce() -> T) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    drop(read());
    MEMORY.peak_usage() - before
}

/// Everything that the readers do; the messages that come out.
fn all(path: &Path) -> u64 {
    let bag = Bag::open(path).unwrap();
    let survey = Survey::take(&bag, &[], &mut |_| {}).unwrap();
    for order in [Order::Time, Order::Recorded] {
        let messages = bag.read(&Select { order, ..Select::default() }).unwrap();
        assert_eq!(messages.count() as u64, survey.messages);
    }
    survey.messages
}

/// Chunks that unpack to all that they may, of as many messages as can be, over the same time.
fn bombs(path: &Path, chunks: u64) {
    let options = WriteOptions::new().compression(Some(Compression::Zstd)).chunk_size(None);
    let mut writer = options.emit_message_indexes(false).create(std::fs::File::create(path).unwrap()).unwrap();
    let schema = writer.add_schema("std_msgs/msg/Empty", "ros2msg", b"").unwrap();
    let channel_id = writer.add_channel(schema, "/a", "cdr", &BTreeMap::new()).unwrap();
    let header = MessageHeader { channel_id, sequence: 0, log_time: 5, publish_time: 5 };
    for _ in 0..chunks {
        (0..16 * MIB / 31 - 10).for_each(|_| writer.write_to_known_channel(&header, &[]).unwrap());
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn chunks_that_unpack_to_all_that_they_may_take_the_memory_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let peak = |chunks: u64| {
        let path = folder.path().join(format!("{chunks}.mcap"));
        bombs(&path, chunks);
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        let mut messages = 0;
        let taken = most(|| messages = all(&path));
        assert_eq!(messages, chunks * (16 * MIB as u64 / 31 - 10));
        assert!(size < MIB / 8, "{size} bytes");
        taken / MIB
    };
    let (one, three) = (peak(1), peak(3));
    assert!(64 < one && one <= 128 && three <= 128, "{one} and {three} MiB");
}

#[test]
fn a_length_that_leads_out_of_its_record_reserves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let length = 0x7fff_ffffu32.to_le_bytes();
    let schema = [&[1, 0, 1, 0, 0, 0, b'a'][..], &length, &length].concat();
    let channel = [&[1, 0, 1, 0, 1, 0, 0, 0, b'a'][..], &length].concat();
    let metadata = [&[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0][..], &length, &length].concat();
    let statistics = [&[0; 42][..], &length].concat();
    for (opcode, body) in [(3, &schema), (4, &channel), (4, &metadata), (11, &statistics)] {
        let record = [&[opcode][..], &(body.len() as u64).to_le_bytes(), body].concat();
        let end = [15, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        std::fs::write(&path, [mcap::MAGIC, &end[..if opcode == 11 { 13 } else { 0 }], &record].concat()).unwrap();
        let mut damage = Vec::new();
        let taken = most(|| damage = Bag::open(&path).unwrap().damage().to_vec());
        assert!(taken < MIB && !damage.is_empty(), "{opcode}: {taken} bytes, {damage:?}");
    }
}

#[test]
fn messages_that_unpack_to_all_that_they_may_take_the_memory_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db3");
    let bomb = zstd::encode_all(&vec![0; 16 * MIB][..], 19).unwrap();
    let mut items = items(20);
    items.iter_mut().for_each(|item| item.2 = bomb.clone());
    drop(sqlite(&path, &items));
    let mut messages = 0;
    let taken = most(|| messages = all(&path));
    assert_eq!(messages, 20);
    assert!(taken <= 128 * MIB, "{} MiB", taken / MIB);
}

#[test]
fn a_decoded_message_takes_no_more_than_a_multiple_of_its_bytes() {
    // empty texts: four bytes on the wire, a slice in memory
    let known = |name: &str| Schema::known(name).unwrap();
    let (state, batch) = (known("sensor_msgs/msg/JointState"), known("handoff/msg/TransitionBatch"));
    let mut message = vec![0, 1, 0, 0];
    message.extend([0; 8]); // stamp
    message.extend([1, 0, 0, 0, 0, 0, 0, 0]); // frame: empty
    let names = 100_000u32;
    message.extend(names.to_le_bytes());
    (0..names).for_each(|_| message.extend([0; 4]));
    message.extend([0; 12]);
    let taken = most(|| decode::<JointState<'_>>(&state, &message).map(|state| state.name.len()));
    assert!(taken <= 16 * message.len(), "{taken} of {}", message.len());
    let taken = most(|| decode::<TransitionHead>(&batch, &message).is_ok());
    assert!(taken <= 16 * message.len(), "{taken} of {}", message.len());
    // objects of one byte each
    let schema = Schema::parse("a/msg/A", &format!("B[] b\n{}\nMSG: a/B\nuint8 x\n", "=".repeat(80))).unwrap();
    let count = 100_000u32;
    let message = [&[0, 1, 0, 0][..], &count.to_le_bytes(), &vec![7; count as usize]].concat();
    let taken = most(|| decode::<serde_json::Value>(&schema, &message).unwrap());
    assert!(500 * message.len() < taken && taken <= 1000 * message.len(), "{taken} of {}", message.len());
}
