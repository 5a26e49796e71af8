//! What the caller may choose, and what the environment says.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Largest list of servers that is read from a file, in bytes.
const MAX_LIST: u64 = 64 << 10;

/// Where files may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DebuginfodMode {
    /// Nothing is looked for.
    #[default]
    Off,
    /// Only what is in the cache already is used; no server is asked, and nothing is written.
    Cache,
    /// What is not in the cache is asked for.
    On,
}

/// Settings of a [`Debuginfod`](crate::Debuginfod).
#[derive(Clone)]
pub struct DebuginfodSettings {
    /// Where files may come from.
    pub mode: DebuginfodMode,
    /// Addresses of the servers, `http` or `https`, asked in this order. As in `DEBUGINFOD_URLS`, `ima:enforcing` is
    /// allowed between them; the servers after it are not used, since signatures cannot be checked here.
    pub servers: Vec<String>,
    /// Folder where files are kept, an absolute path. Made when it is needed.
    pub cache_dir: Option<PathBuf>,
    /// How long a server may take to be reached, to begin its answer, and to send each 100 KiB of it.
    pub timeout: Duration,
    /// How long one file may take.
    pub max_time: Duration,
    /// How long all files may take, the waiting of all threads added up.
    pub max_total_time: Duration,
    /// Largest file that is taken, in bytes.
    pub max_size: u64,
    /// Called when a server is asked, about ten times a second while it sends, and when it is done, by whichever
    /// thread does the waiting.
    pub progress: Option<Arc<DownloadProgress>>,
}

/// Is told how far the fetching of files is.
pub type DownloadProgress = dyn Fn(&Download<'_>) + Send + Sync;

/// How far the fetching of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download<'a> {
    /// Address of the file, without user name and password.
    pub url: &'a str,
    /// Bytes received.
    pub received: u64,
    /// Its size in bytes, as far as the server tells.
    pub total: Option<u64>,
    /// Whether this is the last call for this address, successful or not.
    pub is_done: bool,
}

impl Default for DebuginfodSettings {
    /// Off, no servers, no cache; 30 s to be reached, 10 minutes in all, files up to 8 GiB.
    fn default() -> Self {
        DebuginfodSettings {
            mode: DebuginfodMode::Off,
            servers: Vec::new(),
            cache_dir: None,
            timeout: Duration::from_secs(30),
            max_time: Duration::from_secs(600),
            max_total_time: Duration::from_secs(600),
            max_size: 8 << 30,
            progress: None,
        }
    }
}

impl DebuginfodSettings {
    /// The settings that the environment variables of elfutils give: `DEBUGINFOD_URLS` (if that is not set, the lists
    /// in `/etc/debuginfod/*.urls`, from which login shells set it), `DEBUGINFOD_CACHE_PATH` (else
    /// `$HOME/.debuginfod_client_cache` if there is one, else `$XDG_CACHE_HOME/debuginfod_client`, else
    /// `$HOME/.cache/debuginfod_client`), `DEBUGINFOD_TIMEOUT`, `DEBUGINFOD_MAXTIME` and `DEBUGINFOD_MAXSIZE`.
    pub fn from_env(mode: DebuginfodMode) -> Self {
        Self::from_variables(mode, |name| env::var_os(name), Path::new("/etc/debuginfod"))
    }

    fn from_variables(mode: DebuginfodMode, get: impl Fn(&str) -> Option<OsString>, lists: &Path) -> Self {
        let default = Self::default();
        let number = |name| get(name)?.to_str()?.trim().parse::<i64>().ok();
        // Zero and less mean no limit there; here the largest one stays.
        let seconds = |name, default: Duration, unlimited: Duration| match number(name) {
            Some(seconds @ 1..) => Duration::from_secs(seconds.unsigned_abs()).min(unlimited),
            Some(_) => unlimited,
            None => default,
        };
        let servers = match get("DEBUGINFOD_URLS") {
            Some(urls) => words(&urls.to_string_lossy()),
            None if mode == DebuginfodMode::On => listed_servers(lists),
            None => Vec::new(),
        };
        DebuginfodSettings {
            mode,
            servers,
            cache_dir: cache_dir(&get),
            timeout: seconds("DEBUGINFOD_TIMEOUT", default.timeout, default.max_time),
            max_time: seconds("DEBUGINFOD_MAXTIME", default.max_time, default.max_total_time),
            max_size: number("DEBUGINFOD_MAXSIZE")
                .filter(|&size| size > 0)
                .map_or(default.max_size, |size| size.unsigned_abs().min(default.max_size)),
            ..default
        }
    }
}

/// The folder that elfutils would use.
fn cache_dir(get: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| get(name).filter(|value| !value.is_empty()).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(dir) = path("DEBUGINFOD_CACHE_PATH") {
        return Some(dir);
    }
    let home = path("HOME");
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache")).filter(|dir| dir.is_dir());
    let cache = || path("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
    old.or_else(|| Some(cache()?.join("debuginfod_client")))
}

/// The servers in all files `*.urls` of the folder, in the order of their names.
fn listed_servers(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.take(1000).flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "urls"));
    files.sort();
    let is_small = |path: &PathBuf| fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MAX_LIST);
    let read = |path: &PathBuf| fs::read_to_string(path).ok();
    files.iter().filter(|path| is_small(path)).filter_map(read).flat_map(|text| words(&text)).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl fmt::Debug for DebuginfodSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebuginfodSettings")
            .field("mode", &self.mode)
            .field("servers", &self.servers.iter().map(|url| super::server::without_user(url)).collect::<Vec<_>>())
            .field("cache_dir", &self.cache_dir)
            .field("timeout", &self.timeout)
            .field("max_time", &self.max_time)
            .field("max_total_time", &self.max_total_time)
            .field("max_size", &self.max_size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{DebuginfodMode, DebuginfodSettings};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    fn with(lists: &Path, variables: &[(&str, &str)]) -> DebuginfodSettings {
        let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        DebuginfodSettings::from_variables(DebuginfodMode::On, get, lists)
    }

    #[test]
    fn servers_from_the_variable_or_else_from_the_lists() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("b.urls", "http://b\n"), ("a.urls", " http://a1 http://a2\n"), ("c.txt", "http://c")] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        std::fs::create_dir(folder.path().join("d.urls")).expect("a folder");
        assert_eq!(with(folder.path(), &[]).servers, ["http://a1", "http://a2", "http://b"]);
        assert_eq!(
            with(folder.path(), &[("DEBUGINFOD_URLS", " http://x  http://y\n")]).servers,
            ["http://x", "http://y"]
        );
        assert!(with(folder.path(), &[("DEBUGINFOD_URLS", "")]).servers.is_empty());
        assert!(with(Path::new("/nowhere"), &[]).servers.is_empty());
    }

    #[test]
    fn the_cache_is_where_elfutils_has_it() {
        let home = tempfile::tempdir().expect("a folder");
        let home_text = home.path().to_str().expect("a plain name");
        let dir = |variables: &[(&str, &str)]| with(Path::new("/nowhere"), variables).cache_dir;
        assert_eq!(dir(&[]), None);
        let all = [("DEBUGINFOD_CACHE_PATH", "/p"), ("XDG_CACHE_HOME", "/x"), ("HOME", home_text)];
        assert_eq!(dir(&all), Some(PathBuf::from("/p")));
        assert_eq!(dir(&all[1..]), Some(PathBuf::from("/x/debuginfod_client")));
        assert_eq!(dir(&all[2..]), Some(home.path().join(".cache/debuginfod_client")));
        assert_eq!(dir(&[("DEBUGINFOD_CACHE_PATH", "relative")]), None);
        std::fs::create_dir(home.path().join(".debuginfod_client_cache")).expect("a folder");
        assert_eq!(dir(&all[1..]), Some(home.path().join(".debuginfod_client_cache")));
    }

    #[test]
    fn limits() {
        let default = DebuginfodSettings::default();
        let limits = |variables: &[(&str, &str)]| {
            let settings = with(Path::new("/nowhere"), variables);
            (settings.timeout, settings.max_time, settings.max_size)
        };
        let [timeout, time, size] = ["DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXTIME", "DEBUGINFOD_MAXSIZE"];
        assert_eq!(limits(&[]), (default.timeout, default.max_time, default.max_size));
        let (five, seven) = (Duration::from_secs(5), Duration::from_secs(7));
        assert_eq!(limits(&[(timeout, "5"), (time, "7"), (size, "9")]), (five, seven, 9));
        let unlimited = (default.max_time, default.max_total_time, default.max_size);
        assert_eq!(limits(&[(timeout, "0"), (time, "-1"), (size, "0")]), unlimited);
        let nonsense = [(timeout, "soon"), (time, "9223372036854775807"), (size, "9223372036854775807")];
        assert_eq!(limits(&nonsense), (default.timeout, default.max_time, default.max_size));
    }
}
