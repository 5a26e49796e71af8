//! The names of functions that were inlined: the streams of types (TPI) and of ids (IPI), as far as they tell them.
//!
//! Both list records that are numbered one after the other. Every few kilobytes another stream notes which number is
//! where, so that only a small piece has to be read to find one.

use super::Fault;
use super::msf::{Msf, Stream};
use crate::cursor::Cursor;
use crate::dwarf::fuel::Meter;

/// Numbers of the streams.
const TYPES: u32 = 2;
const IDS: u32 = 4;

/// Most that is read to find one record, in bytes. Notes are 8 KiB apart, and a record has at most 64 KiB.
const MAX_PIECE: usize = 128 << 10;

/// Kinds of records.
mod kind {
    pub(super) const CLASS: u16 = 0x1504;
    pub(super) const STRUCTURE: u16 = 0x1505;
    pub(super) const UNION: u16 = 0x1506;
    pub(super) const ENUM: u16 = 0x1507;
    pub(super) const INTERFACE: u16 = 0x1519;
    pub(super) const FUNCTION: u16 = 0x1601;
    pub(super) const MEMBER: u16 = 0x1602;
    pub(super) const STRING: u16 = 0x1605;
}

/// Finds names.
#[derive(Debug)]
pub(super) struct Names<'m> {
    types: Option<Records<'m>>,
    ids: Option<Records<'m>>,
}

impl<'m> Names<'m> {
    /// Reads the notes; a stream that has none, or damaged ones, names nothing.
    pub(super) fn read(msf: &'m Msf) -> (Self, Result<(), Fault>) {
        let read = |number| match Records::read(msf, number) {
            Ok(records) => (records, Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        let (types, of_types) = read(TYPES);
        let (ids, of_ids) = read(IDS);
        (Names { types, ids }, of_types.and(of_ids))
    }

    /// The name of the function with that id, with that of its class or namespace.
    pub(super) fn function(&self, id: u32, meter: &mut Meter<'_>) -> Result<Option<Vec<u8>>, Fault> {
        let Some(record) = record(self.ids.as_ref(), id, meter)? else { return Ok(None) };
        let Some((kind, scope, name)) = function_record(&record) else { return Ok(None) };
        let scope = match (kind, scope) {
            (_, 0) => None,
            (kind::MEMBER, class) => record_name(self.types.as_ref(), class, class_name, meter)?,
            (_, namespace) => record_name(self.ids.as_ref(), namespace, string, meter)?,
        };
        Ok(Some(match scope {
            Some(scope) if !scope.is_empty() => [&scope[..], b"::", name].concat(),
            _ => name.to_owned(),
        }))
    }
}

fn record(records: Option<&Records<'_>>, id: u32, meter: &mut Meter<'_>) -> Result<Option<Vec<u8>>, Fault> {
    records.map_or(Ok(None), |records| records.get(id, meter))
}

fn record_name(
    records: Option<&Records<'_>>,
    id: u32,
    name: fn(&[u8]) -> Option<&[u8]>,
    meter: &mut Meter<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    Ok(record(records, id, meter)?.as_deref().and_then(name).map(<[u8]>::to_vec))
}

/// Kind, scope (a class or a namespace) and name.
fn function_record(record: &[u8]) -> Option<(u16, u32, &[u8])> {
    let mut cursor = Cursor::new(record);
    let (kind, scope, _type) = (cursor.u16()?, cursor.u32()?, cursor.u32()?);
    let is_function = matches!(kind, kind::FUNCTION | kind::MEMBER);
    Some((kind, scope, cursor.string()?)).filter(|_| is_function)
}

fn string(record: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(record);
    let (kind, _parts) = (cursor.u16()?, cursor.u32()?);
    cursor.string().filter(|_| kind == kind::STRING)
}

fn class_name(record: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(record);
    let kind = cursor.u16()?;
    // Number of members, properties, members; base classes and virtual functions; size.
    match kind {
        kind::CLASS | kind::STRUCTURE | kind::INTERFACE => {
            cursor.skip(16)?;
            skip_number(&mut cursor)?;
        }
        kind::UNION => {
            cursor.skip(8)?;
            skip_number(&mut cursor)?;
        }
        kind::ENUM => cursor.skip(12)?,
        _ => return None,
    }
    cursor.string()
}

/// A number of two bytes, or if those are too large for one, the size of the number that follows.
fn skip_number(cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.u16()? {
        0..0x8000 => Some(()),
        0x8000 => cursor.skip(1),
        0x8001 | 0x8002 => cursor.skip(2),
        0x8003 | 0x8004 => cursor.skip(4),
        0x8009 | 0x800a => cursor.skip(8),
        _ => None,
    }
}

/// One of the two streams.
#[derive(Debug)]
struct Records<'m> {
    stream: Stream<'m>,
    /// The first number, and the one after the last.
    numbers: std::ops::Range<u32>,
    /// Where the records are.
    start: usize,
    end: usize,
    /// Numbers, and where their records start, counted from `start`.
    notes: Vec<(u32, u32)>,
}

impl<'m> Records<'m> {
    fn read(msf: &'m Msf, number: u32) -> Result<Option<Self>, Fault> {
        let Some(stream) = msf.stream(number).filter(|stream| stream.size() != 0) else { return Ok(None) };
        let header = stream.read(0, 56)?;
        let mut cursor = Cursor::new(&header);
        let mut field = || cursor.u32().unwrap_or_default();
        let (_version, start, first, last, size) = (field(), field() as usize, field(), field(), field() as usize);
        // Two streams in one number: that of hashes and notes, and one more.
        let notes_stream = field() & 0xffff;
        let _hashes = [field(), field(), field(), field()];
        let (notes_at, notes_size) = (field() as usize, field() as usize);
        let end = start.checked_add(size).filter(|&end| end <= stream.size());
        let end = end.ok_or_else(|| stream.damaged(16, "more records than the stream has room for"))?;
        let notes = match msf.stream(notes_stream) {
            Some(notes) if notes_size <= notes.size() => {
                msf.file().charge(notes_size as u64)?;
                notes.read(notes_at, notes_size)?
            }
            _ => return Ok(None),
        };
        let note = |note: &[u8; 8]| {
            let [a, b, c, d, place @ ..] = *note;
            (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(place))
        };
        let notes = notes.as_chunks::<8>().0.iter().map(note).collect();
        Ok(Some(Records { stream, numbers: first..last, start, end, notes }))
    }

    /// A record, from its kind to its end; `None` if there is none with that number.
    fn get(&self, number: u32, meter: &mut Meter<'_>) -> Result<Option<Vec<u8>>, Fault> {
        if !self.numbers.contains(&number) {
            return Ok(None);
        }
        let after = self.notes.partition_point(|(noted, _)| *noted <= number);
        let Some(&(noted, place)) = after.checked_sub(1).and_then(|index| self.notes.get(index)) else {
            return Ok(None);
        };
        let from = self.start.saturating_add(place as usize);
        let next = self.notes.get(after).map_or(self.end, |(_, place)| self.start.saturating_add(*place as usize));
        let length = next.min(self.end).saturating_sub(from).min(MAX_PIECE);
        let piece = self.stream.read(from, length)?;
        let mut cursor = Cursor::new(&piece);
        for _ in noted..number {
            meter.burn(1)?;
            let Some(()) = cursor.u16().and_then(|length| cursor.skip(length.into())) else { return Ok(None) };
        }
        Ok(cursor.u16().and_then(|length| cursor.take(length.into())).map(<[u8]>::to_vec))
    }
}

#[cfg(test)]
mod tests {
    use super::{class_name, function_record, string};

    #[test]
    fn names_in_records() {
        let function = b"\x02\x16\x00\x10\0\0\x01\x10\0\0mid\0\xf1";
        assert_eq!(function_record(function), Some((0x1602, 0x1000, &b"mid"[..])));
        assert_eq!(string(b"\x05\x16\0\0\0\0ns\0"), Some(&b"ns"[..]));
        assert_eq!(string(b"\x04\x16\0\0\0\0ns\0"), None);
        let mut class = b"\x05\x15".to_vec();
        class.extend([0; 16]);
        // A size of four bytes.
        class.extend(b"\x04\x80\xff\xff\xff\xff");
        class.extend(b"ns::Box\0.?AUBox@ns@@\0");
        assert_eq!(class_name(&class), Some(&b"ns::Box"[..]));
        let enumeration = [&b"\x07\x15"[..], &[0; 12], b"Color\0"].concat();
        assert_eq!(class_name(&enumeration), Some(&b"Color"[..]));
        for cut in 0..class.len() - 14 {
            assert_eq!(class_name(&class[..cut]), None);
        }
    }
}
