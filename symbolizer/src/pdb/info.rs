//! The stream that identifies the file (PDB): GUID, age, and the streams that are found by name.

use super::Fault;
use super::msf::Msf;
use crate::cursor::Cursor;

/// The number of this stream.
const INFO: u32 = 1;

/// Most of it that is read, in bytes: a list of source servers and natvis files can make it a few kilobytes.
const MAX_SIZE: usize = 1 << 20;

/// In the list of features: the program was linked with `/DEBUG:FASTLINK`.
const FASTLINK: u32 = u32::from_le_bytes(*b"MINI");

/// What the stream tells.
#[derive(Debug)]
pub(super) struct Info {
    /// As it is stored: the first three of its four numbers with their lowest byte first.
    pub(super) guid: [u8; 16],
    /// The stream of strings that other streams refer to.
    pub(super) strings: Option<u32>,
    /// Most symbols were left in the object files.
    pub(super) is_fastlink: bool,
}

impl Info {
    pub(super) fn read(msf: &Msf) -> Result<Self, Fault> {
        let none = || Fault::Damaged("it has no stream with its GUID".to_owned());
        let stream = msf.stream(INFO).ok_or_else(none)?;
        let bytes = stream.read_up_to(0, MAX_SIZE)?;
        let mut cursor = Cursor::new(&bytes);
        let guid = cursor.skip(12).and_then(|()| cursor.take(16)?.try_into().ok());
        let guid = guid.ok_or_else(|| stream.damaged(0, "shorter than its header"))?;
        let strings = named_streams(&mut cursor);
        let is_fastlink = strings.is_some() && std::iter::from_fn(|| cursor.u32()).any(|feature| feature == FASTLINK);
        Ok(Info { guid, strings: strings.flatten(), is_fastlink })
    }
}

/// The stream called `/names`. The names of streams are stored one after the other, then a hash table from where each
/// name starts to the number of the stream: how many there are, its size, a bit for each used slot, a bit for each
/// deleted slot, then the used slots.
fn named_streams(cursor: &mut Cursor<'_>) -> Option<Option<u32>> {
    let length = cursor.u32()? as usize;
    let names = cursor.take(length)?;
    let (count, _slots) = (cursor.u32()?, cursor.u32()?);
    for _ in 0..2 {
        let words = cursor.u32()? as usize;
        cursor.skip(words.checked_mul(4)?)?;
    }
    let mut strings = None;
    for _ in 0..count {
        let (name, stream) = (cursor.u32()?, cursor.u32()?);
        if names.get(name as usize..).is_some_and(|name| name.starts_with(b"/names\0")) {
            strings = Some(stream);
        }
    }
    Some(strings)
}

/// GUID and age in the order in which people write them: as bytes of a number with the highest first.
pub(crate) fn identity(guid: [u8; 16], age: u32) -> [u8; 20] {
    let mut identity = [0; 20];
    identity[..16].copy_from_slice(&guid);
    identity[..4].reverse();
    identity[4..6].reverse();
    identity[6..8].reverse();
    identity[16..].copy_from_slice(&age.to_be_bytes());
    identity
}

#[cfg(test)]
mod tests {
    use super::{identity, named_streams};
    use crate::cursor::Cursor;

    #[test]
    fn identities_read_as_people_write_them() {
        let guid = [0x79, 0xC5, 0xEB, 0xBD, 0x4F, 0xA7, 0xA1, 0x06, 0x4C, 0x4C, 0x44, 0x20, 0x50, 0x44, 0x42, 0x2E];
        let hex: String = identity(guid, 1).iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(hex, "BDEBC579A74F06A14C4C44205044422E00000001");
    }

    #[test]
    fn the_stream_of_strings_is_found_by_its_name() {
        let mut table = b"\x11\0\0\0/LinkInfo\0/names\0".to_vec();
        for number in [2u32, 4, 1, 0b11, 0, 0, 5, 10, 13, 7] {
            table.extend(number.to_le_bytes());
        }
        assert_eq!(named_streams(&mut Cursor::new(&table)), Some(Some(13)));
        assert_eq!(named_streams(&mut Cursor::new(&table[..40])), None);
    }
}
