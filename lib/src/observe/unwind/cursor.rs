//! Reading tables in memory without ever leaving them.
//!
//! A module's tables are not a Rust slice: the module also holds data that the program writes at the same time. So ranges
//! are kept as addresses, and every byte is read through [`Cursor::take`], which checks the end first.

use core::ptr::with_exposed_provenance;

/// A readable range of memory, `start..end`.
#[derive(Clone, Copy)]
pub(super) struct Window {
    start: usize,
    end: usize,
}

impl Window {
    /// # Safety
    /// What a table inside `start..end` can refer to must be readable as long as the window or a cursor made from it is
    /// in use (the *window invariant*).
    pub(super) unsafe fn new(start: usize, end: usize) -> Window {
        Window { start, end: end.max(start) }
    }

    /// A cursor from `address` to the end of the window; `None` when the address lies outside.
    pub(super) fn cursor(self, address: usize) -> Option<Cursor> {
        (self.start..=self.end).contains(&address).then_some(Cursor { at: address, end: self.end })
    }

    /// Distance of an address from the window's start, as it is kept in table rows.
    pub(super) fn offset_of(self, address: usize) -> Option<u32> {
        u32::try_from(address.checked_sub(self.start)?).ok()
    }

    /// The reverse of [`Window::offset_of`].
    pub(super) fn cursor_at_offset(self, offset: u32) -> Option<Cursor> {
        self.cursor(self.start.checked_add(offset as usize)?)
    }
}

/// A position in a [`Window`], and the end of what may be read from there. Every read returns `None` at the end.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    at: usize,
    end: usize,
}

/// The value is relative to where it is stored, or to the table (`DW_EH_PE_pcrel`, `DW_EH_PE_datarel`).
const RELATIVE_TO_ITSELF: u8 = 0x10;
const RELATIVE_TO_TABLE: u8 = 0x30;
/// No value is stored (`DW_EH_PE_omit`).
pub(super) const OMITTED: u8 = 0xff;

impl Cursor {
    pub(super) fn address(self) -> usize {
        self.at
    }

    pub(super) fn remaining(self) -> usize {
        self.end - self.at
    }

    pub(super) fn is_empty(self) -> bool {
        self.at == self.end
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.remaining() < N {
            return None;
        }
        // SAFETY: `at..at + N` is inside the window, which is readable by the window invariant; bytes need no alignment.
        let bytes = unsafe { with_exposed_provenance::<[u8; N]>(self.at).read_unaligned() };
        self.at += N;
        Some(bytes)
    }

    pub(super) fn skip(&mut self, length: usize) -> Option<()> {
        self.split(length).map(drop)
    }

    /// The next `length` bytes as a cursor of their own; this one goes on behind them.
    pub(super) fn split(&mut self, length: usize) -> Option<Cursor> {
        if self.remaining() < length {
            return None;
        }
        let part = Cursor { at: self.at, end: self.at + length };
        self.at = part.end;
        Some(part)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    /// Unsigned LEB128. Bits beyond the 64th are dropped.
    pub(super) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// Signed LEB128. Bits beyond the 64th are dropped.
    pub(super) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            if byte & 0x80 == 0 {
                let negative = byte & 0x40 != 0 && shift < 64;
                return Some(if negative { value | -1 << shift } else { value });
            }
        }
    }

    /// A pointer in one of the encodings of `.eh_frame` (Linux Standard Base, "DWARF exception header encoding"): its
    /// value before an indirection, which is only ever asked for of pointers that are skipped here.
    pub(super) fn pointer(&mut self, encoding: u8, table: usize) -> Option<usize> {
        if encoding == OMITTED {
            return Some(0);
        }
        let itself = self.at;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.uleb()?,
            0x02 => self.u16()?.into(),
            0x03 => self.u32()?.into(),
            0x09 => self.sleb()? as u64,
            0x0a => self.u16()? as i16 as u64,
            0x0b => self.i32()? as u64,
            _ => return None,
        } as usize;
        match encoding & 0x70 {
            // A null pointer stays one, whatever it would be relative to.
            _ if value == 0 => Some(0),
            0 => Some(value),
            RELATIVE_TO_ITSELF => Some(itself.wrapping_add(value)),
            RELATIVE_TO_TABLE => Some(table.wrapping_add(value)),
            _ => None,
        }
    }
}
