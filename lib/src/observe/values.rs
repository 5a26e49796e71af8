//! How sizes, durations and signals are written in the environment and on the control channel.

/// Longest value that is looked at, in bytes.
const LONGEST: usize = 64;
/// Digits behind the point that count.
const DIGITS: usize = 9;
const BILLION: u128 = 1_000_000_000;

/// Bytes: `512KiB`, `1.5MB`, `4096`. K, M, G and T are powers of 1024, with or without `B` or `iB`. `None`: that is no size, or too large.
pub(crate) fn size(text: &[u8]) -> Option<u64> {
    let (billionths, suffix) = number(text)?;
    let (unit, rest) = match suffix.first().map(u8::to_ascii_uppercase) {
        Some(b'K') => (1u128 << 10, &suffix[1..]),
        Some(b'M') => (1 << 20, &suffix[1..]),
        Some(b'G') => (1 << 30, &suffix[1..]),
        Some(b'T') => (1 << 40, &suffix[1..]),
        _ => (1, suffix),
    };
    let is_plain = rest.is_empty() || rest.eq_ignore_ascii_case(b"B") || (unit > 1 && rest.eq_ignore_ascii_case(b"iB"));
    is_plain.then_some(())?;
    u64::try_from(billionths.checked_mul(unit)? / BILLION).ok()
}

/// Nanoseconds: `250ms`, `10s`, `2m`, `1h`, `10` (seconds). `None`: that is no duration, or too long.
pub(crate) fn duration(text: &[u8]) -> Option<u64> {
    let (billionths, suffix) = number(text)?;
    let unit: u128 = match suffix {
        b"" | b"s" => BILLION,
        b"ms" => 1_000_000,
        b"us" => 1000,
        b"m" | b"min" => 60 * BILLION,
        b"h" => 3600 * BILLION,
        _ => return None,
    };
    // Within what the clock can be asked to wait for.
    u64::try_from(billionths.checked_mul(unit)? / BILLION).ok().filter(|&time| time < 1 << 62)
}

/// A whole number.
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    text.iter().all(u8::is_ascii_digit).then_some(())?;
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// A number with a point or without, in billionths, and what stands behind it.
fn number(text: &[u8]) -> Option<(u128, &[u8])> {
    if text.len() > LONGEST {
        return None;
    }
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, mut rest) = text.split_at(digits(text));
    let mut billionths = u128::from(whole(before).filter(|_| !before.is_empty())?) * BILLION;
    if let Some(behind) = rest.strip_prefix(b".") {
        let length = digits(behind);
        if length == 0 {
            return None;
        }
        let mut worth = BILLION;
        for digit in &behind[..length.min(DIGITS)] {
            worth /= 10;
            billionths += u128::from(digit - b'0') * worth;
        }
        rest = &behind[length..];
    }
    Some((billionths, rest))
}

/// A signal by name, with or without SIG in front, or by number. `None`: there is none, or it cannot be had for this: those that the kernel
/// keeps, those that tell of a fault, and those of the C library.
pub(crate) fn signal(text: &[u8]) -> Option<u32> {
    const NAMES: [(&str, u32); 19] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("USR1", 10),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("CHLD", 17),
        ("CONT", 18),
        ("TSTP", 20),
        ("URG", 23),
        ("XCPU", 24),
        ("XFSZ", 25),
        ("VTALRM", 26),
        ("PROF", 27),
        ("WINCH", 28),
        ("IO", 29),
        ("PWR", 30),
    ];
    const FIRST_FREE: u32 = 34;
    const LAST: u32 = 64;
    let name = text.strip_prefix(b"SIG").unwrap_or(text);
    let named = NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, number)| number);
    let number = named.or_else(|| u32::try_from(whole(text)?).ok())?;
    let is_free = NAMES.iter().any(|&(_, known)| known == number) || (FIRST_FREE..=LAST).contains(&number);
    is_free.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("512KiB", 512 << 10),
            ("1.5MB", 3 << 19),
            ("1.5m", 3 << 19),
            ("2G", 2 << 30),
            ("0.25TiB", 1 << 38),
            ("1.9", 1),
        ] {
            assert_eq!(size(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1.", ".5", "1KK", "1iB", "1 K", "1e3", "99999999T", "18446744073709551616"] {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
        assert_eq!(size(&[b'1'; 100]), None);
    }

    #[test]
    fn durations() {
        let ms = 1_000_000;
        for (text, time) in [
            ("250ms", 250 * ms),
            ("10s", 10_000 * ms),
            ("10", 10_000 * ms),
            ("0.5", 500 * ms),
            ("2m", 120_000 * ms),
            ("1.5h", 5_400_000 * ms),
            ("7us", 7000),
            ("0", 0),
        ] {
            assert_eq!(duration(text.as_bytes()), Some(time), "{text}");
        }
        for text in ["", "s", "1d", "1 s", "-1s", "9999999999h", "1.s", "1S"] {
            assert_eq!(duration(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn signals() {
        assert_eq!([signal(b"USR2"), signal(b"SIGUSR2"), signal(b"12")], [Some(12); 3]);
        assert_eq!(signal(b"40"), Some(40));
        for text in ["KILL", "9", "STOP", "19", "SEGV", "11", "6", "0", "65", "32", "33", "usr2", "", "-1", "SIG", "1x"]
        {
            assert_eq!(signal(text.as_bytes()), None, "{text}");
        }
    }
}
