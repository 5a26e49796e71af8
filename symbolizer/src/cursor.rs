//! Little-endian numbers and strings out of a piece of a file, one after the other, never past its end.

/// What is left to read of some bytes.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// A cursor that starts `at` bytes into `bytes`; `None` when that is past the end.
    pub(crate) fn starting_at(bytes: &'b [u8], at: usize) -> Option<Self> {
        (at <= bytes.len()).then_some(Cursor { bytes, at })
    }

    /// How many bytes have been read or skipped.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(crate) fn skip(&mut self, length: usize) -> Option<()> {
        self.take(length).map(|_| ())
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// A string that ends with a zero byte, without that byte.
    pub(crate) fn string(&mut self) -> Option<&'b [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        rest.get(..length)
    }

    /// Skips to the next multiple of `alignment` from the start of the bytes, or to their end.
    pub(crate) fn align(&mut self, alignment: usize) {
        self.at = self.at.next_multiple_of(alignment).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn numbers_strings_and_the_end() {
        let mut cursor = Cursor::new(b"\x01\x02\x00ab\0\xff\xff\xff");
        assert_eq!((cursor.u8(), cursor.u16()), (Some(1), Some(2)));
        assert_eq!(cursor.string(), Some(&b"ab"[..]));
        // Neither a number nor a string that does not end is read in part.
        assert_eq!((cursor.u32(), cursor.string(), cursor.left()), (None, None, 3));
        cursor.align(4);
        assert_eq!((cursor.at(), cursor.left(), cursor.take(usize::MAX)), (8, 1, None));
        assert_eq!(cursor.skip(1), Some(()));
        cursor.align(4);
        assert_eq!((cursor.at(), cursor.left()), (9, 0));
        assert!(Cursor::starting_at(b"a", 2).is_none());
    }
}
