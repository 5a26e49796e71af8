//! The allocators that are compared: shared libraries to preload, or the C library's own.

pub mod choice;
mod recipes;
mod source;

use std::path::{Path, PathBuf};

pub use recipes::{Recipe, recipes};

/// An allocator that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name in tables and on the command line.
    pub name: String,
    /// The library to preload; the C library's own allocator if `None`.
    pub library: Option<PathBuf>,
    /// Which version, and where from.
    pub origin: String,
    /// Variables that it is used with, besides the one that loads it.
    pub settings: Vec<(String, String)>,
    /// A command, with its arguments, that runs the program: a tool that watches it. Empty for none.
    pub wrapper: Vec<String>,
    /// A file that it leaves, besides what the loader says: without it, it was not at work. Where there is a wrapper, that alone counts.
    pub evidence: Option<PathBuf>,
}

/// The name under which this project's own library is measured.
pub const OURS: &str = "ours";
/// The peer that the others are compared with.
pub const REFERENCE: &str = "mimalloc3";
/// The C library's allocator.
pub const GLIBC: &str = "glibc";

impl Peer {
    /// A library, by its path.
    ///
    /// # Errors
    /// A sentence when there is no such file.
    pub fn library(name: &str, path: &Path, origin: &str) -> Result<Self, String> {
        let library = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { library: Some(library), name: name.to_owned(), origin: origin.to_owned(), ..Self::glibc() })
    }

    /// What programs use when nothing is preloaded.
    #[must_use]
    pub fn glibc() -> Self {
        Self {
            name: GLIBC.to_owned(),
            library: None,
            origin: "the C library".to_owned(),
            settings: Vec::new(),
            wrapper: Vec::new(),
            evidence: None,
        }
    }

    /// The same library under another name, used with `settings`.
    #[must_use]
    pub fn with(&self, name: &str, settings: &[(&str, &str)]) -> Self {
        let words: Vec<_> = settings.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
        Self {
            name: name.to_owned(),
            library: self.library.clone(),
            origin: format!("{} with {}", self.name, words.join(" ")),
            settings: settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
            ..self.clone()
        }
    }

    /// The command that runs a program under it.
    #[must_use]
    pub fn command(&self, program: &Path, arguments: &[String]) -> (PathBuf, Vec<String>) {
        let Some((wrapper, own)) = self.wrapper.split_first() else { return (program.to_owned(), arguments.to_vec()) };
        let program = std::iter::once(program.display().to_string());
        (wrapper.into(), own.iter().cloned().chain(program).chain(arguments.iter().cloned()).collect())
    }

    /// Removes what an earlier run has left.
    pub fn clear_evidence(&self) {
        // What is not there is removed; what cannot be removed is found again, and the loader has its say, too.
        let _ = self.evidence.as_ref().map(std::fs::remove_file);
    }

    /// Whether the last run has left what it must leave.
    ///
    /// # Errors
    /// A sentence when it has not.
    pub fn check_evidence(&self) -> Result<(), String> {
        let Some(path) = &self.evidence else { return Ok(()) };
        match std::fs::metadata(path) {
            Ok(file) if file.len() > 0 => Ok(()),
            _ => Err(format!("it left no {}", path.file_name().unwrap_or_default().display())),
        }
    }

    /// Whether `file`, where a program's `malloc` was found, is this peer.
    #[must_use]
    pub fn is_in(&self, file: &str) -> bool {
        let file = Path::new(file);
        match &self.library {
            Some(library) => file.canonicalize().is_ok_and(|file| file == *library),
            None => file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so")),
        }
    }

    /// The variables that put this peer into a program.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let preload = |path: &PathBuf| ("LD_PRELOAD".to_owned(), path.display().to_string());
        self.library.iter().map(preload).chain(self.settings.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_knows_its_own_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("liba.so");
        assert!(Peer::library("a", &library, "").is_err());
        std::fs::write(&library, "").unwrap();
        let linked = folder.path().join("libb.so");
        std::os::unix::fs::symlink(&library, &linked).unwrap();
        let peer = Peer::library("a", &linked, "").unwrap();
        assert!(peer.is_in(&library.display().to_string()) && peer.is_in(&linked.display().to_string()));
        assert!(!peer.is_in("/lib/x86_64-linux-gnu/libc.so.6") && !peer.is_in(""));
        assert!(Peer::glibc().is_in("/lib/x86_64-linux-gnu/libc.so.6") && !Peer::glibc().is_in("/usr/bin/python3"));
        assert_eq!(peer.environment().len(), 1);
        assert!(Peer::glibc().environment().is_empty());
        let other = peer.with("a2", &[("KEY", "2")]);
        assert_eq!((other.name.as_str(), other.origin.as_str()), ("a2", "a with `KEY=2`"));
        assert_eq!(other.environment()[1], ("KEY".to_owned(), "2".to_owned()));
    }
}
