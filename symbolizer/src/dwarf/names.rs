//! Names of functions. The entry of an inlined or cloned function seldom has one: it points at the entry that does,
//! often in several steps, across units (link-time optimisation) and files (dwz).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::cursor::Cursor;
use super::fuel::{Fault, Meter};
use super::functions::DieName;
use super::sections::{Place, Strings, Windows};
use super::units::{DebugFile, Unit};
use super::values::{Reference, Text};
use crate::Name;

/// Longest chain of references from an entry to the one with the name. Real chains have up to three.
const MAX_HOPS: usize = 16;

/// How many units besides the present one are kept open.
const MAX_UNITS: usize = 256;

/// Which file an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Where {
    /// The one with the code.
    Main,
    /// The file that dwz moved common entries to.
    Supplementary,
}

/// The name that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundName {
    pub(super) name: Name,
    /// It is the linker's name, not just the one in the source.
    pub(super) is_linkage: bool,
}

/// Names that have been read and demangled, for all workers: linkers keep one copy of each, so where it is tells it
/// apart. `None` for what is empty or cannot be read.
#[derive(Debug, Default)]
pub(super) struct Interned(Mutex<HashMap<(Where, Place), Option<Name>>>);

/// One of the files, as a worker reads it.
#[derive(Debug)]
pub(super) struct View<'w, 's> {
    pub(super) file: &'w DebugFile<'s>,
    pub(super) windows: Windows<'s>,
    /// Units that were opened for the names in them, by where they start.
    units: HashMap<u64, Arc<Unit>>,
}

/// The unit of the main file whose addresses are being looked up; its bytes are at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present<'a> {
    pub(super) unit: &'a Unit,
    /// From the start of the unit on.
    pub(super) entries: Cursor<'a>,
}

impl Present<'_> {
    fn read_name(&self, offset: u64, meter: &mut Meter<'_>) -> Result<DieName, Fault> {
        let mut cursor = self.entries;
        cursor.seek(usize::try_from(offset - self.unit.header.start).unwrap_or(usize::MAX))?;
        read_name(self.unit, &mut cursor, meter)
    }
}

/// Finds names, and remembers them.
#[derive(Debug)]
pub(super) struct Names<'w, 's> {
    pub(super) main: View<'w, 's>,
    supplementary: Option<View<'w, 's>>,
    interned: &'w Interned,
    /// By file and offset in `.debug_info` of the entry that was pointed at.
    known: HashMap<(Where, u64), Option<FoundName>>,
}

impl<'w, 's> View<'w, 's> {
    fn new(file: &'w DebugFile<'s>) -> Self {
        View { file, windows: Windows::new(file.sections), units: HashMap::new() }
    }

    /// The unit that the entry at `offset` is in; `None` if it is in none.
    fn open(&mut self, offset: u64, meter: &mut Meter<'_>) -> Result<Option<Arc<Unit>>, Fault> {
        let Some(header) = self.file.unit_containing(offset) else { return Ok(None) };
        if let Some(unit) = self.units.get(&header.start) {
            return Ok(Some(Arc::clone(unit)));
        }
        let unit = Arc::new(self.file.unit(header, &mut self.windows, meter)?);
        if self.units.len() >= MAX_UNITS {
            self.units.clear();
        }
        self.units.insert(header.start, Arc::clone(&unit));
        Ok(Some(unit))
    }

    /// What the entry at `offset` in `.debug_info`, which is in `unit`, says about its name.
    fn read_name(&mut self, unit: &Unit, offset: u64, meter: &mut Meter<'_>) -> Result<DieName, Fault> {
        let read = |cursor: &mut Cursor<'_>, meter: &mut Meter<'_>| read_name(unit, cursor, meter);
        self.windows.info.read_until(offset, unit.header.end, meter, read)
    }
}

fn read_name(unit: &Unit, cursor: &mut Cursor<'_>, meter: &mut Meter<'_>) -> Result<DieName, Fault> {
    let mut name = DieName::default();
    let code = cursor.uleb()?;
    if code != 0 {
        let abbreviation = unit.table.get(code, cursor)?;
        unit.table.each(abbreviation, cursor, meter, |attribute, value| name.note(attribute, value))?;
    }
    Ok(name)
}

impl<'w, 's> Names<'w, 's> {
    pub(super) fn new(
        main: &'w DebugFile<'s>,
        supplementary: Option<&'w DebugFile<'s>>,
        interned: &'w Interned,
    ) -> Self {
        let supplementary = supplementary.map(View::new);
        Names { main: View::new(main), supplementary, interned, known: HashMap::new() }
    }

    /// The name of a function whose entry, in the unit `present`, says `name`.
    pub(super) fn find(
        &mut self,
        present: Present<'_>,
        name: DieName,
        meter: &mut Meter<'_>,
    ) -> Result<Option<FoundName>, Fault> {
        if name.linkage.is_none()
            && name.plain.is_none()
            && let Some(target) = name.origin.map(|origin| target(Where::Main, present.unit, origin))
        {
            if let Some(known) = self.known.get(&target) {
                return Ok(known.clone());
            }
            let found = self.follow(present, name, meter)?;
            self.known.insert(target, found.clone());
            return Ok(found);
        }
        self.follow(present, name, meter)
    }

    /// Follows references until there is a linker's name, else takes the first name met.
    fn follow(
        &mut self,
        present: Present<'_>,
        mut name: DieName,
        meter: &mut Meter<'_>,
    ) -> Result<Option<FoundName>, Fault> {
        let mut place = Where::Main;
        let mut opened: Option<Arc<Unit>> = None;
        let mut best = None;
        for _ in 0..MAX_HOPS {
            let unit = opened.as_deref().unwrap_or(present.unit);
            if let Some(text) = name.linkage
                && let Some(name) = self.intern(place, unit, text, meter)
            {
                return Ok(Some(FoundName { name, is_linkage: true }));
            }
            if best.is_none()
                && let Some(text) = name.plain
            {
                best = self.intern(place, unit, text, meter);
            }
            let Some((next_place, offset)) = name.origin.map(|origin| target(place, unit, origin)) else { break };
            if next_place == Where::Main && present.unit.header.contains(offset) {
                name = present.read_name(offset, meter)?;
                opened = None;
            } else {
                let Some(view) = self.view(next_place) else { break };
                let Some(next_unit) = view.open(offset, meter)? else { break };
                name = view.read_name(&next_unit, offset, meter)?;
                opened = Some(next_unit);
            }
            place = next_place;
        }
        Ok(best.map(|name| FoundName { name, is_linkage: false }))
    }

    fn view(&mut self, place: Where) -> Option<&mut View<'w, 's>> {
        match place {
            Where::Main => Some(&mut self.main),
            Where::Supplementary => self.supplementary.as_mut(),
        }
    }

    /// The name that is at `text` in a unit; `None` if it is empty or cannot be read.
    fn intern(&mut self, place: Where, unit: &Unit, text: Text, meter: &mut Meter<'_>) -> Option<Name> {
        let (encoding, bases) = (unit.header.encoding, unit.root.bases);
        let mut string = self.view(place)?.windows.place(text, Strings::Info, encoding, bases, meter).ok()?;
        let mut place = place;
        if string.section == Strings::Supplementary {
            (place, string.section) = (Where::Supplementary, Strings::Str);
        }
        let key = (place, string);
        if let Some(name) = self.interned.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return name.clone();
        }
        let read = |bytes: &[u8]| (!bytes.is_empty()).then(|| Name::from_raw(bytes));
        let name = self.view(place)?.windows.string(string, meter, read).ok().flatten();
        self.interned.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, name.clone());
        name
    }
}

/// File, and offset in its `.debug_info`, of the entry that a reference in `unit` of the file `place` points at.
fn target(place: Where, unit: &Unit, reference: Reference) -> (Where, u64) {
    match reference {
        Reference::Unit(offset) => (place, unit.header.start.saturating_add(offset)),
        Reference::Info(offset) => (place, offset),
        Reference::Supplementary(offset) => (Where::Supplementary, offset),
    }
}
