//! What the environment asks for. Ignored in programs that run with more rights than their user.

use super::output::Path;
use super::sampler::{MOST_FRAMES, Options};
use crate::options::{self, Name};
use crate::os;

/// Sampling rate when it is set to none, in bytes.
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
    if os::is_privileged() || options::get(Name::Prof) == 0 {
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
    let seed = options::get(Name::ProfSeed) as u64;
    let profile = Options {
        rate: options::get_positive(Name::ProfSampleRate).unwrap_or(RATE),
        seed: if seed == 0 { os::random_seed() } else { seed },
        depth: options::get_positive(Name::ProfBtMax).unwrap_or(MOST_FRAMES as u64) as usize,
        memory: options::get_positive(Name::ProfMaxBytes).unwrap_or(MEMORY) as usize,
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

/// A process id.
fn number(value: &[u8]) -> Option<u64> {
    core::str::from_utf8(value).ok()?.parse().ok()
}
