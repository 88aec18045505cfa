//! Records of mcap, as far as they are walked over by hand. The crate's readers stop at the first damage; these go on.
//! Source: the MCAP specification, <https://mcap.dev/spec>.

use mcap::records::{Record, op};

/// At both ends of a file.
pub(super) const MAGIC: &[u8] = mcap::MAGIC;
/// Opcode and length.
pub(super) const HEAD: usize = 9;
/// Channel, sequence, log time, publish time.
pub(super) const MESSAGE: usize = 22;
/// Start of the summary and of its offsets, checksum.
pub(super) const FOOTER: u64 = 20;
/// Fields of the statistics before the counts by channel.
const STATISTICS: usize = 42;
/// Fields of a chunk before its compression.
const CHUNK: usize = 28;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// A time of mcap as ROS has it; the last moment stands for all later ones.
fn time(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

/// Opcode and length of a record.
pub(super) fn head(bytes: &[u8]) -> Option<(u8, u64)> {
    Some((*bytes.first()?, u64_at(bytes, 1)?))
}

/// What stands before the data of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHead {
    pub(super) channel: u16,
    pub(super) time_ns: i64,
    pub(super) sent_ns: i64,
}

/// From the body of a message.
pub(super) fn message(body: &[u8]) -> Option<MessageHead> {
    let channel = u16::from_le_bytes(body.get(..2)?.try_into().ok()?);
    Some(MessageHead { channel, time_ns: time(u64_at(body, 6)?), sent_ns: time(u64_at(body, 14)?) })
}

/// How a chunk is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zstd,
    Lz4,
}

/// What stands before the records of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkHead {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) unpacked: u64,
    /// 0: not computed.
    pub(super) crc: u32,
    pub(super) compression: Compression,
    /// Where the records begin in the body.
    pub(super) at: usize,
    /// Length of the records as stored.
    pub(super) stored: u64,
}

/// Bytes that are enough for [`chunk`].
pub(super) const CHUNK_HEAD: usize = CHUNK + 4 + 4 + 8;

/// From the body of a chunk of `len` bytes, of which the first [`CHUNK_HEAD`] are enough. None unless the lengths agree.
pub(super) fn chunk(body: &[u8], len: u64) -> Option<ChunkHead> {
    let name_len = u32_at(body, CHUNK)? as usize;
    let name = body.get(CHUNK + 4..(CHUNK + 4).checked_add(name_len)?)?;
    let compression = match name {
        b"" => Compression::None,
        b"zstd" => Compression::Zstd,
        b"lz4" => Compression::Lz4,
        _ => return None,
    };
    let at = CHUNK + 4 + name_len + 8;
    let stored = u64_at(body, at - 8)?;
    let (start_ns, end_ns) = (time(u64_at(body, 0)?), time(u64_at(body, 8)?));
    let head =
        ChunkHead { start_ns, end_ns, unpacked: u64_at(body, 16)?, crc: u32_at(body, 24)?, compression, at, stored };
    (stored.checked_add(at as u64)? == len).then_some(head)
}

/// Messages that a message index of `len` bytes lists, from the first 6 of them. None unless the lengths agree.
pub(super) fn indexed(body: &[u8], len: u64) -> Option<u64> {
    let listed = u64::from(u32_at(body, 2)?);
    (listed + 6 == len).then_some(listed / 16)
}

/// A schema, a channel or the statistics. The crate reserves what a length says before it reads so much: that they end within the record is
/// looked at before.
pub(super) fn parse(opcode: u8, body: &[u8]) -> Option<Record<'static>> {
    let (mut rest, texts) = match opcode {
        op::SCHEMA => (body.get(2..)?, 3),
        op::CHANNEL => (body.get(4..)?, 3),
        _ => (body.get(STATISTICS..)?, 1),
    };
    let mut last = rest;
    for _ in 0..texts {
        last = text(&mut rest)?;
    }
    while opcode == op::CHANNEL && !last.is_empty() {
        text(&mut last)?; // names and values of its metadata
    }
    mcap::parse_record(opcode, body).map(Record::into_owned).ok()
}

/// Takes bytes behind their number.
fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (text, behind) = rest.get(4..)?.split_at_checked(u32_at(rest, 0)? as usize)?;
    *rest = behind;
    Some(text)
}

/// Whether a record may have this opcode: those of the specification and private ones.
pub(super) fn known(opcode: u8) -> bool {
    (op::HEADER..=op::DATA_END).contains(&opcode) || 0x80 <= opcode
}
