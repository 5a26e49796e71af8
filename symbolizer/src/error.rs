//! Why a file gives no symbols, or fewer than it could.

use std::path::PathBuf;

use crate::NotFetched;

/// Why a file was refused or could not be used in full. Every message names the file and, where there is something
/// to be done, what. Paths are quoted with escapes, since they may hold anything.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The profile names no file that could be opened.
    #[error("{path:?} is not the absolute path of a file; nothing to look symbols up in")]
    NoFile {
        /// The path of the module.
        path: PathBuf,
    },
    /// The file cannot be opened or read.
    #[error("cannot read {path:?}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder, device, pipe or socket.
    #[error("{path:?} is not a regular file")]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// Larger than [`Options::max_file_size`](crate::Options::max_file_size).
    #[error("{path:?} has {size} bytes, more than the limit of {limit}; raise the limit to use it")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file ends before something that its headers say is in it, or has become shorter since it was opened.
    #[error("{path:?}: cannot read {size} bytes at offset {offset:#x}; is the file cut short?")]
    CutShort {
        /// The file.
        path: PathBuf,
        /// Where the missing bytes start.
        offset: u64,
        /// How many were wanted.
        size: u64,
    },
    /// Not an ELF file, or a damaged one.
    #[error("{path:?}: {what}")]
    BadElf {
        /// The file.
        path: PathBuf,
        /// What was expected and not found.
        what: String,
    },
    /// The file is not the one that was profiled.
    #[error(
        "{path:?} is not the file that was profiled: its build id is {found}, expected {wanted}; give the original"
    )]
    WrongBuildId {
        /// The file.
        path: PathBuf,
        /// Its build id in hex, or `none`.
        found: String,
        /// The build id in the profile, in hex.
        wanted: String,
    },
    /// The file was deleted or replaced while it was in use, and the profile has no build id to know it by.
    #[error(
        "{path:?} was deleted while in use, and the profile has no build id to tell whether the file there now is it"
    )]
    Deleted {
        /// The file, without the kernel's suffix.
        path: PathBuf,
    },
    /// A separate debug file that does not belong to the module.
    #[error(
        "{path:?} does not belong to {module:?}: CRC-32 {found:08x}, expected {wanted:08x}; install the same version"
    )]
    WrongCrc {
        /// The debug file.
        path: PathBuf,
        /// The module that links to it.
        module: PathBuf,
        /// CRC-32 of the debug file.
        found: u32,
        /// CRC-32 in the module's `.gnu_debuglink`.
        wanted: u32,
    },
    /// The common part of debug information that `dwz` took apart is missing, and what it holds with it: names of
    /// inlined functions, mostly.
    #[error("{path:?}: part of its debug information is in {link:?} (build id {build_id}), which was not found")]
    NoAltFile {
        /// The file with the rest.
        path: PathBuf,
        /// The missing file, as the former calls it.
        link: PathBuf,
        /// Its build id in hex.
        build_id: String,
    },
    /// The vDSO of this machine is not that of the profiled one.
    #[error("the vDSO of this machine has {size} bytes, another size than in the profile, which is of another kernel")]
    OtherVdso {
        /// Size of the one of this machine, in bytes.
        size: u64,
    },
    /// A perf map that is not used because it may be another process's.
    #[error("{path:?} is not used as the perf map of the process: {why}; if it is, name it explicitly")]
    RefusedPerfMap {
        /// The file.
        path: PathBuf,
        /// What speaks against it.
        why: String,
    },
    /// A perf map with lines of something else; the others were used.
    #[error("{path:?}: {lines} lines are not \"START SIZE NAME\", the first of them is line {first}")]
    BadPerfMap {
        /// The file.
        path: PathBuf,
        /// How many.
        lines: u64,
        /// Number of the first, from 1.
        first: u64,
    },
    /// No debuginfod server gave the file, for a reason worth knowing.
    #[error("no file of {module:?} was fetched: {reason}")]
    NotFetched {
        /// The path of the module.
        module: PathBuf,
        /// What went wrong.
        reason: NotFetched,
    },
    /// Damaged debug information; what could be read was used.
    #[error("{path:?}: damaged debug information: {what}")]
    BadDwarf {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong there.
        what: String,
    },
    /// Stored answers that are damaged, or of another version.
    #[error("{path:?}: byte {offset}: {what}")]
    BadStored {
        /// The file, or what it is called.
        path: PathBuf,
        /// Where, from 0.
        offset: u64,
        /// What was expected there.
        what: String,
    },
    /// Only stored answers may be used, and they do not have all addresses.
    #[error("{path:?}: some addresses are not among the stored answers, and no files may be read")]
    NotStored {
        /// The path of the module.
        path: PathBuf,
    },
    /// Not a Mach-O file, or a damaged one.
    #[error("{path:?}: not a usable Mach-O file: {what}")]
    BadMachO {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Not a PE file, or a damaged one.
    #[error("{path:?}: not a usable PE file: {what}")]
    BadPe {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Not a PDB file, or a damaged one; what could be read was used.
    #[error("{path:?}: damaged debug information (PDB): {what}")]
    BadPdb {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong there.
        what: String,
    },
    /// Debug information that is in files of its own, some of which are missing.
    #[error(
        "{path:?}: {missing} of its units have their debug information in files that were not found, the first in \
         {first:?}; keep the .dwo files, or a .dwp file with all of them, beside the program or in a debug folder"
    )]
    NoSplitFile {
        /// The file with what the linker left of those units.
        path: PathBuf,
        /// Where the compiler wrote the first of them.
        first: PathBuf,
        /// How many there are.
        missing: usize,
    },
    /// A file with debug information of another version of a unit.
    #[error("{path:?} does not belong to the program: it has no unit with the number {wanted:016x}")]
    WrongSplitFile {
        /// The file.
        path: PathBuf,
        /// The number that was expected.
        wanted: u64,
    },
    /// More work or memory than a file of this size may need; the rest was left out.
    #[error("{path:?}: {what}; the rest of its debug information was left out")]
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit that was reached.
        what: String,
    },
}
