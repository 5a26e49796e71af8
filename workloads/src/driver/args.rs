//! Values on the command line: durations and scales.

use std::time::Duration;

/// Parses `250ms`, `10s`, `2m`, or `0`.
///
/// # Errors
/// A sentence for the user when the number or the unit is missing, unknown or too large.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` has no number at its start; write for example 250ms or 10s"))?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "" if number == 0.0 => 0.0,
        _ => return Err(format!("`{text}` needs one of the units ms, s, m")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long"))
}

/// Parses a scale: a positive number that the counts of a workload are multiplied with, at most 1000.
///
/// # Errors
/// A sentence for the user when it is not such a number.
pub fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1000.0 => Ok(scale),
        _ => Err(format!("`{text}` is not a number above 0 and up to 1000")),
    }
}

/// `count * scale`, rounded, but never 0 for a count that is not 0.
#[must_use]
pub fn scaled(count: u64, scale: f64) -> u64 {
    if count == 0 { 0 } else { ((count as f64 * scale).round() as u64).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["", "s", "10", "10h", "-1s", "1..2s", "99999999999999999999999m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_duration_or_an_error(text in ".*") {
            if let Err(message) = duration(&text) {
                proptest::prop_assert!(message.contains(&text));
            }
        }

        #[test]
        fn milliseconds_survive(milliseconds in 0u64..1 << 40) {
            proptest::prop_assert_eq!(duration(&format!("{milliseconds}ms")), Ok(Duration::from_secs_f64(milliseconds as f64 / 1000.0)));
        }
    }

    #[test]
    fn scales() {
        assert_eq!(scale("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "nan", "inf", "1001", "x", ""] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
        assert_eq!(scaled(1000, 0.5), 500);
        assert_eq!(scaled(3, 0.001), 1);
        assert_eq!(scaled(0, 5.0), 0);
    }
}
