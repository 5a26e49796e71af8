//! What is mapped where: the memory map of the profiled process, as far as symbols need it.

use std::path::PathBuf;

/// One mapping of a file into the profiled process, as `/proc/<pid>/maps` or a profile's module table tells it.
///
/// A file that is mapped in several pieces gives several modules with the same path; executable mappings are enough,
/// but handing over all of them lets nameless text (remapped to huge pages) be attached to its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// First address of the mapping.
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    /// Offset in the file, in bytes, of the byte that is mapped at `start`. Of a PE file, which is loaded as a whole, the
    /// offset in the image, not in the file: the address relative to the image (RVA); of a Mach-O file for several
    /// processors, the offset in the part that is for this one. When `start` is where the image begins, both are 0.
    pub file_offset: u64,
    /// The path as the process saw it. The kernel's suffix ` (deleted)` may still be there: such a file is only
    /// trusted when its build id is the wanted one. Empty, `[vdso]`, `//anon` and the like name no file.
    pub path: PathBuf,
    /// The build id recorded with the profile; of a PE file GUID and age of its debug information, 16 and 4 bytes with the
    /// highest of each number first, as people write them; of a Mach-O file the UUID. With it, a file with another build id, or none, is refused. Without
    /// it, the file at `path` is taken as it is.
    pub build_id: Option<Vec<u8>>,
}

impl Module {
    /// Whether `address` lies in the mapping.
    pub fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// The offset in the file of what is mapped at `address`, which must lie in the mapping.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.file_offset)
    }
}
