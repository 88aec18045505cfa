//! Files that end early, at every record and at random bytes.

use super::agreement::make;
use super::make::{LAYOUTS, items, mcap, read, rng, sqlite};
use crate::bag::{Bag, Order, Select};
use rand::RngExt as _;
use std::path::Path;

/// Where records end, and where messages are whole: those in chunks that are not compressed each by itself, the others with their chunk.
#[derive(Default)]
struct Ends {
    records: Vec<usize>,
    messages: Vec<usize>,
}

impl Ends {
    /// By the lengths that the writer put before its records.
    fn of(bytes: &[u8]) -> Self {
        let mut ends = Self::default();
        ends.take(bytes, 8, bytes.len() - 8);
        ends
    }

    fn take(&mut self, bytes: &[u8], begin: usize, end: usize) {
        let number = |at: usize, size: usize| {
            bytes[at..at + size].iter().rev().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte))
        };
        let mut at = begin;
        while at + 9 <= end {
            let (opcode, body) = (bytes[at], at + 9);
            let next = body + number(at + 1, 8);
            match (opcode, opcode == 6 && 0 < number(body + 28, 4)) {
                (5, _) => self.messages.push(next),
                (6, false) => self.take(bytes, body + 40, next),
                (6, true) => {
                    let mut inside = Self::default();
                    let unpacked = zstd::decode_all(&bytes[body + 44..next]).unwrap();
                    inside.take(&unpacked, 0, unpacked.len());
                    self.messages.extend(inside.messages.iter().map(|_| next));
                }
                _ => {}
            }
            self.records.push(next);
            at = next;
        }
    }

    fn whole(&self, cut: usize) -> usize {
        self.messages.iter().filter(|&&end| end <= cut).count()
    }
}

#[test]
fn a_truncated_mcap_file_gives_every_message_that_is_whole_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let items = items(200);
    for layout in LAYOUTS {
        let bytes = mcap(&items, layout);
        let ends = Ends::of(&bytes);
        assert_eq!(ends.whole(bytes.len()), 200, "{layout:?}");
        let mut rng = rng(3);
        let cuts = ends.records.iter().copied().chain((0..1000).map(|_| rng.random_range(8..bytes.len())));
        for cut in cuts.filter(|&cut| cut < bytes.len()).collect::<Vec<_>>() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let (found, damage) = read(&path).unwrap();
            assert!(!damage.is_empty(), "{layout:?} at {cut}");
            assert!(items.starts_with(&found), "{layout:?} at {cut}");
            let whole = ends.whole(cut);
            // of a compressed chunk that ends early the front may come out
            assert!(found.len() == whole || layout.zstd && whole < found.len(), "{layout:?} at {cut}");
        }
    }
}

#[test]
fn truncated_mcap_files_give_what_another_reader_reads_of_them() {
    let folder = tempfile::tempdir().unwrap();
    make("truncated.py", folder.path());
    let path = folder.path().join("a.mcap");
    for layout in ["loose", "none", "zstd", "lz4"] {
        let file = |suffix: &str| std::fs::read(folder.path().join(format!("{layout}.{suffix}"))).unwrap();
        let bytes = file("mcap");
        let cuts: Vec<(usize, usize)> = serde_json::from_slice(&file("cuts")).unwrap();
        assert!(1040 < cuts.len());
        std::fs::write(&path, &bytes).unwrap();
        let whole = recorded(&path);
        assert_eq!(whole.len(), 60);
        for (cut, theirs) in cuts {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let found = recorded(&path);
            assert!(whole.starts_with(&found), "{layout} at {cut}");
            // the other reader gives nothing of a chunk that ends early
            assert!(found.len() == theirs || layout != "loose" && theirs < found.len(), "{layout} at {cut}: {theirs}");
            if layout == "none" {
                assert_eq!(found.len(), Ends::of(&bytes).whole(cut), "{layout} at {cut}");
            }
        }
    }
}

/// Time and bytes of the messages of any topics, in the order of the file.
fn recorded(path: &Path) -> Vec<(i64, Vec<u8>)> {
    let bag = Bag::open(path).unwrap();
    let messages = bag.read(&Select { order: Order::Recorded, ..Select::default() }).unwrap();
    messages.map(|message| message.map(|message| (message.time_ns, message.data.to_vec())).unwrap()).collect()
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
