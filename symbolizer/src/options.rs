//! What the caller may choose.

use std::path::PathBuf;

use crate::{Debuginfod, StoredSymbols};

/// Where to look for files, and how much of them to take in.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders laid out like `/usr/lib/debug` (`.build-id/xx/yyyy.debug`, and `<dir of the module>/<debuglink>`),
    /// searched in this order before `/usr/lib/debug` itself (under `sysroot`, if there is one).
    pub debug_dirs: Vec<PathBuf>,
    /// A copy of the root folder of the machine the profile comes from. With it, modules are opened below it only.
    pub sysroot: Option<PathBuf>,
    /// Servers (or only a cache of files from them) that are asked for what is not found here; off by default.
    pub debuginfod: Debuginfod,
    /// The process that was profiled, if it still runs on this machine. Its files are then reached through `/proc`, also
    /// when they were deleted, replaced, or are in a container; and its perf map and vDSO are used. Needs the rights
    /// that a debugger needs; without them it is as if this were not set.
    pub pid: Option<u32>,
    /// The map of code made at run time that the process wrote for `perf`, instead of `/tmp/perf-PID.map` of the process
    /// of `pid`. It names addresses that are in no file.
    pub perf_map: Option<PathBuf>,
    /// Largest ELF file that is opened, in bytes. Only the headers, symbol tables and needed debug sections are read
    /// into memory, never the whole file.
    pub max_file_size: u64,
    /// Most bytes of headers, symbol tables and debug information taken from one file, unpacked. What a compressed
    /// section claims to unpack to counts before any of it is unpacked. A module may have a separate debug file, and
    /// modules are worked on in parallel, so several such files can be in memory at once.
    pub max_file_memory: u64,
    /// A folder in which answers are kept from one batch to the next, by build id; `None` keeps nothing. It is made if it
    /// is not there, and is to be used for nothing else. See `stored/cache.rs` for what is kept and when it is trusted.
    pub cache_dir: Option<PathBuf>,
    /// Answers that were found elsewhere, for instance those of a bundle. They count before all files.
    pub stored: Vec<StoredSymbols>,
    /// Opens no files: what `stored` does not tell stays unknown.
    pub only_stored: bool,
    /// Most threads to use; 0 means as many as the machine runs at once.
    pub threads: usize,
}

impl Default for Options {
    /// No extra folders and no cache, files up to 64 GiB, up to 8 GiB in memory for each, all processors.
    fn default() -> Self {
        Options {
            debug_dirs: Vec::new(),
            sysroot: None,
            debuginfod: Debuginfod::off(),
            pid: None,
            perf_map: None,
            max_file_size: 64 << 30,
            max_file_memory: 8 << 30,
            cache_dir: None,
            stored: Vec::new(),
            only_stored: false,
            threads: 0,
        }
    }
}
