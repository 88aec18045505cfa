//! One walk over the records of a file: its pieces, its topics, and what is broken. Needs no index and no end.

use super::piece::{Failure, Piece};
use super::records::{self, HEAD, MAGIC};
use super::resync::resync;
use super::topics::Topics;
use super::window::Window;
use crate::bag::damage::Damage;
use crate::error::{Error, Result};
use mcap::records::{Record, op};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A run of messages outside of chunks becomes a piece of about this many bytes.
const LOOSE_BYTES: u64 = 1 << 20;

/// What the walk found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) pieces: Vec<Piece>,
    pub(super) topics: Topics,
    pub(super) damage: Vec<Damage>,
    /// Messages by the statistics at the end.
    pub(super) stated: Option<u64>,
}

/// A step of the walk.
enum Step {
    To(u64),
    End,
    /// No record stands here.
    Broken,
}

struct Walk<'a> {
    scan: Scan,
    window: Window<'a>,
    loose: Option<Piece>,
    /// Chunks and channels by the statistics.
    summary: Option<(u32, u32)>,
    /// All messages have been passed.
    data_end: bool,
}

/// Walks over the file. Refuses what does not begin as mcap.
pub(super) fn scan(path: &Path, file: &File) -> Result<Scan> {
    let size = file.metadata().map_err(Error::io(path))?.len();
    let scan = Scan {
        path: path.to_owned(),
        size,
        pieces: Vec::new(),
        topics: Topics::default(),
        damage: Vec::new(),
        stated: None,
    };
    let mut walk = Walk { scan, window: Window::new(file, size), loose: None, summary: None, data_end: false };
    walk.run()?;
    let (summary, mut scan) = (walk.summary, walk.scan);
    let chunks = scan.pieces.iter().filter(|piece| piece.chunk.is_some()).count() as u64;
    let whole = scan.damage.is_empty();
    if !(whole && summary == Some((u32::try_from(chunks).unwrap_or(u32::MAX), scan.topics.channel_count()))) {
        unpack_all(&mut scan, file)?;
    }
    Ok(scan)
}

/// Where the summary does not tell the topics, the chunks do; and then their times are known rather than stated.
fn unpack_all(scan: &mut Scan, file: &File) -> Result<()> {
    let mut pieces = std::mem::take(&mut scan.pieces);
    for piece in &mut pieces {
        match piece.unpack(file, scan.size) {
            Ok(unpacked) => {
                let times = unpacked.entries.iter().map(|entry| entry.time_ns);
                piece.span_ns = (times.clone().min().unwrap_or(i64::MAX), times.max().unwrap_or(i64::MIN));
                for record in unpacked.declared {
                    scan.topics.declare(record);
                }
            }
            Err(Failure::System(error)) => return Err(Error::io(&scan.path)(error)),
            Err(Failure::Damage(_)) => {} // said when it is read
        }
    }
    scan.pieces = pieces;
    Ok(())
}

impl Walk<'_> {
    fn run(&mut self) -> Result<()> {
        if self.at(0, MAGIC.len())? != MAGIC {
            let path = self.scan.path.display();
            return Err(Error::invalid(format!("{path} does not begin as an mcap file")));
        }
        let mut at = MAGIC.len() as u64;
        loop {
            at = match self.step(at)? {
                Step::To(next) => next,
                Step::End => break,
                Step::Broken => match self.broken(at)? {
                    Some(next) => next,
                    None => break,
                },
            };
        }
        self.close_loose();
        Ok(())
    }

    fn at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        self.window.at(offset, len).map_err(Error::io(&self.scan.path))
    }

    fn step(&mut self, at: u64) -> Result<Step> {
        if self.scan.size <= at {
            return Ok(Step::Broken);
        }
        let Some((opcode, len)) = records::head(self.at(at, HEAD)?) else { return Ok(Step::Broken) };
        let body = at + HEAD as u64;
        let Some(end) = body.checked_add(len).filter(|&end| end <= self.scan.size) else {
            return self.cut_chunk(at, opcode, len);
        };
        let summary = matches!(
            opcode,
            op::CHUNK_INDEX | op::ATTACHMENT_INDEX | op::STATISTICS | op::METADATA_INDEX | op::SUMMARY_OFFSET
        );
        let misplaced = (opcode == op::HEADER && at != MAGIC.len() as u64) || (summary && !self.data_end);
        if !records::known(opcode) || misplaced {
            return Ok(Step::Broken);
        }
        match opcode {
            op::MESSAGE => {
                let Some(head) = records::message(self.at(body, records::MESSAGE.min(len as usize))?) else {
                    return Ok(Step::Broken);
                };
                self.add_loose(at, end, head.time_ns);
                return Ok(Step::To(end));
            }
            op::CHUNK => {
                let head = self.at(body, records::CHUNK_HEAD.min(len as usize))?;
                let Some(head) = records::chunk(head, len) else { return Ok(Step::Broken) };
                self.close_loose();
                let span_ns = (head.start_ns, head.end_ns);
                self.scan.pieces.push(Piece {
                    offset: at,
                    len: end - at,
                    span_ns,
                    chunk: Some(head),
                    cut: false,
                    indexed: 0,
                });
            }
            op::MESSAGE_INDEX => {
                let Some(count) = records::indexed(self.at(body, 6.min(len as usize))?, len) else {
                    return Ok(Step::Broken);
                };
                if let Some(piece) = self.scan.pieces.last_mut() {
                    piece.indexed += count;
                }
            }
            op::SCHEMA | op::CHANNEL | op::STATISTICS => {
                let Some(record) = records::parse(opcode, self.at(body, len as usize)?) else {
                    return Ok(Step::Broken);
                };
                match record {
                    Record::Statistics(statistics) => {
                        self.scan.stated = Some(statistics.message_count);
                        self.summary = Some((statistics.chunk_count, statistics.channel_count));
                    }
                    record => self.scan.topics.declare(record),
                }
            }
            op::DATA_END => self.data_end = true,
            op::FOOTER => return self.footer(len, end),
            _ => {}
        }
        Ok(Step::To(end))
    }

    /// The end of a whole file, if it is one.
    fn footer(&mut self, len: u64, end: u64) -> Result<Step> {
        let marked = self.at(end, MAGIC.len())? == MAGIC;
        if len != records::FOOTER || !(marked || self.data_end) {
            return Ok(Step::Broken);
        }
        if !marked {
            self.lose(end, self.scan.size - end, "the mark at the end is missing", Some(0));
        } else if end + (MAGIC.len() as u64) < self.scan.size {
            let end = end + MAGIC.len() as u64;
            self.lose(end, self.scan.size - end, "bytes stand behind the end", Some(0));
        }
        Ok(Step::End)
    }

    /// A chunk that the file ends in: what is there of it may hold whole messages.
    fn cut_chunk(&mut self, at: u64, opcode: u8, len: u64) -> Result<Step> {
        if opcode != op::CHUNK || self.data_end {
            return Ok(Step::Broken);
        }
        let head = records::chunk(self.at(at + HEAD as u64, records::CHUNK_HEAD)?, len);
        let Some(head) = head else { return Ok(Step::Broken) };
        self.close_loose();
        let (len, span_ns) = (self.scan.size - at, (head.start_ns, head.end_ns));
        self.scan.pieces.push(Piece { offset: at, len, span_ns, chunk: Some(head), cut: true, indexed: 0 });
        let what = "the file ends inside a chunk: it is still being written, or its recorder was killed";
        self.lose(at, head.stored.saturating_add((HEAD + head.at) as u64) - len, what, None);
        Ok(Step::End)
    }

    /// Goes on behind damage, at the next place that reads as a record.
    fn broken(&mut self, at: u64) -> Result<Option<u64>> {
        self.close_loose();
        let messages = self.data_end.then_some(0); // behind it there are none
        let next = if self.data_end { Ok(None) } else { self.resync(at + 1) }?;
        let end = next.unwrap_or(self.scan.size);
        let what = match next {
            Some(_) => "bytes that are no record",
            None => "the file ends without its end: it is still being written, or its recorder was killed",
        };
        self.lose(at, end.saturating_sub(at), what, messages);
        Ok(next)
    }

    fn resync(&mut self, at: u64) -> Result<Option<u64>> {
        resync(&mut self.window, at, self.scan.size).map_err(Error::io(&self.scan.path))
    }

    fn lose(&mut self, offset: u64, bytes: u64, what: &str, messages: Option<u64>) {
        let file = self.scan.path.clone();
        self.scan.damage.push(Damage { file, offset, what: what.into(), bytes, messages });
    }

    fn add_loose(&mut self, at: u64, end: u64, time_ns: i64) {
        let full = |piece: &Piece| LOOSE_BYTES < end - piece.offset || piece.offset + piece.len != at;
        if self.loose.as_ref().is_some_and(full) {
            self.close_loose();
        }
        let piece = self.loose.get_or_insert(Piece {
            offset: at,
            len: 0,
            span_ns: (time_ns, time_ns),
            chunk: None,
            cut: false,
            indexed: 0,
        });
        piece.len = end - piece.offset;
        piece.span_ns = (piece.span_ns.0.min(time_ns), piece.span_ns.1.max(time_ns));
    }

    fn close_loose(&mut self) {
        self.scan.pieces.extend(self.loose.take());
    }
}
