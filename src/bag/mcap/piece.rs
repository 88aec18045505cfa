//! A piece: one chunk, or a run of messages outside of chunks. What is read and sorted at once.

use super::records::{self, ChunkHead, Compression, HEAD};
use super::resync::CHAIN;
use super::window::read_at;
use crate::bag::storage::unpack_limit;
use bytes::Bytes;
use mcap::records::{Record, op};
use std::fs::File;
use std::io::{self, Read};

/// Where messages stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Of its first record.
    pub(super) offset: u64,
    /// Bytes, heads included, as far as they are in the file.
    pub(super) len: u64,
    /// Times of its messages as stated [ns].
    pub(super) span_ns: (i64, i64),
    /// The chunk; none: records of the file itself.
    pub(super) chunk: Option<ChunkHead>,
    /// The file ends before the piece does.
    pub(super) cut: bool,
    /// Messages by its message indexes; 0: not indexed.
    pub(super) indexed: u64,
}

/// A message in an unpacked piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time_ns: i64,
    pub(super) sent_ns: i64,
    pub(super) channel: u16,
    begin: usize,
    end: usize,
}

/// An unpacked piece.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    pub(super) bytes: Bytes,
    /// Messages in the order of the file.
    pub(super) entries: Vec<Entry>,
    /// Schemas and channels in it.
    pub(super) declared: Vec<Record<'static>>,
    /// Unpacked bytes that are no record, before others that are.
    pub(super) broken: usize,
    /// Unpacked bytes at the end that are no whole record.
    pub(super) rest: usize,
}

impl Unpacked {
    /// Takes a record in, whose body ends at `end`; whether it could.
    fn take(&mut self, opcode: u8, body: &[u8], end: usize) -> bool {
        if opcode != op::MESSAGE {
            return records::parse(opcode, body).map(|record| self.declared.push(record)).is_some();
        }
        let Some(head) = records::message(body) else { return false };
        let begin = end - body.len() + records::MESSAGE;
        self.entries.push(Entry { time_ns: head.time_ns, sent_ns: head.sent_ns, channel: head.channel, begin, end });
        true
    }
}

impl Entry {
    /// Its payload in the unpacked bytes of its piece.
    pub(super) fn slice(&self, bytes: &Bytes) -> Bytes {
        bytes.slice(self.begin.min(bytes.len())..self.end.min(bytes.len()))
    }

    /// Bytes of its payload.
    pub(super) fn len(&self) -> usize {
        self.end - self.begin
    }
}

/// Why a piece is not to be had.
pub(super) enum Failure {
    System(io::Error),
    Damage(String),
}

impl Piece {
    /// Reads and unpacks. A piece whose bytes are all there but do not fit is refused whole; of a cut one the front is kept.
    pub(super) fn unpack(&self, file: &File, file_bytes: u64) -> Result<Unpacked, Failure> {
        let len = usize::try_from(self.len).map_err(|_| Failure::Damage(format!("{} bytes in a piece", self.len)))?;
        let stored = Bytes::from(read_at(file, self.offset, len).map_err(Failure::System)?);
        let Some(head) = self.chunk else { return Ok(walk(stored)) };
        let stored = stored.slice((HEAD + head.at).min(stored.len())..);
        let limit = unpack_limit(file_bytes);
        if limit < head.unpacked {
            return Err(Failure::Damage(format!("a chunk of {} unpacked bytes; {limit} are the limit", head.unpacked)));
        }
        let (bytes, failure) = match head.compression {
            Compression::None => (stored, None),
            Compression::Zstd => unpack(zstd::stream::read::Decoder::with_buffer(&stored[..]), head.unpacked),
            Compression::Lz4 => unpack(Ok(lz4_flex::frame::FrameDecoder::new(&stored[..])), head.unpacked),
        };
        if !self.cut {
            if let Some(failure) = failure {
                return Err(Failure::Damage(format!("a chunk that cannot be unpacked ({failure})")));
            }
            if bytes.len() as u64 != head.unpacked {
                let (found, stated) = (bytes.len(), head.unpacked);
                return Err(Failure::Damage(format!("a chunk of {found} unpacked bytes that should have {stated}")));
            }
            if head.crc != 0 && crc32fast::hash(&bytes) != head.crc {
                return Err(Failure::Damage("a chunk whose checksum is wrong".into()));
            }
        }
        Ok(walk(bytes))
    }
}

/// As much as comes out, at most one byte more than stated, and why it ended early.
fn unpack(decoder: io::Result<impl Read>, stated: u64) -> (Bytes, Option<io::Error>) {
    const RESERVED: u64 = 8 << 20;
    let mut bytes = Vec::with_capacity(stated.min(RESERVED) as usize);
    let end = decoder.and_then(|decoder| decoder.take(stated.saturating_add(1)).read_to_end(&mut bytes));
    (bytes.into(), end.err())
}

/// Finds the records. A piece has schemas, channels and messages and nothing else (specification, Chunk); behind what is none, reading goes
/// on at the next place where records stand.
fn walk(bytes: Bytes) -> Unpacked {
    let mut unpacked = Unpacked::default();
    let mut at = 0;
    while at < bytes.len() {
        let end = whole(&bytes, at);
        if let Some(end) = end.filter(|&end| unpacked.take(bytes[at], &bytes[at + HEAD..end], end)) {
            at = end;
            continue;
        }
        // the length of a declaration that does not parse is believed, so that none is parsed twice
        let next = end.unwrap_or_else(|| onward(&bytes, at));
        *(if next < bytes.len() { &mut unpacked.broken } else { &mut unpacked.rest }) += next - at;
        at = next;
    }
    unpacked.bytes = bytes;
    unpacked
}

/// The end of a record that may stand at `at`, if it is whole.
fn whole(bytes: &[u8], at: usize) -> Option<usize> {
    let (opcode, len) = records::head(bytes.get(at..)?)?;
    let end = usize::try_from(len).ok()?.checked_add(at + HEAD).filter(|&end| end <= bytes.len())?;
    let fits = match opcode {
        op::MESSAGE => at + HEAD + records::MESSAGE <= end,
        opcode => opcode == op::SCHEMA || opcode == op::CHANNEL,
    };
    fits.then_some(end)
}

/// Whether records in a row stand at `at`, or the end.
fn stand(bytes: &[u8], at: usize, chain: usize) -> bool {
    at == bytes.len() || chain == 0 || whole(bytes, at).is_some_and(|end| stand(bytes, end, chain - 1))
}

/// Where reading goes on: behind the broken record, if its length still tells where that is; else at the next message.
fn onward(bytes: &[u8], at: usize) -> usize {
    let end = records::head(&bytes[at..]).and_then(|(_, len)| usize::try_from(len).ok()?.checked_add(at + HEAD));
    if let Some(end) = end.filter(|&end| end <= bytes.len() && stand(bytes, end, CHAIN)) {
        return end;
    }
    let found = memchr::memchr_iter(op::MESSAGE, &bytes[at + 1..]).map(|index| at + 1 + index);
    found.into_iter().find(|&next| stand(bytes, next, CHAIN)).unwrap_or(bytes.len())
}
