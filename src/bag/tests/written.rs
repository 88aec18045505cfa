//! Bags that we wrote, read by others: `rosbags`, `mcap`, and rosbag2 itself where it is installed.

use super::cutting::{bag, topic};
use crate::bag::{Bag, Cut, Folder, Message, Split};
use bytes::Bytes;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const TEXT: &str = "std_msgs/msg/String";
const TRUTH: &str = "std_msgs/msg/Bool";

/// A part of a recording: two latched messages from before it, two of a stream.
fn cut(folder: &Path) -> PathBuf {
    let out = folder.join("cut");
    let cut = Cut { from_secs: Some(3.0), to_secs: Some(4.0), topics: vec![] };
    cut.write(&Bag::open(&bag(folder)).unwrap(), &out, &mut |_| {}).unwrap();
    out
}

/// A recording in three files, each of which begins with what is latched.
fn split(folder: &Path) -> PathBuf {
    let out = folder.join("split");
    let topics = [topic("/latched", TEXT, true, 1), topic("/stream", TRUTH, false, 10)];
    let mut writer = Folder::create(&out, &topics, Split { bytes: None, span_ns: Some(1_000_000_000) }).unwrap();
    let mut write = |topic: usize, tenths: i64, data: &'static [u8]| {
        let time_ns = tenths * 100_000_000;
        writer.write(&Message { topic, time_ns, sent_ns: time_ns, data: Bytes::from_static(data) }).unwrap();
    };
    write(0, 10, &[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0]);
    [10, 15, 20, 25, 30].into_iter().for_each(|tenths| write(1, tenths, &[0, 1, 0, 0, 1]));
    writer.finish().unwrap();
    out
}

#[test]
fn rosbags_and_mcap_read_alike_what_was_cut_and_what_was_split() {
    const READER: &str = "
import json, sys
from pathlib import Path
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
out = Path(sys.argv[1])
with AnyReader([out]) as reader:
    found = [[c.topic, c.msgtype, time, reader.deserialize(data, c.msgtype).data] for c, time, data in reader.messages()]
    assert reader.message_count == len(found)
    qos = {c.topic: c.ext.offered_qos_profiles[0].durability.name for c in reader.connections}
lines = []
for number in range(len(list(out.glob('*.mcap')))):
    with (out / f'{out.name}_{number}.mcap').open('rb') as file:
        lines += [[channel.topic, message.log_time] for _, channel, message in make_reader(file).iter_messages()]
assert lines == [[line[0], line[2]] for line in found], (lines, found)
print(json.dumps([found, qos]))
";
    let folder = tempfile::tempdir().unwrap();
    let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
    let read = |bag: &Path| -> Value {
        let output = Command::new(&python).arg("-c").arg(READER).arg(bag).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let latched = |tenths: i64, text: &str| json!(["/latched", TEXT, tenths * 100_000_000, text]);
    let stream = |tenths: i64| json!(["/stream", TRUTH, tenths * 100_000_000, true]);
    let offers = json!({"/latched": "TRANSIENT_LOCAL", "/stream": "VOLATILE"});
    let found = read(&cut(folder.path()));
    assert_eq!(found, json!([[latched(35, "b"), latched(35, "c"), stream(35), stream(40)], offers]));
    let found = read(&split(folder.path()));
    let messages = [latched(10, "a"), stream(10), stream(15), latched(20, "a"), stream(20), stream(25)];
    let messages = [&messages[..], &[latched(30, "a"), stream(30)]].concat();
    assert_eq!(found, json!([messages, offers]));
}

/// `ros2 bag` with its reader of mcap is in one of the sourced prefixes.
fn rosbag2_is_installed() -> bool {
    let sourced = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    let has = |package: &str| {
        let index = Path::new("share/ament_index/resource_index/packages").join(package);
        std::env::split_paths(&sourced).any(|prefix| prefix.join(&index).exists())
    };
    has("ros2bag") && has("rosbag2_storage_mcap")
}

#[test]
fn ros2_bag_info_tells_what_was_written() {
    if !rosbag2_is_installed() {
        eprintln!("skipped: `ros2 bag` with rosbag2_storage_mcap is not installed, which would read what we wrote");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bags = [(cut(folder.path()), 1, [2, 2], "0.5"), (split(folder.path()), 3, [3, 5], "2.")];
    for (bag, files, [latched, stream], secs) in bags {
        let output = Command::new("ros2").args(["bag", "info"]).arg(&bag).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = bag.file_name().unwrap().to_str().unwrap();
        let mut expected = vec![
            "Storage id: mcap".to_owned(),
            format!("Duration: {secs}"),
            format!("Messages: {} ", latched + stream),
            format!("Topic: /latched | Type: {TEXT} | Count: {latched} | Serialization Format: cdr"),
            format!("Topic: /stream | Type: {TRUTH} | Count: {stream} | Serialization Format: cdr"),
        ];
        expected.extend((0..files).map(|number| format!("{name}_{number}.mcap")));
        for line in expected {
            assert!(words.contains(&line), "{line:?} is not in\n{said}");
        }
    }
}
