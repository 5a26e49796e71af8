//! Functions, inlined calls, files and lines from the debug information of Microsoft's tools: a PDB file, version 7.
//!
//! All addresses of a module are known before anything is read, so nothing is indexed for later: the list of
//! contributions tells which object files the addresses come from, and the symbols and lines of each of those are read
//! once, by whichever thread is free, and dropped.
//!
//! - `msf` is the container;
//! - `info` identifies the file, `dbi` tells which object file an address comes from;
//! - `symbols` finds functions and inlined calls, `annotations` what code the latter have, `lines` the source;
//! - `types` knows what inlined functions are called, `publics` what the linker calls the others;
//! - `module` puts the answers together.

mod annotations;
mod dbi;
pub(crate) mod info;
mod lines;
mod module;
mod msf;
mod publics;
mod strings;
mod symbols;
mod types;

use std::path::Path;
use std::sync::Arc;

use self::dbi::{Contribution, Dbi, Sections};
use self::info::Info;
use self::module::{Known, Task, Worker};
use self::msf::Msf;
use self::publics::{Public, Publics};
use self::strings::Strings;
use self::types::Names;
use crate::dwarf::Answer;
use crate::dwarf::fuel::{self, Fuel, Meter};
use crate::file::Source;
use crate::threads::{self, Permits};
use crate::{Error, Frame, Name};

/// Most problems that are listed for one file.
const MAX_PROBLEMS: usize = 8;

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What is there makes no sense.
    Damaged(String),
    /// It takes more work than a file of its size should.
    TooMuchWork,
    /// It cannot be read.
    Read(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Read(error)
    }
}

impl From<fuel::Fault> for Fault {
    fn from(_: fuel::Fault) -> Self {
        Fault::TooMuchWork
    }
}

/// Where functions begin, as far as the program itself tells: it lists those that unwinding the stack must know of.
pub(crate) trait Boundaries: Sync {
    /// Whether the function with a name that begins at `start` is the one at `address`, which is not before it.
    fn belongs(&self, start: u32, address: u32) -> bool;
}

/// The debug information of one program.
#[derive(Debug)]
pub(crate) struct Pdb {
    msf: Msf,
    info: Info,
    dbi: Dbi,
    /// As the program had them when it was linked.
    sections: Sections,
    identity: [u8; 20],
}

impl Pdb {
    /// Reads the directory and the headers.
    pub(crate) fn open(file: &Arc<Source>) -> Result<Self, Error> {
        let msf = Msf::open(file)?;
        let read = || -> Result<(Info, Dbi, Sections), Fault> {
            let (info, dbi) = (Info::read(&msf)?, Dbi::read(&msf)?);
            let headers = dbi.section_headers.and_then(|number| msf.stream(number));
            let sections = headers.map_or_else(|| Ok(Sections::default()), |stream| Sections::read(&stream))?;
            Ok((info, dbi, sections))
        };
        let (info, dbi, sections) = read().map_err(|fault| problem(file, fault))?;
        if dbi.is_rearranged {
            let what = "its program was rearranged after linking, and the addresses are those from before".to_owned();
            return Err(Error::BadPdb { path: file.path().to_owned(), what });
        }
        let identity = info::identity(info.guid, dbi.age);
        Ok(Pdb { msf, info, dbi, sections, identity })
    }

    /// The file it is in.
    pub(crate) fn path(&self) -> &Path {
        self.msf.file().path()
    }

    /// GUID and age, which the program it belongs to also has: 16 and 4 bytes, in the order in which people write them.
    pub(crate) fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Looks up `addresses`, ascending and relative to the image. Functions that only the linker knows have no sizes;
    /// `boundaries` tells where the names of those end.
    pub(crate) fn look_up(
        &self,
        addresses: &[u32],
        boundaries: Option<&dyn Boundaries>,
        permits: &Permits,
    ) -> (Vec<Option<Answer>>, Vec<Error>) {
        let fuel = Fuel::for_size(self.msf.file().len());
        let mut meter = fuel.meter();
        let mut problems = Problems { file: self.msf.file(), list: Vec::new() };
        if self.info.is_fastlink {
            let what = "linked with /DEBUG:FASTLINK, so most symbols are in the object files; link with /DEBUG:FULL";
            problems.note(Err(Fault::Damaged(what.to_owned())));
        }
        if self.sections.is_empty() {
            problems.note(Err(Fault::Damaged("it does not tell where the sections of its program are".to_owned())));
        }
        let (names, result) = Names::read(&self.msf);
        problems.note(result);
        let (publics, result) =
            split(Publics::read(&self.msf, &self.sections, self.dbi.publics, self.dbi.records), || None);
        problems.note(result);
        let contributions = self.dbi.contributions(&self.msf, &self.sections, addresses, &mut meter);
        let (contributions, result) = split(contributions, || vec![None; addresses.len()]);
        problems.note(result);
        drop(meter);

        let shared = module::Shared {
            msf: &self.msf,
            sections: &self.sections,
            names: &names,
            publics: publics.as_ref(),
            strings: Strings::of(&self.msf, self.info.strings),
        };
        let tasks = tasks(&self.dbi, &contributions, addresses);
        let results = threads::for_each(&tasks, permits, || Worker::new(&shared, fuel.meter()), Worker::run);
        let mut known: Vec<Known> = Vec::new();
        known.resize_with(addresses.len(), Known::default);
        for (task, (found, result)) in tasks.iter().zip(results) {
            problems.note(result);
            for (&index, found) in task.indices.iter().zip(found) {
                if let Some(slot) = known.get_mut(index) {
                    *slot = found;
                }
            }
        }
        if let Some(publics) = &publics {
            let mut last = Finder { publics, sections: &self.sections, boundaries, meter: fuel.meter() };
            problems.note(last.fill(addresses, &contributions, &mut known));
        }
        (known.into_iter().map(|known| known.answer).collect(), problems.list)
    }
}

/// One task for each module that has some of the addresses.
fn tasks(dbi: &Dbi, contributions: &[Option<Contribution>], addresses: &[u32]) -> Vec<Task> {
    let mut by_module: std::collections::BTreeMap<u16, Task> = std::collections::BTreeMap::new();
    for (index, (contribution, &address)) in contributions.iter().zip(addresses).enumerate() {
        let Some(contribution) = contribution else { continue };
        let Some(&info) = dbi.modules.get(usize::from(contribution.module)) else { continue };
        let new = || Task { info, indices: Vec::new(), addresses: Vec::new() };
        let task = by_module.entry(contribution.module).or_insert_with(new);
        task.indices.push(index);
        task.addresses.push(address);
    }
    by_module.into_values().collect()
}

/// Names what no module describes: code in assembler, or all of it in a file that was stripped for publication.
struct Finder<'f> {
    publics: &'f Publics<'f>,
    sections: &'f Sections,
    boundaries: Option<&'f dyn Boundaries>,
    meter: Meter<'f>,
}

impl Finder<'_> {
    fn fill(
        &mut self,
        addresses: &[u32],
        contributions: &[Option<Contribution>],
        known: &mut [Known],
    ) -> Result<(), Fault> {
        let mut last: Option<Public> = None;
        for ((&address, contribution), known) in addresses.iter().zip(contributions).zip(known) {
            if known.answer.is_some() {
                continue;
            }
            let still =
                last.take().filter(|last| last.start <= address && last.next.is_some_and(|next| address < next));
            let public = match still {
                Some(public) => Some(public),
                None => self.publics.at_or_before(address, &mut self.meter)?,
            };
            let fitting = public.as_ref().filter(|public| self.fits(public, address, *contribution, known.before));
            if let Some(name) = fitting.and_then(|public| best(&public.names)) {
                self.meter.burn(name.len() as u64)?;
                let frame = Frame { function: Some(Name::from_raw(name)), ..Frame::default() };
                known.answer = Some(Answer { frames: vec![frame], name_is_poor: false });
            }
            last = public;
        }
        Ok(())
    }

    /// Whether the public's code reaches up to `address`.
    fn fits(&self, public: &Public, address: u32, contribution: Option<Contribution>, before: Option<u32>) -> bool {
        let section_end = self.sections.end_of(public.start);
        section_end.is_some_and(|end| address < end)
            // What one object file contributed is not continued by another.
            && contribution.is_none_or(|piece| piece.start <= public.start)
            // What has a size ends with it.
            && before.is_none_or(|start| start < public.start)
            && self.boundaries.is_none_or(|boundaries| boundaries.belongs(public.start, address))
    }
}

/// The shortest of several names, of those the alphabetically first.
fn best(names: &[Vec<u8>]) -> Option<&[u8]> {
    names.iter().map(Vec::as_slice).min_by_key(|name| (name.len(), *name))
}

fn split<T>(result: Result<T, Fault>, otherwise: impl FnOnce() -> T) -> (T, Result<(), Fault>) {
    match result {
        Ok(value) => (value, Ok(())),
        Err(fault) => (otherwise(), Err(fault)),
    }
}

struct Problems<'f> {
    file: &'f Source,
    list: Vec<Error>,
}

impl Problems<'_> {
    fn note(&mut self, result: Result<(), Fault>) {
        if let Err(fault) = result {
            let problem = problem(self.file, fault);
            let is_known = self.list.iter().any(|known| known.to_string() == problem.to_string());
            if self.list.len() < MAX_PROBLEMS && !is_known {
                self.list.push(problem);
            }
        }
    }
}

fn problem(file: &Source, fault: Fault) -> Error {
    match fault {
        Fault::Damaged(what) => Error::BadPdb { path: file.path().to_owned(), what },
        Fault::TooMuchWork => {
            let what = "it takes more work than debug information of its size should".to_owned();
            Error::Limit { path: file.path().to_owned(), what }
        }
        Fault::Read(error) => error,
    }
}
