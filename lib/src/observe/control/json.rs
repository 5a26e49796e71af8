//! Answers: one JSON object on a line, in a buffer of fixed size.

use core::fmt::{self, Write};

/// An answer on its way into a buffer. What does not fit makes it [invalid](Answer::finish).
pub(super) struct Answer<'a> {
    buffer: &'a mut [u8],
    used: usize,
    fits: bool,
    /// Something stands before the next field.
    follows: bool,
}

/// What is said instead of an answer that is too long.
const TOO_LONG: &[u8] = b"{\"ok\":false,\"error\":\"the answer is too long\"}\n";

impl<'a> Answer<'a> {
    pub(super) fn new(buffer: &'a mut [u8]) -> Answer<'a> {
        let mut answer = Answer { buffer, used: 0, fits: true, follows: false };
        answer.raw(b"{");
        answer
    }

    pub(super) fn number(&mut self, key: &str, value: impl fmt::Display) {
        self.key(key);
        let _ = write!(self, "{value}");
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) {
        self.number(key, value);
    }

    pub(super) fn text(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.quoted(value);
    }

    /// An object as a field; `fill` writes its fields.
    pub(super) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Self)) {
        self.key(key);
        self.raw(b"{");
        self.follows = false;
        fill(self);
        self.raw(b"}");
        self.follows = true;
    }

    /// The line is complete; its length.
    pub(super) fn finish(mut self) -> usize {
        self.raw(b"}\n");
        if self.fits {
            return self.used;
        }
        let length = TOO_LONG.len().min(self.buffer.len());
        self.buffer[..length].copy_from_slice(&TOO_LONG[..length]);
        length
    }

    fn key(&mut self, key: &str) {
        if self.follows {
            self.raw(b",");
        }
        self.follows = true;
        self.quoted(key.as_bytes());
        self.raw(b":");
    }

    /// Bytes that are not UTF-8 become the replacement character.
    fn quoted(&mut self, text: &[u8]) {
        self.raw(b"\"");
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                let _ = match character {
                    '"' => self.write_str("\\\""),
                    '\\' => self.write_str("\\\\"),
                    '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                        write!(self, "\\u{:04x}", character as u32)
                    }
                    _ => self.write_char(character),
                };
            }
            if !chunk.invalid().is_empty() {
                let _ = self.write_char(char::REPLACEMENT_CHARACTER);
            }
        }
        self.raw(b"\"");
    }

    fn raw(&mut self, bytes: &[u8]) {
        let Some(room) = self.buffer.get_mut(self.used..self.used + bytes.len()) else {
            self.fits = false;
            return;
        };
        room.copy_from_slice(bytes);
        self.used += bytes.len();
    }
}

impl Write for Answer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.raw(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object() {
        let mut buffer = [0; 200];
        let mut answer = Answer::new(&mut buffer);
        answer.boolean("ok", true);
        answer.text("odd", b"a\"b\\c\n\xff\xc3\xa9");
        answer.object("inner", |answer| {
            answer.number("n", -7);
            answer.number("m", 1);
        });
        answer.object("empty", |_| {});
        let length = answer.finish();
        let expected =
            "{\"ok\":true,\"odd\":\"a\\\"b\\\\c\\u000a\u{fffd}é\",\"inner\":{\"n\":-7,\"m\":1},\"empty\":{}}\n";
        assert_eq!(core::str::from_utf8(&buffer[..length]).unwrap(), expected);
    }

    #[test]
    fn one_that_is_too_long() {
        let mut buffer = [0; 60];
        let mut answer = Answer::new(&mut buffer);
        answer.text("a", &[b'x'; 60]);
        let length = answer.finish();
        assert_eq!(&buffer[..length], TOO_LONG);
    }
}
