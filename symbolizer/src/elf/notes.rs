//! The build id: the note by which a linker makes every file it writes recognisable.

use object::Endianness;

use super::read_u32;

/// `NT_GNU_BUILD_ID` of the GNU note types.
const BUILD_ID: u32 = 3;

/// Longest build id that is believed, in bytes; linkers write 8 to 32.
const MAX_LENGTH: usize = 64;

/// The build id in the note section or segment `notes`, whose entries are aligned to `align` bytes (4, or 8 for the
/// newer GNU property notes).
pub(crate) fn build_id(mut notes: &[u8], align: u64, endian: Endianness) -> Option<&[u8]> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let word = |at| read_u32(notes, at, endian);
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name_end = name_size.checked_add(12)?;
        let start = name_end.checked_next_multiple_of(align)?;
        let end = start.checked_add(size)?;
        let (name, content) = (notes.get(12..name_end)?, notes.get(start..end)?);
        if kind == BUILD_ID && name == b"GNU\0" && (1..=MAX_LENGTH).contains(&content.len()) {
            return Some(content);
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::build_id;
    use object::Endianness::{Big, Little};

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, content.len() as u32, kind] {
            note.extend(word.to_le_bytes());
        }
        for part in [name, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn found_after_other_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"stapsdt\0", 3, b"not a build id"));
        notes.extend(note(b"GNU\0", 3, &[0xab; 20]));
        assert_eq!(build_id(&notes, 4, Little), Some(&[0xab; 20][..]));
    }

    #[test]
    fn damaged_notes_give_nothing() {
        let whole = note(b"GNU\0", 3, &[0xab; 20]);
        for cut in 0..whole.len() {
            assert_eq!(build_id(&whole[..cut], 4, Little), None, "cut at {cut}");
        }
        assert_eq!(build_id(&whole, 4, Big), None);
        assert_eq!(build_id(&[0xff; 64], 4, Little), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, b""), 4, Little), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, &[1; 65]), 4, Little), None);
    }
}
