//! The functions of a module and what was inlined into them.
//!
//! Symbol records follow one another; some open a scope that a later record closes: a function, a block of variables,
//! an inlined call. A function's record tells where the one that closes it is, so functions that nobody asks about are
//! jumped over.

use std::collections::HashMap;
use std::sync::Arc;

use super::Fault;
use super::annotations;
use super::dbi::Sections;
use super::lines::Source;
use crate::cursor::Cursor;
use crate::dwarf::fuel::Meter;

/// The most inlined calls that are told around one address; compilers stay far below.
const MAX_INLINED: usize = 128;

/// Kinds of records.
mod kind {
    pub(super) const END: u16 = 0x0006;
    pub(super) const THUNK: u16 = 0x1102;
    pub(super) const BLOCK: u16 = 0x1103;
    pub(super) const WITH: u16 = 0x1104;
    pub(super) const LOCAL_FUNCTION: u16 = 0x110f;
    pub(super) const FUNCTION: u16 = 0x1110;
    pub(super) const MANAGED_FUNCTION: u16 = 0x112a;
    pub(super) const LOCAL_MANAGED_FUNCTION: u16 = 0x112b;
    pub(super) const SEPARATED: u16 = 0x1132;
    pub(super) const LOCAL_FUNCTION_ID: u16 = 0x1146;
    pub(super) const FUNCTION_ID: u16 = 0x1147;
    pub(super) const INLINED: u16 = 0x114d;
    pub(super) const INLINED_END: u16 = 0x114e;
    pub(super) const FUNCTION_ID_END: u16 = 0x114f;
    pub(super) const LOCAL_FUNCTION_DPC: u16 = 0x1155;
    pub(super) const LOCAL_FUNCTION_DPC_ID: u16 = 0x1156;
    pub(super) const INLINED_WITH_COUNT: u16 = 0x115d;
}

/// What is at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) function: Option<Function>,
    /// The calls inlined around it, outermost first.
    pub(super) inlined: Vec<Inlined>,
    /// Without a function: where the last one before the address starts. It ends before the address, too.
    pub(super) before: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// First address, relative to the image.
    pub(super) start: u32,
    /// With namespaces and classes, without parameters; cut when it is too long.
    pub(super) name: Arc<[u8]>,
}

/// An inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inlined {
    /// Id of the function.
    pub(super) function: u32,
    /// What in the function is executed at the address, if the call's own rows cover it.
    pub(super) source: Option<Source>,
}

/// Finds what is at each of `addresses`, ascending and relative to the image.
pub(super) fn find(
    symbols: &[u8],
    sections: &Sections,
    inlinees: &HashMap<u32, Source>,
    addresses: &[u32],
    meter: &mut Meter<'_>,
) -> (Vec<Found>, Result<(), Fault>) {
    let found = vec![Found::default(); addresses.len()];
    let mut finder = Finder { sections, inlinees, addresses, found, starts: Vec::new(), meter };
    let mut cursor = Cursor::new(symbols);
    let mut result = Ok(());
    while result.is_ok() && cursor.left() >= 4 {
        result = finder.take_record(symbols, &mut cursor);
    }
    finder.starts.sort_unstable();
    for (found, address) in finder.found.iter_mut().zip(addresses).filter(|(found, _)| found.function.is_none()) {
        let after = finder.starts.partition_point(|start| start <= address);
        found.before = after.checked_sub(1).and_then(|index| finder.starts.get(index)).copied();
    }
    (finder.found, result)
}

struct Finder<'f, 'm> {
    sections: &'f Sections,
    inlinees: &'f HashMap<u32, Source>,
    addresses: &'f [u32],
    found: Vec<Found>,
    /// Where all functions start.
    starts: Vec<u32>,
    meter: &'f mut Meter<'m>,
}

/// A record: its kind and what follows.
type Record<'b> = (u16, &'b [u8]);

/// The next record of some symbols; records start at multiples of four bytes.
fn next_record<'b>(cursor: &mut Cursor<'b>) -> Result<Record<'b>, Fault> {
    let at = cursor.at();
    let record = (|| {
        let mut record = Cursor::new(cursor.u16().and_then(|length| cursor.take(length.into()))?);
        Some((record.u16()?, record.take(record.left())?))
    })();
    cursor.align(4);
    record.ok_or_else(|| Fault::Damaged(format!("symbols, offset {at:#x}: a record past their end")))
}

/// Whether records of this kind close a scope.
fn closing(kind: u16) -> bool {
    matches!(kind, kind::END | kind::INLINED_END | kind::FUNCTION_ID_END)
}

fn is_function(kind: u16) -> bool {
    matches!(
        kind,
        kind::FUNCTION
            | kind::LOCAL_FUNCTION
            | kind::FUNCTION_ID
            | kind::LOCAL_FUNCTION_ID
            | kind::LOCAL_FUNCTION_DPC
            | kind::LOCAL_FUNCTION_DPC_ID
            | kind::MANAGED_FUNCTION
            | kind::LOCAL_MANAGED_FUNCTION
    )
}

impl Finder<'_, '_> {
    /// Takes in one record outside of functions, and if it opens one, that function.
    fn take_record<'b>(&mut self, symbols: &'b [u8], cursor: &mut Cursor<'b>) -> Result<(), Fault> {
        self.meter.burn(1)?;
        let at = cursor.at();
        let (kind, record) = next_record(cursor)?;
        let code = match kind {
            kind if is_function(kind) => function(record, self.sections),
            kind::THUNK => thunk(record, self.sections),
            _ => return Ok(()),
        };
        let Some(Code { start, size, name, end }) = code else { return Ok(()) };
        self.starts.push(start);
        let from = self.addresses.partition_point(|&address| address < start);
        let count = self.addresses.iter().skip(from).take_while(|&&address| address - start < size).count();
        if count == 0 {
            // The place of its end counts from the start of the stream, which has a signature before the symbols.
            let end = (end as usize).checked_sub(4).filter(|&end| end > at && end % 4 == 0);
            let there = end.and_then(|end| Cursor::starting_at(symbols, end));
            let is_end = there.clone().is_some_and(|mut there| next_record(&mut there).is_ok_and(|(k, _)| closing(k)));
            if let Some(there) = there.filter(|_| is_end && kind != kind::THUNK) {
                *cursor = there;
            }
            return Ok(());
        }
        self.meter.burn(count as u64)?;
        let addresses = from..from + count;
        let function = Function { start, name: name.into() };
        for found in self.found.iter_mut().skip(from).take(count) {
            // Of functions that were folded into one, the first.
            if found.function.is_none() {
                found.function = Some(function.clone());
            }
        }
        if kind == kind::THUNK { Ok(()) } else { self.take_inlined(cursor, start, addresses) }
    }

    /// Takes in the inlined calls up to the end of the function.
    fn take_inlined(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: u32,
        addresses: std::ops::Range<usize>,
    ) -> Result<(), Fault> {
        let mut sites: Vec<Site> = Vec::new();
        // For each address and site whose rows cover it.
        let mut covered: HashMap<(usize, usize), Source> = HashMap::new();
        let mut deepest: Vec<Option<usize>> = vec![None; addresses.len()];
        // The sites that are open, with `None` for other scopes.
        let mut open: Vec<Option<usize>> = Vec::new();
        while cursor.left() >= 4 {
            self.meter.burn(1)?;
            let (kind, record) = next_record(cursor)?;
            if closing(kind) && open.pop().is_none() {
                break;
            }
            match kind {
                kind::BLOCK | kind::WITH | kind::THUNK | kind::SEPARATED => open.push(None),
                kind::INLINED | kind::INLINED_WITH_COUNT => {
                    let parent = open.iter().rev().copied().flatten().next();
                    let depth = parent.and_then(|parent| sites.get(parent)).map_or(1, |parent| parent.depth + 1);
                    let Some((id, rows)) = self.site(kind, record)? else {
                        open.push(None);
                        continue;
                    };
                    let site = sites.len();
                    sites.push(Site { function: id, parent, depth });
                    open.push(Some(site));
                    for row in rows {
                        self.cover(&row, start, &addresses, |index| {
                            let source = Source { file: row.file, line: row.line };
                            covered.entry((index, site)).or_insert(source);
                            let known = deepest.get_mut(index - addresses.start)?;
                            if known.and_then(|known| sites.get(known)).is_none_or(|known| known.depth < depth) {
                                *known = Some(site);
                            }
                            Some(())
                        })?;
                    }
                }
                _ => {}
            }
        }
        for (index, site) in addresses.zip(deepest) {
            let mut inlined = Vec::new();
            let mut next = site;
            while let Some((site, known)) = next.and_then(|site| Some((site, sites.get(site)?))) {
                self.meter.burn(1)?;
                inlined.push(Inlined { function: known.function, source: covered.get(&(index, site)).copied() });
                next = known.parent;
            }
            inlined.reverse();
            inlined.truncate(MAX_INLINED);
            if let Some(found) = self.found.get_mut(index).filter(|found| found.inlined.is_empty()) {
                found.inlined = inlined;
            }
        }
        Ok(())
    }

    /// The function and the rows of an inlined call. Parent and end are known from where the record is.
    fn site(&mut self, kind: u16, record: &[u8]) -> Result<Option<(u32, Vec<annotations::Row>)>, Fault> {
        let mut cursor = Cursor::new(record);
        let fields = (|| {
            cursor.skip(8)?;
            let id = cursor.u32()?;
            if kind == kind::INLINED_WITH_COUNT {
                cursor.skip(4)?;
            }
            Some((id, cursor.take(cursor.left())?))
        })();
        let Some((id, program)) = fields else { return Ok(None) };
        self.meter.burn(program.len() as u64)?;
        // A function whose beginning is not told has rows, but not their lines.
        let beginning = self.inlinees.get(&id).copied();
        let mut rows =
            annotations::rows(program, beginning.map_or(u32::MAX, |b| b.file), beginning.map_or(0, |b| b.line));
        if beginning.is_none() {
            rows.iter_mut().for_each(|row| row.line = 0);
        }
        Ok(Some((id, rows)))
    }

    /// Calls `each` for the addresses that a row covers, by their index.
    fn cover(
        &mut self,
        row: &annotations::Row,
        start: u32,
        addresses: &std::ops::Range<usize>,
        mut each: impl FnMut(usize) -> Option<()>,
    ) -> Result<(), Fault> {
        let Some(within) = self.addresses.get(addresses.clone()) else { return Ok(()) };
        let (from, to) = (start.saturating_add(row.start), start.saturating_add(row.end));
        let first = within.partition_point(|&address| address < from);
        let covered = within.iter().skip(first).take_while(|&&address| address < to).count();
        // Each is kept until the end of the function.
        self.meter.burn(1 + 16 * covered as u64)?;
        for index in addresses.clone().skip(first).take(covered) {
            each(index);
        }
        Ok(())
    }
}

struct Site {
    function: u32,
    parent: Option<usize>,
    depth: usize,
}

/// A piece of code with a name.
struct Code<'b> {
    start: u32,
    size: u32,
    name: &'b [u8],
    /// Where the record is that closes its scope.
    end: u32,
}

/// Parent, end, next; size, where the body starts and ends; type, offset, section, flags, name.
fn function<'b>(record: &'b [u8], sections: &Sections) -> Option<Code<'b>> {
    let mut cursor = Cursor::new(record);
    let (_parent, end, _next, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
    cursor.skip(12)?;
    let (offset, section, _flags) = (cursor.u32()?, cursor.u16()?, cursor.u8()?);
    Some(Code { start: sections.address(section, offset)?, size, name: cursor.string()?, end })
}

/// Parent, end, next; offset, section, size; kind, name.
fn thunk<'b>(record: &'b [u8], sections: &Sections) -> Option<Code<'b>> {
    let mut cursor = Cursor::new(record);
    let (_parent, end, _next) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let (offset, section, size, _kind) = (cursor.u32()?, cursor.u16()?, cursor.u16()?, cursor.u8()?);
    Some(Code { start: sections.address(section, offset)?, size: size.into(), name: cursor.string()?, end })
}
