//! A debuginfod client, a program that it asks for, and what may be left of that in its cache.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings, NotFetched};

use crate::common::{Folder, build_id};
use crate::web::Web;

/// A small program, and a cache to fetch it into.
pub(crate) struct Fixture {
    pub(crate) folder: Folder,
    pub(crate) bytes: Vec<u8>,
    pub(crate) id: Vec<u8>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let source = folder.write("small.c", "int main(void) { return 0; }\n");
        let program = folder.compile(&source, "small", &["-g", "-Wl,--build-id"]);
        Fixture { bytes: fs::read(&program).expect("the program"), id: build_id(&program), folder }
    }

    pub(crate) fn settings(&self, servers: &[&Web]) -> DebuginfodSettings {
        DebuginfodSettings {
            mode: DebuginfodMode::On,
            servers: servers.iter().map(|web| web.url()).collect(),
            cache_dir: Some(self.folder.path("cache")),
            timeout: Duration::from_secs(30),
            max_size: 1 << 20,
            ..DebuginfodSettings::default()
        }
    }

    /// With as little patience as the system needs to run the server at all.
    pub(crate) fn impatient(&self, servers: &[&Web]) -> DebuginfodSettings {
        DebuginfodSettings { timeout: Duration::from_secs(1), ..self.settings(servers) }
    }

    pub(crate) fn find(&self, servers: &[&Web]) -> Result<PathBuf, NotFetched> {
        Debuginfod::new(self.settings(servers)).find(&self.id, &DebuginfodFile::Debuginfo)
    }

    pub(crate) fn id_text(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn cached(&self) -> PathBuf {
        self.folder.path("cache").join(self.id_text()).join("debuginfo")
    }

    /// Everything in the cache but its settings.
    pub(crate) fn stored(&self) -> Vec<PathBuf> {
        let list = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        list(self.folder.path("cache")).filter(|path| path.is_dir()).flat_map(list).collect()
    }

    /// The server is refused for a reason with these words, and leaves nothing behind.
    #[track_caller]
    pub(crate) fn assert_refused(&self, web: &Web, words: &str) {
        self.assert_refused_with(self.settings(&[web]), web, words);
    }

    #[track_caller]
    pub(crate) fn assert_refused_with(&self, settings: DebuginfodSettings, web: &Web, words: &str) {
        let error = Debuginfod::new(settings).find(&self.id, &DebuginfodFile::Debuginfo).expect_err(words);
        assert!(matches!(error, NotFetched::Failed { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(words), "{text:?}, expected {words:?}");
        assert!(text.contains(&web.url()) && !text.chars().any(char::is_control), "{text:?}");
        assert_eq!(self.stored(), Vec::<PathBuf>::new());
        assert!(!web.paths().is_empty());
    }

    #[track_caller]
    pub(crate) fn assert_found(&self, servers: &[&Web]) {
        let path = self.find(servers).expect("the file");
        assert_eq!(path, self.cached());
        assert!(fs::read(&path).expect("the file") == self.bytes);
        assert_eq!(self.stored(), [path]);
    }
}
