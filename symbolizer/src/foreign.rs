//! Files of other systems: PE with DWARF or a PDB, Mach-O with or without a dSYM.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::dwarf::{Answer, Splits};
use crate::file::FileData;
use crate::image;
use crate::locate::{SplitPlaces, hex};
use crate::object::ObjectFile;
use crate::object::macho::MachO;
use crate::object::pe::Pe;
use crate::object::pe::functions::Functions;
use crate::object::symbols::Table;
use crate::pdb::{Boundaries, Pdb};
use crate::threads::Permits;
use crate::{Error, ModuleReport, Options, SymbolSource, symbol_tables};

/// How many folders above a file are looked at for a dSYM: programs are three deep in a bundle, frameworks' too.
const MAX_FOLDERS: usize = 4;

/// A file that is not ELF.
#[derive(Debug)]
pub(crate) enum Foreign {
    /// Of Windows.
    Pe(Pe),
    /// Of macOS.
    MachO(MachO),
}

/// Something found for a file that lacks it.
enum Companion {
    Pdb(Pdb),
    Symbols(MachO),
}

impl Foreign {
    /// Reads the headers; `None` if the file is neither. Of a file for several architectures the part with the identity
    /// `wanted` is taken.
    pub(crate) fn read(file: &FileData, wanted: Option<&[u8]>) -> Result<Option<Self>, Error> {
        if let Some(pe) = Pe::read(file.source())? {
            return Ok(Some(Foreign::Pe(pe)));
        }
        Ok(MachO::read(file.source(), wanted)?.map(Foreign::MachO))
    }

    /// What every kind of file gives.
    pub(crate) fn object(&self) -> &dyn ObjectFile {
        match self {
            Foreign::Pe(pe) => pe,
            Foreign::MachO(macho) => macho,
        }
    }

    /// Looks up `addresses`: ascending virtual addresses. `original` is the path on the machine that was profiled.
    pub(crate) fn look_up(
        &self,
        original: &Path,
        addresses: &[u64],
        options: &Options,
        permits: &Permits,
        report: &mut ModuleReport,
    ) -> Vec<Option<Answer>> {
        let object = self.object();
        let companion = if object.has_dwarf() { None } else { self.companion(original, options, report) };
        let dwarf = |object, report: &mut ModuleReport| {
            let splits = Splits::new(options, SplitPlaces::none());
            image::look_up_dwarf(object, None, splits, addresses, permits, report)
        };
        let mut answers = match &companion {
            Some(Companion::Pdb(pdb)) => self.look_up_pdb(pdb, addresses, permits, report),
            Some(Companion::Symbols(symbols)) => dwarf(symbols, report),
            None => dwarf(object, report),
        };
        let symtab = |object: &dyn ObjectFile| SymbolSource::Symtab { file: object.path().to_owned() };
        let symbols = match &companion {
            Some(Companion::Symbols(symbols)) => Some(symbols as &dyn ObjectFile),
            _ => None,
        };
        let full = symbols.into_iter().chain([object]).map(|object| (object, Table::Full, symtab(object)));
        let tables = full.chain([(object, Table::Dynamic, SymbolSource::Dynsym)]);
        symbol_tables::look_up_in(tables, addresses, &mut answers, report);
        // Line tables cover the padding between functions too.
        let has_function = |answer: &mut Answer| answer.frames.iter().any(|frame| frame.function.is_some());
        answers.iter_mut().for_each(|answer| *answer = answer.take_if(has_function));
        answers
    }

    fn look_up_pdb(
        &self,
        pdb: &Pdb,
        addresses: &[u64],
        permits: &Permits,
        report: &mut ModuleReport,
    ) -> Vec<Option<Answer>> {
        let Foreign::Pe(pe) = self else { return addresses.iter().map(|_| None).collect() };
        // Those before the image or beyond 4 GiB of it are not in it.
        let relative = |address: &u64| u32::try_from(address.checked_sub(pe.base())?).ok();
        let before = addresses.partition_point(|&address| address < pe.base());
        let inside: Vec<u32> = addresses.iter().filter_map(relative).collect();
        let functions = Functions::read(pe);
        let boundaries = functions.as_ref().map(|functions| functions as &dyn Boundaries);
        let (found, problems) = pdb.look_up(&inside, boundaries, permits);
        report.problems.extend(problems);
        if found.iter().any(Option::is_some) {
            report.source = SymbolSource::Pdb { file: pdb.path().to_owned() };
        }
        let mut answers: Vec<Option<Answer>> = Vec::new();
        answers.resize_with(before, || None);
        answers.extend(found);
        answers.resize_with(addresses.len(), || None);
        answers
    }

    /// What would give the addresses of the report names and lines.
    pub(crate) fn remedy(&self, report: &ModuleReport) -> Option<String> {
        let has_lines = matches!(report.source, SymbolSource::Dwarf { .. } | SymbolSource::Pdb { .. });
        if report.unresolved + report.with_name == 0 || has_lines {
            return None;
        }
        // Quoted with escapes: people paste commands, and a line feed would end the comment.
        match self {
            Foreign::Pe(pe) => {
                let debug = pe.debug()?;
                let name = file_name(&debug.path)?;
                Some(format!("--debug-dir DIR  # a folder with {name:?}, GUID and age {}", hex(&debug.identity)))
            }
            Foreign::MachO(macho) => {
                let name = macho.path().file_name()?;
                let uuid = macho.identity().map_or_else(|| "none".to_owned(), hex);
                Some(format!("--debug-dir DIR  # a folder with the dSYM of {name:?}, UUID {uuid}"))
            }
        }
    }

    /// The file with the debug information of this one. Files that are there but belong to another version are noted.
    fn companion(&self, original: &Path, options: &Options, report: &mut ModuleReport) -> Option<Companion> {
        let wanted = self.object().identity()?;
        let candidates = match self {
            Foreign::Pe(pe) => pdb_places(pe, original, options),
            Foreign::MachO(macho) => dsym_places(macho.path(), options),
        };
        candidates.into_iter().find_map(|path| {
            report.looked_at.push(path.clone());
            let file = match FileData::open(&path, options) {
                Ok(file) => file,
                Err(Error::Io { source, .. }) if is_missing(&source) => return None,
                Err(problem) => {
                    report.problems.push(problem);
                    return None;
                }
            };
            let opened = match self {
                Foreign::Pe(_) => Pdb::open(file.source())
                    .and_then(|pdb| check(&path, Some(pdb.identity()), wanted).map(|()| Some(Companion::Pdb(pdb)))),
                Foreign::MachO(_) => MachO::read(file.source(), Some(wanted)).and_then(|macho| match macho {
                    Some(macho) => check(&path, macho.identity(), wanted).map(|()| Some(Companion::Symbols(macho))),
                    None => Ok(None),
                }),
            };
            opened.unwrap_or_else(|problem| {
                report.problems.push(problem);
                None
            })
        })
    }
}

/// Refuses a file with another identity than `wanted`, or without one.
fn check(path: &Path, found: Option<&[u8]>, wanted: &[u8]) -> Result<(), Error> {
    if found == Some(wanted) {
        return Ok(());
    }
    let found = found.map_or_else(|| "none".to_owned(), hex);
    Err(Error::WrongBuildId { path: path.to_owned(), found, wanted: hex(wanted) })
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Where the PDB of a program may be: beside it, or in the folders for debug information, there also in the way of
/// symbol servers, `app.pdb/<GUID and age>/app.pdb`.
fn pdb_places(pe: &Pe, original: &Path, options: &Options) -> Vec<PathBuf> {
    let Some(debug) = pe.debug() else { return Vec::new() };
    let mut names: Vec<PathBuf> = Vec::new();
    let own = pe.path().file_stem().map(|stem| PathBuf::from(stem).with_extension("pdb"));
    let of_original = file_name(original.as_os_str().as_bytes()).map(|name| name.with_extension("pdb"));
    for name in [file_name(&debug.path), of_original, own].into_iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let upper: String = debug.identity[..16].iter().map(|byte| format!("{byte:02X}")).collect();
    let age = debug.identity.last_chunk().copied().map_or(0, u32::from_be_bytes);
    let keys = [format!("{upper}{age:X}"), format!("{}{age:x}", upper.to_lowercase())];
    let mut places = Vec::new();
    for name in names {
        places.extend(pe.path().parent().map(|folder| folder.join(&name)));
        for dir in &options.debug_dirs {
            places.push(dir.join(&name));
            places.extend(keys.iter().map(|key| dir.join(&name).join(key).join(&name)));
        }
    }
    places
}

/// The last part of a path of either system, if it is the plain name of a file: nothing else may choose what is read.
fn file_name(path: &[u8]) -> Option<PathBuf> {
    let name = path.rsplit(|&byte| matches!(byte, b'/' | b'\\')).next().filter(|name| !name.is_empty())?;
    let name = Path::new(OsStr::from_bytes(name));
    matches!(name.components().next(), Some(Component::Normal(_))).then(|| name.to_owned())
}

/// The name of the file in a path of Windows that begins with a drive or a server; `None` for other paths.
pub(crate) fn windows_name(path: &Path) -> Option<PathBuf> {
    let path = path.as_os_str().as_bytes();
    let has_drive = matches!(path, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    if has_drive || path.starts_with(br"\\") { file_name(path) } else { None }
}

/// Where the dSYM of a program may be: beside it, beside the bundle it is in, or in the folders for debug information.
fn dsym_places(path: &Path, options: &Options) -> Vec<PathBuf> {
    let Some(name) = path.file_name() else { return Vec::new() };
    let inside = |bundle: &Path| {
        let mut folder = bundle.as_os_str().to_owned();
        folder.push(".dSYM");
        PathBuf::from(folder).join("Contents/Resources/DWARF").join(name)
    };
    let mut places: Vec<PathBuf> = path.ancestors().take(1 + MAX_FOLDERS).map(inside).collect();
    for dir in &options.debug_dirs {
        places.push(inside(&dir.join(name)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{dsym_places, file_name, windows_name};
    use crate::Options;
    use std::path::Path;

    #[test]
    fn names_in_paths_of_both_systems() {
        for path in [r"C:\build\app.pdb", "/tmp/app.pdb", "app.pdb", r"..\app.pdb"] {
            assert_eq!(file_name(path.as_bytes()).as_deref(), Some(Path::new("app.pdb")), "{path}");
        }
        for path in ["", "/", "/tmp/..", r"C:\..", "."] {
            assert_eq!(file_name(path.as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn paths_of_windows() {
        for path in [r"C:\app\app.exe", "c:/app/app.exe", r"\\server\share\app.exe"] {
            assert_eq!(windows_name(Path::new(path)).as_deref(), Some(Path::new("app.exe")), "{path}");
        }
        for path in ["/app/app.exe", "app.exe", "C:app.exe", r"\app.exe", r"C:\", "[vdso]", ""] {
            assert_eq!(windows_name(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn places_of_debug_symbols() {
        let options = Options { debug_dirs: vec!["/d".into()], ..Options::default() };
        let places = dsym_places(Path::new("/x/A.app/Contents/MacOS/A"), &options);
        for place in ["/x/A.app/Contents/MacOS/A.dSYM", "/x/A.app.dSYM", "/d/A.dSYM"] {
            assert!(places.contains(&Path::new(place).join("Contents/Resources/DWARF/A")), "{place}");
        }
    }
}
