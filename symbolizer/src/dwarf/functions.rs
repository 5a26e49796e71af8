//! Which function, and which inlined calls within it, the wanted addresses of a unit are in.
//!
//! One pass over the unit's entries. What is inside a function that holds no wanted address is jumped over where the
//! producer says how far (GCC does), and skipped attribute by attribute where it does not (LLVM). Nothing recurses, so
//! nesting costs no stack, however deep.

use gimli::{AttributeValue, UnitOffset};

use super::Reader;
use super::fuel::{Fault, Meter};
use super::lines::{Row, call_file};
use super::ranges::Extent;
use super::units::{Unit, indices_between};

/// Deepest chain of inlined calls that is followed at one address; compilers stop far earlier.
const MAX_INLINED: usize = 255;

/// Most inlined calls for all addresses of a unit together: this many, plus that many for each address.
const MAX_ALL_INLINED: (usize, usize) = (1 << 16, 64);

/// What an entry says about the name of its function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DieName<'d> {
    /// The name the linker sees.
    pub(super) linkage: Option<AttributeValue<Reader<'d>>>,
    /// The name in the source.
    pub(super) plain: Option<AttributeValue<Reader<'d>>>,
    /// The entry that says the rest: the declaration, or the function that was inlined or cloned.
    pub(super) origin: Option<AttributeValue<Reader<'d>>>,
}

/// An inlined call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inlined<'d> {
    pub(super) name: DieName<'d>,
    /// Where it is called.
    pub(super) call: Row,
    /// The call's file is recorded.
    pub(super) has_file: bool,
}

/// What was found for the addresses of one unit.
#[derive(Debug, Default)]
pub(super) struct Functions<'d> {
    pub(super) functions: Vec<DieName<'d>>,
    pub(super) inlined: Vec<Inlined<'d>>,
    /// One for each address.
    pub(super) places: Vec<Place>,
}

/// Where one address is.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Index of the function.
    pub(super) function: Option<u32>,
    /// Size of that function's range that holds the address, to choose the narrowest of several functions.
    size: u64,
    /// Indices of the inlined calls, the outermost first.
    pub(super) inlined: Vec<u32>,
}

/// Finds the functions of `addresses`, which must be ascending. On a fault, the result is what was found before it.
pub(super) fn find<'d>(
    dwarf: &gimli::Dwarf<Reader<'d>>,
    unit: &Unit<'d>,
    addresses: &[u64],
    meter: &mut Meter<'_>,
) -> (Functions<'d>, Result<(), Fault>) {
    let mut walk = Walk::new(dwarf, unit, addresses.to_vec());
    let mut result = walk.run(false, meter);
    // A function nested in another function or in a type may have been jumped over: look everywhere for the rest.
    let missing = |place: &Place| place.function.is_none();
    if result.is_ok() && walk.found.places.iter().any(missing) {
        let rest: Vec<usize> = (0..addresses.len()).filter(|&i| missing(&walk.found.places[i])).collect();
        let mut second = Walk::new(dwarf, unit, rest.iter().map(|&i| addresses[i]).collect());
        result = second.run(true, meter);
        let first = &mut walk.found;
        let (functions, inlined) = (first.functions.len() as u32, first.inlined.len() as u32);
        first.functions.append(&mut second.found.functions);
        first.inlined.append(&mut second.found.inlined);
        for (i, mut place) in rest.into_iter().zip(second.found.places) {
            place.function = place.function.map(|index| index + functions);
            place.inlined.iter_mut().for_each(|index| *index += inlined);
            first.places[i] = place;
        }
    }
    (walk.found, result)
}

struct Walk<'w, 'd> {
    dwarf: &'w gimli::Dwarf<Reader<'d>>,
    unit: &'w Unit<'d>,
    addresses: Vec<u64>,
    found: Functions<'d>,
    /// Entries around the present one that hold wanted addresses, the outermost first.
    scopes: Vec<Scope>,
    /// Inlined calls that may still be noted.
    allowance: usize,
}

/// An entry around the present one.
struct Scope {
    depth: isize,
    /// Index of the function; `None` inside a function without wanted addresses.
    function: Option<u32>,
    /// How many inlined calls deep within the function.
    inlined: usize,
}

/// How to go on after an entry.
enum Next<'d> {
    /// With what is inside.
    Inside,
    /// With what comes after everything inside it, which starts here if it is known.
    After(Option<AttributeValue<Reader<'d>>>),
}

impl<'w, 'd> Walk<'w, 'd> {
    fn new(dwarf: &'w gimli::Dwarf<Reader<'d>>, unit: &'w Unit<'d>, addresses: Vec<u64>) -> Self {
        let found = Functions { places: vec![Place::default(); addresses.len()], ..Functions::default() };
        let allowance = MAX_ALL_INLINED.0 + MAX_ALL_INLINED.1 * addresses.len();
        Walk { dwarf, unit, addresses, found, scopes: Vec::new(), allowance }
    }

    /// Reads all entries of the unit; with `thorough`, also those inside of functions that hold no wanted address.
    fn run(&mut self, thorough: bool, meter: &mut Meter<'_>) -> Result<(), Fault> {
        let mut entries = self.unit.unit.entries_raw(None)?;
        // Depth of the entry at which `entries` was set up.
        let mut base = 0;
        // Entries deeper than this are skipped.
        let mut skip_below = isize::MAX;
        while !entries.is_empty() {
            let depth = base + entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            meter.burn(1 + abbreviation.attributes().len() as u64)?;
            if depth > skip_below {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            skip_below = isize::MAX;
            while self.scopes.pop_if(|scope| scope.depth >= depth).is_some() {}
            let next = match abbreviation.tag() {
                gimli::DW_TAG_subprogram => self.function(&mut entries, abbreviation, depth, thorough, meter)?,
                gimli::DW_TAG_inlined_subroutine => self.inlined(&mut entries, abbreviation, depth, meter)?,
                tag if !thorough && abbreviation.has_children() && holds_no_code(tag) => {
                    Next::After(skip_to_sibling(&mut entries, abbreviation)?)
                }
                _ => {
                    entries.skip_attributes(abbreviation.attributes())?;
                    Next::Inside
                }
            };
            if let Next::After(sibling) = next
                && abbreviation.has_children()
            {
                match sibling {
                    // Never backwards: that could go round for ever.
                    Some(AttributeValue::UnitRef(UnitOffset(offset))) if offset >= entries.next_offset().0 => {
                        entries = self.unit.unit.entries_raw(Some(UnitOffset(offset)))?;
                        base = depth;
                    }
                    _ => skip_below = depth,
                }
            }
        }
        Ok(())
    }

    /// Takes in a `DW_TAG_subprogram`.
    fn function(
        &mut self,
        entries: &mut gimli::EntriesRaw<'_, Reader<'d>>,
        abbreviation: &gimli::Abbreviation,
        depth: isize,
        thorough: bool,
        meter: &mut Meter<'_>,
    ) -> Result<Next<'d>, Fault> {
        let entry = read_entry(entries, abbreviation)?;
        let index = self.found.functions.len() as u32;
        // Before the places refer to it, which they do even if the list of ranges turns out to be damaged further on.
        self.found.functions.push(entry.name);
        let mut is_wanted = false;
        let (places, addresses) = (&mut self.found.places, &self.addresses);
        entry.extent.for_each(self.dwarf, &self.unit.unit, meter, |low, high| {
            for i in indices_between(addresses, low, high) {
                let place = &mut places[i as usize];
                let size = high - low;
                // Of several functions that claim an address the narrowest is right; of equal ones, the first.
                if place.function.is_none() || size < place.size {
                    *place = Place { function: Some(index), size, inlined: Vec::new() };
                    is_wanted = true;
                }
            }
        })?;
        if !is_wanted {
            self.found.functions.pop();
            if !thorough {
                return Ok(Next::After(entry.sibling));
            }
        }
        self.scopes.push(Scope { depth, function: is_wanted.then_some(index), inlined: 0 });
        Ok(Next::Inside)
    }

    /// Takes in a `DW_TAG_inlined_subroutine`.
    fn inlined(
        &mut self,
        entries: &mut gimli::EntriesRaw<'_, Reader<'d>>,
        abbreviation: &gimli::Abbreviation,
        depth: isize,
        meter: &mut Meter<'_>,
    ) -> Result<Next<'d>, Fault> {
        let entry = read_entry(entries, abbreviation)?;
        let Some(&Scope { function: Some(function), inlined: level, .. }) = self.scopes.last() else {
            return Ok(Next::After(entry.sibling));
        };
        let index = self.found.inlined.len() as u32;
        self.found.inlined.push(Inlined { name: entry.name, call: entry.call, has_file: entry.has_file });
        let mut count = 0;
        let (places, addresses) = (&mut self.found.places, &self.addresses);
        entry.extent.for_each(self.dwarf, &self.unit.unit, meter, |low, high| {
            for place in &mut places[as_usize(indices_between(addresses, low, high))] {
                // Only where all calls around this one hold the address too, and no other one beside it does.
                if place.function == Some(function) && place.inlined.len() == level && count < self.allowance {
                    place.inlined.push(index);
                    count += 1;
                }
            }
        })?;
        if count == 0 {
            self.found.inlined.pop();
            return Ok(Next::After(entry.sibling));
        }
        self.allowance -= count;
        meter.burn(count as u64)?;
        if level + 1 >= MAX_INLINED {
            return Ok(Next::After(entry.sibling));
        }
        self.scopes.push(Scope { depth, function: Some(function), inlined: level + 1 });
        Ok(Next::Inside)
    }
}

fn as_usize(range: std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

/// Entries that have children, none of which is a function with code; in C++ that holds for classes as well, but
/// not in Rust.
fn holds_no_code(tag: gimli::DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_enumeration_type | gimli::DW_TAG_array_type | gimli::DW_TAG_subroutine_type)
}

/// The attributes of a function or an inlined call.
#[derive(Default)]
struct Entry<'d> {
    extent: Extent<'d>,
    name: DieName<'d>,
    sibling: Option<AttributeValue<Reader<'d>>>,
    call: Row,
    has_file: bool,
}

fn read_entry<'d>(
    entries: &mut gimli::EntriesRaw<'_, Reader<'d>>,
    abbreviation: &gimli::Abbreviation,
) -> Result<Entry<'d>, gimli::Error> {
    let mut entry = Entry::default();
    for &specification in abbreviation.attributes() {
        let attribute = entries.read_attribute(specification)?;
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_sibling => entry.sibling = Some(value),
            gimli::DW_AT_call_line => {
                entry.call.line = value.udata_value().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
            }
            gimli::DW_AT_call_file => {
                let file = call_file(value);
                (entry.call.file, entry.has_file) = (file.unwrap_or(0), file.is_some());
            }
            name => {
                entry.extent.note(name, value);
                entry.name.note(name, value);
            }
        }
    }
    Ok(entry)
}

impl<'d> DieName<'d> {
    /// Takes the attribute in if it is about the name.
    pub(super) fn note(&mut self, name: gimli::DwAt, value: AttributeValue<Reader<'d>>) {
        match name {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => self.linkage = Some(value),
            gimli::DW_AT_name => self.plain = Some(value),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => self.origin = Some(value),
            _ => {}
        }
    }
}

/// Skips the attributes of an entry, except for the one that says where the next entry beside it starts: producers
/// that write it write it last.
fn skip_to_sibling<'d>(
    entries: &mut gimli::EntriesRaw<'_, Reader<'d>>,
    abbreviation: &gimli::Abbreviation,
) -> Result<Option<AttributeValue<Reader<'d>>>, gimli::Error> {
    match abbreviation.attributes().split_last() {
        Some((last, others)) if last.name() == gimli::DW_AT_sibling => {
            entries.skip_attributes(others)?;
            Ok(Some(entries.read_attribute(*last)?.value()))
        }
        _ => {
            entries.skip_attributes(abbreviation.attributes())?;
            Ok(None)
        }
    }
}
