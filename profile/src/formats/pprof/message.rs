//! Protocol Buffers' wire format, to be written: what of it `profile.proto` needs.

/// A message that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// The message so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A field with a number. Zero is what a field has that is not there.
    pub(super) fn number(self, field: u64, value: u64) -> Self {
        if value == 0 { self } else { self.varint(field << 3 | VARINT).varint(value) }
    }

    /// A field with a string or a message in it.
    pub(super) fn bytes(self, field: u64, content: &[u8]) -> Self {
        let mut message = self.varint(field << 3 | BYTES).varint(content.len() as u64);
        message.0.extend_from_slice(content);
        message
    }

    /// A field with many numbers.
    pub(super) fn numbers(self, field: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let packed = values.into_iter().fold(Message::default(), Message::varint);
        if packed.0.is_empty() { self } else { self.bytes(field, &packed.0) }
    }

    /// Seven bits a byte, the lowest first.
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn fields() {
        let inner = Message::default().number(1, 1);
        let message = Message::default().number(1, 150).number(2, 0).bytes(2, b"testing");
        let message = message.numbers(4, [3, 270, 86942]).numbers(5, []).bytes(3, inner.as_bytes());
        // The bytes of the format's own documentation.
        assert_eq!(message.as_bytes(), b"\x08\x96\x01\x12\x07testing\x22\x06\x03\x8e\x02\x9e\xa7\x05\x1a\x02\x08\x01");
        let largest = Message::default().number(1, u64::MAX);
        assert_eq!(largest.as_bytes(), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
