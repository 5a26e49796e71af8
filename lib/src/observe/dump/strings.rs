//! The table of strings of a `profile.proto`.

use super::protobuf::Message;
use crate::observe::output::{Failure, Output};
use crate::observe::room::Room;

/// Strings in the order of their numbers. Number 0 is the empty one.
pub(super) struct Strings {
    text: Room<u8>,
    ends: Room<usize>,
}

impl Strings {
    pub(super) fn new() -> Result<Strings, Failure> {
        let mut strings = Strings { text: Room::new(), ends: Room::new() };
        strings.add(b"")?;
        Ok(strings)
    }

    /// The number of a new string. What is not UTF-8 in it is replaced, as the format demands.
    pub(super) fn add(&mut self, string: &[u8]) -> Result<u64, Failure> {
        for chunk in string.utf8_chunks() {
            self.text.extend(chunk.valid().as_bytes())?;
            if !chunk.invalid().is_empty() {
                self.text.extend("\u{fffd}".as_bytes())?;
            }
        }
        self.ends.push(self.text.len())?;
        Ok(self.ends.len() as u64 - 1)
    }

    /// The number of a string that may be one of those from number `first` on, or is new.
    pub(super) fn find_or_add(&mut self, first: u64, string: &[u8]) -> Result<u64, Failure> {
        let found = (first as usize..self.ends.len()).find(|&number| self.get(number) == string);
        found.map_or_else(|| self.add(string), |number| Ok(number as u64))
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    /// Write all of them as this field.
    pub(super) fn write(&self, field: u64, output: &mut Output<'_>) {
        for number in 0..self.ends.len() {
            let string = self.get(number);
            let mut buffer = [0; 24];
            // The head of the field, and the string behind it without another copy.
            let mut head = Message::new(&mut buffer);
            head.head(field, string.len());
            output.bytes(head.as_bytes().unwrap_or_default());
            output.bytes(string);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes() {
        let mut strings = Strings::new().unwrap();
        assert_eq!(strings.add(b"ab").unwrap(), 1);
        assert_eq!(strings.add(b"\xff/x").unwrap(), 2);
        assert_eq!(strings.find_or_add(1, b"ab").unwrap(), 1);
        assert_eq!(strings.find_or_add(2, b"ab").unwrap(), 3);
        assert_eq!(strings.count(), 4);
        let mut written = std::vec::Vec::new();
        let mut sink = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(())
        };
        let mut buffer = [0; 5];
        let mut output = Output::new(&mut sink, &mut buffer);
        strings.write(6, &mut output);
        output.finish().unwrap();
        assert_eq!(written, b"\x32\x00\x32\x02ab\x32\x05\xef\xbf\xbd/x\x32\x02ab");
    }
}
