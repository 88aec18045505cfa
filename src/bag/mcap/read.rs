//! The messages of an mcap file in order, with the memory of the pieces that overlap in time.

use super::piece::{Entry, Failure, Piece, Unpacked};
use super::scan::Scan;
use crate::bag::damage::Damage;
use crate::bag::storage::{Order, Raw, Selection, Stream};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// What stays in memory of unpacked pieces where they overlap; beyond it, they are unpacked again when they are due.
const RESIDENT_BYTES: usize = if cfg!(test) { 8 << 10 } else { 64 << 20 };

/// A piece that is being read.
struct Open {
    piece: usize,
    /// None: given up for memory.
    held: Option<Held>,
    /// Messages that have been read.
    next: usize,
    /// Of the next one [ns].
    due_ns: i64,
}

/// The wanted messages of a piece in their order, and its bytes.
struct Held {
    bytes: Bytes,
    entries: Vec<Entry>,
}

impl Held {
    fn memory(&self) -> usize {
        self.bytes.len() + self.entries.capacity() * size_of::<Entry>()
    }
}

pub(super) struct Messages {
    scan: Arc<Scan>,
    file: File,
    selection: Selection,
    /// Pieces not yet opened, in the order of their first message.
    pending: VecDeque<usize>,
    /// Slots of pieces being read.
    open: Vec<Option<Open>>,
    /// (time, piece, slot) of the next message of each open piece.
    due: BinaryHeap<Reverse<(i64, usize, usize)>>,
    resident: usize,
    damage: Vec<Damage>,
}

impl Messages {
    pub(super) fn new(scan: Arc<Scan>, file: File, selection: Selection) -> Self {
        let (from, to) = selection.span_ns;
        let wanted = |piece: &Piece| piece.span_ns.0 <= to && from <= piece.span_ns.1;
        let mut pending: Vec<usize> = (0..scan.pieces.len()).filter(|&index| wanted(&scan.pieces[index])).collect();
        if selection.order == Order::Time {
            pending.sort_by_key(|&index| scan.pieces[index].span_ns.0);
        }
        let damage = scan.damage.clone();
        let (open, due) = (Vec::new(), BinaryHeap::new());
        Self { scan, file, selection, pending: pending.into(), open, due, resident: 0, damage }
    }

    fn key(&self, entry: &Entry) -> i64 {
        match self.selection.order {
            Order::Time => entry.time_ns,
            Order::Recorded => 0,
        }
    }

    /// Opens every piece that may hold the next message.
    fn open_due(&mut self) -> Result<()> {
        while let Some(&piece) = self.pending.front() {
            let due = match (self.due.peek(), self.selection.order) {
                (None, _) => true,
                (Some(Reverse((time, ..))), Order::Time) => self.scan.pieces[piece].span_ns.0 <= *time,
                (Some(_), Order::Recorded) => false,
            };
            if !due {
                break;
            }
            self.pending.pop_front();
            if let Some(held) = self.unpack(piece)? {
                self.begin(piece, held);
            }
        }
        Ok(())
    }

    /// The piece, or a damage.
    fn unpack(&mut self, index: usize) -> Result<Option<Held>> {
        let piece = &self.scan.pieces[index];
        match piece.unpack(&self.file, self.scan.size) {
            Ok(unpacked) => {
                // the end that a cut piece lacks was said when it was found
                let lost = unpacked.broken + if piece.cut { 0 } else { unpacked.rest };
                if 0 < lost {
                    let messages =
                        piece.indexed.checked_sub(unpacked.entries.len() as u64).filter(|_| 0 < piece.indexed);
                    self.lose(index, lost as u64, "records in a chunk that are not whole".into(), messages);
                }
                Ok(Some(self.wanted(index, unpacked)))
            }
            Err(Failure::System(error)) => Err(Error::io(&self.scan.path)(error)),
            Err(Failure::Damage(what)) => {
                let messages = (0 < piece.indexed).then_some(piece.indexed);
                self.lose(index, piece.len, what, messages);
                Ok(None)
            }
        }
    }

    /// Of an unpacked piece what is asked for, in its order.
    fn wanted(&mut self, piece: usize, unpacked: Unpacked) -> Held {
        let Unpacked { bytes, mut entries, .. } = unpacked;
        let strangers = entries.iter().filter(|entry| self.scan.topics.of(entry.channel).is_none());
        let (count, lost) = strangers.fold((0, 0), |(count, lost), entry| (count + 1, lost + entry.len() as u64));
        if 0 < count {
            self.lose(piece, lost, "messages of a channel that is nowhere declared".into(), Some(count));
        }
        let (topics, selection) = (&self.scan.topics, &self.selection);
        entries.retain(|entry| topics.of(entry.channel).is_some_and(|topic| selection.wants(topic, entry.time_ns)));
        entries.shrink_to_fit();
        if selection.order == Order::Time {
            entries.sort_by_key(|entry| entry.time_ns); // stable: equal times stay in the order of the file
        }
        Held { bytes, entries }
    }

    fn lose(&mut self, piece: usize, bytes: u64, what: String, messages: Option<u64>) {
        let (file, offset) = (self.scan.path.clone(), self.scan.pieces[piece].offset);
        let damage = Damage { file, offset, what, bytes, messages };
        if !self.damage.contains(&damage) {
            self.damage.push(damage);
        }
    }

    fn begin(&mut self, piece: usize, held: Held) {
        let Some(first) = held.entries.first() else { return };
        let slot = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.due.push(Reverse((self.key(first), piece, slot)));
        self.resident += held.memory();
        self.open[slot] = Some(Open { piece, due_ns: first.time_ns, held: Some(held), next: 0 });
        self.spare(slot);
    }

    /// Gives up what is held, but not that of `slot`, until the rest fits.
    fn spare(&mut self, slot: usize) {
        while RESIDENT_BYTES < self.resident {
            let others = self.open.iter_mut().enumerate().filter(|(index, _)| *index != slot);
            let held = others.filter_map(|(_, open)| open.as_mut().filter(|open| open.held.is_some()));
            match held.max_by_key(|open| open.due_ns).and_then(|open| open.held.take()) {
                Some(held) => self.resident -= held.memory(),
                None => break,
            }
        }
    }

    /// Unpacks what a slot holds again, if it was given up.
    fn hold(&mut self, slot: usize) -> Result<()> {
        let Some(piece) = self.open[slot].as_ref().filter(|open| open.held.is_none()).map(|open| open.piece) else {
            return Ok(());
        };
        let held = self.unpack(piece)?;
        self.resident += held.as_ref().map_or(0, Held::memory);
        if let Some(open) = self.open[slot].as_mut() {
            open.held = held;
        }
        self.spare(slot);
        Ok(())
    }
}

impl Stream for Messages {
    fn next(&mut self) -> Result<Option<Raw>> {
        loop {
            self.open_due()?;
            let Some(Reverse((_, piece, slot))) = self.due.pop() else { return Ok(None) };
            self.hold(slot)?;
            let Some(mut open) = self.open[slot].take() else { continue };
            // a file that has become shorter meanwhile may have less than before
            let Some(held) = &open.held else { continue };
            let Some(entry) = held.entries.get(open.next) else {
                self.resident -= held.memory();
                continue;
            };
            let (time_ns, sent_ns, topic) = (entry.time_ns, entry.sent_ns, self.scan.topics.of(entry.channel));
            let data = entry.slice(&held.bytes);
            open.next += 1;
            match held.entries.get(open.next) {
                Some(next) => {
                    self.due.push(Reverse((self.key(next), piece, slot)));
                    open.due_ns = next.time_ns;
                    self.open[slot] = Some(open);
                }
                None => self.resident -= held.memory(),
            }
            if let Some(topic) = topic {
                return Ok(Some(Raw { topic, time_ns, sent_ns, data }));
            }
        }
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bag::mcap::scan::scan;
    use mcap::records::MessageHeader;
    use mcap::{Compression, WriteOptions};
    use std::collections::BTreeMap;

    /// Chunks of `each` empty messages, all over the same time.
    fn overlapping(chunks: u64, each: u64) -> Vec<u8> {
        let mut out = std::io::Cursor::new(Vec::new());
        let options = WriteOptions::new().compression(Some(Compression::Zstd)).chunk_size(None);
        let mut writer = options.create(&mut out).unwrap();
        let schema = writer.add_schema("a/msg/A", "ros2msg", b"int8 x").unwrap();
        let channel_id = writer.add_channel(schema, "/a", "cdr", &BTreeMap::new()).unwrap();
        for chunk in 0..chunks {
            for at in 0..each {
                let log_time = at * chunks + chunk;
                let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time: log_time };
                writer.write_to_known_channel(&header, &[]).unwrap();
            }
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        out.into_inner()
    }

    #[test]
    fn pieces_that_overlap_take_the_memory_of_one_beyond_the_limit_with_all_that_is_known_of_their_messages() {
        let (chunks, each) = (30, 100);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcap");
        std::fs::write(&path, overlapping(chunks, each)).unwrap();
        let file = File::open(&path).unwrap();
        let scan = Arc::new(scan(&path, &file).unwrap());
        assert_eq!(scan.pieces.len(), chunks as usize);
        let selection = Selection { topics: vec![true], span_ns: (i64::MIN, i64::MAX), order: Order::Time };
        let mut messages = Messages::new(scan, file, selection);
        let one = each as usize * (31 + size_of::<Entry>()) + 200; // a message takes 31 bytes; the first chunk declares
        let mut times = Vec::new();
        while let Some(raw) = messages.next().unwrap() {
            times.push(raw.time_ns);
            let memory = |open: &Open| {
                let held = open.held.as_ref()?;
                Some(held.bytes.len() + held.entries.len() * size_of::<Entry>())
            };
            let held: usize = messages.open.iter().flatten().filter_map(memory).sum();
            assert!(held <= RESIDENT_BYTES + one, "{held}");
        }
        assert_eq!(times, (0..(chunks * each) as i64).collect::<Vec<_>>());
        assert_eq!((messages.damage().len(), messages.resident), (0, 0));
    }
}
