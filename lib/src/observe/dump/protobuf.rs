//! Protocol Buffers' wire format: what of it `profile.proto` needs, written into a buffer.

/// A message that grows in a buffer. What does not fit is left out, and that is remembered.
pub(super) struct Message<'a> {
    buffer: &'a mut [u8],
    length: usize,
    too_large: bool,
}

const VARINT: u64 = 0;
const BYTES: u64 = 2;
/// Bytes of the longest number.
const LONGEST: usize = 10;

/// A number's bytes, and how many there are: seven bits each, the lowest first.
fn varint(mut value: u64) -> ([u8; LONGEST], usize) {
    let mut bytes = [0; LONGEST];
    let mut length = 0;
    loop {
        bytes[length] = value as u8 & 0x7f;
        value >>= 7;
        length += 1;
        if value == 0 {
            return (bytes, length);
        }
        bytes[length - 1] |= 0x80;
    }
}

fn length_of(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

impl<'a> Message<'a> {
    pub(super) fn new(buffer: &'a mut [u8]) -> Message<'a> {
        Message { buffer, length: 0, too_large: false }
    }

    /// The message so far; `None` if something had no room in it.
    pub(super) fn as_bytes(&self) -> Option<&[u8]> {
        (!self.too_large).then(|| &self.buffer[..self.length])
    }

    /// A field with a number. Zero is what a field has that is not there.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | VARINT);
            self.varint(value);
        }
    }

    /// A field with a string or a message in it.
    pub(super) fn bytes(&mut self, field: u64, content: &[u8]) {
        self.head(field, content.len());
        self.put(content);
    }

    /// The beginning of a field with so many bytes in it, which are to follow.
    pub(super) fn head(&mut self, field: u64, length: usize) {
        self.varint(field << 3 | BYTES);
        self.varint(length as u64);
    }

    /// A field with many numbers.
    pub(super) fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64> + Clone) {
        let length: usize = values.clone().map(length_of).sum();
        if length > 0 {
            self.head(field, length);
            values.for_each(|value| self.varint(value));
        }
    }

    /// A field with a small message in it.
    pub(super) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Message<'_>)) {
        let mut buffer = [0; 128];
        let mut message = Message::new(&mut buffer);
        fill(&mut message);
        match message.as_bytes() {
            Some(bytes) => self.bytes(field, bytes),
            None => self.too_large = true,
        }
    }

    fn varint(&mut self, value: u64) {
        let (bytes, length) = varint(value);
        self.put(&bytes[..length]);
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.buffer.get_mut(self.length..end) {
            Some(room) if !self.too_large => {
                room.copy_from_slice(bytes);
                self.length = end;
            }
            _ => self.too_large = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths() {
        for (value, bytes) in [
            (0, &b"\0"[..]),
            (127, b"\x7f"),
            (128, b"\x80\x01"),
            (300, b"\xac\x02"),
            (u64::MAX, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ] {
            let (written, length) = varint(value);
            assert_eq!((&written[..length], length_of(value)), (bytes, bytes.len()));
        }
    }

    #[test]
    fn fields() {
        let mut buffer = [0; 64];
        let mut message = Message::new(&mut buffer);
        message.number(1, 150);
        message.number(2, 0);
        message.bytes(2, b"testing");
        message.numbers(4, [3, 270, 86942].into_iter());
        message.numbers(5, core::iter::empty());
        message.message(3, |inner| inner.number(1, 1));
        let expected = b"\x08\x96\x01\x12\x07testing\x22\x06\x03\x8e\x02\x9e\xa7\x05\x1a\x02\x08\x01";
        assert_eq!(message.as_bytes(), Some(&expected[..]));
        message.bytes(9, &[0; 64]);
        message.number(1, 1);
        assert_eq!(message.as_bytes(), None);
    }
}
