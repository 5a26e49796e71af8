//! Debug information kept apart from the program, and files that are not the ones that were profiled.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FUNCTIONS, Folder, binutils, build_id, instructions, lines, run, symbol, symbolize_with};
use mpp_symbolizer::{Error, Options, Quality, SymbolSource, Symbolized, Symbolizer};

/// A program with its debug information split off, as distributions do it.
struct Split {
    folder: Folder,
    /// With everything in it.
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
    addresses: Vec<u64>,
}

impl Split {
    fn new() -> Self {
        let folder = Folder::new();
        let whole = folder.program("whole", &["-pie", "-fPIE", "-gz=zlib", "-rdynamic", "-Wl,--build-id"]);
        let (stripped, debug) = (folder.path("app"), folder.path("app.debug"));
        run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &debug]));
        run(Command::new("objcopy").arg("--strip-all").args([&whole, &stripped]));
        let addresses = instructions(&whole, &FUNCTIONS);
        Split { folder, whole, stripped, debug, addresses }
    }

    /// Points the stripped program at the debug file by name and checksum, then moves that file to `place`.
    fn link(&self, place: &str) {
        run(Command::new("objcopy").arg("--add-gnu-debuglink").args([&self.debug, &self.stripped]));
        self.move_debug(place);
    }

    fn move_debug(&self, place: &str) {
        let place = self.folder.path(place);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::fs::rename(&self.debug, place).expect("moving the debug file");
    }

    /// The same program with another build id.
    fn other_build(&self) -> PathBuf {
        self.folder.program("other", &["-pie", "-fPIE", "-Wl,--build-id=0x0123456789abcdef"])
    }

    /// Place of the debug file below a debug folder by the build id.
    fn by_build_id(&self, dir: &str) -> String {
        let id: String = build_id(&self.stripped).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{dir}/.build-id/{}/{}.debug", &id[..2], &id[2..])
    }

    fn symbolizer(&self, debug_dir: Option<&str>) -> Symbolizer {
        let debug_dirs = debug_dir.map(|dir| self.folder.path(dir)).into_iter().collect();
        Symbolizer::new(Options { debug_dirs, ..Options::default() })
    }

    /// The stripped program's symbols are as good as those of the whole one, and come from `file`.
    #[track_caller]
    fn assert_found(&self, debug_dir: Option<&str>, file: &str) {
        let mut symbolizer = self.symbolizer(debug_dir);
        let id = build_id(&self.stripped);
        let answers = symbolize_with(&mut symbolizer, &self.stripped, &self.addresses, Some(&id));
        let report = &symbolizer.report()[0];
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(report.source, SymbolSource::Dwarf { file: self.folder.path(file) });
        assert_eq!(answers.iter().map(lines).collect::<Vec<_>>(), binutils(&self.whole, &self.addresses));
        assert_eq!(report.with_lines, self.addresses.len());
        assert_eq!((&report.wanted_build_id, &report.found_build_id), (&Some(id.clone()), &Some(id)));
    }

    /// Only the names that the dynamic linker needs are left; the problem is as expected.
    #[track_caller]
    fn assert_only_exports(&self, debug_dir: Option<&str>, is_expected: impl Fn(&[Error]) -> bool) {
        let mut symbolizer = self.symbolizer(debug_dir);
        let answers = symbolize_with(&mut symbolizer, &self.stripped, &self.addresses, None);
        let report = &symbolizer.report()[0];
        assert!(is_expected(&report.problems), "{:?}", report.problems);
        assert_eq!(report.source, SymbolSource::Dynsym);
        // `apart` is static, so it is not among them.
        let (start, size) = symbol(&self.whole, "apart");
        let mut without_name = cold_parts(&self.whole);
        without_name.push(start..start + size);
        for (address, answer) in self.addresses.iter().zip(&answers) {
            let is_exported = !without_name.iter().any(|range| range.contains(address));
            assert_eq!(answer.quality == Quality::Name, is_exported, "{address:#x}: {answer:?}");
        }
        let resolved = answers.iter().filter(|a| a.quality == Quality::Name).count();
        assert_eq!((report.with_lines, report.with_name), (0, resolved));
        assert_eq!(report.unresolved, answers.len() - resolved);
    }
}

/// Addresses of the parts of functions that GCC moved away; they have no exported names.
fn cold_parts(file: &Path) -> Vec<std::ops::Range<u64>> {
    let listing = run(Command::new("nm").args(["-S", "--defined-only"]).arg(file));
    let range = |line: &str| {
        let number = |at: usize| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok();
        number(0).zip(number(1)).map(|(start, size)| start..start + size)
    };
    listing.lines().filter(|line| line.ends_with(".cold")).filter_map(range).collect()
}

#[test]
fn by_debug_link_in_each_place() {
    let system = |split: &Split| {
        let dir = split.folder.path("x").parent().expect("a folder").to_owned();
        format!("debug{}/app.debug", dir.display())
    };
    for (place, debug_dir) in [("app.debug", None), (".debug/app.debug", None)] {
        let split = Split::new();
        split.link(place);
        split.assert_found(debug_dir, place);
    }
    let split = Split::new();
    let place = system(&split);
    split.link(&place);
    split.assert_found(Some("debug"), &place);
}

#[test]
fn by_debug_link_through_a_symbolic_link_to_the_program() {
    let split = Split::new();
    split.link("app.debug");
    let alias = split.folder.write("elsewhere/marker", "");
    let alias = alias.with_file_name("alias");
    std::os::unix::fs::symlink(&split.stripped, &alias).expect("a symbolic link");
    let answers = common::symbolize(&alias, &split.addresses);
    assert_eq!(answers.iter().map(lines).collect::<Vec<_>>(), binutils(&split.whole, &split.addresses));
}

#[test]
fn by_build_id() {
    let split = Split::new();
    let place = split.by_build_id("debug");
    split.move_debug(&place);
    split.assert_found(Some("debug"), &place);
}

#[test]
fn in_a_sysroot() {
    let split = Split::new();
    let place = split.by_build_id("root/usr/lib/debug");
    split.move_debug(&place);
    std::fs::create_dir_all(split.folder.path("root/opt")).expect("a folder");
    std::fs::copy(&split.stripped, split.folder.path("root/opt/app")).expect("a copy");
    let options = Options { sysroot: Some(split.folder.path("root")), ..Options::default() };
    let mut modules = common::mapped(&split.stripped, 0x1000_0000);
    let addresses: Vec<u64> = split.addresses.iter().map(|address| address + 0x1000_0000).collect();
    for (path, is_found) in [("/opt/app", true), ("/opt/missing", false), ("/opt/../opt/app", false)] {
        modules.iter_mut().for_each(|module| module.path = path.into());
        let mut symbolizer = Symbolizer::new(options.clone());
        let answers = symbolizer.symbolize(&modules, &addresses);
        assert_eq!(answers.iter().all(|a| a.quality == Quality::Lines), is_found, "{path}");
        assert_eq!(symbolizer.report()[0].problems.is_empty(), is_found, "{path}");
    }
}

#[test]
fn a_debug_file_with_another_checksum_is_refused() {
    let split = Split::new();
    split.link("app.debug");
    let path = split.folder.path("app.debug");
    let mut bytes = std::fs::read(&path).expect("the debug file");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).expect("the changed debug file");
    split.assert_only_exports(None, |problems| matches!(problems, [Error::WrongCrc { path: p, .. }] if *p == path));
}

#[test]
fn a_debug_file_with_another_build_id_is_refused() {
    let split = Split::new();
    let place = split.by_build_id("debug");
    let other = split.other_build();
    run(Command::new("objcopy").arg("--only-keep-debug").args([&other, &split.debug]));
    split.move_debug(&place);
    split.assert_only_exports(Some("debug"), |problems| matches!(problems, [Error::WrongBuildId { .. }]));
}

#[test]
fn a_debug_link_cannot_lead_elsewhere() {
    let split = Split::new();
    let section = split.folder.path("link");
    std::fs::write(&section, b"../app.debug\0\0\0\0\x12\x34\x56\x78").expect("a section");
    let add = format!(".gnu_debuglink={}", section.display());
    run(Command::new("objcopy").args(["--add-section", &add]).arg(&split.stripped));
    split.move_debug("elsewhere/app.debug");
    split.assert_only_exports(None, <[Error]>::is_empty);
}

#[test]
fn a_program_with_another_build_id_is_refused() {
    let split = Split::new();
    let other = split.other_build();
    let wanted = build_id(&split.whole);
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolize_with(&mut symbolizer, &other, &split.addresses, Some(&wanted));
    assert!(answers.iter().all(|a| a.frames.is_empty() && a.quality == Quality::Nothing && a.module.is_some()));
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::None);
    assert_eq!(report.found_build_id.as_deref(), Some(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef][..]));
    assert!(matches!(&report.problems[..], [Error::WrongBuildId { found, .. }] if found == "0123456789abcdef"));
    // Without a build id at all it is not the one that was profiled either.
    let without = split.folder.program("without", &["-Wl,--build-id=none"]);
    let answers = symbolize_with(&mut symbolizer, &without, &split.addresses, Some(&wanted));
    assert!(answers.iter().all(|a| a.frames.is_empty()));
    assert!(matches!(&symbolizer.report()[0].problems[..], [Error::WrongBuildId { found, .. }] if found == "none"));
}

#[test]
fn deleted_files_are_trusted_by_build_id_only() {
    let split = Split::new();
    let mut modules = common::mapped(&split.whole, 0);
    let deleted = format!("{} (deleted)", split.whole.display());
    modules.iter_mut().for_each(|module| module.path = deleted.clone().into());
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize(&modules, &split.addresses);
    assert!(answers.iter().all(|a| a.frames.is_empty()));
    assert!(matches!(&symbolizer.report()[0].problems[..], [Error::Deleted { path }] if *path == split.whole));

    modules.iter_mut().for_each(|module| module.build_id = Some(build_id(&split.whole)));
    let answers = symbolizer.symbolize(&modules, &split.addresses);
    assert!(answers.iter().all(|a| a.quality == Quality::Lines));

    modules.iter_mut().for_each(|module| module.build_id = Some(vec![1, 2, 3]));
    let answers = symbolizer.symbolize(&modules, &split.addresses);
    assert!(answers.iter().all(|a| a.frames.is_empty()));
    assert!(matches!(&symbolizer.report()[0].problems[..], [Error::WrongBuildId { .. }]));
}

#[test]
fn a_stripped_program_has_names_only() {
    let split = Split::new();
    std::fs::remove_file(&split.debug).expect("removing the debug file");
    split.assert_only_exports(None, <[Error]>::is_empty);

    // Only the debug information gone, not the symbols.
    let file = split.folder.path("symbols");
    run(Command::new("objcopy").arg("--strip-debug").args([&split.whole, &file]));
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolize_with(&mut symbolizer, &file, &split.addresses, None);
    assert!(answers.iter().all(|a| a.quality == Quality::Name && a.frames.len() == 1));
    let outer = symbol(&split.whole, "outer").0;
    let at = split.addresses.iter().position(|&address| address == outer).expect("the start of outer");
    assert_eq!(lines(&answers[at]), [("outer".to_owned(), "??".to_owned(), 0)]);
    assert_eq!(symbolizer.report()[0].source, SymbolSource::Symtab { file });

    // Nothing left at all.
    let bare = split.folder.program("bare", &["-s", "-g0"]);
    let answers = symbolize_with(&mut symbolizer, &bare, &split.addresses, None);
    assert!(answers.iter().all(|a: &Symbolized| a.frames.is_empty()));
    assert_eq!(symbolizer.report()[0].source, SymbolSource::None);
}

#[test]
fn what_is_not_a_file_is_not_opened() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    let text = folder.write("text", "not an ELF file at all");
    let empty = folder.write("empty", "");
    let dir = folder.path("");
    let missing = folder.path("missing");
    let module = |path: &Path| {
        vec![mpp_symbolizer::Module { start: 0x1000, end: 0x2000, path: path.to_owned(), ..Default::default() }]
    };
    let problem_of = |path: &Path| {
        let mut symbolizer = Symbolizer::new(Options { max_file_size: 1 << 20, ..Options::default() });
        let answers = symbolizer.symbolize(&module(path), &[0x1234]);
        assert_eq!((answers[0].module, answers[0].file_address), (Some(0), 0x234), "{}", path.display());
        let text = symbolizer.report()[0].problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(!text.is_empty());
        text
    };
    assert!(problem_of(&pipe).contains("not a regular file"));
    assert!(problem_of(&dir).contains("not a regular file"));
    assert!(problem_of(Path::new("/dev/null")).contains("not a regular file"));
    assert!(problem_of(&text).contains("not an ELF file"));
    assert!(problem_of(&empty).contains("shorter than an ELF header"));
    assert!(problem_of(&missing).contains("cannot read"));
    for name in ["", "[vdso]", "//anon", "relative/path", "/memfd:jit (deleted)"] {
        problem_of(Path::new(name));
    }
    let large = folder.path("large");
    std::fs::File::create(&large).and_then(|file| file.set_len(2 << 20)).expect("a sparse file");
    assert!(problem_of(&large).contains("more than the limit of 1048576"));
}

#[test]
fn addresses_outside_of_all_modules() {
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize(&[], &[0, 1, u64::MAX]);
    assert_eq!(answers.iter().map(|a| a.file_address).collect::<Vec<_>>(), [0, 1, u64::MAX]);
    assert!(answers.iter().all(|a| a.module.is_none() && a.frames.is_empty()));
    assert!(symbolizer.report().is_empty());
}
