//! Bundles as inputs: their profiles, and their symbols, which stand for the files that are not here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mpp_profile::formats::Limits;
use mpp_profile::formats::bundle::{self, BundledProfile, Manifest, Reader};
use mpp_profile::text::escaped;
use mpp_profile::{Profile, lookup_address};
use mpp_symbolizer::{Options, StoredSymbols, Symbolizer};

use crate::args::{CommonArgs, DebuginfodChoice, InputArgs, SymbolArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::input::{self, Loaded, Opened, Processes};
use crate::symbols;

/// Symbols that were found elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    /// The symbols; those that come first count.
    pub(crate) symbols: Vec<StoredSymbols>,
    /// Whether nothing else is to be read.
    pub(crate) only: bool,
}

impl Stored {
    /// Puts others behind.
    pub(crate) fn add(&mut self, other: Stored) {
        self.symbols.extend(other.symbols);
        self.only |= other.only;
    }

    /// These and what the flags ask for, in the symbolizer's terms.
    pub(crate) fn options(self, args: &SymbolArgs) -> Options {
        Options { stored: self.symbols, only_stored: self.only, ..symbols::options(args) }
    }
}

/// Adds the symbols that a profile needs to those that were found for others.
pub(crate) fn store(profile: &Profile, options: &Options, found: &mut Vec<StoredSymbols>) {
    let modules: Vec<_> = profile.modules.iter().map(symbols::module).collect();
    let nameless = profile.locations.iter().filter(|location| location.frames.is_empty());
    let addresses: Vec<u64> = nameless.map(|location| lookup_address(location.address)).collect();
    for stored in Symbolizer::new(options.clone()).store(&modules, &addresses) {
        let is_same = |known: &&mut StoredSymbols| match (known.build_id(), stored.build_id()) {
            (None, None) => known.path() == stored.path(),
            (known, other) => known == other,
        };
        match found.iter_mut().find(is_same) {
            Some(known) => *known = known.with(&stored),
            None => found.push(stored),
        }
    }
}

/// A bundle that is being read.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// What errors call it.
    name: String,
    /// What it says about itself.
    pub(crate) manifest: Manifest,
    /// The rest, while nothing of it was read.
    reader: Option<Reader<'static>>,
    /// What was read of it, by name.
    files: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    /// Reads what the bundle says about itself.
    ///
    /// # Errors
    /// If it is none, or is damaged.
    pub(crate) fn open(opened: Opened) -> Result<Bundle, Failure> {
        let name = opened.name.clone();
        let reader = bundle::open(opened.reader(), &name, &Limits::default()).or_exit(Code::Input)?;
        Ok(Bundle { name, manifest: reader.manifest().clone(), reader: Some(reader), files: BTreeMap::new() })
    }

    /// Reads it to its end, and keeps the files that are wanted and all symbols.
    ///
    /// # Errors
    /// If it is damaged or too large.
    pub(crate) fn read(&mut self, wanted: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let symbols: Vec<&str> = self.manifest.modules.iter().map(|module| module.file.as_str()).collect();
        self.files = reader.read(|name| wanted(name) || symbols.contains(&name)).or_exit(Code::Input)?;
        Ok(())
    }

    /// A file that was read.
    ///
    /// # Errors
    /// If the bundle tells of it, but does not have it.
    pub(crate) fn take(&mut self, file: &str) -> Result<Vec<u8>, Failure> {
        self.files.remove(file).ok_or_else(|| {
            let why = format!("{}: the bundle tells of {}, but does not have it", self.name, escaped(file));
            Failure::new(Code::Input, why)
        })
    }

    /// The symbols. Unless the flags name places to look in, nothing else is read.
    ///
    /// # Errors
    /// If they are damaged.
    pub(crate) fn stored(&mut self, args: &SymbolArgs) -> Result<Stored, Failure> {
        let files: Vec<String> = self.manifest.modules.iter().map(|module| module.file.clone()).collect();
        let mut symbols = Vec::new();
        for file in files {
            let content = self.take(&file)?;
            let name = format!("{}/{file}", self.name);
            symbols.push(StoredSymbols::from_bytes(Path::new(&name), &content).or_exit(Code::Input)?);
        }
        let has_places = !args.debug_dir.is_empty() || args.sysroot.is_some() || !args.bundle.is_empty();
        let looks_elsewhere = has_places || args.debuginfod == DebuginfodChoice::On;
        Ok(Stored { symbols, only: !looks_elsewhere })
    }
}

/// The symbols of the bundles that `--bundle` names. They are about other profiles, so only a build id tells that an
/// answer is about the right file.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn stored(paths: &[PathBuf]) -> Result<Stored, Failure> {
    let mut all = Stored::default();
    for path in paths {
        let opened = input::open_file(path)?;
        if !opened.is_bundle() {
            return Err(Failure::new(Code::Input, format!("{}: is no bundle", opened.name)));
        }
        let mut bundle = Bundle::open(opened)?;
        bundle.read(|_| false)?;
        let files: Vec<String> = bundle.manifest.modules.iter().map(|module| module.file.clone()).collect();
        for file in files {
            let name = format!("{}/{file}", bundle.name);
            let symbols = StoredSymbols::from_bytes(Path::new(&name), &bundle.take(&file)?).or_exit(Code::Input)?;
            all.symbols.extend(Some(symbols).filter(|symbols| symbols.build_id().is_some()));
        }
    }
    Ok(all)
}

/// Reads and symbolizes what the flags ask for out of a bundle.
///
/// # Errors
/// If there is nothing to show, or it is damaged.
pub(crate) fn load(
    opened: Opened,
    input: &InputArgs,
    args: &SymbolArgs,
    common: CommonArgs,
) -> Result<Loaded, Failure> {
    let source = opened.name.clone();
    let mut bundle = Bundle::open(opened)?;
    let shown: Vec<BundledProfile> = bundle.manifest.profiles.iter().filter(|profile| profile.shown).cloned().collect();
    let all: Vec<u32> = shown.iter().filter_map(|profile| profile.pid).collect();
    let chosen: Vec<BundledProfile> = if all.is_empty() {
        input.pid.map_or(Ok(()), |pid| Err(input::no_process(pid)))?;
        shown.into_iter().take(1).collect()
    } else {
        let pid = (!input.all).then(|| input.pid.unwrap_or_else(|| main_process(&bundle.manifest, &shown)));
        input::check_process(&source, pid, &all)?;
        shown.into_iter().filter(|profile| pid.is_none() || profile.pid == pid).collect()
    };
    if chosen.is_empty() {
        return Err(Failure::new(Code::Input, format!("{source}: holds no profile")));
    }
    bundle.read(|name| chosen.iter().any(|profile| profile.file == name))?;
    let mut stored = stored(&args.bundle)?;
    stored.add(bundle.stored(args)?);
    let mut profiles = Vec::new();
    for profile in &chosen {
        let name = format!("{source}/{}", profile.file);
        profiles.push(mpp_profile::read(&bundle.take(&profile.file)?[..], &name).or_exit(Code::Input)?);
    }
    let symbols = input::symbolize(profiles.iter_mut(), args, stored, common);
    let executable = match profiles.as_slice() {
        [only] => input::executable(only).map(str::to_owned),
        _ => None,
    };
    let profile = input::sum(profiles)?;
    let shown: Vec<u32> = chosen.iter().filter_map(|profile| profile.pid).collect();
    let others = all.iter().copied().filter(|pid| !shown.contains(pid)).collect();
    let processes = (!all.is_empty()).then_some(Processes { shown, executable, others });
    Ok(Loaded { profile, symbols, source, again: input::again(input), processes, slice: None })
}

/// The symbols of a bundle, and of those that `--bundle` names.
///
/// # Errors
/// If they are damaged.
pub(crate) fn all_stored(opened: Opened, args: &SymbolArgs) -> Result<Stored, Failure> {
    let mut bundle = Bundle::open(opened)?;
    bundle.read(|_| false)?;
    let mut all = stored(&args.bundle)?;
    all.add(bundle.stored(args)?);
    Ok(all)
}

/// The process that was started; if it left no profile, the one with the most live memory.
fn main_process(manifest: &Manifest, shown: &[BundledProfile]) -> u32 {
    let started = manifest.pid.filter(|pid| shown.iter().any(|profile| profile.pid == Some(*pid)));
    let largest = || shown.iter().max_by_key(|profile| profile.live_bytes)?.pid;
    started.or_else(largest).unwrap_or_default()
}

/// The timeline of a process in a bundle; of the one that was started without `pid`.
///
/// # Errors
/// If there is none, or the bundle is damaged.
pub(crate) fn timeline(opened: Opened, pid: Option<u32>) -> Result<Vec<u8>, Failure> {
    let mut bundle = Bundle::open(opened)?;
    let timelines = &bundle.manifest.timelines;
    let started = bundle.manifest.pid.filter(|pid| timelines.iter().any(|timeline| timeline.pid == *pid));
    let wanted = pid.or(started).or(timelines.first().map(|timeline| timeline.pid));
    let found = timelines.iter().find(|timeline| Some(timeline.pid) == wanted);
    let file = found.map(|timeline| timeline.file.clone()).ok_or_else(|| {
        let why = if bundle.manifest.anonymized { "; anonymous bundles have none" } else { "" };
        Failure::new(Code::Input, format!("{}: holds no such timeline{why}", bundle.name))
    })?;
    bundle.read(|name| name == file)?;
    bundle.take(&file)
}
