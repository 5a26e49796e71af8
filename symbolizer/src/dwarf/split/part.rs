//! The part of a unit that was split off.

use std::ops::Range;
use std::sync::Arc;

use super::super::fuel::{Fault, Meter};
use super::super::names::Interned;
use super::super::sections::{Bases, Sections, Windows};
use super::super::units::{DebugFile, Header, Unit};

/// Where a part is, and how to read it.
#[derive(Debug)]
pub(in super::super) struct Part {
    sections: Sections,
    bounds: Bounds,
    header: Header,
    interned: Arc<Interned>,
}

/// The pieces of sections that a part may use. A file of its own is all of them, a package has many.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    pub(super) info: Range<u64>,
    pub(super) abbrev: Range<u64>,
    /// Where the piece of `.debug_str_offsets.dwo` starts.
    pub(super) str_offsets: u64,
    /// Where the piece of `.debug_rnglists.dwo` starts.
    pub(super) rnglists: u64,
}

impl Part {
    /// The part with the number `id` in a file that is no package; `None` if the file has none with that number.
    pub(super) fn loose(sections: Sections, id: u64, meter: &mut Meter<'_>) -> Result<Option<Self>, Fault> {
        let all = |section: &Option<crate::section::Section>| 0..section.as_ref().map_or(0, |section| section.len());
        let (info, abbrev) = (all(&sections.info), all(&sections.abbrev));
        Self::find(sections, Bounds { info, abbrev, ..Bounds::default() }, id, Arc::default(), meter)
    }

    /// The part with the number `id` in pieces of sections.
    pub(super) fn find(
        sections: Sections,
        bounds: Bounds,
        id: u64,
        interned: Arc<Interned>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Self>, Fault> {
        let header = {
            let (file, result) = DebugFile::piece(&sections, bounds.info.clone(), bounds.abbrev.clone(), meter);
            let mut windows = Windows::new(&sections);
            let mut found = None;
            for header in file.units() {
                // Units of types are of no use, and may be of a later version than is understood.
                let is_it = match header.kind {
                    gimli::DW_UT_split_compile => header.split_id == id,
                    gimli::DW_UT_compile => file.root(header, &mut windows, meter)?.split.id == Some(id),
                    _ => false,
                };
                if is_it {
                    found = Some(*header);
                    break;
                }
            }
            match found {
                Some(header) => header,
                None => return result.map(|()| None),
            }
        };
        Ok(Some(Part { sections, bounds, header, interned }))
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.header.end - self.header.start
    }

    /// Its debug information, with this unit only.
    pub(in super::super) fn file(&self) -> DebugFile<'_> {
        DebugFile::of_unit(&self.sections, self.header, self.bounds.abbrev.end)
    }

    /// Names that were read there before.
    pub(in super::super) fn interned(&self) -> &Interned {
        &self.interned
    }

    /// The unit, to be understood with what its skeleton says.
    pub(in super::super) fn unit(
        &self,
        file: &DebugFile<'_>,
        skeleton: &Unit,
        windows: &mut Windows<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Unit, Fault> {
        let mut unit = file.unit(&self.header, windows, meter)?;
        unit.root.bases = self.bases(skeleton);
        Ok(unit)
    }

    fn bases(&self, skeleton: &Unit) -> Bases {
        let (encoding, of_skeleton) = (self.header.encoding, skeleton.root.bases);
        // Since version 5 tables of offsets start with a header: a length, then for strings version and padding, for
        // ranges version, sizes of addresses and selectors, and the number of offsets.
        let (str_offsets, rnglists) = match (encoding.version >= 5, encoding.is_64) {
            (true, false) => (8, 12),
            (true, true) => (16, 20),
            (false, _) => (0, 0),
        };
        let rnglists = match encoding.version {
            // Lists were left in the program, in one piece for the unit.
            ..5 => skeleton.root.split.ranges,
            _ => self.bounds.rnglists.saturating_add(rnglists),
        };
        let str_offsets = self.bounds.str_offsets.saturating_add(str_offsets);
        Bases { addr: of_skeleton.addr, str_offsets, rnglists, low_pc: of_skeleton.low_pc }
    }
}
