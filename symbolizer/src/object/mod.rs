//! What every container of code gives the symbolizer, whether ELF, PE or Mach-O.

pub(crate) mod macho;
pub(crate) mod pe;
pub(crate) mod symbols;

use std::path::Path;

use self::symbols::{Symbols, Table};
use crate::Error;
use crate::section::Section;

/// A file with code, or with the debug information of one.
pub(crate) trait ObjectFile {
    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// Byte order of what is in it.
    fn endian(&self) -> gimli::RunTimeEndian;

    /// What tells this file from any other version of it, if the linker wrote that: the build id of ELF, the UUID of
    /// Mach-O, GUID and age of the debug information of PE.
    fn identity(&self) -> Option<&[u8]>;

    /// The virtual address, as the file's own headers count it, of a byte of the file, if it is loaded at all.
    fn address_of_offset(&self, offset: u64) -> Option<u64>;

    /// The section that DWARF calls `name` (`.debug_info`), unpacked; `None` if there is none or it is empty.
    fn section(&self, name: &str) -> Result<Option<Section>, Error>;

    /// All sections that DWARF calls `name`: object files have several where linkers choose one of equal pieces.
    fn sections(&self, name: &str) -> Result<Vec<Section>, Error> {
        Ok(self.section(name)?.into_iter().collect())
    }

    /// A table of functions; `None` if the file has none.
    fn symbols(&self, table: Table) -> Result<Option<Symbols<'_>>, Error>;

    /// Whether there is debug information in DWARF, and not only the headers of it.
    fn has_dwarf(&self) -> bool;
}
