//! Numbers and texts of the stored form, written and read. Every length is checked against what is left of the input
//! before anything is set aside for it.

use std::path::Path;

use crate::Error;

/// Appends a number: seven bits a byte, lowest first, the eighth bit set in all bytes but the last.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a difference, so that small ones of either sign are short: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(super) fn put_difference(out: &mut Vec<u8>, difference: i64) {
    put_number(out, (difference << 1 ^ difference >> 63) as u64);
}

/// Appends a length and as many bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is left to be read.
#[derive(Debug)]
pub(super) struct Input<'a> {
    /// The file, for messages.
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// All of `bytes` from the offset `at` on.
    pub(super) fn new(path: &'a Path, bytes: &'a [u8], at: usize) -> Self {
        Input { path, bytes, at: at.min(bytes.len()) }
    }

    /// The error that something else was expected at the present offset.
    pub(super) fn expected(&self, what: &str) -> Error {
        Error::BadStored { path: self.path.to_owned(), offset: self.at as u64, what: format!("expected {what}") }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes, as many as wanted.
    pub(super) fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).ok_or_else(|| self.expected(what))?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| self.expected(what))?;
        self.at = end;
        Ok(taken)
    }

    /// A number of at most 64 bits.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, Error> {
        let start = self.at;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let &[byte] = self.take(1, what)? else { break };
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.at = start;
        Err(self.expected(what))
    }

    /// The inverse of [`put_difference`].
    pub(super) fn difference(&mut self, what: &str) -> Result<i64, Error> {
        let folded = self.number(what)?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// A number of at most `most`.
    pub(super) fn number_up_to(&mut self, most: u64, what: &str) -> Result<u64, Error> {
        let start = self.at;
        let number = self.number(what)?;
        if number > most {
            self.at = start;
            return Err(self.expected(what));
        }
        Ok(number)
    }

    /// How many things follow, each of which takes `least` bytes or more. So what is set aside for them is bounded by
    /// the size of the input, whatever it claims.
    pub(super) fn count(&mut self, least: usize, what: &str) -> Result<usize, Error> {
        let start = self.at;
        let count = self.number(what)?;
        if count > (self.left() / least.max(1)) as u64 {
            self.at = start;
            return Err(self.expected(what));
        }
        Ok(count as usize)
    }

    /// A length of at most `most`, and as many bytes.
    pub(super) fn bytes(&mut self, most: usize, what: &str) -> Result<&'a [u8], Error> {
        let length = self.number_up_to(most as u64, what)?;
        self.take(length as usize, what)
    }

    /// The same as text.
    pub(super) fn text(&mut self, most: usize, what: &str) -> Result<&'a str, Error> {
        let bytes = self.bytes(most, what)?;
        std::str::from_utf8(bytes).map_err(|_| self.expected(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), i64::MAX as u64, u64::MAX];
        let differences = [0, -1, 1, -64, 64, i64::MIN, i64::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|&number| put_number(&mut out, number));
        differences.iter().for_each(|&difference| put_difference(&mut out, difference));
        let mut input = Input::new(Path::new("x"), &out, 0);
        for number in numbers {
            assert_eq!(input.number("a number").expect("it was written"), number);
        }
        for difference in differences {
            assert_eq!(input.difference("a difference").expect("it was written"), difference);
        }
        assert_eq!(input.left(), 0);
    }

    #[test]
    fn what_is_too_long_or_cut_off_is_refused_where_it_begins() {
        let too_long = [0xff; 10];
        let too_much = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&too_long[..], &too_much, &[0x80], &[]] {
            let error = Input::new(Path::new("x"), bytes, 0).number("a number").expect_err("no number");
            assert!(error.to_string().contains("expected a number"), "{error}");
        }
        assert!(Input::new(Path::new("x"), &[3, 1, 1, 1], 0).count(1, "things").is_ok());
        assert!(Input::new(Path::new("x"), &[3, 1, 1, 1], 0).count(2, "things").is_err());
        assert!(Input::new(Path::new("x"), &[3, 1, 1], 0).bytes(9, "bytes").is_err());
    }
}
