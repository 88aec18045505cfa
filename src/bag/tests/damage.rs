//! Bags that are odd or broken otherwise than at their ends.

use super::make::{Item, LAYOUTS, insert, items, mcap, plain_chunks, read, read_in, sqlite};
use crate::bag::{Bag, Order};
use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn refusal(path: &Path) -> String {
    match Bag::open(path) {
        Err(Error::Invalid(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

/// Offset of the nth chunk.
fn chunk(bytes: &[u8], nth: usize) -> usize {
    record(bytes, 6, nth)
}

/// Offset of the nth record of a kind.
fn record(bytes: &[u8], opcode: u8, nth: usize) -> usize {
    let mut at = 8;
    let mut seen = 0;
    loop {
        if bytes[at] == opcode {
            if seen == nth {
                return at;
            }
            seen += 1;
        }
        at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
    }
}

#[test]
fn what_is_no_bag_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(&folder.path().join("none")).contains("does not exist"));
    assert!(refusal(folder.path()).contains("neither metadata.yaml nor an .mcap or .db3 file"));
    let (_folder, path) = file("a.mcap", b"something else");
    assert!(refusal(&path).contains("neither mcap nor sqlite3"));
}

#[test]
fn a_file_that_cannot_be_reached_is_an_error_of_the_system_with_its_path() {
    let (_folder, path) = file("a.mcap", b"");
    let error = Bag::open(&path.join("b")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("a.mcap/b"), "{error}");
}

#[test]
fn an_empty_file_is_a_bag_that_has_lost_everything() {
    let (_folder, path) = file("a.db3", b"");
    let (items, damage) = read(&path).unwrap();
    assert_eq!((items.len(), damage.len()), (0, 1));
    assert!(damage[0].what.contains("empty"));
}

#[test]
fn a_corrupted_chunk_is_left_out_and_its_messages_are_counted() {
    let items = items(200);
    for layout in &LAYOUTS[1..] {
        let mut bytes = mcap(&items, *layout);
        let at = chunk(&bytes, 1) + 200;
        bytes[at] ^= 0xff;
        let (_folder, path) = file("a.mcap", &bytes);
        let (found, damage) = read(&path).unwrap();
        let [damage] = &damage[..] else { panic!("{damage:?}") };
        assert_eq!(found.len() as u64 + damage.messages.unwrap(), 200, "{damage}");
        assert!(0 < damage.bytes && damage.offset == chunk(&bytes, 1) as u64, "{damage}");
        assert!(found.iter().all(|item| items.contains(item)));
    }
}

#[test]
fn reading_goes_on_behind_bytes_that_are_no_record() {
    let items = items(200);
    for layout in LAYOUTS {
        let mut bytes = mcap(&items, layout);
        let at = if layout.chunks { chunk(&bytes, 1) } else { bytes.len() / 2 };
        bytes[at..at + 60].fill(0);
        let (_folder, path) = file("a.mcap", &bytes);
        let (found, damage) = read(&path).unwrap();
        let lost = 200 - found.len();
        assert!(0 < lost && lost < 40, "{layout:?}: {lost} lost, {damage:?}");
        assert!(damage.iter().any(|damage| 0 < damage.bytes));
        assert_eq!(found.last(), items.last(), "{layout:?}");
    }
}

#[test]
fn a_changed_bit_in_the_kind_of_a_record_costs_no_other_and_is_said() {
    let items = items(200);
    for layout in LAYOUTS {
        let whole = mcap(&items, layout);
        let at = if layout.chunks { chunk(&whole, 1) } else { record(&whole, 5, 70) };
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let (_folder, path) = file("a.mcap", &bytes);
            let (found, damage) = read(&path).unwrap();
            assert!(160 < found.len() && found.iter().all(|item| items.contains(item)), "{layout:?}, bit {bit}");
            if bit == 7 {
                // somebody's own record, which is passed over; the statistics tell
                assert_eq!((Bag::open(&path).unwrap().stated(), damage), (Some(200), vec![]));
            } else {
                assert!(damage.iter().any(|damage| damage.messages.is_none()), "{layout:?}, bit {bit}: {damage:?}");
            }
        }
    }
}

#[test]
fn a_changed_bit_inside_a_chunk_without_a_checksum_costs_one_message_and_is_said() {
    let items = items(200);
    let whole = plain_chunks(&items);
    let first = chunk(&whole, 1) + 9 + 28 + 4 + 8; // behind the head of the chunk and its fields
    let length = |at: usize| u64::from_le_bytes(whole[at + 1..at + 9].try_into().unwrap()) as usize;
    let at = first + 9 + length(first); // its second record
    assert_eq!((whole[first], whole[at]), (5, 5), "both are messages");
    let lost = items.iter().position(|item| whole[at + 9 + 22..at + 9 + length(at)] == item.2).unwrap();
    let mut rest = items.clone();
    rest.remove(lost);
    for bit in 0..8 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        let (_folder, path) = file("a.mcap", &bytes);
        let (found, damage) = read(&path).unwrap();
        assert_eq!(found, rest, "bit {bit}");
        let [damage] = &damage[..] else { panic!("bit {bit}: {damage:?}") };
        assert_eq!((damage.messages, damage.bytes), (Some(1), 9 + length(at) as u64), "bit {bit}");
    }
    // a length that leads nowhere: what stands behind is found again
    let mut bytes = whole.clone();
    bytes[at + 3] ^= 0x40;
    let (_folder, path) = file("a.mcap", &bytes);
    let (found, damage) = read(&path).unwrap();
    assert_eq!((found, damage.len(), damage[0].messages), (rest, 1, Some(1)));
}

#[test]
fn messages_whose_channel_is_broken_are_read_where_the_summary_has_it() {
    let items = items(200);
    let mut bytes = mcap(&items, LAYOUTS[0]);
    let at = record(&bytes, 4, 0);
    bytes[at] = 0x24;
    let (_folder, path) = file("a.mcap", &bytes);
    let (found, damage) = read(&path).unwrap();
    assert_eq!((found, damage.len()), (items, 1), "{damage:?}");
}

#[test]
fn zeros_at_the_end_cost_nothing() {
    let items = items(50);
    let bytes = mcap(&items, LAYOUTS[1]);
    for tail in [bytes.len(), bytes.len() - 8] {
        let (_folder, path) = file("a.mcap", &[&bytes[..tail], &[0; 5000]].concat());
        let (found, damage) = read(&path).unwrap();
        assert_eq!(found, items);
        assert_eq!((damage.len(), damage[0].messages), (1, Some(0)), "{damage:?}");
    }
}

#[test]
fn a_chunk_that_promises_too_much_allocates_nothing() {
    for layout in &LAYOUTS[1..] {
        let mut bytes = mcap(&items(50), *layout);
        let at = chunk(&bytes, 0) + 9 + 16;
        bytes[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        let (_folder, path) = file("a.mcap", &bytes);
        let (_, damage) = read(&path).unwrap();
        assert!(damage.iter().any(|damage| damage.what.contains("limit")), "{damage:?}");
    }
}

#[test]
fn a_clock_that_jumps_back_is_seen_in_the_order_of_recording_and_sorted_in_that_of_time() {
    let mut items = items(100);
    for item in &mut items[60..] {
        item.1 -= 55_000_000;
    }
    let mut sorted = items.clone();
    sorted.sort_by_key(|item| item.1); // stable, as the tie rule asks
    for layout in LAYOUTS {
        let (_folder, path) = file("a.mcap", &mcap(&items, layout));
        assert_eq!(read_in(&path, Order::Recorded).unwrap(), (items.clone(), vec![]));
        assert_eq!(read(&path).unwrap(), (sorted.clone(), vec![]), "{layout:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db3");
    drop(sqlite(&path, &items));
    assert_eq!(read_in(&path, Order::Recorded).unwrap(), (items.clone(), vec![]));
    assert_eq!(read(&path).unwrap(), (sorted, vec![]));
}

#[test]
fn what_a_write_ahead_log_holds_is_read_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let items = items(300);
    let live = folder.path().join("live.db3");
    let base = sqlite(&live, &items[..100]);
    base.pragma_update(None, "journal_mode", "WAL").unwrap();
    base.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    insert(&base, &items[100..]);
    assert_eq!(read(&live).unwrap().0, items, "while it is being written");
    let left = folder.path().join("left.db3");
    fs::copy(&live, &left).unwrap();
    fs::copy(folder.path().join("live.db3-wal"), folder.path().join("left.db3-wal")).unwrap();
    let before = fs::read(&left).unwrap();
    assert_eq!(read(&left).unwrap(), (items, vec![]));
    assert_eq!(fs::read(&left).unwrap(), before);
    assert!(!folder.path().join("left.db3-shm").exists());
}

#[test]
fn a_database_without_an_index_by_time_is_sorted_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db3");
    let mut items = items(100);
    items.reverse();
    sqlite(&path, &items).execute_batch("DROP INDEX timestamp_idx").unwrap();
    items.reverse();
    assert_eq!(read(&path).unwrap(), (items, vec![]));
}

#[test]
fn rows_of_no_topic_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db3");
    let items = items(10);
    let base = sqlite(&path, &items);
    base.execute_batch("INSERT INTO messages VALUES(NULL, 9, 5, x'000102'), (NULL, 1, 6, NULL)").unwrap();
    drop(base);
    let (found, damage) = read(&path).unwrap();
    assert_eq!(found, items);
    assert_eq!((damage[0].messages, damage[0].bytes), (Some(2), 3));
}

/// A folder of two files, the second packed, with this metadata.
fn folder(metadata: Option<&str>) -> (TempDir, Vec<Item>) {
    let folder = tempfile::tempdir().unwrap();
    let items = items(100);
    fs::write(folder.path().join("b_9.mcap"), mcap(&items[..50], LAYOUTS[1])).unwrap();
    let packed = zstd::encode_all(&mcap(&items[50..], LAYOUTS[2])[..], 1).unwrap();
    fs::write(folder.path().join("b_10.mcap.zstd"), packed).unwrap();
    if let Some(metadata) = metadata {
        fs::write(folder.path().join("metadata.yaml"), metadata).unwrap();
    }
    (folder, items)
}

#[test]
fn a_folder_without_metadata_is_read_in_the_order_of_its_numbers() {
    let (folder, items) = folder(None);
    let (found, damage) = read_in(folder.path(), Order::Recorded).unwrap();
    assert_eq!(found, items);
    assert!(damage[0].what.contains("missing") && damage[0].messages == Some(0), "{damage:?}");
}

#[test]
fn a_file_that_is_there_packed_and_unpacked_is_read_once() {
    let (folder, items) = folder(None);
    let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    fs::write(folder.path().join("b_9.mcap.zstd"), packed(&mcap(&items[..20], LAYOUTS[1]))).unwrap();
    assert_eq!(read_in(folder.path(), Order::Recorded).unwrap().0, items, "the unpacked one is read");
}

#[test]
fn a_broken_metadata_file_is_damage_and_no_more() {
    let (folder, items) = folder(Some("rosbag2_bagfile_information: ["));
    let (found, damage) = read(folder.path()).unwrap();
    assert_eq!((found, damage.len()), (items, 1));
}

#[test]
fn a_listed_file_that_is_missing_is_damage_with_its_count() {
    let text = "rosbag2_bagfile_information: {version: 9, message_count: 107, relative_file_paths: [old/b_9.mcap, b_10.mcap.zstd, b_11.mcap], \
                files: [{path: b_11.mcap, message_count: 7}], topics_with_message_count: []}";
    let (folder, items) = folder(Some(text));
    let (found, damage) = read(folder.path()).unwrap();
    assert_eq!(found, items);
    assert_eq!((damage.len(), damage[0].messages), (1, Some(7)), "{damage:?}");
}

#[test]
fn a_packed_file_that_ends_early_gives_its_front() {
    let (folder, items) = folder(None);
    let path = folder.path().join("b_10.mcap.zstd");
    let big = mcap(&self::items(20_000), LAYOUTS[1]);
    let packed = zstd::encode_all(&big[..], 1).unwrap();
    fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let (found, damage) = read(&path).unwrap();
    assert!(5_000 < found.len() && found.len() < 15_000, "{}", found.len());
    assert!(damage.len() >= 2, "{damage:?}");
    assert!(items.len() == 100);
}

#[test]
fn an_empty_bag_of_rosbag2_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let text = "rosbag2_bagfile_information: {version: 5, duration: {nanoseconds: 0}, starting_time: {nanoseconds_since_epoch: 9223372036854775807}, \
                message_count: 0, relative_file_paths: [e_0.mcap], topics_with_message_count: []}";
    fs::write(folder.path().join("metadata.yaml"), text).unwrap();
    fs::write(folder.path().join("e_0.mcap"), mcap(&[], LAYOUTS[1])).unwrap();
    assert_eq!(read(folder.path()).unwrap(), (vec![], vec![]));
}

#[test]
fn a_file_that_the_metadata_does_not_list_is_read_and_said() {
    let text = "rosbag2_bagfile_information: {version: 5, message_count: 50, relative_file_paths: [b_9.mcap]}";
    let (folder, items) = folder(Some(text));
    let (found, damage) = read_in(folder.path(), Order::Recorded).unwrap();
    assert_eq!(found, items);
    let [damage] = &damage[..] else { panic!("{damage:?}") };
    assert!(damage.file.ends_with("b_10.mcap.zstd") && damage.what.contains("does not list it"), "{damage}");
    assert_eq!(damage.messages, Some(0));
    // the same file unpacked is no other one
    fs::write(folder.path().join("b_9.mcap.lz4"), "left over").unwrap();
    assert_eq!(read(folder.path()).unwrap().0, items);
}

#[test]
fn files_that_were_unpacked_packed_or_renamed_are_not_missing() {
    let whole = |first: &str, second: &str| {
        let text = format!(
            "rosbag2_bagfile_information: {{version: 5, message_count: 100, relative_file_paths: [{first}, {second}]}}"
        );
        let (folder, items) = folder(Some(&text));
        assert_eq!(read_in(folder.path(), Order::Recorded).unwrap(), (items, vec![]), "{first}, {second}");
    };
    whole("b_9.mcap.zstd", "b_10.mcap.zstd");
    whole("b_9.mcap.zstd", "b_10.mcap");
    whole("a_0.mcap", "a_1.mcap");
    // three are listed and two are there
    let text = "rosbag2_bagfile_information: {version: 5, message_count: 150, relative_file_paths: [a_0.mcap, a_1.mcap, a_2.mcap]}";
    let (folder, items) = folder(Some(text));
    let (found, damage) = read(folder.path()).unwrap();
    assert_eq!(found, items);
    assert_eq!(damage.iter().filter(|damage| damage.what.contains("does not exist")).count(), 3, "{damage:?}");
}

#[test]
fn pages_that_cannot_be_read_are_said_without_an_index_by_time_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db3");
    let items = items(2000);
    let base = sqlite(&path, &items);
    base.execute_batch("DROP INDEX timestamp_idx; VACUUM").unwrap();
    drop(base);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let (found, damage) = read(&path).unwrap();
    assert!(1500 < found.len() && found.len() < 2000, "{}", found.len());
    assert!(damage.iter().any(|damage| damage.what.contains("pages") && 4096 <= damage.bytes), "{damage:?}");
}
