//! Which peers take part, from the command line.

use std::path::{Path, PathBuf};

use super::{GLIBC, OURS, Peer, recipes};

/// Flags that choose peers.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// Another peer, or another library for a known one; may be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named_path)]
    pub peer: Vec<(String, PathBuf)>,
    /// Only these peers, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub peers: Option<Vec<String>>,
    /// Our library [default: beside this program]
    #[arg(long, value_name = "PATH")]
    pub library: Option<PathBuf>,
}

/// A peer that cannot be had: its name, and why.
pub type Missing = (String, String);

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err(format!("`{text}` is not NAME=PATH")),
    }
}

/// A file in the folder of this program.
///
/// # Errors
/// When this program does not know where it is.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(program.with_file_name(name))
}

impl Choice {
    /// Whether the peer of this name was asked for.
    #[must_use]
    pub fn is_wanted(&self, name: &str) -> bool {
        self.peers.as_ref().is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }

    /// The library that was given for a name, or else is beside this program, for our own.
    fn given(&self, name: &str) -> Option<&Path> {
        self.peer.iter().rev().find(|(given, _)| given == name).map(|(_, path)| path.as_path())
    }

    /// Our own library.
    ///
    /// # Errors
    /// A sentence when there is no such file.
    pub fn ours(&self) -> Result<Peer, String> {
        let beside = beside("libmimalloc_pprof.so")?;
        let path = self.given(OURS).or(self.library.as_deref()).unwrap_or(&beside);
        Peer::library(OURS, path, "this repository")
    }

    /// The peers that were asked for, made in `folder`, and those that cannot be had. `tell` hears what takes time or fails.
    ///
    /// # Errors
    /// When no peer is left.
    pub fn all(&self, folder: &Path, tell: impl Fn(&str)) -> Result<(Vec<Peer>, Vec<Missing>), String> {
        let (mut ready, mut missing) = (Vec::new(), Vec::new());
        let mut add = |name: &str, made: Result<Peer, String>| match made {
            Ok(peer) => ready.push(peer),
            Err(problem) => {
                tell(&format!("{name}: not measured: {problem}"));
                missing.push((name.to_owned(), problem));
            }
        };
        if self.is_wanted(OURS) {
            add(OURS, self.ours());
        }
        let recipes = recipes();
        for recipe in recipes.iter().filter(|recipe| self.is_wanted(recipe.name)) {
            match self.given(recipe.name) {
                Some(path) => add(recipe.name, Peer::library(recipe.name, path, "a library that was given")),
                None => {
                    tell(&format!("{}: building, unless it is there", recipe.name));
                    add(recipe.name, recipe.make(folder));
                }
            }
        }
        for (name, path) in &self.peer {
            if name != OURS && !recipes.iter().any(|recipe| recipe.name == name) {
                add(name, Peer::library(name, path, "a library that was given"));
            }
        }
        if self.is_wanted(GLIBC) {
            add(GLIBC, Ok(Peer::glibc()));
        }
        if ready.is_empty() { Err("no peer is left".to_owned()) } else { Ok((ready, missing)) }
    }
}
