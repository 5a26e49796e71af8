//! Modules and addresses in; functions, files, lines and inlined calls out.
//!
//! ```no_run
//! use mpp_symbolizer::{Module, Options, Symbolizer};
//!
//! let modules = [Module {
//!     start: 0x5555_5555_5000,
//!     end: 0x5555_5556_0000,
//!     file_offset: 0x1000,
//!     path: "/usr/bin/app".into(),
//!     build_id: None,
//! }];
//! let mut symbolizer = Symbolizer::new(Options::default());
//! // Return addresses, each less one: addresses inside the call instructions.
//! for symbolized in symbolizer.symbolize(&modules, &[0x5555_5555_6122]) {
//!     for frame in &symbolized.frames {
//!         println!("{:?} {:?}:{}", frame.function, frame.file, frame.line);
//!     }
//! }
//! ```
//!
//! # What it reads
//!
//! For each file of the process, in this order:
//!
//! 1. the file itself, if its build id is the recorded one: by its path, in the root folder of the process or below
//!    [`Options::sysroot`], or in a folder sorted by build ids; else from debuginfod, if that is not off;
//! 2. when it has no debug information, its separate debug file, by build id or by `.gnu_debuglink`, else from
//!    debuginfod;
//! 3. DWARF for functions, inlined calls and lines, with the parts that `dwz` moved to a common file, and those that
//!    compilers wrote to files of their own (`.dwo`, `.dwp`);
//! 4. the full symbol table for what DWARF does not name, then MiniDebugInfo, then the dynamic symbols; stubs of the
//!    procedure linkage table are called `function@plt`.
//!
//! Files of other systems are read as well: PE, with DWARF or a PDB of the same GUID and age, and Mach-O, with a dSYM
//! bundle of the same UUID.
//!
//! Code that is in no file has names if its compiler wrote a perf map; the vDSO is read from memory.
//!
//! An address outside of every function stays unresolved: it never gets the name of a neighbour.
//!
//! # Design constraints
//!
//! - **Batches.** A profile has all its addresses up front, so no index is built that only later questions would need.
//!   Each file is opened once, each touched unit of debug information read once by whichever thread is free, then
//!   dropped. Memory is that of the needed debug sections of the files being worked on.
//! - **Hostile input.** Profiles and files come from anywhere. Nothing panics; no recursion depends on the input; work
//!   and memory are bounded by the size of the files and by [`Options`]. Only regular files are opened.
//! - **Rather nothing than wrong.** A file with another build id, or a debug file with another checksum, is refused,
//!   and [`ModuleReport`] says so.
//!
//! Files are read, not mapped: a mapping of a file that is cut short while it is read would end the process.

mod cursor;
mod debuginfod;
mod demangle;
mod dwarf;
mod elf;
mod error;
mod file;
mod foreign;
mod image;
mod locate;
mod module;
mod object;
mod options;
mod packed;
mod pdb;
mod perf_map;
mod report;
mod runtime_code;
mod section;
mod stored;
mod symbol_tables;
mod symbolized;
mod symbolizer;
mod threads;
mod vdso;

pub use debuginfod::{
    Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings, Download, DownloadProgress, NotFetched,
};
pub use demangle::{NameStyle, demangle, restyle};
pub use error::Error;
pub use module::Module;
pub use options::Options;
pub use report::{Identity, ModuleReport, SymbolSource};
pub use stored::{StoredAnswer, StoredSymbols};
pub use symbolized::{Frame, Name, Quality, Symbolized};
pub use symbolizer::Symbolizer;
