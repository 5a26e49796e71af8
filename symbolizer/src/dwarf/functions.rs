//! Which function, and which inlined calls within it, the wanted addresses of a unit are in.
//!
//! One pass over the unit's entries. What is inside a function that holds no wanted address is jumped over where the
//! producer says how far (GCC does), and skipped attribute by attribute where it does not (LLVM). Nothing recurses, so
//! nesting costs no stack, however deep.

use gimli::DwTag;

use super::abbreviations::Abbreviation;
use super::assign::indices_between;
use super::cursor::Cursor;
use super::fuel::{Fault, Meter};
use super::lines::Row;
use super::ranges::Extent;
use super::sections::Windows;
use super::units::Unit;
use super::values::{Reference, Text, Value};

/// Deepest chain of inlined calls that is followed at one address; compilers stop far earlier.
const MAX_INLINED: usize = 255;

/// Most inlined calls for all addresses of a unit together: this many, plus that many for each address.
const MAX_ALL_INLINED: (usize, usize) = (1 << 16, 64);

/// What an entry says about the name of its function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DieName {
    /// The name the linker sees.
    pub(super) linkage: Option<Text>,
    /// The name in the source.
    pub(super) plain: Option<Text>,
    /// The entry that says the rest: the declaration, or the function that was inlined or cloned.
    pub(super) origin: Option<Reference>,
}

/// An inlined call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inlined {
    pub(super) name: DieName,
    /// Where it is called.
    pub(super) call: Row,
    /// The call's file is recorded.
    pub(super) has_file: bool,
}

/// What was found for the addresses of one unit.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) functions: Vec<DieName>,
    pub(super) inlined: Vec<Inlined>,
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

/// Finds the functions of `addresses`, which must be ascending, in a unit whose bytes are `entries` from its start on.
/// On a fault, the result is what was found before it.
pub(super) fn find(
    windows: &mut Windows<'_>,
    unit: &Unit,
    entries: Cursor<'_>,
    addresses: &[u64],
    meter: &mut Meter<'_>,
) -> (Functions, Result<(), Fault>) {
    let mut walk = Walk::new(windows, unit, addresses.to_vec(), false);
    let mut result = walk.run(entries, meter);
    let (mut found, mut fault) = (walk.found, walk.fault);
    // A function nested in another function or in a type may have been jumped over: look everywhere for the rest.
    let missing = |place: &Place| place.function.is_none();
    if result.is_ok() && found.places.iter().any(missing) {
        let rest: Vec<usize> = (0..addresses.len()).filter(|&i| missing(&found.places[i])).collect();
        let mut second = Walk::new(windows, unit, rest.iter().map(|&i| addresses[i]).collect(), true);
        result = second.run(entries, meter);
        fault = fault.and(second.fault);
        let (functions, inlined) = (found.functions.len() as u32, found.inlined.len() as u32);
        found.functions.append(&mut second.found.functions);
        found.inlined.append(&mut second.found.inlined);
        for (i, mut place) in rest.into_iter().zip(second.found.places) {
            place.function = place.function.map(|index| index + functions);
            place.inlined.iter_mut().for_each(|index| *index += inlined);
            found.places[i] = place;
        }
    }
    (found, result.and(fault))
}

struct Walk<'w, 's> {
    windows: &'w mut Windows<'s>,
    unit: &'w Unit,
    addresses: Vec<u64>,
    /// Also look inside of functions that hold no wanted address, and of types.
    thorough: bool,
    found: Functions,
    /// Entries around the present one that hold wanted addresses, the outermost first.
    scopes: Vec<Scope>,
    /// Inlined calls that may still be noted.
    allowance: usize,
    /// What was wrong with the ranges of single entries; others are not the worse for it.
    fault: Result<(), Fault>,
}

/// An entry around the present one.
struct Scope {
    depth: u64,
    /// Index of the function; `None` inside a function without wanted addresses.
    function: Option<u32>,
    /// How many inlined calls deep within the function.
    inlined: usize,
}

/// How to go on after an entry.
enum Next {
    /// With what is inside.
    Inside,
    /// With what comes after everything inside it, which starts so many bytes from the start of the unit if that is
    /// known.
    After(Option<u64>),
}

impl<'w, 's> Walk<'w, 's> {
    fn new(windows: &'w mut Windows<'s>, unit: &'w Unit, addresses: Vec<u64>, thorough: bool) -> Self {
        let found = Functions { places: vec![Place::default(); addresses.len()], ..Functions::default() };
        let allowance = MAX_ALL_INLINED.0 + MAX_ALL_INLINED.1 * addresses.len();
        Walk { windows, unit, addresses, thorough, found, scopes: Vec::new(), allowance, fault: Ok(()) }
    }

    /// Reads the entries of the unit.
    fn run(&mut self, mut entries: Cursor<'_>, meter: &mut Meter<'_>) -> Result<(), Fault> {
        let table = &*self.unit.table;
        entries.seek(self.unit.header.length.into())?;
        let mut depth = 0u64;
        while !entries.is_empty() {
            let code = entries.uleb()?;
            if code == 0 {
                meter.burn(1)?;
                depth = depth.saturating_sub(1);
                continue;
            }
            let abbreviation = table.get(code, &entries)?;
            while self.scopes.pop_if(|scope| scope.depth >= depth).is_some() {}
            let next = match abbreviation.tag {
                // A declaration, or what inlined calls and clones have in common, when there is no code.
                gimli::DW_TAG_subprogram if abbreviation.has_code => {
                    self.function(&mut entries, abbreviation, depth, meter)?
                }
                gimli::DW_TAG_inlined_subroutine if abbreviation.has_code => {
                    self.inlined(&mut entries, abbreviation, depth, meter)?
                }
                tag if abbreviation.has_children && !self.thorough && self.is_of_no_use(tag) => {
                    Next::After(table.skip_to_sibling(abbreviation, &mut entries, meter)?)
                }
                _ => {
                    table.skip(abbreviation, &mut entries, meter)?;
                    Next::Inside
                }
            };
            if abbreviation.has_children {
                match next {
                    Next::Inside => depth += 1,
                    Next::After(sibling) => self.skip_inside(&mut entries, sibling, meter)?,
                }
            }
        }
        Ok(())
    }

    /// Goes past everything inside an entry whose attributes have been read.
    fn skip_inside(&self, entries: &mut Cursor<'_>, sibling: Option<u64>, meter: &mut Meter<'_>) -> Result<(), Fault> {
        let table = &*self.unit.table;
        // Never backwards: that could go round for ever.
        let after = |sibling: Option<u64>, entries: &Cursor<'_>| {
            let position = usize::try_from(sibling?).ok()?;
            (position >= entries.position()).then_some(position)
        };
        if let Some(position) = after(sibling, entries) {
            return entries.seek(position);
        }
        let mut depth = 1u64;
        while depth > 0 && !entries.is_empty() {
            let code = entries.uleb()?;
            if code == 0 {
                meter.burn(1)?;
                depth -= 1;
                continue;
            }
            let abbreviation = table.get(code, entries)?;
            if abbreviation.has_children {
                let sibling = table.skip_to_sibling(abbreviation, entries, meter)?;
                match after(sibling, entries) {
                    Some(position) => entries.seek(position)?,
                    None => depth += 1,
                }
            } else {
                table.skip(abbreviation, entries, meter)?;
            }
        }
        Ok(())
    }

    /// Takes in a `DW_TAG_subprogram` with code.
    fn function(
        &mut self,
        entries: &mut Cursor<'_>,
        abbreviation: &Abbreviation,
        depth: u64,
        meter: &mut Meter<'_>,
    ) -> Result<Next, Fault> {
        let entry = self.read_entry(entries, abbreviation, meter)?;
        let index = self.found.functions.len() as u32;
        // Before the places refer to it, which they do even if the list of ranges turns out to be damaged further on.
        self.found.functions.push(entry.name);
        let mut is_wanted = false;
        let (places, addresses) = (&mut self.found.places, &self.addresses);
        let (encoding, bases) = (self.unit.header.encoding, self.unit.root.bases);
        let result = entry.extent.for_each(self.windows, encoding, bases, meter, |low, high| {
            for i in indices_between(addresses, low, high) {
                let place = &mut places[i as usize];
                let size = high - low;
                // Of several functions that claim an address the narrowest is right; of equal ones, the first.
                if place.function.is_none() || size < place.size {
                    *place = Place { function: Some(index), size, inlined: Vec::new() };
                    is_wanted = true;
                }
            }
        });
        self.tolerate(result)?;
        if !is_wanted {
            self.found.functions.pop();
            if !self.thorough {
                return Ok(Next::After(entry.sibling));
            }
        }
        self.scopes.push(Scope { depth, function: is_wanted.then_some(index), inlined: 0 });
        Ok(Next::Inside)
    }

    /// Takes in a `DW_TAG_inlined_subroutine` with code.
    fn inlined(
        &mut self,
        entries: &mut Cursor<'_>,
        abbreviation: &Abbreviation,
        depth: u64,
        meter: &mut Meter<'_>,
    ) -> Result<Next, Fault> {
        let Some(&Scope { function: Some(function), inlined: level, .. }) = self.scopes.last() else {
            return Ok(Next::After(self.unit.table.skip_to_sibling(abbreviation, entries, meter)?));
        };
        let entry = self.read_entry(entries, abbreviation, meter)?;
        let index = self.found.inlined.len() as u32;
        self.found.inlined.push(Inlined { name: entry.name, call: entry.call, has_file: entry.has_file });
        let mut count = 0;
        let (places, addresses, allowance) = (&mut self.found.places, &self.addresses, self.allowance);
        let (encoding, bases) = (self.unit.header.encoding, self.unit.root.bases);
        let result = entry.extent.for_each(self.windows, encoding, bases, meter, |low, high| {
            for place in &mut places[as_usize(indices_between(addresses, low, high))] {
                // Only where all calls around this one hold the address too, and no other one beside it does.
                if place.function == Some(function) && place.inlined.len() == level && count < allowance {
                    place.inlined.push(index);
                    count += 1;
                }
            }
        });
        self.allowance -= count;
        self.tolerate(result)?;
        if count == 0 {
            self.found.inlined.pop();
            return Ok(Next::After(entry.sibling));
        }
        meter.burn(count as u64)?;
        if level + 1 >= MAX_INLINED {
            return Ok(Next::After(entry.sibling));
        }
        self.scopes.push(Scope { depth, function: Some(function), inlined: level + 1 });
        Ok(Next::Inside)
    }

    /// Goes on after damage to a list of ranges, which is apart from the entries; not when there is no fuel.
    fn tolerate(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        match result {
            Err(Fault::OutOfFuel) => result,
            result => {
                self.fault = self.fault.and(result);
                Ok(())
            }
        }
    }

    /// Whether what is inside of an entry is not worth looking at: types; and in a function, what is neither a block
    /// nor a call that was inlined. In Rust, types have functions inside; in C++ those have entries of their own
    /// elsewhere, which refer to their declarations inside.
    fn is_of_no_use(&self, tag: DwTag) -> bool {
        match tag {
            gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_array_type
            | gimli::DW_TAG_subroutine_type
            | gimli::DW_TAG_call_site
            | gimli::DW_TAG_GNU_call_site => true,
            // Declarations, and what the copies of a function have in common.
            gimli::DW_TAG_subprogram => true,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                self.unit.root.is_c_or_cpp()
            }
            _ => false,
        }
    }

    fn read_entry(
        &self,
        entries: &mut Cursor<'_>,
        abbreviation: &Abbreviation,
        meter: &mut Meter<'_>,
    ) -> Result<Entry, Fault> {
        let mut entry = Entry::default();
        self.unit.table.each(abbreviation, entries, meter, |name, value| match (name, value) {
            (gimli::DW_AT_sibling, Value::Entry(Reference::Unit(offset))) => entry.sibling = Some(offset),
            (gimli::DW_AT_call_line, Value::Number(line)) => entry.call.line = u32::try_from(line).unwrap_or(0),
            (gimli::DW_AT_call_file, Value::Number(file)) => (entry.call.file, entry.has_file) = (file, true),
            (name, value) => {
                entry.extent.note(name, value);
                entry.name.note(name, value);
            }
        })?;
        Ok(entry)
    }
}

fn as_usize(range: std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

/// The attributes of a function or an inlined call.
#[derive(Default)]
struct Entry {
    extent: Extent,
    name: DieName,
    /// Where the next entry beside it is, from the start of the unit.
    sibling: Option<u64>,
    call: Row,
    has_file: bool,
}

impl DieName {
    /// Takes the attribute in if it is about the name.
    #[inline]
    pub(super) fn note(&mut self, name: gimli::DwAt, value: Value) {
        match name {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => self.linkage = value.text(),
            gimli::DW_AT_name => self.plain = value.text(),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => self.origin = value.entry(),
            _ => {}
        }
    }
}
