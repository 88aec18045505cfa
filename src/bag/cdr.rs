//! Encoded values, one after another: XCDR1, and XCDR2 for plain (final) types, in either byte order.
//! Sources: OMG DDS-XTypes 1.3, 7.4.3; DDSI-RTPS 2.5, 10.5 (the four bytes before the data).

/// Where reading stands. Positions count from behind the four bytes of the header, as alignment does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'de> {
    bytes: &'de [u8],
    at: usize,
    big_endian: bool,
    /// Nothing is aligned to more than this.
    max_align: usize,
}

macro_rules! numbers {
    ($($name:ident: $kind:ty),*) => { $(
        #[inline]
        pub(super) fn $name(&mut self) -> Result<$kind, String> {
            let bytes = self.aligned()?;
            Ok(if self.big_endian { <$kind>::from_be_bytes(bytes) } else { <$kind>::from_le_bytes(bytes) })
        }
    )* };
}

impl<'de> Cursor<'de> {
    /// Of a whole message. Refuses encodings for types that may grow.
    pub(super) fn new(message: &'de [u8]) -> Result<Self, String> {
        let Some((head, bytes)) = message.split_at_checked(4) else {
            return Err(format!("{} bytes are no CDR message: 4 are its header alone", message.len()));
        };
        let (big_endian, max_align) = match (head[0], head[1]) {
            (0, 0) => (true, 8),
            (0, 1) => (false, 8),
            (0, 6) => (true, 4),
            (0, 7) => (false, 4),
            (first, second) => return Err(format!("the encoding {first:#04x}{second:02x} is not plain CDR")),
        };
        Ok(Self { bytes, at: 0, big_endian, max_align })
    }

    numbers!(i8: i8, u8: u8, i16: i16, u16: u16, i32: i32, u32: u32, i64: i64, u64: u64, f32: f32, f64: f64);

    /// Bytes that have not been read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'de [u8], String> {
        let taken = self.bytes.get(self.at..).and_then(|left| left.get(..count)).ok_or_else(|| self.short(count))?;
        self.at += count;
        Ok(taken)
    }

    /// Goes to the next multiple of the size of a number.
    #[inline]
    pub(super) fn align(&mut self, size: usize) -> Result<(), String> {
        let at = self.multiple(size);
        if self.bytes.len() < at {
            return Err(self.short(at - self.at));
        }
        self.at = at;
        Ok(())
    }

    #[inline]
    fn aligned<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let at = self.multiple(N);
        let number = self.bytes.get(at..).and_then(|left| left.first_chunk()).ok_or_else(|| self.short(N))?;
        self.at = at + N;
        Ok(*number)
    }

    /// The next multiple of a size, which is a power of two.
    #[inline]
    fn multiple(&self, size: usize) -> usize {
        let align = size.min(self.max_align);
        (self.at + align - 1) & !(align - 1)
    }

    #[cold]
    fn short(&self, count: usize) -> String {
        format!("it ends at byte {}, {count} more are needed", self.bytes.len())
    }

    /// A text: its length with the zero at its end, then both. An empty one may lack the zero.
    pub(super) fn text(&mut self) -> Result<&'de str, String> {
        let len = self.u32()? as usize;
        let bytes = self.take(len)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8".to_owned())
    }

    /// How many elements follow. Refuses more than there are bytes for.
    pub(super) fn length(&mut self, smallest: usize) -> Result<usize, String> {
        let count = self.u32()? as usize;
        self.room(count, smallest).map(|()| count)
    }

    /// Refuses more elements than there are bytes for.
    pub(super) fn room(&self, count: usize, smallest: usize) -> Result<(), String> {
        if self.left() / smallest < count {
            return Err(format!("{count} elements are promised, and {} bytes follow", self.left()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_behind_the_header() {
        // u8 1, then f64 1.0: seven bytes of padding in XCDR1, three in XCDR2 (XTypes 1.3, 7.4.3.2.3).
        let one = 1.0f64.to_le_bytes();
        let xcdr1 = [&[0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], &one[..]].concat();
        let xcdr2 = [&[0, 7, 0, 0, 1, 0, 0, 0], &one[..]].concat();
        for message in [xcdr1, xcdr2] {
            let mut cursor = Cursor::new(&message).unwrap();
            assert_eq!((cursor.u8(), cursor.f64(), cursor.left()), (Ok(1), Ok(1.0), 0));
        }
    }

    #[test]
    fn both_byte_orders_are_read() {
        let mut cursor = Cursor::new(&[0, 0, 0, 0, 0, 0, 1, 2]).unwrap();
        assert_eq!(cursor.u32(), Ok(0x102));
        let mut cursor = Cursor::new(&[0, 1, 0, 0, 2, 1, 0, 0]).unwrap();
        assert_eq!(cursor.u32(), Ok(0x102));
    }

    #[test]
    fn texts_end_with_a_zero_that_an_empty_one_may_lack() {
        let mut cursor = Cursor::new(&[0, 1, 0, 0, 3, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap();
        assert_eq!((cursor.text(), cursor.text(), cursor.text()), (Ok("ab"), Ok(""), Ok("")));
        assert!(Cursor::new(&[0, 1, 0, 0, 1, 0, 0, 0, 0xff]).unwrap().text().is_err());
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(Cursor::new(&[0, 1, 0]).is_err());
        assert!(Cursor::new(&[0, 3, 0, 0]).is_err(), "a parameter list");
        assert!(Cursor::new(&[0, 1, 0, 0, 1]).unwrap().u16().is_err());
        assert!(Cursor::new(&[0, 1, 0, 0, 255, 255, 255, 255, 1]).unwrap().length(1).is_err());
    }
}
