//! Reading a section here and there without holding all of it.
//!
//! What is needed of a section is mostly close together: the lists of ranges of one unit, the names of one library. So a
//! window keeps the last piece that was read, and what lies in it costs no system call.

use gimli::RunTimeEndian;

use super::cursor::Cursor;
use super::fuel::{Fault, Meter, Spot};
use crate::Error;
use crate::section::Section;

/// Longest piece that one thing which is read (an entry, a string, a list's item) may make a window read, in bytes.
const MAX_PIECE: u64 = 1 << 20;

/// What filling a window costs: about as much time as this many steps.
const STEPS_PER_READ: u64 = 32;

/// Bytes that are copied in the time of one step.
const BYTES_PER_STEP: u64 = 64;

/// One worker's way to read one section.
#[derive(Debug)]
pub(super) struct Window<'s> {
    section: Option<&'s Section>,
    name: &'static str,
    endian: RunTimeEndian,
    /// Bytes to read at once, unless more are needed.
    chunk: u64,
    /// Where the piece starts.
    start: u64,
    piece: Piece<'s>,
}

/// What was read last.
#[derive(Debug)]
enum Piece<'s> {
    /// All of the section, which is in memory.
    All(&'s [u8]),
    /// The first so many bytes of a buffer.
    Part(Vec<u8>, usize),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::All(bytes) => bytes,
            Piece::Part(buffer, length) => &buffer[..*length],
        }
    }
}

impl<'s> Window<'s> {
    /// A window on `section`, called `name` in messages. A section that is missing is one without bytes.
    pub(super) fn new(section: Option<&'s Section>, name: &'static str, endian: RunTimeEndian, chunk: u64) -> Self {
        Window { section, name, endian, chunk, start: 0, piece: Piece::All(&[]) }
    }

    /// Size of the section.
    pub(super) fn len(&self) -> u64 {
        self.section.map_or(0, Section::len)
    }

    /// Reads at `offset` with `read`, which may be called again with a longer piece when the first one ends too early.
    pub(super) fn read<T>(
        &mut self,
        offset: u64,
        meter: &mut Meter<'_>,
        read: impl FnMut(&mut Cursor<'_>, &mut Meter<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.read_until(offset, u64::MAX, meter, read)
    }

    /// The same, but nothing at or after `end` is read.
    pub(super) fn read_until<T>(
        &mut self,
        offset: u64,
        end: u64,
        meter: &mut Meter<'_>,
        mut read: impl FnMut(&mut Cursor<'_>, &mut Meter<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (spot, endian) = (Spot { section: self.name, offset }, self.endian);
        let end = end.min(self.len());
        // Whatever is read has at least a byte.
        let available = end.checked_sub(offset).filter(|&available| available > 0).ok_or(Fault::CutShort(spot))?;
        let mut wanted = 1;
        loop {
            let piece = self.piece(offset, wanted.min(available), meter)?;
            let piece = &piece[..piece.len().min(usize::try_from(available).unwrap_or(usize::MAX))];
            let length = piece.len() as u64;
            match read(&mut Cursor::new(piece, spot, endian), meter) {
                Err(Fault::CutShort(_)) if length < available && length < MAX_PIECE => {
                    wanted = length.saturating_mul(4).max(self.chunk);
                }
                result => return result,
            }
        }
    }

    /// The bytes from `offset` on, at least `wanted` of them, all of which must be in the section.
    fn piece(&mut self, offset: u64, wanted: u64, meter: &mut Meter<'_>) -> Result<&[u8], Fault> {
        let have = self.start.saturating_add(self.piece.bytes().len() as u64);
        if offset < self.start || offset.saturating_add(wanted) > have {
            self.fill(offset, wanted, meter)?;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let spot = Spot { section: self.name, offset };
        self.piece.bytes().get(at..).ok_or(Fault::CutShort(spot))
    }

    fn fill(&mut self, offset: u64, wanted: u64, meter: &mut Meter<'_>) -> Result<(), Fault> {
        let spot = Spot { section: self.name, offset };
        let section = self.section.ok_or(Fault::CutShort(spot))?;
        if let Some(all) = section.in_memory().map_err(|error| fault_of(&error, spot))? {
            (self.start, self.piece) = (0, Piece::All(all));
            return Ok(());
        }
        let size = wanted.max(self.chunk).min(section.len().saturating_sub(offset));
        meter.burn(STEPS_PER_READ + size / BYTES_PER_STEP)?;
        let piece = std::mem::replace(&mut self.piece, Piece::All(&[]));
        let mut buffer = if let Piece::Part(buffer, _) = piece { buffer } else { Vec::new() };
        let length = section.read(offset..offset.saturating_add(size), &mut buffer).map(<[u8]>::len);
        (self.start, self.piece) = (offset, Piece::Part(buffer, *length.as_ref().unwrap_or(&0)));
        length.map(|_| ()).map_err(|error| fault_of(&error, spot))
    }
}

/// All of `start..end` of a section: in `buffer`, unless it is in memory anyway.
pub(super) fn whole<'a>(
    window: &Window<'a>,
    start: u64,
    end: u64,
    buffer: &'a mut Vec<u8>,
    meter: &mut Meter<'_>,
) -> Result<&'a [u8], Fault> {
    let spot = Spot { section: window.name, offset: start };
    let section = window.section.ok_or(Fault::CutShort(spot))?;
    let size = end.checked_sub(start).filter(|_| end <= section.len()).ok_or(Fault::CutShort(spot))?;
    meter.burn(STEPS_PER_READ + size / BYTES_PER_STEP)?;
    if let Some(all) = section.in_memory().map_err(|error| fault_of(&error, spot))? {
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        return range.and_then(|(start, end)| all.get(start..end)).ok_or(Fault::CutShort(spot));
    }
    section.read(start..end, buffer).map_err(|error| fault_of(&error, spot))
}

fn fault_of(error: &Error, spot: Spot) -> Fault {
    match error {
        Error::Limit { .. } => Fault::OutOfFuel,
        Error::CutShort { .. } => Fault::CutShort(spot),
        Error::Io { .. } => Fault::Damaged(spot, "the file cannot be read there"),
        _ => Fault::Damaged(spot, "the section cannot be unpacked"),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PIECE, Window, whole};
    use crate::dwarf::fuel::{Fault, Fuel};
    use crate::dwarf::testing::sections;
    use gimli::RunTimeEndian;

    #[test]
    fn pieces_grow_as_far_as_it_takes() {
        let content: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8 + 1).chain([0]).collect();
        let sections = sections(&[(".debug_str", content.clone())]);
        let fuel = Fuel::for_size(0);
        let meter = &mut fuel.meter();
        let mut window = Window::new(sections.str.as_ref(), ".debug_str", RunTimeEndian::Little, 16);
        for at in [9_000, 0, 9_999, 5, 10_000] {
            let string = window.read(at, meter, |cursor, _| cursor.string(1 << 20).map(<[u8]>::to_vec));
            assert_eq!(string.as_deref(), Ok(&content[at as usize..10_000]), "at {at}");
        }
        let missing = |result: Result<u8, Fault>| matches!(result, Err(Fault::CutShort(_)));
        assert!(missing(window.read(10_001, meter, |cursor, _| cursor.u8())));
        assert!(missing(window.read(u64::MAX, meter, |cursor, _| cursor.u8())));
        // Not past the end that was given, though there is more.
        assert!(window.read_until(100, 104, meter, |cursor, _| cursor.u32()).is_ok());
        assert!(window.read_until(100, 103, meter, |cursor, _| cursor.u32()).is_err());
        let mut buffer = Vec::new();
        assert_eq!(whole(&window, 7, 107, &mut buffer, meter), Ok(&content[7..107]));
        assert!(whole(&window, 7, 10_002, &mut buffer, meter).is_err());
        let mut none = Window::new(None, ".debug_str", RunTimeEndian::Little, 16);
        assert!(missing(none.read(0, meter, |cursor, _| cursor.u8())));
    }

    #[test]
    fn pieces_do_not_grow_for_ever() {
        let sections = sections(&[(".debug_info", vec![0x80; 4 * MAX_PIECE as usize])]);
        let fuel = Fuel::for_size(sections.size());
        let mut window = Window::new(sections.info.as_ref(), ".debug_info", RunTimeEndian::Little, 512);
        let mut longest = 0;
        let result = window.read(0, &mut fuel.meter(), |cursor, _| {
            longest = longest.max(cursor.left() as u64);
            cursor.uleb()
        });
        assert!(matches!(result, Err(Fault::CutShort(_))));
        assert!((MAX_PIECE..4 * MAX_PIECE).contains(&longest), "{longest}");
    }
}
