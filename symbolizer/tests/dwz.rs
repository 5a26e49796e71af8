//! Debug information that `dwz` has made smaller: entries that repeat are moved to units of their own, in the same file
//! or in one that several programs share.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::compare::{assert_like_llvm, assert_same, instructions, told};
use common::opinions::{self, Told};
use common::project::Project;
use common::tools::{CLANG, GCC, run};
use common::{FUNCTIONS, Folder, build_id, symbolize_with};
use mpp_symbolizer::{Options, SymbolSource, Symbolizer};

/// A program and a second one like it, whose common entries are in a third file.
struct Shared {
    folder: Folder,
    program: PathBuf,
    common: PathBuf,
    addresses: Vec<u64>,
    /// What was said about the addresses before.
    expected: Vec<Vec<Told>>,
}

impl Shared {
    /// The program refers to the common file, which is written to `common`, by the path `written`; an absolute one is
    /// taken from the temporary folder.
    fn new(common: &str, written: &str) -> Self {
        let folder = Folder::new();
        let project = Project::new(&folder, GCC);
        let program = project.build("app", &["-fPIE"], &["-pie", "-Wl,--build-id"]);
        let second = project.build("second", &["-fPIE", "-O1"], &["-pie", "-Wl,--build-id"]);
        let addresses = instructions(&program);
        let expected = told(&program, &addresses);
        assert_like_llvm(&program);
        let common = folder.path(common);
        std::fs::create_dir_all(common.parent().expect("a folder")).expect("a folder");
        let written = written.strip_prefix('/').map_or_else(|| PathBuf::from(written), |inside| folder.path(inside));
        run(Command::new("dwz").arg("-m").arg(&common).arg("-M").arg(written).args([&program, &second]));
        let sections = run(Command::new("readelf").arg("-SW").arg(&program));
        assert!(sections.contains(".gnu_debugaltlink"), "dwz found nothing to share: {sections}");
        Shared { folder, program, common, addresses, expected }
    }

    /// Keeps the debug information in a file at `place`, to which the program has a link with name and checksum.
    fn split(&self, place: &str) {
        let debug = self.folder.path(place);
        std::fs::create_dir_all(debug.parent().expect("a folder")).expect("a folder");
        run(Command::new("objcopy").arg("--only-keep-debug").args([&self.program, &debug]));
        run(Command::new("objcopy").args(["--strip-all", "--add-gnu-debuglink"]).args([&debug, &self.program]));
    }

    /// Moves the common file.
    fn move_common(&self, place: &str) {
        let place = self.folder.path(place);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::fs::rename(&self.common, place).expect("moving the common file");
    }

    /// What is found now, and the problems on the way.
    fn look(&self, debug_dir: Option<&str>) -> (Vec<Vec<Told>>, SymbolSource, Vec<String>) {
        let debug_dirs = debug_dir.map(|dir| self.folder.path(dir)).into_iter().collect();
        let mut symbolizer = Symbolizer::new(Options { debug_dirs, ..Options::default() });
        let answers = symbolize_with(&mut symbolizer, &self.program, &self.addresses, Some(&build_id(&self.program)));
        let report = &symbolizer.report()[0];
        let problems = report.problems.iter().map(ToString::to_string).collect();
        (answers.iter().map(opinions::ours).collect(), report.source.clone(), problems)
    }

    #[track_caller]
    fn assert_complete(&self, debug_dir: Option<&str>) {
        let (answers, _, problems) = self.look(debug_dir);
        assert!(problems.is_empty(), "{problems:?}");
        assert_same(&self.program, &self.addresses, &answers, &self.expected);
    }
}

#[test]
fn entries_shared_within_one_file() {
    let folder = Folder::new();
    for (who, compiler, flag) in
        [("gcc-5", GCC, "-gdwarf-5"), ("gcc-4", GCC, "-gdwarf-4"), ("clang-4", CLANG, "-gdwarf-4")]
    {
        let program = Project::new(&folder, compiler).build(who, &[flag], &[]);
        let addresses = instructions(&program);
        let expected = told(&program, &addresses);
        assert_like_llvm(&program);
        run(Command::new("dwz").arg(&program));
        let info = run(Command::new("readelf").args(["--debug-dump=info", "--dwarf-depth=1"]).arg(&program));
        assert!(info.contains("DW_TAG_partial_unit"), "{who}: dwz found nothing to share");
        assert_same(&program, &addresses, &told(&program, &addresses), &expected);
    }
}

#[test]
fn entries_in_a_common_file() {
    for written in ["/common.dwz", "common.dwz"] {
        let shared = Shared::new("common.dwz", written);
        shared.assert_complete(None);
        // The only other reader here that follows these links: places and depth, as its idea of names is another.
        let theirs = opinions::elfutils(&shared.program, &shared.addresses);
        let places = |told: &[Told]| told.iter().map(|told| (told.file.clone(), told.line)).collect::<Vec<_>>();
        let same = theirs.iter().zip(&shared.expected).filter(|(a, b)| places(a) == places(b)).count();
        assert!(same * 10 > theirs.len() * 8, "eu-addr2line agrees on {same} of {} only", theirs.len());
    }
}

#[test]
fn elfutils_and_binutils_agree_on_every_instruction_of_a_c_program() {
    let folder = Folder::new();
    let (plain, second) = (folder.program("plain", &[]), folder.program("second", &["-O1"]));
    let (first, common) = (folder.path("first"), folder.path("common.dwz"));
    std::fs::copy(&plain, &first).expect("a copy");
    run(Command::new("dwz").arg("-m").arg(&common).arg("-M").arg(&common).args([&first, &second]));
    let addresses = common::instructions(&first, &FUNCTIONS);
    let ours = told(&first, &addresses);
    // Binutils cannot read what dwz wrote.
    assert_same(&first, &addresses, &ours, &opinions::binutils(&plain, &addresses));
    // To elfutils 0.188, the address after an inlined call is still in it, which shows in the line of the call. So
    // only the innermost line is compared.
    let without_calls = |all: Vec<Vec<Told>>| {
        let only_first = |frames: Vec<Told>| {
            let line = |i, told: Told| if i == 0 { told } else { Told { line: 0, ..told } };
            frames.into_iter().enumerate().map(|(i, told)| line(i, told)).collect::<Vec<_>>()
        };
        all.into_iter().map(only_first).collect::<Vec<_>>()
    };
    let theirs = opinions::elfutils(&first, &addresses);
    assert_same(&first, &addresses, &without_calls(ours), &without_calls(theirs));
}

#[test]
fn a_common_file_of_a_separate_debug_file() {
    // Debian's layout: the debug file by build id, the common file by a relative path in `.dwz` beside it.
    let shared = Shared::new("debug/.dwz/common.debug", "../../.dwz/common.debug");
    let id: String = build_id(&shared.program).iter().map(|byte| format!("{byte:02x}")).collect();
    shared.split(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    shared.assert_complete(Some("debug"));

    // By the name in the link, the common file relative to it.
    let shared = Shared::new("common.dwz", "../common.dwz");
    shared.split(".debug/app.debug");
    shared.assert_complete(None);

    // The debug file is reached through a symbolic link, the common file is relative to the real one.
    let shared = Shared::new("store/common.dwz", "common.dwz");
    shared.split("store/app.debug");
    std::os::unix::fs::symlink(shared.folder.path("store/app.debug"), shared.folder.path("app.debug")).expect("a link");
    shared.assert_complete(None);
}

#[test]
fn a_common_file_that_was_moved() {
    // Neither where the link says, nor elsewhere but for its name in `.dwz` of a debug folder, or its build id.
    let shared = Shared::new("built/common.dwz", "/built/common.dwz");
    shared.move_common("debug/.dwz/common.dwz");
    shared.assert_complete(Some("debug"));

    let shared = Shared::new("built/common.dwz", "/built/common.dwz");
    let id: String = build_id(&shared.common).iter().map(|byte| format!("{byte:02x}")).collect();
    shared.move_common(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    shared.assert_complete(Some("debug"));
}

/// Without the common file there are fewer names, but no other ones, and no other places.
#[track_caller]
fn assert_poorer(shared: &Shared) {
    let (answers, source, _) = shared.look(None);
    assert!(matches!(source, SymbolSource::Dwarf { .. }));
    let mut missing = 0;
    for ((address, ours), expected) in shared.addresses.iter().zip(&answers).zip(&shared.expected) {
        let places = |told: &[Told]| told.iter().map(|told| (told.file.clone(), told.line)).collect::<Vec<_>>();
        assert_eq!(places(ours), places(expected), "at {address:#x}");
        for (ours, expected) in ours.iter().zip(expected) {
            missing += usize::from(ours.name == "??");
            let is_right = ours.name == "??" || same_function(&shared.program, &ours.name, &expected.name);
            assert!(is_right, "at {address:#x}: {} for {}", ours.name, expected.name);
        }
    }
    assert!(missing > 0, "nothing of use was in the common file");
}

/// Two symbols of one address, or equal.
fn same_function(program: &Path, a: &str, b: &str) -> bool {
    a == b || a.starts_with(b) || common::symbol(program, a).0 == common::symbol(program, b).0
}

#[test]
fn a_common_file_that_is_missing_or_another() {
    let shared = Shared::new("common.dwz", "/common.dwz");
    let other = Shared::new("common.dwz", "/common.dwz");
    std::fs::remove_file(&shared.common).expect("removing the common file");
    assert_poorer(&shared);
    // Another file in its place is not used, and is named.
    let mut bytes = std::fs::read(&other.common).expect("the other common file");
    let id = build_id(&other.common);
    let at = bytes.windows(id.len()).position(|window| window == id).expect("the build id");
    bytes[at] ^= 1;
    std::fs::write(&shared.common, bytes).expect("the wrong common file");
    assert_poorer(&shared);
    let (_, _, problems) = shared.look(None);
    assert!(problems.iter().any(|problem| problem.contains("common.dwz")), "{problems:?}");
}
