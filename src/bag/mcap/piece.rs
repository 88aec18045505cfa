//! A piece: one chunk, or a run of messages outside of chunks. What is read and sorted at once.

use super::records::{self, ChunkHead, Compression, HEAD};
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
    /// Unpacked bytes at the end that are no whole record.
    pub(super) rest: usize,
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

/// Finds the records; ends at the first that is not whole.
fn walk(bytes: Bytes) -> Unpacked {
    let mut unpacked = Unpacked::default();
    let mut at = 0;
    while at < bytes.len() {
        let Some((opcode, len)) = records::head(&bytes[at..]) else { break };
        let begin = at + HEAD;
        let Some(end) =
            usize::try_from(len).ok().and_then(|len| begin.checked_add(len)).filter(|&end| end <= bytes.len())
        else {
            break;
        };
        let body = &bytes[begin..end];
        match opcode {
            op::MESSAGE => match records::message(body) {
                Some(head) => unpacked.entries.push(Entry {
                    time_ns: head.time_ns,
                    sent_ns: head.sent_ns,
                    channel: head.channel,
                    begin: begin + records::MESSAGE,
                    end,
                }),
                None => break,
            },
            op::SCHEMA | op::CHANNEL => match mcap::parse_record(opcode, body) {
                Ok(record) => unpacked.declared.push(record.into_owned()),
                Err(_) => break,
            },
            opcode if records::known(opcode) => {}
            _ => break,
        }
        at = end;
    }
    unpacked.rest = bytes.len() - at;
    unpacked.bytes = bytes;
    unpacked
}
