//! Taking a line apart from left to right.

use crate::text::excerpt;

/// The largest count or byte sum that is believed: 2^63 - 1, what a signed reader can hold.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// What is left of a line.
pub(in crate::formats) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(in crate::formats) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    pub(in crate::formats) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Skips spaces and tabs, if any.
    pub(in crate::formats) fn spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Skips spaces and tabs, at least one or the end of the line.
    pub(in crate::formats) fn required_spaces(&mut self) -> Option<()> {
        let before = self.rest.len();
        self.spaces();
        (self.rest.len() < before || before == 0).then_some(())
    }

    /// Skips this text, if it is next.
    pub(in crate::formats) fn take(&mut self, text: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// Skips spaces and then this text.
    pub(in crate::formats) fn expect(&mut self, text: &str) -> Result<(), String> {
        self.spaces();
        self.take(text.as_bytes()).ok_or_else(|| format!("expected \"{text}\" before {}", excerpt(self.rest)))
    }

    /// Everything up to the next space.
    pub(in crate::formats) fn word(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Hex digits without a prefix. `None` when there are none or they exceed 64 bits.
    pub(in crate::formats) fn hex_digits(&mut self) -> Option<u64> {
        let (mut value, mut length) = (0_u64, 0);
        for byte in self.rest {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => break,
            };
            // The four highest bits have to be free.
            if value >> 60 != 0 {
                return None;
            }
            value = value << 4 | u64::from(digit);
            length += 1;
        }
        self.rest = &self.rest[length..];
        (length > 0).then_some(value)
    }

    /// Skips spaces, then reads a decimal number from 0 to 2^63 - 1. `what` names it in errors.
    pub(in crate::formats) fn number(&mut self, what: &str) -> Result<u64, String> {
        self.spaces();
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() {
            let negative = rest.first() == Some(&b'-') && rest.get(1).is_some_and(u8::is_ascii_digit);
            let why = if negative { "; negative numbers occur only in a difference of two profiles" } else { "" };
            return Err(format!("expected {what} as a decimal number, found {}{why}", excerpt(rest)));
        }
        let digits = std::str::from_utf8(digits).map_err(|_| String::new())?;
        let value = digits.parse().ok().filter(|&value: &u64| value <= MAX_NUMBER);
        self.rest = rest;
        value
            .ok_or_else(|| format!("{what} {} is too large; expected at most {MAX_NUMBER}", excerpt(digits.as_bytes())))
    }

    /// Skips spaces, then reads a code address `0x…`. `None` at the end of the line.
    pub(in crate::formats) fn address(&mut self) -> Result<Option<u64>, String> {
        self.spaces();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let word = self.word();
        let mut digits = Scan::new(word.strip_prefix(b"0x").unwrap_or(b""));
        match (digits.hex_digits(), digits.rest()) {
            (Some(address), []) => Ok(Some(address)),
            _ => Err(format!("expected an address of up to 64 bits such as 0x7f00, found {}", excerpt(word))),
        }
    }

    /// Skips spaces and makes sure that nothing is left.
    pub(in crate::formats) fn end(&mut self) -> Result<(), String> {
        self.spaces();
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(format!("expected the end of the line, found {}", excerpt(self.rest)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(Scan::new(b"  42:").number("n"), Ok(42));
        assert_eq!(Scan::new(b"9223372036854775807").number("n"), Ok(i64::MAX as u64));
        for (text, part) in [
            ("9223372036854775808", "too large"),
            ("99999999999999999999999", "too large"),
            ("-1", "difference"),
            ("", "decimal number"),
            ("x", "decimal number"),
            ("+1", "decimal number"),
        ] {
            let error = Scan::new(text.as_bytes()).number("the count").unwrap_err();
            assert!(error.contains(part) && error.contains("the count"), "{error}");
        }
    }

    #[test]
    fn addresses() {
        let mut scan = Scan::new(b" 0x1F 0xffffffffffffffff ");
        assert_eq!(scan.address(), Ok(Some(0x1f)));
        assert_eq!(scan.address(), Ok(Some(u64::MAX)));
        assert_eq!(scan.address(), Ok(None));
        for text in ["7f00", "0x", "0x10000000000000000", "0x12;", "0X12", "\u{1b}[1m"] {
            let error = Scan::new(text.as_bytes()).address().unwrap_err();
            assert!(error.contains("expected an address") && !error.contains('\u{1b}'), "{error}");
        }
    }
}
