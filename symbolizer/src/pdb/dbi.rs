//! The stream about the whole program (DBI): its modules, which code each has, and where other streams are.

use super::Fault;
use super::msf::{Msf, Stream};
use crate::cursor::Cursor;
use crate::dwarf::fuel::Meter;

/// The number of this stream.
const DBI: u32 = 3;

/// In place of the number of a stream that there is none of.
const NO_STREAM: u16 = u16::MAX;

/// Size of the header, in bytes.
const HEADER: usize = 64;

/// Most modules of a program. The number of one is stored in two bytes.
const MAX_MODULES: usize = 65_536;

/// Versions of the list of contributions: Visual C++ 6 and later; with one more field.
const CONTRIBUTIONS_60: u32 = 0xeffe_0000 + 19_970_605;
const CONTRIBUTIONS_2: u32 = 0xeffe_0000 + 20_140_516;

/// What the stream tells.
#[derive(Debug)]
pub(super) struct Dbi {
    /// How often the file was written to; the same number is in the program.
    pub(super) age: u32,
    pub(super) modules: Vec<ModuleInfo>,
    /// Streams of: what the linker knows by name, symbol records, the headers of the program's sections.
    pub(super) publics: Option<u32>,
    pub(super) records: Option<u32>,
    pub(super) section_headers: Option<u32>,
    /// Code was moved around after linking, and addresses would have to be translated.
    pub(super) is_rearranged: bool,
    /// Where the list of contributions is in the stream.
    contributions: std::ops::Range<usize>,
}

/// An object file that was linked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModuleInfo {
    /// The stream with its symbols.
    pub(super) stream: Option<u32>,
    /// Sizes in bytes of what is in the stream: symbols, lines in an older form, lines.
    pub(super) symbols: u32,
    pub(super) old_lines: u32,
    pub(super) lines: u32,
}

/// The code of a module that contains an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) module: u16,
}

impl Dbi {
    pub(super) fn read(msf: &Msf) -> Result<Self, Fault> {
        let none = || Fault::Damaged("it has no stream about the program".to_owned());
        let stream = msf.stream(DBI).filter(|stream| stream.size() != 0).ok_or_else(none)?;
        let header = stream.read(0, HEADER)?;
        let fields = Header::parse(&header).ok_or_else(|| stream.damaged(0, "not a header"))?;
        let bad_size = || stream.damaged(24, "parts larger than the whole");
        // The parts follow the header in this order.
        let mut at = HEADER;
        let mut starts = [0; 8];
        for (start, size) in starts.iter_mut().zip(fields.parts) {
            *start = at;
            at = at.checked_add(size as usize).filter(|&at| at <= stream.size()).ok_or_else(bad_size)?;
        }
        msf.file().charge(u64::from(fields.parts[0]))?;
        let modules = stream.read(starts[0], fields.parts[0] as usize)?;
        let modules = modules_of(&modules).ok_or_else(|| stream.damaged(starts[0], "a damaged list of modules"))?;
        let extra = stream.read(starts[6], (fields.parts[6] as usize).min(64))?;
        // FPO, exceptions, fix-ups, two about moved code, section headers, …
        let extra: Vec<Option<u32>> =
            extra.as_chunks::<2>().0.iter().map(|&number| some_stream(u16::from_le_bytes(number))).collect();
        let extra_stream = |index: usize| extra.get(index).copied().flatten();
        Ok(Dbi {
            age: fields.age,
            modules,
            publics: some_stream(fields.publics),
            records: some_stream(fields.records),
            section_headers: extra_stream(5),
            is_rearranged: extra_stream(3).is_some() || extra_stream(4).is_some(),
            contributions: starts[1]..starts[1] + fields.parts[1] as usize,
        })
    }

    /// The contribution that each of `addresses` (ascending, relative to the image) lies in.
    pub(super) fn contributions(
        &self,
        msf: &Msf,
        sections: &Sections,
        addresses: &[u32],
        meter: &mut Meter<'_>,
    ) -> Result<Vec<Option<Contribution>>, Fault> {
        /// Contributions that are read at once.
        const AT_ONCE: usize = 16 << 10;
        let mut found = vec![None; addresses.len()];
        let none = || Fault::Damaged("it has no stream about the program".to_owned());
        let stream = msf.stream(DBI).ok_or_else(none)?;
        let start = self.contributions.start;
        let version = stream.read(start, 4.min(self.contributions.len()))?;
        let entry_size = match Cursor::new(&version).u32() {
            Some(CONTRIBUTIONS_60) => 28,
            Some(CONTRIBUTIONS_2) => 32,
            version => return Err(stream.damaged(start, &format!("contributions of version {version:x?}"))),
        };
        let mut at = start + 4;
        while at < self.contributions.end {
            let piece = stream.read(at, (AT_ONCE * entry_size).min(self.contributions.end - at))?;
            at += piece.len();
            meter.burn((piece.len() / entry_size) as u64)?;
            for contribution in piece.chunks_exact(entry_size).filter_map(|entry| contribution(entry, sections)) {
                let from = addresses.partition_point(|&address| address < contribution.start);
                let wanted = addresses.iter().skip(from).take_while(|&&address| address < contribution.end).count();
                meter.burn(wanted as u64)?;
                for slot in found.iter_mut().skip(from).take(wanted) {
                    slot.get_or_insert(contribution);
                }
            }
        }
        Ok(found)
    }
}

struct Header {
    age: u32,
    publics: u16,
    records: u16,
    /// Sizes of: modules, contributions, section map, source files, type servers, edit and continue, other streams,
    /// in the order in which they are stored.
    parts: [u32; 7],
}

impl Header {
    fn parse(header: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(header);
        let (signature, _version, age) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (_globals, _build, publics) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
        let (_dll_version, records, _dll_build) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
        let [modules, contributions, map, sources, servers] = [(); 5].map(|()| cursor.u32());
        let _server = cursor.u32()?;
        let (streams, edit) = (cursor.u32()?, cursor.u32()?);
        let parts = [modules?, contributions?, map?, sources?, servers?, edit, streams];
        (signature == u32::MAX).then_some(Header { age, publics, records, parts })
    }
}

fn some_stream(number: u16) -> Option<u32> {
    (number != NO_STREAM).then_some(number.into())
}

fn modules_of(bytes: &[u8]) -> Option<Vec<ModuleInfo>> {
    /// What is before the stream's number: a pointer, the first contribution, flags.
    const BEFORE: usize = 4 + 28 + 2;
    /// Between the sizes and the names: number of files, padding, three numbers.
    const BETWEEN: usize = 2 + 2 + 4 + 4 + 4;
    let mut modules = Vec::new();
    let mut cursor = Cursor::new(bytes);
    while cursor.left() > 4 {
        cursor.skip(BEFORE)?;
        let stream = some_stream(cursor.u16()?);
        let [symbols, old_lines, lines] = [cursor.u32()?, cursor.u32()?, cursor.u32()?];
        cursor.skip(BETWEEN)?;
        cursor.string()?;
        cursor.string()?;
        cursor.align(4);
        modules.push(ModuleInfo { stream, symbols, old_lines, lines });
        if modules.len() > MAX_MODULES {
            return None;
        }
    }
    Some(modules)
}

/// Section, padding, offset, size, flags, module, …
fn contribution(entry: &[u8], sections: &Sections) -> Option<Contribution> {
    let mut cursor = Cursor::new(entry);
    let section = cursor.u16()?;
    cursor.skip(2)?;
    let (offset, size, _flags, module) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u16()?);
    let start = sections.address(section, offset)?;
    Some(Contribution { start, end: start.checked_add(size)?, module })
}

/// Where the sections of the program are in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections {
    /// First address of each and first address after it, relative to the image.
    bounds: Vec<(u32, u32)>,
}

impl Sections {
    /// From section headers as they are in a PE file.
    pub(crate) fn parse(headers: &[u8]) -> Self {
        let bounds = headers.chunks_exact(40).map(|header| {
            let mut cursor = Cursor::new(header);
            let (size, start) = (|| {
                cursor.skip(8)?;
                Some((cursor.u32()?, cursor.u32()?))
            })()
            .unwrap_or_default();
            (start, start.saturating_add(size))
        });
        Sections { bounds: bounds.collect() }
    }

    pub(super) fn read(stream: &Stream<'_>) -> Result<Self, Fault> {
        /// More sections than files have.
        const MOST: usize = 40 * 65_536;
        Ok(Sections::parse(&stream.read_up_to(0, MOST)?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// The address, relative to the image, of an offset in the section with that number, counted from 1.
    pub(super) fn address(&self, section: u16, offset: u32) -> Option<u32> {
        let &(start, end) = self.bounds.get(usize::from(section).checked_sub(1)?)?;
        start.checked_add(offset).filter(|&address| address <= end)
    }

    /// The end of the section that contains `address`.
    pub(super) fn end_of(&self, address: u32) -> Option<u32> {
        let containing = self.bounds.iter().find(|&&(start, end)| start <= address && address < end);
        containing.map(|&(_, end)| end)
    }
}
