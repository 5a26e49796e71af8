//! Numbers to text.

use std::time::Duration;

/// Bytes in IEC units with three significant digits: `0 B`, `1023 B`, `1.50 KiB`, `512 KiB`, `62.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 would round to 1024 of the smaller unit.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A count with its digits in groups: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `part` of `whole` with one decimal: `12.3%`, `100%`, `0%`; `<0.1%` for a part that is not nothing; `0%` of nothing.
pub fn percent(part: f64, whole: f64) -> String {
    let share = 100.0 * part / whole;
    match share {
        _ if part == 0.0 || !share.is_finite() => "0%".into(),
        _ if (part - whole).abs() < whole.abs() * 1e-12 => "100%".into(),
        share if share.abs() < 0.1 => if share < 0.0 { "-<0.1%" } else { "<0.1%" }.into(),
        share => format!("{share:.1}%"),
    }
}

/// A duration with about three significant digits: `250 ms`, `1.50 s`, `2 min 05 s`, `3 h 07 min`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match duration.as_nanos() {
        0 => "0 s".into(),
        nanos @ 1..1_000 => format!("{nanos} ns"),
        nanos @ 1_000..999_500 => format!("{} µs", three_digits(nanos as f64 / 1e3)),
        nanos @ 999_500..999_500_000 => format!("{} ms", three_digits(nanos as f64 / 1e6)),
        nanos @ 999_500_000..59_950_000_000 => format!("{} s", three_digits(nanos as f64 / 1e9)),
        _ if seconds < 60 => "1 min 00 s".into(),
        _ if seconds < 3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A number below 1024 with as many decimals as make three digits, and none from 100 on.
fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 * 1024 - 1, "10.0 KiB"),
            (512 << 10, "512 KiB"),
            (1000 << 10, "1000 KiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (62 << 20 | 512 << 10, "62.5 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(value), text, "{value}");
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn percent_tells_nothing_from_little() {
        for (part, whole, text) in [
            (1.0, 8.0, "12.5%"),
            (8.0, 8.0, "100%"),
            (0.0, 8.0, "0%"),
            (1.0, 1e6, "<0.1%"),
            (999_999.0, 1e6, "100.0%"),
            (1.0, 0.0, "0%"),
            (0.0, 0.0, "0%"),
            (-1.0, 8.0, "-12.5%"),
        ] {
            assert_eq!(percent(part, whole), text, "{part}/{whole}");
        }
    }

    #[test]
    fn durations_fit_their_size() {
        for (micros, text) in [
            (0, "0 s"),
            (12, "12.0 µs"),
            (250_000, "250 ms"),
            (999_600, "1.00 s"),
            (1_500_000, "1.50 s"),
            (59_970_000, "1 min 00 s"),
            (125_000_000, "2 min 05 s"),
            (11_220_000_000, "3 h 07 min"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), text, "{micros}");
        }
    }
}
