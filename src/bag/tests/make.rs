//! Small bags, made by the crates themselves.

use crate::bag::{Bag, Damage, Message, Order, Select};
use crate::error::Result;
use mcap::records::MessageHeader;
use mcap::{Compression, WriteOptions};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// Topic (0 or 1), time, payload.
pub(super) type Item = (usize, i64, Vec<u8>);

pub(super) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Texts of random length, one after another.
pub(super) fn items(count: usize) -> Vec<Item> {
    let mut rng = rng(count as u64);
    (0..count)
        .map(|index| {
            let len = rng.random_range(0..60usize);
            let mut data = vec![0, 1, 0, 0];
            data.extend((len as u32 + 1).to_le_bytes());
            data.extend((0..len).map(|_| b'a' + (rng.next_u32() % 26) as u8));
            data.push(0);
            (index % 2, 1_000_000_000 + 1_000_000 * index as i64, data)
        })
        .collect()
}

/// How an mcap file is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) chunks: bool,
    pub(super) zstd: bool,
}

pub(super) const LAYOUTS: [Layout; 3] =
    [Layout { chunks: false, zstd: false }, Layout { chunks: true, zstd: false }, Layout { chunks: true, zstd: true }];

pub(super) fn mcap(items: &[Item], layout: Layout) -> Vec<u8> {
    write(items, options(layout))
}

/// Chunks as rosbag2 writes them if nothing else is asked for: not compressed, without checksums.
pub(super) fn plain_chunks(items: &[Item]) -> Vec<u8> {
    write(items, options(LAYOUTS[1]).calculate_chunk_crcs(false))
}

fn options(layout: Layout) -> WriteOptions {
    WriteOptions::new()
        .profile("ros2")
        .use_chunks(layout.chunks)
        .chunk_size(Some(1500))
        .compression(layout.zstd.then_some(Compression::Zstd))
}

fn write(items: &[Item], options: WriteOptions) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let mut writer = options.create(&mut out).unwrap();
    let schema = writer.add_schema("std_msgs/msg/String", "ros2msg", b"string data").unwrap();
    let channels = ["/a", "/b"].map(|name| writer.add_channel(schema, name, "cdr", &BTreeMap::new()).unwrap());
    for (topic, time, data) in items {
        let log_time = *time as u64;
        let header = MessageHeader { channel_id: channels[*topic], sequence: 0, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, data).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    out.into_inner()
}

pub(super) fn sqlite(path: &Path, items: &[Item]) -> rusqlite::Connection {
    let base = rusqlite::Connection::open(path).unwrap();
    base.execute_batch(
        "PRAGMA synchronous = OFF;
         CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT, offered_qos_profiles TEXT);
         CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
         CREATE INDEX timestamp_idx ON messages (timestamp ASC);
         INSERT INTO topics VALUES(1, '/a', 'std_msgs/msg/String', 'cdr', ''), (2, '/b', 'std_msgs/msg/String', 'cdr', '');",
    )
    .unwrap();
    insert(&base, items);
    base
}

pub(super) fn insert(base: &rusqlite::Connection, items: &[Item]) {
    base.execute_batch("BEGIN").unwrap();
    for (topic, time, data) in items {
        base.execute("INSERT INTO messages VALUES(NULL, ?1, ?2, ?3)", (*topic as i64 + 1, time, data)).unwrap();
    }
    base.execute_batch("COMMIT").unwrap();
}

/// Everything that can be read.
pub(super) fn read(path: &Path) -> Result<(Vec<Item>, Vec<Damage>)> {
    read_in(path, Order::Time)
}

pub(super) fn read_in(path: &Path, order: Order) -> Result<(Vec<Item>, Vec<Damage>)> {
    let bag = Bag::open(path)?;
    let mut messages = bag.read(&Select { order, ..Select::default() })?;
    let mut items = Vec::new();
    while let Some(Message { topic, time_ns, data, .. }) = messages.read()? {
        let topic = usize::from(bag.topics()[topic].name == "/b");
        items.push((topic, time_ns, data.to_vec()));
    }
    Ok((items, messages.damage()))
}
