//! How the numbers of a unit or a table are written.

/// What says how long numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Encoding {
    /// Version of DWARF.
    pub(super) version: u16,
    /// Bytes of an address.
    pub(super) address_size: u8,
    /// Offsets have eight bytes, not four.
    pub(super) is_64: bool,
}

impl Encoding {
    /// Bytes of an offset.
    pub(super) fn word_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    /// Bytes of a reference into another unit: in version 2 it was made like an address.
    pub(super) fn reference_size(self) -> u8 {
        if self.version <= 2 { self.address_size } else { self.word_size() }
    }

    /// The highest address there is.
    pub(super) fn last_address(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.address_size.clamp(1, 8)))
    }
}
