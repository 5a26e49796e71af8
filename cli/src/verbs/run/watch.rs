//! While the target runs: is the library in it, and what becomes of signals.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::sys::child::{Child, End};
use crate::sys::signals::Collector;

/// The time in which the dynamic loader must have done its work; slow disks included.
const CONFIRM_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait between two looks at a target that does not have the library yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long to wait when it has the library, but may execute another program without it.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long to wait when there is nothing to look for: the end of the target interrupts the wait anyway.
const IDLE: Duration = Duration::from_secs(3600);

/// What was seen of the library in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was mapped.
    Active,
    /// It was not, two seconds after the start; the executable that ran then.
    Missing(PathBuf),
    /// The target ended before one could tell, or may not be looked into.
    Unknown,
}

/// Waits for the end of the child. `on_missing` is called at most once, as soon as it is clear that the library is not
/// in the target.
///
/// # Errors
/// If the child cannot be waited for.
pub(crate) fn wait(
    child: &Child,
    signals: &Collector,
    library: &Path,
    mut on_missing: impl FnMut(&Path),
) -> anyhow::Result<(End, Seen)> {
    let started = Instant::now();
    let mut seen = Seen::Unknown;
    let mut looking = true;
    loop {
        if let Some(end) = child.try_wait().context("cannot wait for the target")? {
            return Ok((end, seen));
        }
        if looking {
            let late = started.elapsed() >= CONFIRM_WITHIN;
            match look(child.pid(), library) {
                // The dynamic loader may still be at work, or the target has just executed another program.
                Seen::Missing(_) if !late => {}
                now => seen = now,
            }
            if let Seen::Missing(executable) = &seen {
                on_missing(executable);
            }
            looking = !late;
        }
        let pause = match (looking, &seen) {
            (false, _) => IDLE,
            (true, Seen::Active) => LOOK_AGAIN,
            (true, _) => LOOK_EVERY,
        };
        let Some(arrived) = signals.wait(pause) else { continue };
        // What the terminal sent, the target has got as well; what the target sent to its own group, it meant.
        let from_outside = arrived.sender.is_some_and(|sender| sender.unsigned_abs() != child.pid());
        if arrived.signal != libc::SIGCHLD && from_outside {
            // It may have ended in this moment, which the next round finds out.
            let _ = child.send(arrived.signal);
        }
    }
}

/// One look into `/proc/PID/maps`.
fn look(pid: u32, library: &Path) -> Seen {
    let Ok(maps) = fs::File::open(format!("/proc/{pid}/maps")) else { return Seen::Unknown };
    let wanted = library.as_os_str().as_encoded_bytes();
    let mut mappings = 0_usize;
    for line in BufReader::new(maps).split(b'\n') {
        let Ok(line) = line else { return Seen::Unknown };
        mappings += 1;
        if line.ends_with(wanted) {
            return Seen::Active;
        }
    }
    // A process that has ended, but has not been waited for, has no mappings.
    if mappings == 0 {
        return Seen::Unknown;
    }
    Seen::Missing(fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_else(|_| PathBuf::from("the program")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_mapped_into_a_process() {
        let own = std::process::id();
        let executable = std::env::current_exe().expect("the test has a file");
        assert_eq!(look(own, &executable), Seen::Active);
        assert_eq!(look(own, Path::new("/no/such/library.so")), Seen::Missing(executable));
        assert_eq!(look(u32::MAX, &std::env::temp_dir()), Seen::Unknown);
    }
}
