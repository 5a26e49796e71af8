//! The snapshot when the process ends: option `snapshot_on_exit`, and `MIMALLOC_SNAPSHOT_PATH`.

use super::{BLOCKS, VERSION2, to_file};
use crate::observe::path::{self, Path};
use crate::observe::settings::make_absolute;
use crate::options::{self, Name};
use crate::os;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// In the folder that the process began in.
const DEFAULT: &[u8] = b"mimalloc-snapshot.%p.bin";

struct Pattern(UnsafeCell<Path>);
// SAFETY: written once, before PROCESS says that it can be read.
unsafe impl Sync for Pattern {}

static PATTERN: Pattern = Pattern(UnsafeCell::new(Path::EMPTY));
/// The process that writes a snapshot if the option says so; 0 = none. Not that of a child that shares our memory.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn pattern() -> &'static [u8] {
    // SAFETY: see PROCESS.
    unsafe { (*PATTERN.0.get()).as_bytes() }
}

/// Read the environment, once in a process.
pub(crate) fn start() {
    if os::is_privileged() {
        return;
    }
    let given = os::variable(b"MIMALLOC_SNAPSHOT_PATH").filter(|path| !path.is_empty()).unwrap_or(DEFAULT);
    // SAFETY: one thread, once, and PROCESS is still 0.
    if unsafe { make_absolute(given, &mut *PATTERN.0.get()) } {
        PROCESS.store(os::process_id(), Release);
    } else if is_wanted() {
        os::complain(b"MIMALLOC_SNAPSHOT_PATH is too long; there will be no snapshot");
    }
}

fn is_wanted() -> bool {
    options::get(Name::SnapshotOnExit) > 0
}

/// In a forked child: it has a snapshot of its own if that has a name of its own.
pub(crate) fn forked() {
    if PROCESS.load(Acquire) != 0 {
        let own = path::tells_processes_apart(pattern());
        PROCESS.store(if own { os::process_id() } else { 0 }, Release);
    }
}

/// This process is to write a snapshot when it ends. Asks the kernel, and touches nothing.
pub(crate) fn is_due() -> bool {
    is_wanted() && PROCESS.load(Acquire) == os::process_id()
}

/// The process ends.
pub(crate) fn write() {
    if !is_due() {
        return;
    }
    let flags = match options::get(Name::SnapshotOnExit) {
        1 => 0,
        2 => BLOCKS,
        _ => BLOCKS | VERSION2,
    };
    let mut path = Path::EMPTY;
    if path::expand(pattern(), 1, &mut path).and_then(|()| to_file(path.as_c_str(), flags)).is_err() {
        os::complain_about(b"cannot write the heap snapshot ", path.as_bytes());
    }
}
