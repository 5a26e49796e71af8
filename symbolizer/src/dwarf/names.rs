//! Names of functions. The entry of an inlined or cloned function seldom has one: it points at the entry that does,
//! often in several steps, across units (link-time optimisation) and files (dwz).

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{AttributeValue, UnitOffset};

use super::fuel::{Fault, Meter};
use super::functions::DieName;
use super::units::{DebugFile, Unit};

/// Longest chain of references from an entry to the one with the name. Real chains have up to three.
const MAX_HOPS: usize = 16;

/// How many units besides the present one are kept open.
const MAX_UNITS: usize = 256;

/// The name that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawName<'d> {
    pub(super) bytes: &'d [u8],
    /// It is the linker's name, not just the one in the source.
    pub(super) is_linkage: bool,
}

/// Which file an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Where {
    Main,
    /// The file that dwz moved common entries to.
    Supplementary,
}

/// Finds names, and remembers them.
#[derive(Debug)]
pub(super) struct Names<'w, 'd> {
    main: &'w DebugFile<'d>,
    supplementary: Option<&'w DebugFile<'d>>,
    /// By file and offset in `.debug_info` of the entry that was pointed at.
    known: HashMap<(Where, usize), Option<RawName<'d>>>,
    units: HashMap<(Where, usize), Arc<Unit<'d>>>,
}

impl<'w, 'd> Names<'w, 'd> {
    pub(super) fn new(main: &'w DebugFile<'d>, supplementary: Option<&'w DebugFile<'d>>) -> Self {
        Names { main, supplementary, known: HashMap::new(), units: HashMap::new() }
    }

    /// The name of a function whose entry, in `unit` of the main file, says `name`.
    pub(super) fn find(
        &mut self,
        unit: &Unit<'d>,
        name: DieName<'d>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<RawName<'d>>, Fault> {
        if name.linkage.is_none()
            && name.plain.is_none()
            && let Some(target) = name.origin.and_then(|origin| self.target(Where::Main, unit, origin))
        {
            if let Some(known) = self.known.get(&target) {
                return Ok(*known);
            }
            let found = self.follow(Where::Main, unit, name, meter)?;
            self.known.insert(target, found);
            return Ok(found);
        }
        self.follow(Where::Main, unit, name, meter)
    }

    /// Follows references until there is a linker's name, else takes the first name met.
    fn follow(
        &mut self,
        mut place: Where,
        unit: &Unit<'d>,
        mut name: DieName<'d>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<RawName<'d>>, Fault> {
        let mut opened: Option<Arc<Unit<'d>>> = None;
        let mut best = None;
        for _ in 0..MAX_HOPS {
            let unit = opened.as_deref().unwrap_or(unit);
            let Some(file) = self.file(place) else { break };
            let mut string =
                |value| super::string(&file.dwarf, &unit.unit, value, meter).ok().filter(|s| !s.is_empty());
            if let Some(bytes) = name.linkage.and_then(&mut string) {
                return Ok(Some(RawName { bytes, is_linkage: true }));
            }
            if best.is_none() {
                best = name.plain.and_then(&mut string).map(|bytes| RawName { bytes, is_linkage: false });
            }
            let Some((next_place, offset)) = name.origin.and_then(|origin| self.target(place, unit, origin)) else {
                break;
            };
            let Some(start) = self.file(next_place).and_then(|file| file.unit_containing(offset)) else { break };
            let next_unit = self.open(next_place, start, meter)?;
            name = read_name(&next_unit, offset - start, meter)?;
            place = next_place;
            opened = Some(next_unit);
        }
        Ok(best)
    }

    /// File, and offset in its `.debug_info`, of the entry that a reference in `unit` points at.
    fn target(
        &self,
        place: Where,
        unit: &Unit<'d>,
        reference: AttributeValue<super::Reader<'d>>,
    ) -> Option<(Where, usize)> {
        match reference {
            AttributeValue::UnitRef(offset) => {
                Some((place, unit.unit.header.debug_info_offset()?.0.checked_add(offset.0)?))
            }
            AttributeValue::DebugInfoRef(offset) => Some((place, offset.0)),
            AttributeValue::DebugInfoRefSup(offset) => Some((Where::Supplementary, offset.0)),
            _ => None,
        }
    }

    fn file(&self, place: Where) -> Option<&'w DebugFile<'d>> {
        match place {
            Where::Main => Some(self.main),
            Where::Supplementary => self.supplementary,
        }
    }

    fn open(&mut self, place: Where, start: usize, meter: &mut Meter<'_>) -> Result<Arc<Unit<'d>>, Fault> {
        if let Some(unit) = self.units.get(&(place, start)) {
            return Ok(Arc::clone(unit));
        }
        let file = self.file(place).ok_or(gimli::Error::NoEntryAtGivenOffset(start as u64))?;
        let unit = Arc::new(file.unit(start, meter)?);
        if self.units.len() >= MAX_UNITS {
            self.units.clear();
        }
        self.units.insert((place, start), Arc::clone(&unit));
        Ok(unit)
    }
}

/// What the entry at `offset` in `unit` says about its name.
fn read_name<'d>(unit: &Unit<'d>, offset: usize, meter: &mut Meter<'_>) -> Result<DieName<'d>, Fault> {
    let mut entries = unit.unit.entries_raw(Some(UnitOffset(offset)))?;
    let mut name = DieName::default();
    if let Some(abbreviation) = entries.read_abbreviation()? {
        meter.burn(1 + abbreviation.attributes().len() as u64)?;
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            name.note(attribute.name(), attribute.value());
        }
    }
    Ok(name)
}
