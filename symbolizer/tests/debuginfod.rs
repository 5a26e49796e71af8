//! The client against Debian's `debuginfod`, and its cache against that of `debuginfod-find`.

mod common;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{FUNCTIONS, Folder, build_id, instructions, lines, run};
use mpp_symbolizer::{
    Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings, Identity, Module, NotFetched, Options, Quality,
    SymbolSource, Symbolized, Symbolizer,
};

/// `debuginfod` on the loopback interface, until it is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Serves the files in `dir`; returns when it knows the debug information of `id`.
    fn new(folder: &Folder, dir: &Path, id: &str) -> Self {
        // Another process may take the port between the two steps.
        for attempt in 0..5 {
            let port =
                TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
            let log = fs::File::create(folder.path(&format!("log-{attempt}"))).expect("a log");
            let child = Command::new("debuginfod")
                .args(["-F", "-d", ":memory:", "-p", &port.to_string()])
                .arg(dir)
                .env("HOME", folder.path("home-of-the-server"))
                .env_remove("DEBUGINFOD_URLS")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("debuginfod starts; it is in Debian's package debuginfod");
            let mut server = Server { child, port };
            if server.is_ready(&folder.path("ready"), id) {
                return server;
            }
        }
        panic!("debuginfod does not start: {:?}", fs::read_to_string(folder.path("log-4")));
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn is_ready(&mut self, cache: &Path, id: &str) -> bool {
        for _ in 0..600 {
            if self.child.try_wait().expect("its state").is_some() {
                return false;
            }
            let is_up = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            // The tool itself says whether the file was indexed already; it must not remember that it was not.
            _ = fs::remove_dir_all(cache);
            if is_up && find(&["debuginfo", id], &self.url(), cache).is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("debuginfod knows no file after a minute");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        self.child.wait().expect("debuginfod ends");
    }
}

/// What `debuginfod-find` finds.
fn find(what: &[&str], url: &str, cache: &Path) -> Option<PathBuf> {
    let output = Command::new("debuginfod-find")
        .args(what)
        .env("DEBUGINFOD_URLS", url)
        .env("DEBUGINFOD_CACHE_PATH", cache)
        .env_remove("DEBUGINFOD_VERBOSE")
        .output()
        .expect("debuginfod-find starts; it is in Debian's package debuginfod");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// A stripped program, its debug information and its source, and a server that has them.
struct Fixture {
    folder: Folder,
    served: PathBuf,
    source: PathBuf,
    id: Vec<u8>,
    id_text: String,
    server: Server,
}

impl Fixture {
    fn new() -> Self {
        let folder = Folder::new();
        let source = folder.write("src/a file#1.c", "int main(void) { return 0; }\n");
        let program = folder.compile(&source, "whole", &["-g", "-Wl,--build-id"]);
        let served = folder.path("served");
        fs::create_dir(&served).expect("a folder");
        run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(served.join("it.debug")));
        run(Command::new("objcopy").arg("--strip-all").arg(&program).arg(served.join("it")));
        let id = build_id(&program);
        let id_text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let server = Server::new(&folder, &served, &id_text);
        Fixture { folder, served, source, id, id_text, server }
    }

    fn client(&self, mode: DebuginfodMode, url: &str, cache: &str) -> Debuginfod {
        Debuginfod::new(DebuginfodSettings {
            mode,
            servers: vec![url.to_owned()],
            cache_dir: Some(self.folder.path(cache)),
            ..DebuginfodSettings::default()
        })
    }

    /// What can be fetched: for us, for `debuginfod-find`, and the original.
    fn files(&self) -> [(DebuginfodFile, Vec<&str>, PathBuf); 3] {
        let source = self.source.to_str().expect("a plain path");
        [
            (DebuginfodFile::Debuginfo, vec!["debuginfo", &self.id_text], self.served.join("it.debug")),
            (DebuginfodFile::Executable, vec!["executable", &self.id_text], self.served.join("it")),
            (DebuginfodFile::Source(self.source.clone()), vec!["source", &self.id_text, source], self.source.clone()),
        ]
    }
}

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

#[test]
fn all_kinds_of_files_from_a_real_server_into_a_cache_for_both() {
    let fixture = Fixture::new();
    let url = fixture.server.url();
    let ours = fixture.client(DebuginfodMode::On, &url, "ours");
    for (file, arguments, original) in fixture.files() {
        let path = ours.find(&fixture.id, &file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        assert!(fs::read(&path).expect("the file") == fs::read(&original).expect("the original"), "{file:?}");
        // The other tool finds it where we put it, without a server.
        assert_eq!(find(&arguments, NOWHERE, &fixture.folder.path("ours")), Some(path.clone()), "{file:?}");
        assert_eq!(ours.places(&fixture.id, &file)[0], path);
        // And what the other tool fetched is found by us.
        let theirs = find(&arguments, &url, &fixture.folder.path("theirs")).expect("the other tool's");
        let cached = fixture.client(DebuginfodMode::Cache, &url, "theirs");
        assert_eq!(cached.find(&fixture.id, &file), Ok(theirs), "{file:?}");
        let nothing = fixture.client(DebuginfodMode::Cache, &url, "nothing");
        assert_eq!(nothing.find(&fixture.id, &file), Err(NotFetched::NotCached));
    }
    assert!(!fixture.folder.path("nothing").exists());
}

#[test]
fn what_the_server_does_not_have_is_remembered_for_both() {
    let fixture = Fixture::new();
    let (url, id) = (fixture.server.url(), [0xab; 20]);
    let id_text = "ab".repeat(20);
    let ours = fixture.client(DebuginfodMode::On, &url, "ours");
    assert_eq!(ours.find(&id, &DebuginfodFile::Debuginfo), Err(NotFetched::NotThere));
    let note = fixture.folder.path("ours").join(&id_text).join("debuginfo");
    assert_eq!(fs::metadata(note).expect("a note").len(), 0);
    assert_eq!(find(&["debuginfo", &id_text], &url, &fixture.folder.path("theirs")), None);
    let there = fixture.client(DebuginfodMode::On, NOWHERE, "theirs");
    assert_eq!(there.find(&id, &DebuginfodFile::Debuginfo), Err(NotFetched::NotThere));
    assert!(matches!(there.find(&id, &DebuginfodFile::Executable), Err(NotFetched::Failed { .. })));
}

/// A program in use somewhere, whose files are on a server only, without the functions' names and lines here.
struct Deployed {
    folder: Folder,
    /// Where it is, or was.
    program: PathBuf,
    id: Vec<u8>,
    modules: Vec<Module>,
    addresses: Vec<u64>,
    /// What is true of them.
    truth: Vec<Vec<common::Line>>,
    server: Server,
}

impl Deployed {
    fn new(with_dwz: bool) -> Self {
        let folder = Folder::new();
        let (served, program) = (folder.path("served"), folder.path("program"));
        fs::create_dir(&served).expect("a folder");
        let names = ["first", "second"];
        for name in names {
            let define = format!("-DFOR_THE_BUILD_ID_OF={name}");
            let whole = folder.program(name, &["-no-pie", "-rdynamic", "-g3", &define, "-Wl,--build-id"]);
            run(Command::new("objcopy")
                .arg("--only-keep-debug")
                .arg(&whole)
                .arg(served.join(name).with_extension("debug")));
            run(Command::new("objcopy").arg("--strip-all").arg(&whole).arg(served.join(name)));
        }
        let whole = folder.path("first");
        let addresses = instructions(&whole, &FUNCTIONS);
        let truth = common::binutils(&whole, &addresses);
        if with_dwz {
            let debug = names.map(|name| served.join(name).with_extension("debug"));
            run(Command::new("dwz").args(["-m", "common", "-M", "/gone/common"]).args(debug).current_dir(&served));
        }
        fs::copy(served.join("first"), &program).expect("copied");
        let id = build_id(&program);
        let mut modules = common::mapped(&program, 0);
        modules.iter_mut().for_each(|module| module.build_id = Some(id.clone()));
        let id_text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let server = Server::new(&folder, &served, &id_text);
        Deployed { folder, program, id, modules, addresses, truth, server }
    }

    fn look(&self, mode: DebuginfodMode) -> (Vec<Symbolized>, Symbolizer) {
        let debuginfod = Debuginfod::new(DebuginfodSettings {
            mode,
            servers: vec![self.server.url()],
            cache_dir: Some(self.folder.path("cache")),
            ..DebuginfodSettings::default()
        });
        let mut symbolizer = Symbolizer::new(Options { debuginfod, ..Options::default() });
        let answers = symbolizer.symbolize(&self.modules, &self.addresses);
        (answers, symbolizer)
    }

    /// All names and lines are there; returns where they were looked for.
    #[track_caller]
    fn assert_true(&self, mode: DebuginfodMode) -> Vec<PathBuf> {
        let (answers, symbolizer) = self.look(mode);
        let report = &symbolizer.report()[0];
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(answers.iter().map(lines).collect::<Vec<_>>(), self.truth);
        assert_eq!(report.identity, Some(Identity::BuildId));
        assert_eq!(report.found_build_id.as_ref(), Some(&self.id));
        let SymbolSource::Dwarf { file } = &report.source else { panic!("{:?}", report.source) };
        assert!(file.starts_with(self.folder.path("cache")), "{file:?}");
        report.looked_at.clone()
    }
}

#[test]
fn debug_information_of_a_stripped_program() {
    let deployed = Deployed::new(false);
    for mode in [DebuginfodMode::Off, DebuginfodMode::Cache] {
        let (answers, symbolizer) = deployed.look(mode);
        let report = &symbolizer.report()[0];
        assert!(answers.iter().all(|answer| answer.quality != Quality::Lines));
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
    let looked_at = deployed.assert_true(DebuginfodMode::On);
    let is_address = |path: &PathBuf| path.to_string_lossy().starts_with(&deployed.server.url());
    assert!(looked_at.iter().any(is_address), "{looked_at:?}");
    // Now it is in the cache, so nobody need be asked.
    let looked_at = deployed.assert_true(DebuginfodMode::Cache);
    assert!(!looked_at.iter().any(is_address), "{looked_at:?}");
}

#[test]
fn the_program_too_when_it_is_gone_or_replaced() {
    let deployed = Deployed::new(false);
    let other = deployed.folder.program("other", &["-no-pie", "-Wl,--build-id=0x0123456789abcdef"]);
    fs::copy(other, &deployed.program).expect("replaced");
    let (answers, symbolizer) = deployed.look(DebuginfodMode::Cache);
    assert!(answers.iter().all(|answer| answer.frames.is_empty()));
    assert_eq!(symbolizer.report()[0].remedy.as_deref(), Some("--debuginfod on"));
    deployed.assert_true(DebuginfodMode::On);
    fs::remove_file(&deployed.program).expect("removed");
    deployed.assert_true(DebuginfodMode::On);
    deployed.assert_true(DebuginfodMode::Cache);
}

#[test]
fn the_common_file_of_dwz_too() {
    let deployed = Deployed::new(true);
    let looked_at = deployed.assert_true(DebuginfodMode::On);
    let fetched = looked_at.iter().filter(|path| path.starts_with(deployed.folder.path("cache"))).count();
    assert_eq!(fetched, 2, "{looked_at:?}");
}

#[test]
fn what_goes_wrong_is_told_and_the_rest_is_used() {
    let deployed = Deployed::new(false);
    let debuginfod = Debuginfod::new(DebuginfodSettings {
        mode: DebuginfodMode::On,
        servers: vec![NOWHERE.to_owned()],
        cache_dir: Some(deployed.folder.path("cache")),
        ..DebuginfodSettings::default()
    });
    let mut symbolizer = Symbolizer::new(Options { debuginfod, ..Options::default() });
    let answers = symbolizer.symbolize(&deployed.modules, &deployed.addresses);
    assert!(answers.iter().any(|answer| answer.quality == Quality::Name));
    let problems: Vec<String> = symbolizer.report()[0].problems.iter().map(ToString::to_string).collect();
    assert!(problems.len() == 1 && problems[0].contains("cannot be reached"), "{problems:?}");
}
