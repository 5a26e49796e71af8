//! What the whole heap holds, for tools.

use crate::api::c;
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;
use std::string::String;

/// How long [`heap_dump_json`] would wait, in milliseconds. In this allocator it never has to.
pub const HEAP_DUMP_JSON_DEFAULT_WAIT_MS: usize = 100;

/// The heaps of this thread's sub-process as JSON: their slabs and larger blocks, and with `include_blocks` the address and usable size of every live
/// block.
///
/// Blocks of all threads; those that a thread has freed and cached are not live. With `hash_addresses` all addresses are replaced by numbers
/// that say nothing of where things are. Other threads may go on. The shape is in `docs/formats.md`. `None`: no memory.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let kept = vec![1u8; 5000];
/// let json = mimalloc_pprof::heap_dump_json(true, false).unwrap();
/// assert!(json.contains(&format!("[{},5120]", kept.as_ptr() as usize)));
/// assert!(json.ends_with("\"complete\": true, \"skipped_pages\": 0, \"busy_theaps\": 0 }\n"));
/// ```
pub fn heap_dump_json(include_blocks: bool, hash_addresses: bool) -> Option<String> {
    heap_dump_json_ex(include_blocks, hash_addresses, HEAP_DUMP_JSON_DEFAULT_WAIT_MS)
}

/// [`heap_dump_json`] that names a time to wait, in milliseconds. Nobody is ever waited for, so it has no effect.
pub fn heap_dump_json_ex(include_blocks: bool, hash_addresses: bool, wait_ms: usize) -> Option<String> {
    let text = c::heap_dump_json_ex(include_blocks, hash_addresses, wait_ms);
    if text.is_null() {
        return None;
    }
    // SAFETY: a C string in a block of ours, of ASCII.
    unsafe {
        let owned = CStr::from_ptr(text).to_str().ok().map(String::from);
        c::free(text.cast());
        owned
    }
}

/// Write a snapshot of all heaps to a file, in version 1 of the format (`docs/formats.md`); with `blocks` which blocks are live, too.
///
/// Everything is looked at first and written afterwards, so other threads go on. The file takes its place when it is complete; what is no regular file
/// is written to.
///
/// ```
/// # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
/// let path = std::env::temp_dir().join(format!("snapshot-{}.bin", std::process::id()));
/// mimalloc_pprof::heap_snapshot_to_file(&path, true)?;
/// assert!(std::fs::read(&path)?.starts_with(b"MIHS"));
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// What the operating system says, or that the path has a NUL.
pub fn heap_snapshot_to_file(path: impl AsRef<Path>, blocks: bool) -> io::Result<()> {
    let path = c_path(path.as_ref())?;
    // SAFETY: a C string.
    match unsafe { c::heap_snapshot_to_file(path.as_ptr(), if blocks { c::SNAPSHOT_BLOCKS } else { 0 }) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A path for the C functions.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path has a NUL in it"))
}

/// The result of a C function that leaves the cause in `errno`.
pub(super) fn told(done: bool) -> io::Result<()> {
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}
