//! Where the symbols of each module came from, and why they did not come from elsewhere.

use std::path::PathBuf;

use crate::Error;

/// What was found for one file of the profiled process.
#[derive(Debug, Default)]
pub struct ModuleReport {
    /// The path as the profile has it.
    pub path: PathBuf,
    /// Indices of the modules (mappings) of this file that addresses fell in, in ascending order.
    pub modules: Vec<usize>,
    /// The build id recorded in the profile.
    pub wanted_build_id: Option<Vec<u8>>,
    /// The build id of the file that was found at the path, also when it was refused.
    pub found_build_id: Option<Vec<u8>>,
    /// How sure it is that the file that was read is the one that was profiled; `None` when none was.
    pub identity: Option<Identity>,
    /// The best source of names that was used.
    pub source: SymbolSource,
    /// Files that were looked for, in this order: the module's own until it was found, then its debug file.
    pub looked_at: Vec<PathBuf>,
    /// What went wrong, in the order it was met: files refused, damaged debug information, limits reached.
    /// [`summary`](Self::summary) is the short form.
    pub problems: Vec<Error>,
    /// What would give names or lines to addresses that lack them, if that is known: a command, flags of `mpp` with a
    /// comment, or advice in a few words. Names of files in it are quoted with escapes.
    pub remedy: Option<String>,
    /// Distinct addresses with a source line.
    pub with_lines: usize,
    /// Distinct addresses with a function name only.
    pub with_name: usize,
    /// Distinct addresses with neither.
    pub unresolved: usize,
}

impl ModuleReport {
    /// The problems in one line: the first, and how many more there are. `None` if there are none.
    pub fn summary(&self) -> Option<String> {
        let (first, others) = self.problems.split_first()?;
        Some(match others.len() {
            0 => first.to_string(),
            1 => format!("{first} (and 1 more problem)"),
            more => format!("{first} (and {more} more problems)"),
        })
    }
}

/// How sure it is that a file is the one that was profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// It has the build id that the profile recorded.
    BuildId,
    /// The process of [`Options::pid`](crate::Options::pid) has this very file mapped.
    Mapped,
    /// It was taken because it has the recorded path; the profile has no build id to check it by. If it was replaced
    /// since, names and lines are wrong.
    #[default]
    NotVerified,
}

/// Where names (and lines) come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SymbolSource {
    /// DWARF debug information.
    Dwarf {
        /// The file it is in: the module's own or a separate debug file.
        file: PathBuf,
    },
    /// The full symbol table, no lines.
    Symtab {
        /// The file it is in: the module's own or a separate debug file.
        file: PathBuf,
    },
    /// The symbols that were packed into `.gnu_debugdata` when the file was stripped, no lines.
    MiniDebugInfo,
    /// Debug information of Microsoft's tools.
    Pdb {
        /// The file it is in.
        file: PathBuf,
    },
    /// The symbols exported to the dynamic linker, no lines.
    Dynsym,
    /// The map that a compiler at run time wrote for `perf`, no lines.
    PerfMap {
        /// The map.
        file: PathBuf,
    },
    /// The symbols of the library that the kernel maps into every process, no lines.
    Vdso,
    /// Answers that were found before: [`Options::stored`](crate::Options::stored), or the cache.
    Stored {
        /// Where these came from when they were found.
        origin: Box<SymbolSource>,
    },
    /// Nothing was found.
    #[default]
    None,
}

impl SymbolSource {
    /// Where names came from when they were found, however often they were stored since.
    pub fn origin(&self) -> &SymbolSource {
        let mut source = self;
        while let SymbolSource::Stored { origin } = source {
            source = origin;
        }
        source
    }
}
