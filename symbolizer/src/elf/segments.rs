//! From an offset in the file to the virtual address that the ELF headers give it.
//!
//! Symbols and debug information speak of virtual addresses; a memory map speaks of file offsets. The two differ in
//! files made by lld, mold or BOLT, and in any file with more than one executable segment, so a module's lowest
//! mapping says nothing: only the program header that loads the offset does.

/// One `PT_LOAD` program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) file_size: u64,
    pub(crate) executable: bool,
}

impl Segment {
    /// Whether the segment loads `offset`, with its ends rounded out to multiples of `page` as the kernel maps it.
    fn loads(&self, offset: u64, page: u64) -> bool {
        let start = self.offset - self.offset % page;
        let end = self.offset.saturating_add(self.file_size).checked_next_multiple_of(page).unwrap_or(u64::MAX);
        self.file_size != 0 && start <= offset && offset < end
    }
}

/// The virtual address of `offset`, by the segment that loads it; `page` is the largest page size the machine may have.
///
/// Neighbouring segments may share a page, which is then mapped twice. Code is looked for, so an executable segment
/// wins; among those, one that has the offset within its own bytes rather than in the rest of its last page.
pub(crate) fn address_of_offset(segments: &[Segment], offset: u64, page: u64) -> Option<u64> {
    let choices = [(true, 1), (true, page), (false, 1), (false, page)];
    choices.iter().find_map(|&(executable, page)| {
        let segment = segments.iter().find(|s| s.executable == executable && s.loads(offset, page))?;
        Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
    })
}

#[cfg(test)]
mod tests {
    use super::{Segment, address_of_offset};

    fn segment(offset: u64, address: u64, file_size: u64, executable: bool) -> Segment {
        Segment { offset, address, file_size, executable }
    }

    #[test]
    fn lld_layout_with_addresses_unlike_offsets() {
        // As lld lays out a small program: each segment one page further in memory than in the file.
        let segments = [
            segment(0, 0, 0x62c, false),
            segment(0x630, 0x1630, 0x190, true),
            segment(0x7c0, 0x27c0, 0x190, false),
            segment(0x950, 0x3950, 0x20, false),
        ];
        // The whole file is one page, mapped four times; what runs is the executable segment's.
        assert_eq!(address_of_offset(&segments, 0x630, 4096), Some(0x1630));
        assert_eq!(address_of_offset(&segments, 0x7bf, 4096), Some(0x17bf));
        // Padding before and after the code in the executable mapping.
        assert_eq!(address_of_offset(&segments, 0x10, 4096), Some(0x1010));
        assert_eq!(address_of_offset(&segments, 0xfff, 4096), Some(0x1fff));
        assert_eq!(address_of_offset(&segments, 0x1000, 4096), None);
    }

    #[test]
    fn several_executable_segments() {
        let segments = [
            segment(0, 0x40_0000, 0x1000, false),
            segment(0x1000, 0x40_1000, 0x800, true),
            segment(0x1800, 0x80_0800, 0x900, true),
        ];
        assert_eq!(address_of_offset(&segments, 0x17ff, 4096), Some(0x40_17ff));
        assert_eq!(address_of_offset(&segments, 0x1800, 4096), Some(0x80_0800));
        assert_eq!(address_of_offset(&segments, 0x20ff, 4096), Some(0x80_10ff));
        assert_eq!(address_of_offset(&segments, 0x800, 4096), Some(0x40_0800));
    }

    #[test]
    fn hostile_headers_neither_wrap_nor_panic() {
        let segments = [segment(u64::MAX - 1, u64::MAX, u64::MAX, true), segment(0, 0, 0, true)];
        assert_eq!(address_of_offset(&segments, u64::MAX - 1, 65536), Some(u64::MAX));
        assert_eq!(address_of_offset(&segments, 0, 4096), None);
        assert_eq!(address_of_offset(&[], 0, 4096), None);
    }
}
