//! One batch of addresses: which module each is in, each file once, answers in the order of the questions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::image::{Image, Place};
use crate::runtime_code::RuntimeCode;
use crate::threads::{self, Permits};
use crate::{Error, Module, ModuleReport, Options, StoredAnswer, StoredSymbols, Symbolized, stored};

/// Looks up the functions and lines of addresses of a process.
///
/// It keeps no files and no memory between batches, so all addresses of a profile are best given at once.
#[derive(Debug)]
pub struct Symbolizer {
    options: Options,
    report: Vec<ModuleReport>,
}

impl Symbolizer {
    /// A symbolizer that looks where `options` say.
    pub fn new(options: Options) -> Self {
        Symbolizer { options, report: Vec::new() }
    }

    /// One answer for each of `addresses`, in the same order.
    ///
    /// An address must be one *inside* the instruction that is meant: for a return address, which is that of the
    /// instruction after the call, give the address before it. Addresses may repeat and be in any order. `modules` may
    /// be in any order too; where they overlap, the one that starts last counts.
    ///
    /// Nothing here fails as a whole: what cannot be looked up has no frames, and [`report`](Self::report) says why.
    pub fn symbolize(&mut self, modules: &[Module], addresses: &[u64]) -> Vec<Symbolized> {
        let Batch { located, index_of, images, places, runtime_code } = self.look_up(modules, addresses);
        let answer = |(&address, location): (&u64, Option<Location>)| {
            let (module, offset) = location.map_or((None, address), |at| (Some(at.module), at.offset));
            if let Some(answer) = runtime_code.answer(address, module, offset) {
                return answer;
            }
            let Some(location) = location else { return Symbolized { file_address: address, ..Symbolized::default() } };
            let module = &modules[location.file_module];
            let image = index_of[&(module.path.as_path(), module.build_id.as_deref())];
            let place = images[image].offsets.binary_search(&location.offset).ok().map(|i| &places[image][i]);
            Symbolized {
                module: Some(location.module),
                file_address: place.map_or(location.offset, |place| place.file_address),
                frames: place.map_or_else(Vec::new, |place| place.frames.clone()),
                quality: place.map_or_else(Default::default, |place| place.quality),
            }
        };
        addresses.iter().zip(located).map(answer).collect()
    }

    /// The answers for `addresses` in a form that another machine can use, where the files are not: one for each file
    /// that addresses fell in, ordered by path. With them as [`Options::stored`], and the same modules and addresses,
    /// [`symbolize`](Self::symbolize) gives the same answers there.
    pub fn store(&mut self, modules: &[Module], addresses: &[u64]) -> Vec<StoredSymbols> {
        let batch = self.look_up(modules, addresses);
        let answers = |image: &Image, places: Vec<Place>| -> Vec<StoredAnswer> {
            let answer = |(&offset, place): (&u64, Place)| StoredAnswer {
                offset,
                file_address: place.file_address,
                frames: place.frames,
            };
            image.offsets.iter().zip(places).map(answer).collect()
        };
        let found = batch.images.into_iter().zip(batch.places).zip(&self.report);
        let found = found.map(|((image, places), report)| {
            let answers = answers(&image, places);
            StoredSymbols::new(image.path, image.build_id, report.source.clone(), answers)
        });
        found.chain(batch.runtime_code.to_be_stored()).collect()
    }

    fn look_up<'m>(&mut self, modules: &'m [Module], addresses: &[u64]) -> Batch<'m> {
        let map = ModuleMap::new(modules);
        let located: Vec<Option<Location>> = addresses.iter().map(|&address| map.locate(address)).collect();
        let places = addresses.iter().zip(&located).map(|(&address, at)| (address, at.map(|at| at.file_module)));
        let mut runtime_code = RuntimeCode::look_up(modules, places, &self.options);

        let mut by_file: BTreeMap<(&Path, Option<&[u8]>), Image> = BTreeMap::new();
        let in_files = addresses.iter().zip(&located).filter(|(address, _)| !runtime_code.names(**address));
        for location in in_files.filter_map(|(_, location)| location.as_ref()) {
            let module = &modules[location.file_module];
            let key = (module.path.as_path(), module.build_id.as_deref());
            let image = by_file.entry(key).or_insert_with(|| Image {
                path: module.path.clone(),
                build_id: module.build_id.clone(),
                modules: Vec::new(),
                mappings: Vec::new(),
                offsets: Vec::new(),
                by_address: false,
            });
            image.modules.push(location.module);
            image.offsets.push(location.offset);
        }
        let index_of: BTreeMap<_, _> = by_file.keys().copied().zip(0..).collect();
        let mut images: Vec<Image> = by_file.into_values().collect();
        for image in &mut images {
            image.offsets.sort_unstable();
            image.offsets.dedup();
            image.modules.sort_unstable();
            image.modules.dedup();
            image.mappings = image.modules.iter().map(|&index| (modules[index].start, modules[index].end)).collect();
        }

        let permits = Permits::new(self.options.threads);
        let results =
            threads::for_each(&images, &permits, || (), |(), image| stored::symbolize(image, &self.options, &permits));
        let (places, report): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        self.report = report;
        stored::trim_cache(&self.options);
        self.report.extend(runtime_code.report());
        Batch { located, index_of, images, places, runtime_code }
    }

    /// One answer for each of `addresses` of the file at `path`, in the same order, whether it was ever mapped or not.
    ///
    /// The addresses are virtual ones as the headers of the file count them, and as `nm` and disassemblers print them.
    /// They may repeat and be in any order. `path` is one on this machine, also with a
    /// [`sysroot`](Options::sysroot). The answers name no module.
    ///
    /// # Errors
    /// If there is no file at `path`, or none that symbols can be looked up in. What else goes wrong is in the
    /// [`report`](Self::report).
    pub fn symbolize_file(&mut self, path: &Path, addresses: &[u64]) -> Result<Vec<Symbolized>, Error> {
        let mut offsets = addresses.to_vec();
        offsets.sort_unstable();
        offsets.dedup();
        // Debug files are searched by the folder of the file, too.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let image =
            Image { path, build_id: None, modules: Vec::new(), mappings: Vec::new(), offsets, by_address: true };
        self.report.clear();
        let (places, report) = image.symbolize_as_it_is(&self.options, &Permits::new(self.options.threads))?;
        self.report.push(report);
        let answer = |&address: &u64| {
            let place = image.offsets.binary_search(&address).ok().and_then(|index| places.get(index));
            let (frames, quality) = place.map(|place| (place.frames.clone(), place.quality)).unwrap_or_default();
            Symbolized { module: None, file_address: address, frames, quality }
        };
        Ok(addresses.iter().map(answer).collect())
    }

    /// What was found for each file that addresses of the last batch fell in, ordered by path.
    pub fn report(&self) -> &[ModuleReport] {
        &self.report
    }
}

/// What a batch comes to.
struct Batch<'m> {
    /// Where each address is.
    located: Vec<Option<Location>>,
    /// The image of each file.
    index_of: BTreeMap<(&'m Path, Option<&'m [u8]>), usize>,
    images: Vec<Image>,
    /// For each image one place for each of its offsets.
    places: Vec<Vec<Place>>,
    runtime_code: RuntimeCode,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    /// The module that holds it.
    module: usize,
    /// The module whose file it belongs to, nearly always the same.
    file_module: usize,
    /// Offset in that file.
    offset: u64,
}

/// The modules in order of their start.
struct ModuleMap<'m> {
    modules: &'m [Module],
    order: Vec<usize>,
}

impl<'m> ModuleMap<'m> {
    fn new(modules: &'m [Module]) -> Self {
        let mut order: Vec<usize> = (0..modules.len()).collect();
        order.sort_by_key(|&index| modules[index].start);
        ModuleMap { modules, order }
    }

    fn locate(&self, address: u64) -> Option<Location> {
        let after = self.order.partition_point(|&index| self.modules[index].start <= address);
        let at = after.checked_sub(1)?;
        let index = self.order[at];
        let module = &self.modules[index];
        if !module.contains(address) {
            return None;
        }
        let file_module = if module.path == PathBuf::new() { self.neighbour(at).unwrap_or(index) } else { index };
        // Negative for a nameless mapping before the neighbour's start; the sum is right all the same.
        let offset = self.modules[file_module].offset_of(address);
        Some(Location { module: index, file_module, offset })
    }

    /// The module next to a nameless one whose file the latter must have been before its text was moved to huge
    /// pages: the two mappings around it are of one file and leave out just the part between them.
    fn neighbour(&self, at: usize) -> Option<usize> {
        let before = self.order[at.checked_sub(1)?];
        let after = *self.order.get(at + 1)?;
        let [left, nameless, right] = [before, self.order[at], after].map(|index| &self.modules[index]);
        let fits = left.end == nameless.start
            && nameless.end == right.start
            && left.path == right.path
            && left.build_id == right.build_id
            && left.path != PathBuf::new()
            && left.offset_of(right.start) == right.file_offset;
        fits.then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, ModuleMap};
    use crate::Module;

    fn module(start: u64, end: u64, file_offset: u64, path: &str) -> Module {
        Module { start, end, file_offset, path: path.into(), build_id: None }
    }

    #[test]
    fn addresses_in_and_between_modules_in_any_order() {
        let modules =
            [module(0x5000, 0x6000, 0, "/b"), module(0x1000, 0x3000, 0x8000, "/a"), module(0x3000, 0x4000, 0, "/c")];
        let map = ModuleMap::new(&modules);
        let at = |address| map.locate(address).map(|l| (l.module, l.offset));
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x1000), Some((1, 0x8000)));
        assert_eq!(at(0x2fff), Some((1, 0x9fff)));
        assert_eq!(at(0x3000), Some((2, 0)));
        assert_eq!(at(0x4000), None);
        assert_eq!(at(0x5fff), Some((0, 0xfff)));
        assert_eq!(at(u64::MAX), None);
    }

    #[test]
    fn text_moved_to_huge_pages_belongs_to_the_file_around_it() {
        let modules =
            [module(0x1000, 0x2000, 0, "/a"), module(0x2000, 0x6000, 0, ""), module(0x6000, 0x7000, 0x5000, "/a")];
        let map = ModuleMap::new(&modules);
        assert_eq!(map.locate(0x2345), Some(Location { module: 1, file_module: 0, offset: 0x1345 }));
        // Not when the offsets do not line up.
        let modules =
            [module(0x1000, 0x2000, 0, "/a"), module(0x2000, 0x6000, 0, ""), module(0x6000, 0x7000, 0x1000, "/a")];
        let map = ModuleMap::new(&modules);
        assert_eq!(map.locate(0x2345), Some(Location { module: 1, file_module: 1, offset: 0x345 }));
    }
}
