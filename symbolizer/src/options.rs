//! What the caller may choose.

use std::path::PathBuf;

/// Where to look for files, and how much of them to take in.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders laid out like `/usr/lib/debug` (`.build-id/xx/yyyy.debug`, and `<dir of the module>/<debuglink>`),
    /// searched in this order before `/usr/lib/debug` itself (under `sysroot`, if there is one).
    pub debug_dirs: Vec<PathBuf>,
    /// A copy of the root folder of the machine the profile comes from. With it, modules are opened below it only.
    pub sysroot: Option<PathBuf>,
    /// Largest ELF file that is opened, in bytes. Only the headers, symbol tables and needed debug sections are read
    /// into memory, never the whole file.
    pub max_file_size: u64,
    /// Most bytes of headers, symbol tables and debug information taken from one file, unpacked. What a compressed
    /// section claims to unpack to counts before any of it is unpacked. A module may have a separate debug file, and
    /// modules are worked on in parallel, so several such files can be in memory at once.
    pub max_file_memory: u64,
    /// Most threads to use; 0 means as many as the machine runs at once.
    pub threads: usize,
}

impl Default for Options {
    /// No extra folders, files up to 64 GiB, up to 8 GiB in memory for each, all processors.
    fn default() -> Self {
        Options { debug_dirs: Vec::new(), sysroot: None, max_file_size: 64 << 30, max_file_memory: 8 << 30, threads: 0 }
    }
}
