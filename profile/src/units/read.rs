//! Text to numbers.

use std::time::Duration;

use crate::text::escaped;

/// Why a size or duration was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// No number at the start.
    #[error("\"{}\" does not start with a number; write {example}", escaped(text))]
    NoNumber {
        /// What was given.
        text: String,
        /// What would be right.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("\"{}\" has {}; write {example}", escaped(text), if unit.is_empty() { "no unit".into() } else { format!("the unknown unit \"{}\"", escaped(unit)) })]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The unit in it.
        unit: String,
        /// What would be right.
        example: &'static str,
    },
    /// The value does not fit into 64 bits.
    #[error("\"{}\" is too large", escaped(text))]
    TooLarge {
        /// What was given.
        text: String,
    },
}

/// Decimals beyond this many do not change the result and are cut off.
const MAX_DECIMALS: usize = 15;

const SIZE_EXAMPLE: &str = "a size such as 512KiB, 1.5MB or 65536";
const DURATION_EXAMPLE: &str = "a duration such as 250ms, 10s or 2m";

/// Reads a size in bytes: plain bytes or a decimal number with a unit, in any case, with or without a space.
///
/// `KiB`, `MiB`… and, as GNU tools have it, `K`, `M`… are powers of 1024; `kB`, `MB`… are powers of 1000. A fraction of a
/// byte is rounded to the nearest.
///
/// # Errors
/// When it is no number, the unit is unknown, or the result does not fit into 64 bits.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, SIZE_EXAMPLE)?;
    let scale = size_scale(&unit.to_ascii_lowercase()).ok_or_else(|| UnitError::UnknownUnit {
        text: text.into(),
        unit: unit.into(),
        example: SIZE_EXAMPLE,
    })?;
    scaled(number, scale).ok_or_else(|| UnitError::TooLarge { text: text.into() })
}

/// Reads a duration: a decimal number and one of `ns`, `us`, `µs`, `ms`, `s`, `m`, `min`, `h`, `d`.
///
/// # Errors
/// When it is no number, the unit is missing or unknown (only 0 needs none), or the result is above 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text, DURATION_EXAMPLE)?;
    let nanos = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        "" if number.bytes().all(|byte| matches!(byte, b'0' | b'.')) => 1,
        _ => {
            return Err(UnitError::UnknownUnit { text: text.into(), unit: unit.into(), example: DURATION_EXAMPLE });
        }
    };
    scaled(number, nanos).map(Duration::from_nanos).ok_or_else(|| UnitError::TooLarge { text: text.into() })
}

fn size_scale(unit: &str) -> Option<u64> {
    let (letter, base) = match unit.as_bytes() {
        b"" | b"b" => return Some(1),
        [letter] => (letter, 1024),
        [letter, b'i', b'b'] => (letter, 1024),
        [letter, b'b'] => (letter, 1000),
        _ => return None,
    };
    let power = b"kmgtpe".iter().position(|known| known == letter)?;
    u64::checked_pow(base, power as u32 + 1)
}

/// The number at the start, checked to have at least one digit and at most one point, and what follows it.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(&'a str, &'a str), UnitError> {
    let trimmed = text.trim();
    let end = trimmed.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let well_formed = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
    if !well_formed {
        return Err(UnitError::NoNumber { text: text.into(), example });
    }
    Ok((number, unit.trim_start()))
}

/// `number * scale`, rounded to the nearest, in integers so that no digit is lost.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = &decimals[..decimals.len().min(MAX_DECIMALS)];
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u128 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
    let unit = 10u128.pow(decimals.len() as u32);
    let value = u128::from(whole) * u128::from(scale) + (fraction * u128::from(scale) + unit / 2) / unit;
    u64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("512KiB", 512 << 10),
            ("512 kib", 512 << 10),
            ("1.5MB", 1_500_000),
            ("1.5M", 3 << 19),
            ("1kB", 1000),
            ("0.3KiB", 307),
            (".5k", 512),
            ("2.", 2),
            ("15.999999999999999999EiB", 18446744073709550463),
            ("18446744073709551615", u64::MAX),
            ("7 b", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bad_sizes_say_what_would_be_right() {
        for text in ["", " ", "-1", "KiB", "1.2.3", ".", "1e400", "1 XiB", "0x10", "16EiB", "18446744073709551616", "١"]
        {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_size("1XB").unwrap_err().to_string(),
            format!("\"1XB\" has the unknown unit \"XB\"; write {SIZE_EXAMPLE}")
        );
        assert!(!parse_size("\u{1b}[1m").unwrap_err().to_string().contains('\u{1b}'));
    }

    #[test]
    fn durations() {
        for (text, millis) in [("250ms", 250), ("10s", 10_000), ("2m", 120_000), ("1.5 h", 5_400_000), ("0", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse_duration("3µs"), Ok(Duration::from_micros(3)));
        for text in ["10", "s", "-1s", "1y", "99999999999999999999s", "300000d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
