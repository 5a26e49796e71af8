//! Code addresses and the functions found at them.

use std::sync::Arc;

use super::module::ModuleId;

/// Index of a [`Location`] in [`Profile::locations`](crate::Profile::locations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(pub u32);

impl LocationId {
    /// The index as the slice index that it is.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One code address that occurs in a stack. Each address is there once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address as the file has it: the return address of a call. See [`lookup_address`].
    pub address: u64,
    /// The mapping that holds the *call*, that is [`lookup_address`]; `None` when the file's mappings do not cover it.
    pub module: Option<ModuleId>,
    /// The same place as an address of the ELF file (`p_vaddr` space), once the symbolizer has found it.
    pub file_address: Option<u64>,
    /// The functions at this place, innermost (deepest inlined) first. Empty while unresolved or when nothing was found.
    pub frames: Vec<Frame>,
}

/// Where to look for the symbol and line of an address from a stack: one byte before it.
///
/// All formats read here record return addresses, also in frame 0. The call may be the last instruction of its
/// function, so that the return address belongs to the next one.
pub fn lookup_address(address: u64) -> u64 {
    address.saturating_sub(1)
}

/// A function at a location, with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The demangled name in full, as the symbolizer gave it; empty where only the line is known. Comes from the input:
    /// escape it before it is printed.
    pub function: Arc<str>,
    /// The source file, where line information exists. Escape it before it is printed.
    pub file: Option<Arc<str>>,
    /// The line in `file`, from 1; 0 is unknown.
    pub line: u32,
    /// The function was inlined into the next frame of the same location.
    pub inlined: bool,
}

impl Frame {
    /// A frame that is known by its name only.
    pub fn named(function: impl Into<Arc<str>>) -> Self {
        Self { function: function.into(), file: None, line: 0, inlined: false }
    }

    /// The same frame at a place in the source; line 0 is unknown.
    pub fn at(self, file: impl Into<Arc<str>>, line: u32) -> Self {
        Self { file: Some(file.into()), line, ..self }
    }
}
