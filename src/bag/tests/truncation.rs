//! Files that end early, at every record and at random bytes.

use super::make::{LAYOUTS, items, mcap, read, rng, sqlite};
use rand::RngExt as _;

/// Ends of all records, those in chunks that are not compressed included, and ends of messages.
fn ends(bytes: &[u8], begin: usize, end: usize, records: &mut Vec<usize>, messages: &mut Vec<usize>) {
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let mut at = begin;
    while at + 9 <= end {
        let (opcode, body) = (bytes[at], at + 9);
        let next = body + number(at + 1, 8);
        match opcode {
            5 => messages.push(next),
            6 if number(body + 28, 4) == 0 => ends(bytes, body + 40, next, records, messages),
            _ => {}
        }
        records.push(next);
        at = next;
    }
}

#[test]
fn a_truncated_mcap_file_gives_every_message_that_is_whole_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let items = items(200);
    for layout in LAYOUTS {
        let bytes = mcap(&items, layout);
        let (mut records, mut messages) = (Vec::new(), Vec::new());
        ends(&bytes, 8, bytes.len() - 8, &mut records, &mut messages);
        let mut rng = rng(3);
        let cuts = records.iter().copied().chain((0..400).map(|_| rng.random_range(8..bytes.len())));
        for cut in cuts.filter(|&cut| cut < bytes.len()).collect::<Vec<_>>() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let (found, damage) = read(&path).unwrap();
            assert!(!damage.is_empty(), "{layout:?} at {cut}");
            assert!(items.starts_with(&found), "{layout:?} at {cut}");
            if !layout.zstd {
                let whole = messages.iter().filter(|&&end| end <= cut).count();
                assert_eq!(found.len(), whole, "{layout:?} at {cut}");
            }
        }
    }
}

#[test]
fn a_chunk_that_is_whole_is_read_whatever_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let items = items(200);
    let bytes = mcap(&items, LAYOUTS[2]);
    let (mut records, mut none) = (Vec::new(), Vec::new());
    ends(&bytes, 8, bytes.len() - 8, &mut records, &mut none);
    let mut last = 0;
    for cut in records {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let found = read(&path).unwrap().0.len();
        assert!(last <= found);
        last = found;
    }
    assert_eq!(last, 200);
}

#[test]
fn a_truncated_database_gives_only_messages_of_the_whole_one_and_most_of_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db3");
    let path = folder.path().join("a.db3");
    let items = items(2000);
    drop(sqlite(&whole, &items));
    let bytes = std::fs::read(&whole).unwrap();
    let mut rng = rng(4);
    let cuts =
        (0..60).map(|_| rng.random_range(100..bytes.len())).chain((1..bytes.len() / 4096).map(|page| page * 4096));
    for cut in cuts.collect::<Vec<_>>() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (found, damage) = read(&path).unwrap();
        assert!(!damage.is_empty(), "at {cut}");
        assert!(found.is_sorted_by_key(|item| item.1), "at {cut}");
        assert!(
            found
                .iter()
                .all(|item| items.binary_search_by_key(&item.1, |item| item.1).is_ok_and(|at| items[at] == *item))
        );
        // Pages of the index and of the tree are lost, too; of the rest nothing is.
        let share = cut as f64 / bytes.len() as f64;
        assert!(
            0.8 * share - 0.2 < found.len() as f64 / items.len() as f64,
            "{} messages at {cut} of {}",
            found.len(),
            bytes.len()
        );
    }
}
