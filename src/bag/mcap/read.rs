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

/// Unpacked bytes that stay in memory where pieces overlap; beyond it, they are unpacked again when they are due.
const RESIDENT_BYTES: usize = if cfg!(test) { 8 << 10 } else { 64 << 20 };

/// A piece that is being read.
struct Open {
    piece: usize,
    /// None: given up for memory.
    bytes: Option<Bytes>,
    entries: Vec<Entry>,
    next: usize,
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
            if let Some(unpacked) = self.unpack(piece)? {
                self.begin(piece, unpacked);
            }
        }
        Ok(())
    }

    /// The piece, or a damage.
    fn unpack(&mut self, index: usize) -> Result<Option<Unpacked>> {
        let piece = &self.scan.pieces[index];
        match piece.unpack(&self.file, self.scan.size) {
            Ok(unpacked) => {
                if 0 < unpacked.rest && !piece.cut {
                    let messages =
                        piece.indexed.checked_sub(unpacked.entries.len() as u64).filter(|_| 0 < piece.indexed);
                    self.lose(index, unpacked.rest as u64, "records in a chunk that are not whole".into(), messages);
                }
                Ok(Some(unpacked))
            }
            Err(Failure::System(error)) => Err(Error::io(&self.scan.path)(error)),
            Err(Failure::Damage(what)) => {
                let messages = (0 < piece.indexed).then_some(piece.indexed);
                self.lose(index, piece.len, what, messages);
                Ok(None)
            }
        }
    }

    fn lose(&mut self, piece: usize, bytes: u64, what: String, messages: Option<u64>) {
        let (file, offset) = (self.scan.path.clone(), self.scan.pieces[piece].offset);
        let damage = Damage { file, offset, what, bytes, messages };
        if !self.damage.contains(&damage) {
            self.damage.push(damage);
        }
    }

    fn begin(&mut self, piece: usize, unpacked: Unpacked) {
        let Unpacked { bytes, mut entries, .. } = unpacked;
        let strangers = entries.iter().filter(|entry| self.scan.topics.of(entry.channel).is_none());
        let (count, lost) = strangers.fold((0, 0), |(count, lost), entry| (count + 1, lost + entry.len() as u64));
        if 0 < count {
            self.lose(piece, lost, "messages of a channel that is nowhere declared".into(), Some(count));
        }
        let (topics, selection) = (&self.scan.topics, &self.selection);
        entries.retain(|entry| topics.of(entry.channel).is_some_and(|topic| selection.wants(topic, entry.time_ns)));
        if selection.order == Order::Time {
            entries.sort_by_key(|entry| entry.time_ns); // stable: equal times stay in the order of the file
        }
        let Some(first) = entries.first() else { return };
        let slot = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.due.push(Reverse((self.key(first), piece, slot)));
        self.resident += bytes.len();
        self.open[slot] = Some(Open { piece, bytes: Some(bytes), entries, next: 0 });
        self.spare(slot);
    }

    /// Gives up unpacked bytes, but not those of `slot`, until the rest fits.
    fn spare(&mut self, slot: usize) {
        while RESIDENT_BYTES < self.resident {
            let others = self.open.iter_mut().enumerate().filter(|(index, _)| *index != slot);
            let held = others.filter_map(|(_, open)| open.as_mut().filter(|open| open.bytes.is_some()));
            let last = held.max_by_key(|open| open.entries.get(open.next).map(|entry| entry.time_ns));
            match last.and_then(|open| open.bytes.take()) {
                Some(bytes) => self.resident -= bytes.len(),
                None => break,
            }
        }
    }

    /// The unpacked bytes of a slot, unpacked again if they were given up.
    fn bytes(&mut self, slot: usize) -> Result<Option<Bytes>> {
        let Some(open) = self.open[slot].as_ref() else { return Ok(None) };
        if let Some(bytes) = &open.bytes {
            return Ok(Some(bytes.clone()));
        }
        let Some(unpacked) = self.unpack(open.piece)? else { return Ok(None) };
        self.resident += unpacked.bytes.len();
        if let Some(open) = self.open[slot].as_mut() {
            open.bytes = Some(unpacked.bytes.clone());
        }
        self.spare(slot);
        Ok(Some(unpacked.bytes))
    }
}

impl Stream for Messages {
    fn next(&mut self) -> Result<Option<Raw>> {
        loop {
            self.open_due()?;
            let Some(Reverse((_, piece, slot))) = self.due.pop() else { return Ok(None) };
            let bytes = self.bytes(slot)?;
            let order = self.selection.order;
            let Some(open) = self.open[slot].as_mut() else { continue };
            let entry = open.entries[open.next];
            open.next += 1;
            match open.entries.get(open.next).filter(|_| bytes.is_some()) {
                Some(next) => {
                    let key = if order == Order::Time { next.time_ns } else { 0 };
                    self.due.push(Reverse((key, piece, slot)));
                }
                None => {
                    self.resident -= open.bytes.as_ref().map_or(0, Bytes::len);
                    self.open[slot] = None;
                }
            }
            if let (Some(bytes), Some(topic)) = (bytes, self.scan.topics.of(entry.channel)) {
                let data = entry.slice(&bytes);
                return Ok(Some(Raw { topic, time_ns: entry.time_ns, sent_ns: entry.sent_ns, data }));
            }
        }
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}
