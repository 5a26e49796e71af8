//! How the value of an option is written.

use super::Unit;

/// Longest value that is looked at, in bytes.
const LONGEST: usize = 64;

/// The value that a text stands for, in the option's unit; `None` when it is none.
///
/// Words for a switch (`on`, `off`, and so on, or nothing at all for on) stand for 1 and 0; everything else is decimal.
/// Sizes may have a suffix: K, M, G or T for powers of 1024, with or without B or iB.
pub(crate) fn parse(text: &[u8], unit: Unit) -> Option<i64> {
    if text.len() > LONGEST {
        return None;
    }
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if text.is_empty() || is(&["1", "true", "yes", "on"]) {
        return Some(1);
    }
    if is(&["0", "false", "no", "off"]) {
        return Some(0);
    }
    match unit {
        Unit::Plain => number(text),
        Unit::Seed => whole(text).map(|seed| seed as i64),
        Unit::Bytes => size(text),
        // A size without a suffix is in bytes.
        Unit::KiB => size(text).map(|bytes| bytes / 1024 + (bytes % 1024 != 0) as i64),
    }
}

/// A decimal number with or without a sign.
fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal number that may use all 64 bits.
fn whole(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// A size in bytes.
fn size(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, suffix) = (whole(&text[..digits])?, &text[digits..]);
    let shift = match suffix.first().map(u8::to_ascii_uppercase) {
        None => 0,
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        Some(_) => return None,
    };
    let rest = suffix.get(1..).unwrap_or_default();
    if !(rest.is_empty() || rest.eq_ignore_ascii_case(b"B") || rest.eq_ignore_ascii_case(b"iB")) {
        return None;
    }
    i64::try_from(number.checked_mul(1 << shift)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches() {
        for on in ["", "1", "true", "TRUE", "Yes", "on"] {
            assert_eq!(parse(on.as_bytes(), Unit::Plain), Some(1), "{on}");
            assert_eq!(parse(on.as_bytes(), Unit::KiB), Some(1), "{on}");
        }
        for off in ["0", "false", "No", "OFF"] {
            assert_eq!(parse(off.as_bytes(), Unit::Bytes), Some(0), "{off}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(parse(b"-1", Unit::Plain), Some(-1));
        assert_eq!(parse(b"+12", Unit::Plain), Some(12));
        assert_eq!(parse(b"9223372036854775807", Unit::Plain), Some(i64::MAX));
        for bad in ["x", "1x", " 1", "1 ", "9223372036854775808", "1K", "--1", "-", "0x10", "1.5", "\u{b2}"] {
            assert_eq!(parse(bad.as_bytes(), Unit::Plain), None, "{bad}");
        }
        assert_eq!(parse(&[b'1'; 65], Unit::Plain), None);
        assert_eq!(parse(b"18446744073709551615", Unit::Seed), Some(-1));
        assert_eq!(parse(b"18446744073709551616", Unit::Seed), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse(b"524288", Unit::Bytes), Some(524288));
        assert_eq!(parse(b"512KiB", Unit::Bytes), Some(524288));
        assert_eq!(parse(b"2M", Unit::Bytes), Some(2 << 20));
        assert_eq!(parse(b"3tb", Unit::Bytes), Some(3 << 40));
        assert_eq!(parse(b"8388607T", Unit::Bytes), Some(8388607 << 40));
        for (text, kib) in [("64K", 64), ("2g", 2 << 20), ("1MB", 1024), ("2048", 2), ("2049", 3), ("1K", 1)] {
            assert_eq!(parse(text.as_bytes(), Unit::KiB), Some(kib), "{text}");
        }
        let bad = [
            "x",
            "-1",
            "1.5M",
            "99999999999999999999",
            "18446744073709551615K",
            "12 ",
            "1KK",
            "K",
            "1Kib2",
            "8388608T",
        ];
        for bad in bad {
            assert_eq!(parse(bad.as_bytes(), Unit::Bytes), None, "{bad}");
            assert_eq!(parse(bad.as_bytes(), Unit::KiB), None, "{bad}");
        }
    }
}
