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
    /// The best source of names that was used.
    pub source: SymbolSource,
    /// What went wrong, in the order it was met: files refused, damaged debug information, limits reached.
    pub problems: Vec<Error>,
    /// Distinct addresses with a source line.
    pub with_lines: usize,
    /// Distinct addresses with a function name only.
    pub with_name: usize,
    /// Distinct addresses with neither.
    pub unresolved: usize,
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
    /// The symbols exported to the dynamic linker, no lines.
    Dynsym,
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
