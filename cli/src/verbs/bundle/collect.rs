//! What is to be packed: the files of a recording, a single profile, or what is in another bundle.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use mpp_profile::formats::Limits;
use mpp_profile::text::escaped;

use crate::args::{CommonArgs, SymbolArgs};
use crate::bundle::{self, Bundle, Stored};
use crate::exit::{Code, Failure, OrExit};
use crate::input::{self, Opened};
use crate::recording::{Index, Recording, SCHEMA, SCHEMA_VERSION};

/// The input, in memory.
pub(super) struct Collected {
    /// What it is called, fit for a file name.
    pub(super) name: String,
    /// The process that was started.
    pub(super) pid: Option<u32>,
    pub(super) index: Option<Index>,
    pub(super) profiles: Vec<Item>,
    pub(super) timelines: Vec<Item>,
    /// Answers that are there already.
    pub(super) stored: Stored,
    /// What was done to it before.
    pub(super) source_stripped: bool,
    pub(super) anonymized: bool,
}

/// A file of it.
pub(super) struct Item {
    /// Its name in the bundle.
    pub(super) file: String,
    pub(super) pid: Option<u32>,
    pub(super) shown: bool,
    pub(super) content: Vec<u8>,
}

/// Reads what the flags ask for.
///
/// # Errors
/// If there is nothing, or it cannot be read.
pub(super) fn collect(
    path: Option<&Path>,
    pid: Option<u32>,
    symbols: &SymbolArgs,
    common: CommonArgs,
) -> Result<Collected, Failure> {
    let stored = bundle::stored(&symbols.bundle)?;
    let recording = match path {
        Some(path) if path.is_dir() => Some(input::open(path)?),
        Some(_) => None,
        None => Some(input::newest(common)?),
    };
    if let Some(recording) = recording {
        return of_recording(&recording, pid, stored);
    }
    let path = path.unwrap_or(Path::new("-"));
    let opened = input::open_file(path)?;
    if opened.is_bundle() {
        return of_bundle(opened, pid, symbols, stored);
    }
    if let Some(pid) = pid {
        return Err(input::no_process(pid));
    }
    let name = plain(path.file_name().map(|name| name.to_string_lossy()).as_deref().unwrap_or("profile"));
    let content = whole(opened.reader(), &path.display().to_string())?;
    let item = Item { file: format!("profile/{name}"), pid: None, shown: true, content };
    Ok(Collected {
        name,
        pid: None,
        index: None,
        profiles: vec![item],
        timelines: Vec::new(),
        stored,
        source_stripped: false,
        anonymized: false,
    })
}

fn of_recording(recording: &Recording, pid: Option<u32>, stored: Stored) -> Result<Collected, Failure> {
    let is_wanted = |known: u32| pid.is_none_or(|pid| pid == known);
    let shown = recording.dumps();
    let pids: Vec<u32> = shown.iter().map(|(pid, _)| *pid).collect();
    input::check_process(&recording.folder.display().to_string(), pid, &pids)?;
    let item = |(pid, path): (u32, &Path), shown| -> Result<Item, Failure> {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let display = path.display().to_string();
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        let file = File::open(path).map_err(|error| Failure::new(Code::Input, format!("{display}: {error}")))?;
        if !is_file {
            return Err(Failure::new(Code::Input, format!("{display} is not a file")));
        }
        Ok(Item { file: format!("{pid}/{name}"), pid: Some(pid), shown, content: whole(file, &display)? })
    };
    let mut profiles = Vec::new();
    for (pid, path) in shown.iter().filter(|(pid, _)| is_wanted(*pid)) {
        profiles.push(item((*pid, path), true)?);
        for other in recording.other_dumps(*pid, path) {
            profiles.push(item((*pid, &other), false)?);
        }
    }
    let timelines = recording.timelines().into_iter().filter(|(pid, _)| is_wanted(*pid));
    let timelines = timelines.map(|(pid, path)| item((pid, &path), false)).collect::<Result<_, _>>()?;
    let mut index = recording.index().ok();
    if let Some(index) = &mut index {
        index.processes.retain(|process| is_wanted(process.pid));
    }
    let folder = fs::canonicalize(&recording.folder).unwrap_or_else(|_| recording.folder.clone());
    Ok(Collected {
        name: plain(&folder.file_name().unwrap_or_default().to_string_lossy()),
        pid: index.as_ref().and_then(|index| index.pid),
        index,
        profiles,
        timelines,
        stored,
        source_stripped: false,
        anonymized: false,
    })
}

fn of_bundle(opened: Opened, pid: Option<u32>, symbols: &SymbolArgs, mut stored: Stored) -> Result<Collected, Failure> {
    let source = opened.name.clone();
    let mut bundle = Bundle::open(opened)?;
    let manifest = bundle.manifest.clone();
    let pids: BTreeSet<u32> = manifest.profiles.iter().filter_map(|profile| profile.pid).collect();
    input::check_process(&source, pid, &pids.into_iter().collect::<Vec<_>>())?;
    let is_wanted = |known: Option<u32>| pid.is_none() || pid == known;
    bundle.read(|_| true)?;
    stored.add(bundle.stored(symbols)?);
    let mut profiles = Vec::new();
    for profile in manifest.profiles.iter().filter(|profile| is_wanted(profile.pid)) {
        let content = bundle.take(&profile.file)?;
        profiles.push(Item { file: name_in_bundle(&profile.file), pid: profile.pid, shown: profile.shown, content });
    }
    let mut timelines = Vec::new();
    for timeline in manifest.timelines.iter().filter(|timeline| is_wanted(Some(timeline.pid))) {
        let content = bundle.take(&timeline.file)?;
        let file = name_in_bundle(&timeline.file);
        timelines.push(Item { file, pid: Some(timeline.pid), shown: false, content });
    }
    let index = match &manifest.recording {
        Some(file) => {
            let index: Index = serde_json::from_slice(&bundle.take(file)?).or_exit(Code::Input)?;
            Some(index).filter(|index| index.schema == SCHEMA && index.schema_version <= SCHEMA_VERSION)
        }
        None => None,
    };
    let name = Path::new(&source).file_name().unwrap_or_default().to_string_lossy();
    let name = plain(name.trim_end_matches(".tar.gz").trim_end_matches(".bundle"));
    Ok(Collected {
        name,
        pid: manifest.pid,
        index,
        profiles,
        timelines,
        stored,
        source_stripped: manifest.source_stripped,
        anonymized: manifest.anonymized,
    })
}

/// All of an input, if it is not larger than what profiles can have.
fn whole(input: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let most = Limits::default().input_bytes;
    let mut content = Vec::new();
    let read = input.take(most + 1).read_to_end(&mut content);
    read.map_err(|error| Failure::new(Code::Input, format!("{name}: {error}")))?;
    if content.len() as u64 > most {
        return Err(Failure::new(Code::Input, format!("{name}: has more than {most} bytes")));
    }
    Ok(content)
}

/// A name made of what is harmless everywhere.
fn plain(name: &str) -> String {
    const LONGEST: usize = 60;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._+-".contains(character);
    let name: String = name.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "profile".to_owned() } else { name.to_owned() }
}

/// A name as it may be in a bundle, out of one that somebody else has written.
fn name_in_bundle(name: &str) -> String {
    let parts: Vec<String> = name.split('/').filter(|part| !part.is_empty()).take(3).map(plain).collect();
    let name = parts.join("/");
    // The header has room for so many bytes.
    escaped(if name.len() > 99 { &name[name.len() - 99..] } else { &name }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless() {
        assert_eq!(plain("my app;\u{1b}.heap"), "my_app__.heap");
        assert_eq!(plain(".."), "profile");
        assert_eq!(plain(&"x".repeat(1000)).len(), 60);
        assert_eq!(name_in_bundle("7/heap.pb.gz"), "7/heap.pb.gz");
        assert_eq!(name_in_bundle("/../../etc/passwd"), "profile/profile/etc");
        assert!(name_in_bundle(&format!("{0}/{0}", "x".repeat(90))).len() <= 99);
    }
}
