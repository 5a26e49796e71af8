//! Mappings of the profiled process: which file was where in its address space.

use std::fmt;

/// Index of a [`Module`] in [`Profile::modules`](crate::Profile::modules).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// The index as the slice index that it is.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One mapping of a file (or of nothing) into the profiled process. A shared library usually has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// First address of the mapping.
    pub start: u64,
    /// First address after the mapping; always above `start`.
    pub end: u64,
    /// Where in the file, in bytes, the mapping starts.
    pub file_offset: u64,
    /// The file as the kernel named it, without the ` (deleted)` mark; `[vdso]`, `[heap]` and so on for the kernel's
    /// own names; empty for anonymous memory. Comes from the input: escape it before it is printed, and do not trust
    /// it as a path. Bytes that are not UTF-8 were replaced.
    pub path: String,
    /// GNU build id of the file at the time of the dump, where the dump tells it.
    pub build_id: Option<BuildId>,
    /// The mapping was executable, so return addresses may lie in it.
    pub executable: bool,
    /// The file had been deleted or replaced when the dump was written.
    pub deleted: bool,
}

impl Module {
    /// The last component of the path, for people; `[anon]` for anonymous memory.
    pub fn file_name(&self) -> &str {
        if self.path.is_empty() {
            return "[anon]";
        }
        self.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&self.path)
    }

    /// True for mappings that have a file behind them, as opposed to anonymous memory and the kernel's `[names]`.
    pub fn is_file(&self) -> bool {
        !self.path.is_empty() && !self.path.starts_with('[')
    }

    /// Where in the file an address of this mapping lies; `None` outside the mapping or beyond 64 bits.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        if !(self.start..self.end).contains(&address) {
            return None;
        }
        (address - self.start).checked_add(self.file_offset)
    }
}

/// The module that holds `address`, out of modules sorted by `start`.
///
/// Mappings of one process cannot overlap, but a damaged or merged dump may say that they do: the one that starts last
/// wins, and of those that start together the one that was listed last. A mapping that is hidden behind a later start
/// is not searched for, so that a lookup stays a binary search.
pub(crate) fn module_at(modules: &[Module], address: u64) -> Option<ModuleId> {
    let after = modules.partition_point(|module| module.start <= address);
    let index = after.checked_sub(1)?;
    (address < modules[index].end).then_some(ModuleId(index as u32))
}

/// A build id: the bytes of a GNU build id note (20 for the usual SHA-1), printed as lowercase hex.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Longest build id that is accepted, in bytes. Linkers write 8, 16, 20 or 32; `--build-id=0x…` can be longer.
    pub const MAX_LEN: usize = 64;

    /// Takes the bytes of a build id note. `None` when empty or longer than [`BuildId::MAX_LEN`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (1..=Self::MAX_LEN).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Reads pairs of hex digits of either case. `None` when they are anything else or too many.
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        if !hex.len().is_multiple_of(2) || hex.len() / 2 > Self::MAX_LEN {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
        let bytes: Option<Vec<u8>> =
            hex.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
        Self::from_bytes(&bytes?)
    }

    /// The bytes of the note.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(start: u64, end: u64, path: &str) -> Module {
        Module { start, end, file_offset: 0x1000, path: path.into(), build_id: None, executable: true, deleted: false }
    }

    #[test]
    fn finds_the_mapping_around_an_address() {
        let modules = [module(0x10, 0x20, "a"), module(0x20, 0x30, "b"), module(0x40, u64::MAX, "c")];
        let at = |address| module_at(&modules, address).map(|id| modules[id.index()].path.as_str());
        assert_eq!(at(0xf), None);
        assert_eq!(at(0x10), Some("a"));
        assert_eq!(at(0x1f), Some("a"));
        assert_eq!(at(0x20), Some("b"));
        assert_eq!(at(0x30), None);
        assert_eq!(at(u64::MAX - 1), Some("c"));
        assert_eq!(at(u64::MAX), None);
        assert_eq!(module_at(&[], 0), None);
    }

    #[test]
    fn the_later_of_overlapping_mappings_wins() {
        let modules = [module(0x10, 0x40, "a"), module(0x20, 0x30, "b"), module(0x20, 0x28, "c")];
        assert_eq!(module_at(&modules, 0x1f), Some(ModuleId(0)));
        assert_eq!(module_at(&modules, 0x27), Some(ModuleId(2)));
        assert_eq!(module_at(&modules, 0x29), None);
    }

    #[test]
    fn offsets_count_from_the_start_of_the_file() {
        let module = module(0x4000, 0x5000, "/usr/lib/a b.so");
        assert_eq!(module.offset_of(0x4010), Some(0x1010));
        assert_eq!(module.offset_of(0x5000), None);
        assert_eq!(module.file_name(), "a b.so");
    }

    #[test]
    fn build_ids_are_pairs_of_hex_digits() {
        let id = BuildId::from_hex(b"00aBff").unwrap();
        assert_eq!(id.as_bytes(), [0, 0xab, 0xff]);
        assert_eq!(id.to_string(), "00abff");
        for bad in ["", "0", "0g", "0x12", &"ab".repeat(BuildId::MAX_LEN + 1)] {
            assert_eq!(BuildId::from_hex(bad.as_bytes()), None, "{bad}");
        }
    }
}
