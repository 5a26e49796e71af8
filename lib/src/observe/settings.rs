//! What the environment asks for. Ignored in programs that run with more rights than their user.

use super::output::Path;
use super::profiler::{MOST_FRAMES, Options};
use crate::os;

/// Sampling rate when none is given, in bytes.
const RATE: u64 = 512 * 1024;
/// Memory for sites when no limit is given, in bytes of address space.
const MEMORY: u64 = 64 << 20;

/// Which of the processes that a program makes are profiled and write a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follow {
    /// The first one only.
    None,
    /// Those that were started by exec.
    Exec,
    /// Those that were only forked, too.
    All,
}

/// What to do in this process.
pub(crate) struct Settings {
    pub(crate) profile: Options,
    pub(crate) follow: Follow,
    /// Where to write a dump at exit, with `%p` still in it; empty = nowhere.
    pub(crate) dump: Path,
}

/// Read the environment. `None`: this process is not to be profiled.
pub(crate) fn read() -> Option<Settings> {
    if os::is_privileged() || !os::is_true(os::variable(b"MIMALLOC_PROF")?) {
        return None;
    }
    let mut dump = Path::EMPTY;
    if let Some(path) = os::variable(b"MIMALLOC_PROF_DUMP_AT_EXIT")
        && !dump.push(path)
    {
        os::complain(b"MIMALLOC_PROF_DUMP_AT_EXIT is too long; there will be no dump");
    }
    let follow = follow(&dump);
    if follow == Follow::None
        && let Some(parent) = os::variable(b"MIMALLOC_PROF_PARENT").and_then(number)
        && parent != os::parent_id() as u64
    {
        return None;
    }
    let rate = size(b"MIMALLOC_PROF_SAMPLE_INTERVAL").or_else(|| size(b"MIMALLOC_PROF_SAMPLE_RATE"));
    let profile = Options {
        rate: rate.filter(|&rate| rate > 0).unwrap_or(RATE),
        seed: size(b"MIMALLOC_PROF_SEED").filter(|&seed| seed != 0).unwrap_or_else(os::random_seed),
        depth: size(b"MIMALLOC_PROF_BT_MAX").filter(|&n| n != 0).unwrap_or(MOST_FRAMES as u64) as usize,
        memory: size(b"MIMALLOC_PROF_MAX_BYTES").filter(|&n| n != 0).unwrap_or(MEMORY) as usize,
    };
    Some(Settings { profile, follow, dump })
}

/// Without a word from the user: forked children too, unless they would write over their parent's dump.
fn follow(dump: &Path) -> Follow {
    match os::variable(b"MIMALLOC_PROF_FOLLOW") {
        Some(b"none") => Follow::None,
        Some(b"exec") => Follow::Exec,
        Some(b"all") => Follow::All,
        other => {
            if other.is_some() {
                os::complain(b"MIMALLOC_PROF_FOLLOW is none of none, exec, all; the default is used");
            }
            let distinct = dump.as_bytes().windows(2).any(|two| two == b"%p");
            if distinct { Follow::All } else { Follow::Exec }
        }
    }
}

fn size(name: &[u8]) -> Option<u64> {
    let value = os::variable(name)?;
    let number = number(value);
    if number.is_none() {
        os::complain_about(name, b" is not a number; the default is used");
    }
    number
}

/// Decimal digits, with K, M or G (or KiB, MiB, GiB) for powers of 1024.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    let number: u64 = core::str::from_utf8(&value[..digits]).ok()?.parse().ok()?;
    let shift = match &value[digits..] {
        b"" => 0,
        b"K" | b"k" | b"KiB" => 10,
        b"M" | b"m" | b"MiB" => 20,
        b"G" | b"g" | b"GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(b"524288"), Some(524288));
        assert_eq!(number(b"512KiB"), Some(524288));
        assert_eq!(number(b"2M"), Some(2 << 20));
        for bad in [b"".as_slice(), b"x", b"-1", b"1.5M", b"99999999999999999999", b"18446744073709551615K", b"12 "] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }
}
