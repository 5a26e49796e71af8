//! What is not a regular file, wherever one is looked for: pipes that nobody writes to, devices without end, folders,
//! sockets, symbolic links that go round in circles. Nothing waits, and what other places know is not lost.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FUNCTIONS, Folder, build_id, instructions, run, symbolize_with};
use mpp_symbolizer::{Module, Options, Quality, Symbolizer};

/// What may be at a path instead of a file, by name.
const KINDS: [&str; 8] = ["pipe", "folder", "socket", "zero", "full", "loop", "link to pipe", "dangling link"];

/// Puts something of that kind at `path`.
fn put(kind: &str, path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let beside = path.with_extension("beside");
    match kind {
        "pipe" => drop(run(Command::new("mkfifo").arg(path))),
        "folder" => fs::create_dir(path).expect("a folder"),
        "socket" => drop(UnixListener::bind(path).expect("a socket")),
        "zero" => symlink("/dev/zero", path).expect("a link"),
        "full" => symlink("/dev/full", path).expect("a link"),
        "loop" => {
            symlink(path, &beside).expect("a link");
            symlink(&beside, path).expect("a link");
        }
        "link to pipe" => {
            run(Command::new("mkfifo").arg(&beside));
            symlink(&beside, path).expect("a link");
        }
        "dangling link" => symlink(&beside, path).expect("a link"),
        other => panic!("{other} is no kind"),
    }
}

/// A stripped program that keeps its exported names, and its debug file.
struct Split {
    folder: Folder,
    stripped: PathBuf,
    debug: PathBuf,
    id: Vec<u8>,
    addresses: Vec<u64>,
}

impl Split {
    fn new() -> Self {
        let folder = Folder::new();
        let whole = folder.program("whole", &["-rdynamic", "-Wl,--build-id"]);
        let (stripped, debug) = (folder.path("app"), folder.path("app.debug"));
        run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &debug]));
        run(Command::new("objcopy").arg("--strip-all").args([&whole, &stripped]));
        let addresses = instructions(&whole, &["outer", "plain"]);
        Split { id: build_id(&stripped), stripped, debug, addresses, folder }
    }

    /// Only exported names are found, and the problem, if it is one to be told, is about `place`.
    #[track_caller]
    fn assert_only_names(&self, options: Options, place: &Path, kind: &str) {
        let mut symbolizer = Symbolizer::new(options);
        let answers = symbolize_with(&mut symbolizer, &self.stripped, &self.addresses, Some(&self.id));
        assert!(answers.iter().all(|answer| answer.quality == Quality::Name), "{kind}");
        let problems: Vec<String> = symbolizer.report()[0].problems.iter().map(ToString::to_string).collect();
        let name = place.file_name().expect("a name").to_str().expect("a plain name");
        // A link to nothing is as good as nothing.
        if kind != "dangling link" {
            assert!(problems.iter().any(|problem| problem.contains(name)), "{kind} at {place:?}: {problems:?}");
        }
    }
}

#[test]
fn in_place_of_the_program() {
    for kind in KINDS {
        let folder = Folder::new();
        let path = folder.path("app");
        put(kind, &path);
        let module = Module { start: 0x1000, end: 0x9000, file_offset: 0, path: path.clone(), build_id: None };
        let modules = [Module { build_id: Some(vec![7; 20]), start: 0x11000, end: 0x19000, ..module.clone() }, module];
        let mut symbolizer = Symbolizer::new(Options::default());
        let answers = symbolizer.symbolize(&modules, &[0x1234, 0x11234]);
        assert!(answers.iter().all(|answer| answer.frames.is_empty()));
        assert_eq!(symbolizer.report().len(), 2);
        for report in symbolizer.report() {
            let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
            assert!(problems.iter().any(|problem| problem.contains("app")), "{kind}: {problems:?}");
        }
    }
}

#[test]
fn in_place_of_the_debug_file_by_build_id() {
    for kind in KINDS {
        let split = Split::new();
        let id: String = split.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = split.folder.path(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
        put(kind, &place);
        let options = Options { debug_dirs: vec![split.folder.path("debug")], ..Options::default() };
        split.assert_only_names(options, &place, kind);
    }
}

#[test]
fn in_place_of_the_debug_folder() {
    for kind in KINDS {
        let split = Split::new();
        for (number, place) in ["debug", "debug2/.build-id"].into_iter().enumerate() {
            let place = split.folder.path(place);
            put(kind, &place);
            let dir = if number == 0 { place } else { split.folder.path("debug2") };
            let options = Options { debug_dirs: vec![dir.clone()], sysroot: None, ..Options::default() };
            // Nothing can be below it, so there may be nothing to tell.
            split.assert_only_names(options, &dir, "dangling link");
        }
    }
}

#[test]
fn in_place_of_the_linked_debug_file() {
    for kind in KINDS {
        let split = Split::new();
        run(Command::new("objcopy").arg("--add-gnu-debuglink").args([&split.debug, &split.stripped]));
        fs::remove_file(&split.debug).expect("removed");
        put(kind, &split.debug);
        split.assert_only_names(Options::default(), &split.debug, kind);
    }
}

#[test]
fn in_place_of_the_common_file_of_dwz() {
    for kind in KINDS {
        let folder = Folder::new();
        let programs: Vec<PathBuf> =
            ["one", "two"].map(|name| folder.program(name, &["-no-pie", "-Wl,--build-id"])).into();
        let common = folder.path("common.dwz");
        run(Command::new("dwz").arg("-m").arg(&common).arg("-M").arg(&common).args(&programs));
        let addresses = instructions(&programs[0], &FUNCTIONS);
        fs::remove_file(&common).expect("dwz made a common file");
        put(kind, &common);
        let mut symbolizer = Symbolizer::new(Options::default());
        let answers = symbolizer.symbolize(&common::mapped(&programs[0], 0), &addresses);
        // Lines and the symbol table are in the program itself.
        assert!(answers.iter().all(|answer| answer.quality != Quality::Nothing), "{kind}");
        let problems: Vec<String> = symbolizer.report()[0].problems.iter().map(ToString::to_string).collect();
        if kind != "dangling link" {
            assert!(problems.iter().any(|problem| problem.contains("common.dwz")), "{kind}: {problems:?}");
        }
    }
}

#[test]
fn links_to_the_file_itself() {
    // The debug file of a debug file is itself, by name and checksum; and a program that links to itself.
    let split = Split::new();
    for name in ["app", "../app", "/dev/zero", ".", "..", "", "/"] {
        let link = split.folder.write("link", &format!("{name}\0\0\0\0\0\0\0\0"));
        let linked = split.folder.path("linked");
        let flag = format!(".gnu_debuglink={}", link.display());
        run(Command::new("objcopy").args(["--add-section", &flag]).args([&split.stripped, &linked]));
        let mut symbolizer = Symbolizer::new(Options::default());
        let answers = symbolize_with(&mut symbolizer, &linked, &split.addresses, Some(&split.id));
        assert!(answers.iter().all(|answer| answer.quality == Quality::Name), "{name:?}");
    }
}
