//! Addresses in code that is in no file, since a compiler made it while the program ran.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

use crate::{
    Frame, Module, ModuleReport, Name, Options, Quality, StoredAnswer, StoredSymbols, SymbolSource, Symbolized, locate,
    perf_map, vdso,
};

/// What stored answers about such addresses have for a path. Their offsets are the addresses.
const STORED: &str = "[perf map]";

/// What the perf map of the process says about such addresses.
#[derive(Debug, Default)]
pub(crate) struct RuntimeCode {
    /// Those that it names, ascending, and their names.
    named: Vec<(u64, Name)>,
    source: SymbolSource,
    /// If a map was looked for and there is something to say about it.
    report: Option<ModuleReport>,
}

impl RuntimeCode {
    /// Looks up those of `places` that are in no file: addresses, and the indices in `modules` of where they are. A map
    /// is only looked for if there are any.
    pub(crate) fn look_up(
        modules: &[Module],
        places: impl Iterator<Item = (u64, Option<usize>)>,
        options: &Options,
    ) -> Self {
        let is_in_no_file = |module: Option<usize>| {
            let path = module.and_then(|index| modules.get(index)).map(|module| &module.path);
            path.is_none_or(|path| !locate::names_a_file(path) && path != vdso::NAME)
        };
        let mut wanted: Vec<(u64, Option<usize>)> = places.filter(|(_, module)| is_in_no_file(*module)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return RuntimeCode::default();
        }
        if let Some(stored) = options.stored.iter().find(|stored| is_stored_here(stored)) {
            return Self::from_stored(stored, &wanted);
        }
        if options.only_stored {
            return RuntimeCode::default();
        }
        let mut report = ModuleReport::default();
        let found = perf_map::find(options, &mut report.looked_at, &mut report.problems);
        let Some((path, map, size)) = found else {
            // Most programs write none: only one that was refused is worth a word.
            report.path = report.looked_at.first().cloned().unwrap_or_default();
            let report = (!report.problems.is_empty()).then_some(report);
            return RuntimeCode { report, ..RuntimeCode::default() };
        };
        let addresses: Vec<u64> = wanted.iter().map(|(address, _)| *address).collect();
        let found = perf_map::look_up(BufReader::with_capacity(256 << 10, map), size, &addresses);
        let names = wanted.iter().zip(found.names).filter_map(|(place, name)| Some((*place, Name::from_raw(&name?))));
        report.problems.extend(found.problem.map(|problem| problem.at(&path)));
        report.source = SymbolSource::PerfMap { file: path.clone() };
        report.path = path;
        Self::new(names, report)
    }

    /// What was found before.
    fn from_stored(stored: &StoredSymbols, wanted: &[(u64, Option<usize>)]) -> Self {
        let known: BTreeMap<u64, Name> =
            stored.answers().filter_map(|answer| Some((answer.offset, name_of(answer.frames)?))).collect();
        let names = wanted.iter().filter_map(|place| Some((*place, known.get(&place.0)?.clone())));
        let source = SymbolSource::Stored { origin: Box::new(stored.source().clone()) };
        Self::new(names, ModuleReport { path: STORED.into(), source, ..ModuleReport::default() })
    }

    /// The names of places, which are ascending.
    fn new(names: impl Iterator<Item = ((u64, Option<usize>), Name)>, mut report: ModuleReport) -> Self {
        let mut named = Vec::new();
        for ((address, module), name) in names {
            report.modules.extend(module);
            named.push((address, name));
        }
        report.modules.sort_unstable();
        report.modules.dedup();
        report.with_name = named.len();
        if named.is_empty() {
            report.source = SymbolSource::None;
        }
        RuntimeCode { named, source: report.source.clone(), report: Some(report) }
    }

    /// Whether it has the name for `address`.
    pub(crate) fn names(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// The answer for `address`, which is `offset` bytes into `module`, if it has a name for it.
    pub(crate) fn answer(&self, address: u64, module: Option<usize>, offset: u64) -> Option<Symbolized> {
        let name = self.find(address)?.clone();
        let frames = vec![Frame { function: Some(name), ..Frame::default() }];
        Some(Symbolized { module, file_address: offset, frames, quality: Quality::Name })
    }

    /// What was found, if a map was looked for; once.
    pub(crate) fn report(&mut self) -> Option<ModuleReport> {
        self.report.take()
    }

    /// The same in a form that another machine can use.
    pub(crate) fn to_be_stored(&self) -> Option<StoredSymbols> {
        if self.named.is_empty() {
            return None;
        }
        let answers = self.named.iter().map(|(address, name)| {
            let frames = vec![Frame { function: Some(name.clone()), ..Frame::default() }];
            StoredAnswer { offset: *address, file_address: *address, frames }
        });
        Some(StoredSymbols::new(STORED.into(), None, self.source.clone(), answers))
    }

    fn find(&self, address: u64) -> Option<&Name> {
        let index = self.named.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        Some(&self.named[index].1)
    }
}

fn is_stored_here(stored: &StoredSymbols) -> bool {
    stored.build_id().is_none() && stored.path() == Path::new(STORED)
}

fn name_of(frames: Vec<Frame>) -> Option<Name> {
    frames.into_iter().next()?.function
}
