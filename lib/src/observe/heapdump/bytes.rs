//! Little-endian numbers on their way to a sink, through a buffer in memory of its own.

use crate::os;

/// Bytes of the buffer, and of the longest section that is written at once.
const BUFFER: usize = 64 * 1024;

/// What takes the bytes. False: it cannot, and is not asked again.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// A buffer before a sink.
pub(super) struct Bytes<'a> {
    sink: Sink<'a>,
    buffer: *mut u8,
    used: usize,
    failed: bool,
}

impl<'a> Bytes<'a> {
    /// `None`: no memory.
    pub(super) fn to(sink: Sink<'a>) -> Option<Bytes<'a>> {
        let buffer = os::map(BUFFER);
        (!buffer.is_null()).then_some(Bytes { sink, buffer, used: 0, failed: false })
    }

    pub(super) fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.used == BUFFER {
                self.flush();
            }
            let n = bytes.len().min(BUFFER - self.used);
            // SAFETY: the buffer is ours, and there is so much room behind what is used.
            unsafe { self.buffer.add(self.used).copy_from_nonoverlapping(bytes.as_ptr(), n) };
            self.used += n;
            bytes = &bytes[n..];
        }
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Zeroes up to a length that is a multiple of 8.
    pub(super) fn pad(&mut self, length: usize) {
        self.bytes(&[0; 8][..length.next_multiple_of(8) - length]);
    }

    fn flush(&mut self) {
        // SAFETY: so much of the buffer was written.
        let bytes = unsafe { core::slice::from_raw_parts(self.buffer, self.used) };
        self.failed = self.failed || !(self.sink)(bytes);
        self.used = 0;
    }

    /// The sink has refused: what follows is for nothing.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Write what is left. True: all was taken.
    pub(super) fn end(mut self) -> bool {
        if self.used != 0 {
            self.flush();
        }
        !self.failed
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        os::unmap(self.buffer, BUFFER);
    }
}
