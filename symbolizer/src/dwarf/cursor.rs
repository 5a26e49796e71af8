//! Reading numbers and strings from a piece of a section.

use gimli::RunTimeEndian;

use super::fuel::{Fault, Spot};

/// A place in a piece of a section, from where on it is read. Reading past the end of the piece is a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Where the piece starts.
    start: Spot,
    is_big: bool,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8], start: Spot, endian: RunTimeEndian) -> Self {
        Cursor { bytes, at: 0, start, is_big: endian == RunTimeEndian::Big }
    }

    /// Offset in the section of what is read next.
    pub(super) fn offset(&self) -> u64 {
        self.start.offset.saturating_add(self.at as u64)
    }

    /// Offset in the piece of what is read next.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Ends the piece `length` bytes from here.
    pub(super) fn truncate(&mut self, length: u64) -> Result<(), Fault> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        self.bytes = end.and_then(|end| self.bytes.get(..end)).ok_or_else(|| self.cut_short())?;
        Ok(())
    }

    /// Goes to an offset in the piece.
    #[inline]
    pub(super) fn seek(&mut self, position: usize) -> Result<(), Fault> {
        if position > self.bytes.len() {
            return Err(self.cut_short());
        }
        self.at = position;
        Ok(())
    }

    #[inline]
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), Fault> {
        if bytes > self.left() as u64 {
            return Err(self.cut_short());
        }
        self.at += bytes as usize;
        Ok(())
    }

    #[cold]
    fn cut_short(&self) -> Fault {
        Fault::CutShort(Spot { section: self.start.section, offset: self.offset() })
    }

    /// A fault at the present place.
    #[cold]
    pub(super) fn damaged(&self, what: &'static str) -> Fault {
        Fault::Damaged(Spot { section: self.start.section, offset: self.offset() }, what)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, _) = self.bytes[self.at..].split_first_chunk::<N>().ok_or_else(|| self.cut_short())?;
        self.at += N;
        Ok(*array)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        let array = self.array()?;
        Ok(if self.is_big { u16::from_be_bytes(array) } else { u16::from_le_bytes(array) })
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        let array = self.array()?;
        Ok(if self.is_big { u32::from_be_bytes(array) } else { u32::from_le_bytes(array) })
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        let array = self.array()?;
        Ok(if self.is_big { u64::from_be_bytes(array) } else { u64::from_le_bytes(array) })
    }

    /// A number of `size` bytes.
    #[inline]
    pub(super) fn uint(&mut self, size: u8) -> Result<u64, Fault> {
        match size {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            3 => {
                let [a, b, c] = self.array()?;
                let [low, high] = if self.is_big { [c, a] } else { [a, c] };
                Ok(u64::from(low) | u64::from(b) << 8 | u64::from(high) << 16)
            }
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => Err(self.damaged("a number of an unusual size")),
        }
    }

    /// An offset in a section or a length: eight bytes in the 64-bit format, else four.
    #[inline]
    pub(super) fn word(&mut self, is_64: bool) -> Result<u64, Fault> {
        if is_64 { self.u64() } else { self.u32().map(u64::from) }
    }

    /// The length that a unit, a line table or a set of any kind starts with, and whether it is in the 64-bit format.
    pub(super) fn initial_length(&mut self) -> Result<(u64, bool), Fault> {
        match self.u32()? {
            u32::MAX => Ok((self.u64()?, true)),
            0xffff_fff0.. => Err(self.damaged("a length that is reserved")),
            length => Ok((length.into(), false)),
        }
    }

    /// An unsigned LEB128 number; bits beyond 64 are dropped.
    #[inline]
    pub(super) fn uleb(&mut self) -> Result<u64, Fault> {
        // Nearly all take one byte.
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.long_uleb(),
        }
    }

    fn long_uleb(&mut self) -> Result<u64, Fault> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }

    /// A signed LEB128 number; bits beyond 64 are dropped.
    #[inline]
    pub(super) fn sleb(&mut self) -> Result<i64, Fault> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                let is_negative = byte & 0x40 != 0 && shift < 64;
                return Ok(if is_negative { value | u64::MAX << shift } else { value } as i64);
            }
        }
    }

    /// Skips a LEB128 number.
    #[inline]
    pub(super) fn skip_leb(&mut self) -> Result<(), Fault> {
        while self.u8()? >= 0x80 {}
        Ok(())
    }

    /// The string up to the next zero, cut to `most` bytes.
    pub(super) fn string(&mut self, most: usize) -> Result<&'b [u8], Fault> {
        let rest = &self.bytes[self.at..];
        let searched = &rest[..rest.len().min(most)];
        match searched.iter().position(|&byte| byte == 0) {
            Some(length) => {
                self.at += length + 1;
                Ok(&rest[..length])
            }
            None if searched.len() == most => Ok(searched),
            None => Err(self.cut_short()),
        }
    }

    /// Skips a string and the zero that ends it; returns its length without that.
    pub(super) fn skip_string(&mut self) -> Result<usize, Fault> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == 0).ok_or_else(|| self.cut_short())?;
        self.at += length + 1;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;
    use crate::dwarf::fuel::{Fault, Spot};
    use gimli::RunTimeEndian;

    const START: Spot = Spot { section: ".test", offset: 0x100 };

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, START, RunTimeEndian::Little)
    }

    #[test]
    fn numbers_of_both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let mut little = cursor(&bytes);
        assert_eq!((little.u8(), little.u16(), little.uint(3)), (Ok(1), Ok(0x0302), Ok(0x06_0504)));
        assert_eq!(
            (little.u32(), little.u8()),
            (Ok(0x0a09_0807), Err(Fault::CutShort(Spot { offset: 0x10a, ..START })))
        );
        let mut big = Cursor::new(&bytes, START, RunTimeEndian::Big);
        assert_eq!((big.u16(), big.uint(3), big.u32()), (Ok(0x0102), Ok(0x03_0405), Ok(0x0607_0809)));
    }

    #[test]
    fn leb128_of_any_length() {
        let mut numbers = cursor(&[0x7f, 0x80, 0x01, 0xe5, 0x8e, 0x26]);
        assert_eq!((numbers.uleb(), numbers.uleb(), numbers.uleb()), (Ok(127), Ok(128), Ok(624_485)));
        let mut numbers = cursor(&[0x7f, 0x3f, 0xc0, 0xbb, 0x78]);
        assert_eq!((numbers.sleb(), numbers.sleb(), numbers.sleb()), (Ok(-1), Ok(63), Ok(-123_456)));
        let mut long = [0x80; 1000];
        long[999] = 0x7f;
        assert_eq!((cursor(&long).uleb(), cursor(&long).sleb()), (Ok(0), Ok(0)));
        assert_eq!(cursor(&[0xff; 20]).uleb(), Err(Fault::CutShort(Spot { offset: 0x114, ..START })));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!((cursor(&most).uleb(), cursor(&most[..9]).uleb().is_err()), (Ok(u64::MAX), true));
    }

    #[test]
    fn nothing_reads_past_the_end_of_the_piece() {
        let mut piece = cursor(b"ab\0cd\0");
        assert_eq!(piece.truncate(7), Err(Fault::CutShort(START)));
        piece.truncate(5).expect("shorter");
        assert_eq!(piece.skip_string(), Ok(2));
        assert!(piece.skip_string().is_err() && piece.skip(3).is_err() && piece.seek(6).is_err());
        assert_eq!((piece.skip(2), piece.is_empty(), piece.left()), (Ok(()), true, 0));
    }
}
