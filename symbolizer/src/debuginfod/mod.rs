//! A client of debuginfod: files by their build id, from servers that keep those of a whole distribution or company.
//!
//! A [`Debuginfod`] is a handle: its copies share what was learned, so a file is asked for once, and a server that
//! does not answer is not asked again. It is off unless asked for, since asking tells the server which programs are
//! being looked at.
//!
//! # Rules
//!
//! - **Nothing unchecked is used.** What a server sends is written under a name of its own and gets its final name in
//!   the cache only when it is whole and has the build id that was asked for. What is in the cache already is checked
//!   as well. (Source files have no build id; only their size is limited.)
//! - **Everything ends.** A server must send something all the time ([`DebuginfodSettings::timeout`]), a file must be
//!   there after [`DebuginfodSettings::max_time`], all files together after [`DebuginfodSettings::max_total_time`],
//!   and none may be larger than [`DebuginfodSettings::max_size`].
//! - **The cache is that of elfutils,** with its layout, its memory of what no server has, and its cleaning, so that
//!   GDB and others find what was fetched here, and the other way round.

mod cache;
mod clean;
mod file;
mod get;
mod server;
mod settings;
mod verify;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use file::DebuginfodFile;
pub use settings::{DebuginfodMode, DebuginfodSettings, Download, DownloadProgress};

use self::cache::{Cache, Cached};
use self::get::{Failure, Fetcher};
use self::server::Server;
use crate::locate::hex;

/// Build ids of this many bytes are asked for. Linkers write 8 (lld's fast hash) to 32; a shorter one tells no file
/// from another, and servers refuse longer ones.
const BUILD_ID_LENGTH: std::ops::RangeInclusive<usize> = 8..=64;

/// Fetches files from debuginfod servers, and keeps them. Copies are cheap and share everything; any number of threads
/// may ask at once.
#[derive(Clone, Default)]
pub struct Debuginfod(Option<Arc<Client>>);

/// A build id, and the kind of file.
type Question = (Vec<u8>, DebuginfodFile);

/// The place of a file, or why there is none; empty while somebody is looking.
type Answer = OnceLock<Result<PathBuf, NotFetched>>;

/// What the copies of a handle share.
struct Client {
    settings: DebuginfodSettings,
    cache: Option<Cache>,
    servers: Vec<Server>,
    fetcher: Fetcher,
    /// Time spent on waiting for servers, of all threads added up.
    spent: Mutex<Duration>,
    answers: Mutex<HashMap<Question, Arc<Answer>>>,
    cleaned: OnceLock<()>,
}

/// Why there is no file. Messages are for people; everything in them that a server chose is escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFetched {
    /// Debuginfod is off.
    #[error("debuginfod is off")]
    Off,
    /// The build id is too short to know a file by, or too long to be one.
    #[error("a build id of {length} bytes cannot be asked for")]
    BadBuildId {
        /// Its length in bytes.
        length: usize,
    },
    /// No folder for the cache is known.
    #[error("debuginfod: neither DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME nor HOME says where files may be kept")]
    NoCache,
    /// Only the cache may be used, and it does not have the file.
    #[error("not in the debuginfod cache")]
    NotCached,
    /// No server is known.
    #[error("debuginfod: no servers; list their addresses in DEBUGINFOD_URLS")]
    NoServers,
    /// All servers say that they do not have it, now or a short while ago.
    #[error("no debuginfod server has it")]
    NotThere,
    /// Servers did not answer, or what they sent was refused, or it cannot be stored.
    #[error("debuginfod: {reason}")]
    Failed {
        /// What went wrong with each server.
        reason: String,
    },
}

impl NotFetched {
    /// Whether somebody should hear of it: something went wrong, rather than there being no such file.
    pub fn is_problem(&self) -> bool {
        matches!(self, NotFetched::NoCache | NotFetched::NoServers | NotFetched::Failed { .. })
    }
}

impl Debuginfod {
    /// A client that finds nothing; the default.
    pub fn off() -> Self {
        Debuginfod(None)
    }

    /// A client with these settings. Nothing is read, written or asked yet.
    pub fn new(settings: DebuginfodSettings) -> Self {
        if settings.mode == DebuginfodMode::Off {
            return Self::off();
        }
        let client = Client {
            cache: settings.cache_dir.as_deref().filter(|dir| dir.is_absolute()).map(Cache::new),
            servers: server::parse(&settings.servers),
            fetcher: Fetcher::default(),
            spent: Mutex::default(),
            answers: Mutex::default(),
            cleaned: OnceLock::new(),
            settings,
        };
        Debuginfod(Some(Arc::new(client)))
    }

    /// The place in the cache of a file of the program or library with this build id. The file is there, is a regular
    /// one, and (but for source files) has that build id; whoever opens it later must check again.
    ///
    /// It is looked for in the cache, then asked for from one server after the other, if that is allowed. A second
    /// question for the same file gets the same answer.
    pub fn find(&self, build_id: &[u8], file: &DebuginfodFile) -> Result<PathBuf, NotFetched> {
        let client = self.0.as_ref().ok_or(NotFetched::Off)?;
        if !BUILD_ID_LENGTH.contains(&build_id.len()) {
            return Err(NotFetched::BadBuildId { length: build_id.len() });
        }
        let answer = {
            let mut answers = client.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry((build_id.to_vec(), file.clone())).or_default())
        };
        // Another thread that wants the same waits here, and others go on.
        answer.get_or_init(|| client.find(build_id, file)).clone()
    }

    /// Where files may come from.
    pub fn mode(&self) -> DebuginfodMode {
        self.0.as_ref().map_or(DebuginfodMode::Off, |client| client.settings.mode)
    }

    /// Whether there is anybody to ask.
    pub(crate) fn has_servers(&self) -> bool {
        self.0.as_ref().is_some_and(|client| !client.servers.is_empty())
    }

    /// Where [`find`](Self::find) looks, in order: the place in the cache, then addresses of servers.
    pub fn places(&self, build_id: &[u8], file: &DebuginfodFile) -> Vec<PathBuf> {
        let Some(client) = self.0.as_ref().filter(|_| BUILD_ID_LENGTH.contains(&build_id.len())) else {
            return Vec::new();
        };
        let id = hex(build_id);
        let cached = client.cache.iter().map(|cache| cache.path(&id, file));
        let servers = client.servers.iter().filter(|_| client.settings.mode == DebuginfodMode::On);
        cached.chain(servers.map(|server| PathBuf::from(file.url(server.shown(), &id)))).collect()
    }
}

impl fmt::Debug for Debuginfod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Debuginfod").field(&self.0.as_ref().map(|client| &client.settings)).finish()
    }
}

impl Client {
    fn find(&self, build_id: &[u8], file: &DebuginfodFile) -> Result<PathBuf, NotFetched> {
        let is_on = self.settings.mode == DebuginfodMode::On;
        let none = if is_on { NotFetched::NoCache } else { NotFetched::NotCached };
        let cache = self.cache.as_ref().ok_or(none)?;
        let id = hex(build_id);
        let mut reasons = Vec::new();
        match cache.look_up(&id, file) {
            Cached::File(path) => match self.check(&path, build_id, file) {
                Ok(()) => {
                    cache.touch(&path);
                    return Ok(path);
                }
                Err(reason) => reasons.push(format!("{path:?} in the cache is refused: {reason}")),
            },
            Cached::KnownMissing if is_on => return Err(NotFetched::NotThere),
            Cached::KnownMissing | Cached::Unknown => {}
        }
        if !is_on {
            return Err(if reasons.is_empty() { NotFetched::NotCached } else { failed(&reasons) });
        }
        if self.servers.is_empty() {
            return Err(if reasons.is_empty() { NotFetched::NoServers } else { failed(&reasons) });
        }
        self.cleaned.get_or_init(|| cache.clean());
        let mut is_everywhere_missing = true;
        for server in &self.servers {
            match self.ask(server, cache, build_id, file) {
                Ok(path) => return Ok(path),
                Err(Failure::NotThere) => {}
                Err(failure) => {
                    is_everywhere_missing = false;
                    reasons.push(format!("{}: {failure}", server.shown()));
                }
            }
        }
        // Only what was said by all of them is remembered: a server that is down for now may have the file.
        if is_everywhere_missing {
            cache.remember_missing(&id, file);
        }
        Err(if reasons.is_empty() { NotFetched::NotThere } else { failed(&reasons) })
    }

    /// Asks one server, and stores what it sends if it is what was asked for.
    fn ask(&self, server: &Server, cache: &Cache, build_id: &[u8], file: &DebuginfodFile) -> Result<PathBuf, Failure> {
        if let Some(reason) = server.is_down() {
            return Err(Failure::Skipped(reason));
        }
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.settings.max_total_time.saturating_sub(spent);
        if left.is_zero() {
            return Err(Failure::OutOfTime(self.settings.max_total_time));
        }
        let started = Instant::now();
        let id = hex(build_id);
        let result = cache.store(&id, file, |target, path| {
            let limit = left.min(self.settings.max_time);
            self.fetcher.get(&file.url(server.url(), &id), target, limit, &self.settings)?;
            self.check(path, build_id, file).map_err(Failure::Refused)
        });
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += started.elapsed();
        server.note(result.as_ref().err());
        result
    }

    fn check(&self, path: &Path, build_id: &[u8], file: &DebuginfodFile) -> Result<(), String> {
        verify::check(path, build_id, file, self.settings.max_size)
    }
}

fn failed(reasons: &[String]) -> NotFetched {
    NotFetched::Failed { reason: reasons.join("; ") }
}
