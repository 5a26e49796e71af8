//! The modules of the process: what of which file is mapped where, and the build ids.

mod build_id;
mod maps;

pub(crate) use build_id::{BuildId, DIGITS};
pub(crate) use maps::Map;

use super::output::Failure;
use super::room::Room;
use build_id::Memory;
use core::ops::Range;

/// What the kernel appends to the path of a file that was removed or replaced.
const DELETED: &[u8] = b" (deleted)";

/// An executable mapping.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where in the file it begins.
    pub(crate) offset: usize,
    /// Where in the text of the map its path is.
    path: (usize, usize),
    pub(crate) build_id: BuildId,
}

/// The map and the executable mappings in it, in the order of addresses.
pub(crate) struct Modules {
    map: Map,
    modules: Room<Module>,
}

impl Modules {
    /// What is mapped now.
    pub(crate) fn read() -> Result<Modules, Failure> {
        let map = Map::read()?;
        let mut modules = Room::new();
        let memory = Memory::open();
        let base = map.text().as_ptr() as usize;
        // The file whose first page was seen last.
        let mut head: Option<(&[u8], usize)> = None;
        for mapping in map.mappings() {
            if mapping.offset == 0 && mapping.path.first() == Some(&b'/') {
                head = Some((mapping.file, mapping.range.start));
            }
            if !mapping.executable {
                continue;
            }
            let of_same = head.filter(|&(file, _)| file == mapping.file);
            modules.push(Module {
                start: mapping.range.start,
                end: mapping.range.end,
                offset: mapping.offset,
                path: (mapping.path.as_ptr() as usize - base, mapping.path.len()),
                build_id: of_same.map_or(BuildId::NONE, |(_, start)| build_id::build_id(&memory, start)),
            })?;
        }
        Ok(Modules { map, modules })
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    pub(crate) fn all(&self) -> &[Module] {
        &self.modules
    }

    /// As the kernel wrote it, perhaps with ` (deleted)` at its end.
    pub(crate) fn path(&self, module: &Module) -> &[u8] {
        &self.map.text()[module.path.0..module.path.0 + module.path.1]
    }

    /// The module with code at this address.
    pub(crate) fn find(&self, address: usize) -> Option<usize> {
        let after = self.modules.partition_point(|module| module.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.modules[index].end).then_some(index)
    }
}

/// The mapping that holds an address.
pub(crate) fn range_around(address: usize) -> Option<Range<usize>> {
    Map::read().ok()?.range_around(address)
}

/// The path of a file without the kernel's mark that it is gone.
pub(crate) fn without_deleted(path: &[u8]) -> &[u8] {
    path.strip_suffix(DELETED).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_this_process() {
        let modules = Modules::read().unwrap();
        let here = modules_of_this_process as fn() as usize;
        let own = &modules.all()[modules.find(here).unwrap()];
        let program = std::env::current_exe().unwrap();
        assert_eq!(modules.path(own), program.as_os_str().as_encoded_bytes());
        assert!(!own.build_id.as_bytes().is_empty() && (own.start..own.end).contains(&here));
        assert_eq!(modules.find(8), None);
        assert!(modules.all().windows(2).all(|two| two[0].end <= two[1].start));
        assert_eq!(without_deleted(b"/a b (deleted)"), b"/a b");
    }
}
