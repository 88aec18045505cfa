//! Parts of bags: what is carried over, what is refused, what a full disk leaves.

use super::make::{LAYOUTS, items, mcap, read, read_in, sqlite};
use crate::bag::{Bag, Cut, Folder, Message, Order, Qos, Select, Split, Topic, Writer};
use crate::error::Error;
use bytes::Bytes;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) fn topic(name: &str, type_name: &str, transient_local: bool, depth: u64) -> Topic {
    let offers = vec![Qos { reliable: Some(true), transient_local: Some(transient_local), depth: Some(depth) }];
    let (name, type_name, format) = (name.into(), type_name.into(), "cdr".into());
    Topic { name, type_name, format, offers, type_hash: String::new(), definition: None }
}

/// A file with `/latched` (depth 2) at 1 s, 2 s, 3 s and `/stream` at each 0.5 s up to 6 s.
pub(super) fn bag(folder: &Path) -> PathBuf {
    let path = folder.join("a.mcap");
    let topics = [topic("/latched", "std_msgs/msg/String", true, 2), topic("/stream", "std_msgs/msg/Bool", false, 10)];
    let mut writer = Writer::new(&path, std::fs::File::create(&path).unwrap(), &topics).unwrap();
    let mut write = |topic: usize, tenths: i64, data: &'static [u8]| {
        let (time_ns, sent_ns) = (tenths * 100_000_000, tenths * 100_000_000 - 7);
        writer.write(&Message { topic, time_ns, sent_ns, data: Bytes::from_static(data) }).unwrap();
    };
    for half in 1..=12 {
        write(1, 5 * half, &[0, 1, 0, 0, 1]);
        match half {
            2 => write(0, 10, &[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0]),
            4 => write(0, 20, &[0, 1, 0, 0, 2, 0, 0, 0, b'b', 0]),
            6 => write(0, 30, &[0, 1, 0, 0, 2, 0, 0, 0, b'c', 0]),
            _ => {}
        }
    }
    writer.finish().unwrap();
    path
}

fn all(path: &Path) -> Vec<(String, i64, i64, u8)> {
    let bag = Bag::open(path).unwrap();
    let mut messages = bag.read(&Select::default()).unwrap();
    let mut found = Vec::new();
    while let Some(message) = messages.read().unwrap() {
        let name = bag.topics()[message.topic].name.clone();
        found.push((name, message.time_ns / 100_000_000, message.sent_ns, message.data[message.data.len() - 2]));
    }
    assert_eq!(messages.damage(), []);
    found
}

#[test]
fn a_cut_takes_its_span_and_carries_over_what_latched_topics_would_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let source = Bag::open(&bag(folder.path())).unwrap();
    let out = folder.path().join("out");
    let cut = Cut { from_secs: Some(3.0), to_secs: Some(4.0), topics: vec![] }; // the bag starts at 0.5 s
    let cutting = cut.write(&source, &out, &mut |_| {}).unwrap();
    assert_eq!((cutting.messages, cutting.carried, cutting.damage), (2, 2, vec![]));
    let latched = |sent: i64, letter| ("/latched".to_owned(), 35, sent * 100_000_000 - 7, letter);
    let stream = |tenths: i64| ("/stream".to_owned(), tenths, tenths * 100_000_000 - 7, 0);
    assert_eq!(all(&out), [latched(20, b'b'), latched(30, b'c'), stream(35), stream(40)]);
    let again = Bag::open(&out).unwrap();
    assert_eq!(again.stated(), Some(4));
    assert_eq!(again.topics()[0].offers, source.topics()[0].offers);
    assert_eq!(again.topics()[1].definition.as_ref().unwrap().text, "bool data");
}

#[test]
fn a_cut_without_bounds_is_the_whole_of_the_chosen_topics() {
    let folder = tempfile::tempdir().unwrap();
    let source = Bag::open(&bag(folder.path())).unwrap();
    let out = folder.path().join("out");
    let cut = Cut { topics: vec!["/latched".into()], ..Cut::default() };
    let cutting = cut.write(&source, &out, &mut |_| {}).unwrap();
    assert_eq!((cutting.messages, cutting.carried), (3, 0));
    assert_eq!(Bag::open(&out).unwrap().topics().len(), 1);
}

#[test]
fn what_cannot_be_cut_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let source = Bag::open(&bag(folder.path())).unwrap();
    let refusal = |cut: Cut, out: &str| match cut.write(&source, &folder.path().join(out), &mut |_| {}) {
        Err(Error::Invalid(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let unknown = Cut { topics: vec!["/none".into()], ..Cut::default() };
    assert!(refusal(unknown, "a").contains("no topic /none in") && !folder.path().join("a").exists());
    assert!(
        refusal(Cut { from_secs: Some(2.0), to_secs: Some(1.0), ..Cut::default() }, "a")
            .contains("--from 2 is not before --to 1")
    );
    assert!(refusal(Cut { from_secs: Some(-1.0), ..Cut::default() }, "a").contains("--from -1"));
    assert!(refusal(Cut { to_secs: Some(f64::NAN), ..Cut::default() }, "a").contains("--to NaN"));
    std::fs::create_dir(folder.path().join("b")).unwrap();
    assert!(refusal(Cut::default(), "b").contains("exists already"));
    let late = Cut { from_secs: Some(1e9), topics: vec!["/latched".into()], ..Cut::default() };
    assert!(refusal(late, "a").contains("--from 1000000000 lies behind the end: the bag is 5.5 s long"));
    assert!(!folder.path().join("a").exists());
    // a topic that says nothing in a span of the bag is none of that
    let silent = Cut { from_secs: Some(3.0), topics: vec!["/latched".into()], ..Cut::default() };
    let cutting = silent.write(&source, &folder.path().join("c"), &mut |_| {}).unwrap();
    assert_eq!((cutting.messages, cutting.carried), (0, 2));
}

#[test]
fn a_place_where_no_bag_can_be_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let places = [
        (folder.path().join("none/a"), "its folder does not exist or takes nothing new"),
        (PathBuf::from("/proc/handoff"), "its folder does not exist or takes nothing new"),
        (folder.path().join("file/a"), "what it lies in is no folder"),
        (folder.path().to_owned(), "it exists already"),
    ];
    for (place, why) in places {
        let Err(Error::Invalid(said)) = Folder::create(&place, &[], Split::default()) else { panic!("{place:?}") };
        assert_eq!(said, format!("{} cannot be written, as {why}: give another name", place.display()));
    }
}

#[test]
fn a_database_becomes_an_mcap_bag() {
    let folder = tempfile::tempdir().unwrap();
    let items = items(100);
    let path = folder.path().join("a.db3");
    drop(sqlite(&path, &items));
    let out = folder.path().join("out");
    Cut::default().write(&Bag::open(&path).unwrap(), &out, &mut |_| {}).unwrap();
    assert_eq!(read(&out).unwrap(), (items, vec![]));
}

#[test]
fn a_clock_that_jumps_back_does_so_in_the_part_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut items = items(100);
    items[60..].iter_mut().for_each(|item| item.1 -= 55_000_000);
    let path = folder.path().join("a.mcap");
    std::fs::write(&path, mcap(&items, LAYOUTS[1])).unwrap();
    let out = folder.path().join("out");
    Cut::default().write(&Bag::open(&path).unwrap(), &out, &mut |_| {}).unwrap();
    assert_eq!(read_in(&out, Order::Recorded).unwrap(), (items, vec![]));
}

#[test]
fn the_damage_of_the_source_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let bytes = mcap(&items(200), LAYOUTS[1]);
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let cutting = Cut::default().write(&Bag::open(&path).unwrap(), &folder.path().join("out"), &mut |_| {}).unwrap();
    assert!(50 < cutting.messages && !cutting.damage.is_empty());
}

#[test]
fn damage_before_the_span_is_told_too() {
    let folder = tempfile::tempdir().unwrap();
    let name = |number: i64| folder.path().join(format!("a_{number}.mcap"));
    for number in 0..2 {
        let topics = [topic("/latched", "std_msgs/msg/String", true, 1)];
        let mut writer = Writer::new(&name(number), std::fs::File::create(name(number)).unwrap(), &topics).unwrap();
        for at in 0..10 {
            let time_ns = (10 * number + at) * 1_000_000_000;
            let data = Bytes::from_static(&[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0]);
            writer.write(&Message { topic: 0, time_ns, sent_ns: time_ns, data }).unwrap();
        }
        writer.finish().unwrap();
    }
    // the first file's chunk, in its middle
    let mut bytes = std::fs::read(name(0)).unwrap();
    let chunk = bytes.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[chunk + 12] ^= 0xff;
    std::fs::write(name(0), bytes).unwrap();
    let bag = Bag::open(folder.path()).unwrap();
    let looked = bag.damage().len();
    let cut = Cut { from_secs: Some(5.0), ..Cut::default() };
    let cutting = cut.write(&bag, &folder.path().join("out"), &mut |_| {}).unwrap();
    assert_eq!(cutting.messages, 5); // the first that can be read is at 10 s
    assert_eq!(cutting.damage.len(), looked + 1, "{:?}", cutting.damage);
    assert!(cutting.damage.iter().any(|damage| damage.file == name(0) && damage.messages != Some(0)));
}

#[test]
fn a_write_that_fails_says_what_is_kept_and_what_is_lost() {
    use rand::Rng as _;
    let folder = tempfile::tempdir().unwrap();
    let mut rng = super::make::rng(2);
    let mut message = |time_ns: i64| {
        let mut data = vec![0; 10_000]; // does not compress
        rng.fill_bytes(&mut data);
        Message { topic: 0, time_ns, sent_ns: time_ns, data: data.into() }
    };
    let split = Split { bytes: Some(3_000_000), span_ns: None };
    let stream = [topic("/stream", "std_msgs/msg/String", false, 1)];
    let sentence = |torn: bool, out: &Path, message: &mut dyn FnMut(i64) -> Message| {
        let mut bag = Folder::create(out, &stream, split).unwrap();
        std::fs::create_dir(out.join(format!("{}_1.mcap", out.file_name().unwrap().display()))).unwrap();
        (0..300).for_each(|time_ns| bag.write(&message(time_ns)).unwrap());
        assert!(bag.write(&message(300)).is_err(), "there is no room for the next file");
        if torn {
            let file = out.join(format!("{}_0.mcap", out.file_name().unwrap().display()));
            std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(2_000_000).unwrap();
        }
        let full = Error::io(out)(io::Error::from(io::ErrorKind::StorageFull));
        bag.broken(full, 1).to_string()
    };
    let said = sentence(false, &folder.path().join("whole"), &mut message);
    assert!(said.ends_with(": 300 messages kept, 1 lost; free some space"), "{said}");
    let out = folder.path().join("torn");
    let said = sentence(true, &out, &mut message);
    let kept = read(&out.join("torn_0.mcap")).unwrap().0.len();
    assert!((100..200).contains(&kept), "{kept} of 200 in two thirds of the file");
    assert!(said.ends_with(&format!(": {kept} messages kept, {} lost; free some space", 301 - kept)), "{said}");
}

/// A disk with so many bytes left.
struct Disk {
    file: Cursor<Vec<u8>>,
    left: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let count = self.file.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_what_was_finished_readable() {
    use rand::Rng as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let mut disk = Disk { file: Cursor::new(Vec::new()), left: 3_000_000 };
    let mut rng = super::make::rng(1);
    let mut written = 0;
    {
        let mut writer = Writer::new(&path, &mut disk, &[topic("/stream", "std_msgs/msg/String", false, 1)]).unwrap();
        let error = loop {
            let mut data = vec![0; 10_000]; // does not compress
            rng.fill_bytes(&mut data);
            match writer.write(&Message { topic: 0, time_ns: written, sent_ns: 0, data: data.into() }) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, Error::Io { path: named, .. } if *named == path), "{error}");
        assert!(writer.finish().is_err());
    }
    std::fs::write(&path, disk.file.into_inner()).unwrap();
    let (found, damage) = read(&path).unwrap();
    assert!(200 <= found.len() && found.len() as i64 <= written, "{} of {written}", found.len());
    assert_eq!(damage.len(), 1, "{damage:?}");
}

#[test]
fn every_file_of_a_split_bag_begins_with_what_is_latched() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("split");
    let offer = |latched| vec![Qos { reliable: Some(true), transient_local: Some(latched), depth: Some(1) }];
    let topic = |name: &str, latched| {
        let (name, type_name, format) = (name.into(), "std_msgs/msg/String".into(), "cdr".into());
        Topic { name, type_name, format, offers: offer(latched), type_hash: String::new(), definition: None }
    };
    let message = |topic, time_ns: i64, letter: u8| {
        let data = [0, 1, 0, 0, 2, 0, 0, 0, letter, 0].to_vec().into();
        Message { topic, time_ns, sent_ns: time_ns, data }
    };
    let split = Split { bytes: Some(100), span_ns: Some(1_000_000) };
    let mut bag = Folder::create(&out, &[topic("/latched", true)], split).unwrap();
    bag.write(&message(0, 0, b'a')).unwrap();
    bag.write(&message(0, 1, b'b')).unwrap();
    assert_eq!(bag.declare(&topic("/late", false)).unwrap(), 1);
    (2..25).for_each(|time| bag.write(&message(1, time, b'x')).unwrap()); // ten messages are 100 bytes
    bag.write(&message(1, 5_000_000, b'y')).unwrap(); // and too late for the third file
    let written = bag.messages();
    bag.finish().unwrap();
    let whole = Bag::open(&out).unwrap();
    assert_eq!((whole.files().count(), whole.stated()), (4, Some(written)));
    for (index, file) in whole.files().enumerate() {
        let part = Bag::open(file).unwrap();
        let texts: Vec<u8> = part.read(&Select::default()).unwrap().map(|message| message.unwrap().data[8]).collect();
        let want: &[u8] = if index == 0 { b"ab" } else { b"b" };
        assert_eq!(&texts[..want.len()], want, "file {index}");
        assert!(texts[want.len()..].iter().all(|letter| !want.contains(letter)));
    }
    let mut late =
        whole.read(&Select { topics: Some(whole.topics_of("std_msgs/msg/String")), ..Select::default() }).unwrap();
    assert_eq!((late.by_ref().count() as u64, late.damage().len()), (written, 0));
}
