//! The modules of the process: what of which file is mapped where, and the build ids.

mod build_id;
mod history;
mod maps;

pub(crate) use build_id::{BuildId, DIGITS};
pub(crate) use history::{forgotten, generation, loading, meet, repair, unloaded, unloading};
pub(crate) use maps::{Map, Mapping};

use super::output::Failure;
use super::path::{PATH, Path};
use super::room::Room;
use crate::os;
use build_id::Memory;
use core::fmt::Write;
use core::ops::Range;

/// What the kernel appends to the path of a file that was removed or replaced.
const DELETED: &[u8] = b" (deleted)";
/// How it writes a line feed in a path.
const ESCAPED: &[u8] = b"\\012";

/// An executable mapping, as it is in a dump.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    /// Where it is, or, if it is gone and something else is there now, where it is said to be: see [`Modules::place`].
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where in the file it begins.
    pub(crate) offset: usize,
    /// Where in the text of the map (or in the other text, if it is gone) its path is.
    path: (usize, usize),
    pub(crate) build_id: BuildId,
    /// The number of its unloading; 0 = it is there.
    gone: u32,
    /// What to add to an address in it.
    shift: usize,
    /// A frame of the dump lies in it. Told of those that are gone only.
    used: bool,
}

/// The map, the executable mappings in it, and those that are gone and that stacks still refer to.
pub(crate) struct Modules {
    map: Map,
    /// In the order of addresses.
    modules: Room<Module>,
    /// In the order of their unloadings.
    gone: Room<Module>,
    gone_paths: Room<u8>,
}

/// Modules that are gone, and whose place is taken, are told to be at addresses that no process has: each has this much room.
const ELSEWHERE: usize = 1 << 60;
const ROOM: usize = 1 << 40;

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
                gone: 0,
                shift: 0,
                used: false,
            })?;
        }
        let mut read = Modules { map, modules, gone: Room::new(), gone_paths: Room::new() };
        let (gone, paths) = (&mut read.gone, &mut read.gone_paths);
        history::settle(&read.map, |view| collect_gone(view, gone, paths)).unwrap_or(Ok(()))?;
        read.move_away();
        Ok(read)
    }

    /// Modules that are gone and whose addresses mean something else now, or meant something else then, get others.
    fn move_away(&mut self) {
        for index in 0..self.gone.len() {
            let Module { start, end, .. } = self.gone[index];
            let overlaps = |other: &Range<usize>| other.start < end && start < other.end;
            let others = self.gone[..index].iter().map(|other| other.start..other.end);
            if self.map.mappings().map(|mapping| mapping.range).chain(others).any(|other| overlaps(&other)) {
                let new = ELSEWHERE + index * ROOM + start % ROOM;
                let module = &mut self.gone[index];
                (module.start, module.end, module.shift) = (new, new + (end - start), new.wrapping_sub(start));
            }
        }
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    /// Those that are there.
    pub(crate) fn all(&self) -> &[Module] {
        &self.modules
    }

    /// Those that are gone, by their numbers for [`Modules::find`], after those that are there. Only what was [used](Modules::note) matters.
    pub(crate) fn gone(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.gone
            .iter()
            .enumerate()
            .map(|(i, module)| (self.modules.len() + i, module))
            .filter(|(_, module)| module.used)
    }

    /// As the kernel wrote it, perhaps with ` (deleted)` at its end.
    pub(crate) fn path(&self, module: &Module) -> &[u8] {
        let text = if module.gone == 0 { self.map.text() } else { &self.gone_paths };
        &text[module.path.0..module.path.0 + module.path.1]
    }

    /// The path of the file itself: without the kernel's mark that it is gone, and with line feeds that the kernel has written as `\\012`.
    pub(crate) fn file<'a>(&self, module: &Module, buffer: &'a mut [u8; PATH]) -> &'a [u8] {
        let written = self.path(module);
        let mut link = Path::EMPTY;
        let _ = write!(link, "/proc/self/map_files/{:x}-{:x}", module.start, module.end);
        // A name may hold these four characters, too; the link has no such doubt.
        let is_in_doubt = written.windows(ESCAPED.len()).any(|part| part == ESCAPED);
        let length = match os::read_link(link.as_c_str(), buffer) {
            Some(path) if is_in_doubt && module.gone == 0 => path.len(),
            _ => unescape(written, buffer),
        };
        without_deleted(&buffer[..length])
    }

    /// A stack of this [generation](generation) is told in the dump.
    pub(crate) fn note(&mut self, frames: &[usize], generation: u32) {
        if self.gone.is_empty() {
            return;
        }
        for &frame in frames {
            if let Some(index) = self.gone_at(frame, generation) {
                self.gone[index].used = true;
            }
        }
    }

    /// What to write for a frame of a stack: its address, or, where that is in a module that is gone and something else is there
    /// now, the address that stands for it.
    pub(crate) fn place(&self, frame: usize, generation: u32) -> usize {
        let module = self.gone_at(frame, generation).map(|index| &self.gone[index]);
        frame.wrapping_add(module.map_or(0, |module| module.shift))
    }

    /// The module that was unloaded first after the stack was taken, of those at this address.
    fn gone_at(&self, frame: usize, generation: u32) -> Option<usize> {
        let address = frame.wrapping_sub(1);
        let at = |module: &Module| module.start.wrapping_sub(module.shift)..module.end.wrapping_sub(module.shift);
        self.gone.iter().position(|module| module.gone > generation && at(module).contains(&address))
    }

    /// The number of the module with code at this address, as [`Modules::place`] gives addresses.
    pub(crate) fn find(&self, address: usize) -> Option<usize> {
        let after = self.modules.partition_point(|module| module.start <= address);
        let there = after.checked_sub(1).filter(|&index| address < self.modules[index].end);
        let is_in = |(_, module): &(usize, &Module)| (module.start..module.end).contains(&address);
        there.or_else(|| self.gone().find(is_in).map(|(number, _)| number))
    }
}

impl Module {
    /// Where it was, if it is said to be elsewhere.
    pub(crate) fn moved_from(&self) -> Option<usize> {
        (self.shift != 0).then(|| self.start.wrapping_sub(self.shift))
    }
}

/// Copies what is gone from the history, in the order of unloadings.
fn collect_gone(view: &history::View<'_>, gone: &mut Room<Module>, paths: &mut Room<u8>) -> Result<(), Failure> {
    for known in view.known().iter().filter(|known| known.gone != 0) {
        let path = view.path(known);
        let place = (paths.len(), path.len());
        paths.extend(path)?;
        let history::Known { start, end, offset, build_id, gone: number, .. } = *known;
        gone.push(Module { start, end, offset, path: place, build_id, gone: number, shift: 0, used: false })?;
    }
    gone.sort_unstable_by_key(|module| module.gone);
    Ok(())
}

/// Sampling is about to begin. The mapping that holds an address.
pub(crate) fn begin(address: usize) -> Option<Range<usize>> {
    let map = Map::read().ok()?;
    history::begin(&map);
    map.range_around(address)
}

/// Put line feeds where the kernel has written them in another way; the length.
fn unescape(mut written: &[u8], into: &mut [u8; PATH]) -> usize {
    let mut length = 0;
    while let (Some(&first), true) = (written.first(), length < into.len()) {
        let is_escaped = written.starts_with(ESCAPED);
        into[length] = if is_escaped { b'\n' } else { first };
        written = &written[if is_escaped { ESCAPED.len() } else { 1 }..];
        length += 1;
    }
    length
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
