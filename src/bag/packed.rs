//! What is compressed by itself, files and messages, known by how it begins: no mcap file, no database and no CDR message begins so.

use std::io::{self, BufRead, Read};

/// How.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packed {
    Zstd,
    Lz4,
}

impl Packed {
    /// By the first bytes.
    pub(super) fn of(front: &[u8]) -> Option<Self> {
        match front {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            _ => None,
        }
    }

    /// What comes out.
    pub(super) fn open<'a>(self, source: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
            Self::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(source)),
        })
    }
}
