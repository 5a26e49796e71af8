//! The parts of a file: framed blocks of numbers. `docs/formats.md` describes them; `thin` reads what is written here.

use super::event::Kind;

/// Bytes of a frame before its payload: kind, three zero bytes, length, checksum.
pub(super) const FRAME: usize = 12;
/// The largest payload that is written, and room for one block.
pub(super) const MOST_PAYLOAD: usize = 32 * 1024;
pub(super) const ROOM: usize = FRAME + MOST_PAYLOAD;
/// The longest number.
pub(super) const LONGEST_VARINT: usize = 10;

/// What a block holds. The numbers are those in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Content {
    Definitions = 1,
    Events = 2,
    Tick = 3,
    Modules = 4,
    Mark = 5,
    State = 6,
}

/// Tags in a block of definitions.
pub(super) const RUN: u64 = 1;
pub(super) const THREAD: u64 = 2;
pub(super) const STACK: u64 = 3;
pub(super) const SITE: u64 = 4;

/// A block on its way, in memory of [`ROOM`] bytes. Who writes looks first whether there is [`Block::room`].
pub(super) struct Block {
    memory: *mut u8,
    used: usize,
    /// Time of the last event in it, in microseconds.
    last: u64,
}

impl Block {
    pub(super) const NONE: Block = Block { memory: core::ptr::null_mut(), used: 0, last: 0 };

    /// # Safety
    /// The memory is [`ROOM`] bytes that nobody else uses as long as the block is used.
    pub(super) const unsafe fn new(memory: *mut u8) -> Block {
        Block { memory, used: 0, last: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Bytes that still fit.
    pub(super) fn room(&self) -> usize {
        if self.memory.is_null() { 0 } else { MOST_PAYLOAD - self.used }
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: see `new`; a block without memory has no room, and nothing is written to it.
        unsafe { core::slice::from_raw_parts_mut(self.memory, ROOM) }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let at = FRAME + self.used;
        self.all()[at..at + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    /// The first byte of what is in it.
    pub(super) fn first(&mut self) -> u8 {
        self.all()[FRAME]
    }

    pub(super) fn set_first(&mut self, byte: u8) {
        self.all()[FRAME] = byte;
    }

    /// Seven bits a byte, lowest first; all but the last have the eighth set.
    pub(super) fn number(&mut self, mut value: u64) {
        let mut bytes = [0u8; LONGEST_VARINT];
        let mut length = 0;
        loop {
            bytes[length] = value as u8 & 0x7f | if value > 0x7f { 0x80 } else { 0 };
            length += 1;
            value >>= 7;
            if value == 0 {
                return self.bytes(&bytes[..length]);
            }
        }
    }

    /// The difference of two numbers, small if it is small in either direction.
    pub(super) fn difference(&mut self, from: u64, to: u64) {
        let signed = to.wrapping_sub(from) as i64;
        self.number((signed << 1 ^ signed >> 63) as u64);
    }

    /// An event of a site, after [`Block::room`] for [`MOST_EVENT`] was found.
    pub(super) fn event(&mut self, event: &Encoded) {
        if self.is_empty() {
            self.number(event.time);
            self.last = event.time;
        }
        self.number(u64::from(event.site) << 2 | event.kind as u64);
        self.difference(self.last, event.time);
        self.last = event.time;
        if event.kind != Kind::Allocated {
            self.number(event.age);
        }
        match event.kind {
            Kind::Allocated | Kind::Resized => self.number(event.slack),
            Kind::Freed | Kind::Moved => self.number(event.thread),
        }
    }

    /// The whole block with its frame.
    pub(super) fn sealed(&mut self, content: Content) -> &[u8] {
        let length = self.used;
        let whole = &mut self.all()[..FRAME + length];
        whole[..4].copy_from_slice(&[content as u8, 0, 0, 0]);
        whole[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        let sum = checksum(&[&whole[..8], &whole[FRAME..]]);
        whole[8..FRAME].copy_from_slice(&sum.to_le_bytes());
        whole
    }
}

/// An event with the numbers that stand in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Encoded {
    pub(super) kind: Kind,
    pub(super) site: u32,
    /// Microseconds since the start.
    pub(super) time: u64,
    /// Microseconds since the block was allocated; 0 when it just was.
    pub(super) age: u64,
    /// The difference between the size of the block and what is asked for, zigzag; only where something is asked for.
    pub(super) slack: u64,
    /// 1 + the number of the thread that did it; 0 = the one that allocated it. Only where a block ends.
    pub(super) thread: u64,
}

/// The most bytes of an event, with the time that begins a block.
pub(super) const MOST_EVENT: usize = 5 * LONGEST_VARINT;

/// Reads numbers out of a payload. Everything is `None` beyond its end.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a>(pub(super) &'a [u8]);

impl<'a> Numbers<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..LONGEST_VARINT {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn difference(&mut self, from: u64) -> Option<u64> {
        let zigzag = self.number()?;
        Some(from.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg()))
    }

    pub(super) fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next event; `last` is the time of the one before, at first the block's.
    pub(super) fn event(&mut self, last: u64) -> Option<Encoded> {
        let head = self.number()?;
        let kind = Kind::of(head);
        let time = self.difference(last)?;
        let age = if kind == Kind::Allocated { 0 } else { self.number()? };
        let (slack, thread) = match kind {
            Kind::Allocated | Kind::Resized => (self.number()?, 0),
            Kind::Freed | Kind::Moved => (0, self.number()?),
        };
        Some(Encoded { kind, site: u32::try_from(head >> 2).ok()?, time, age, slack, thread })
    }
}

/// CRC-32 as gzip has it, of several parts as if they were one.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let step = |sum: u32, &byte: &u8| TABLE[(sum as u8 ^ byte) as usize] ^ sum >> 8;
    !parts.iter().fold(!0, |sum, part| part.iter().fold(sum, step))
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        // What every description of CRC-32 gives as the check.
        assert_eq!(checksum(&[b"1234", b"56789"]), 0xCBF4_3926);
        assert_eq!(checksum(&[]), 0);
    }

    #[test]
    fn numbers_come_back() {
        let mut memory = std::vec![0u8; ROOM];
        // SAFETY: the memory is this block's.
        let mut block = unsafe { Block::new(memory.as_mut_ptr()) };
        let values = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        values.iter().for_each(|&value| block.number(value));
        values.iter().for_each(|&value| block.difference(1000, value));
        let whole = block.sealed(Content::Mark);
        let mut numbers = Numbers(&whole[FRAME..]);
        assert!(values.iter().all(|&value| numbers.number() == Some(value)));
        assert!(values.iter().all(|&value| numbers.difference(1000) == Some(value)));
        assert_eq!((numbers.number(), numbers.bytes(1), numbers.bytes(0)), (None, None, Some(&[][..])));
        assert_eq!(Numbers(&[0xff; 11]).number(), None);
    }

    #[test]
    fn events_come_back() {
        let mut memory = std::vec![0u8; ROOM];
        // SAFETY: the memory is this block's.
        let mut block = unsafe { Block::new(memory.as_mut_ptr()) };
        let plain = Encoded { kind: Kind::Allocated, site: 7, time: 5000, age: 0, slack: 3, thread: 0 };
        let events = [
            plain,
            Encoded { kind: Kind::Freed, time: 4990, age: 20, slack: 0, thread: 9, ..plain },
            Encoded { kind: Kind::Moved, site: u32::MAX >> 2, time: 1 << 40, age: 1 << 40, slack: 0, thread: 1 },
            Encoded { kind: Kind::Resized, time: 0, age: 1, slack: u64::MAX, ..plain },
        ];
        events.iter().for_each(|event| block.event(event));
        let whole = block.sealed(Content::Events);
        let mut numbers = Numbers(&whole[FRAME..]);
        let mut last = numbers.number().unwrap();
        assert_eq!(last, 5000);
        for event in events {
            let read = numbers.event(last).unwrap();
            assert_eq!(read, event);
            last = read.time;
        }
        assert!(numbers.event(last).is_none());
    }
}
