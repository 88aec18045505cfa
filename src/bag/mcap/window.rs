//! A file seen through a window that grows while it is read in order, and stays small while it is jumped over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 256 << 10;

/// Random access to a file of fixed size.
pub(super) struct Window<'a> {
    file: &'a File,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
    ahead: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a File, size: u64) -> Self {
        Self { file, size, start: 0, bytes: Vec::new(), ahead: SMALLEST }
    }

    /// The bytes from `offset`; fewer than `len` at the end of the file.
    pub(super) fn at(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let len = len.min(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let have = self.start + self.bytes.len() as u64;
        if offset < self.start || have < offset + len as u64 {
            let in_order = self.start <= offset && offset <= have;
            self.ahead = if in_order { (2 * self.ahead).min(LARGEST) } else { SMALLEST };
            let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.bytes = read_at(self.file, offset, len.max(self.ahead).min(left))?;
            self.start = offset;
        }
        let begin = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.bytes.len());
        let end = (begin + len).min(self.bytes.len());
        Ok(&self.bytes[begin..end])
    }
}

/// Up to `len` bytes from `offset`; fewer if the file has become shorter.
pub(super) fn read_at(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
