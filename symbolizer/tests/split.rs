//! Debug information in files of its own: `.dwo` files, and packages of them.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::compare::{assert_like_llvm, assert_same, instructions, told};
use common::opinions::{self, Told};
use common::project::Project;
use common::tools::{CLANG, Compiler, GCC, run};
use common::{Folder, symbol, symbolize_with};
use mpp_symbolizer::{Options, Symbolizer};

/// A program whose debug information was split off.
struct Split {
    folder: Folder,
    program: PathBuf,
    /// The file for each object file.
    parts: Vec<PathBuf>,
    addresses: Vec<u64>,
    /// What was said about the addresses when all files were where the compiler wrote them.
    expected: Vec<Vec<Told>>,
}

impl Split {
    #[track_caller]
    fn new(compiler: Compiler, flags: &[&str]) -> Self {
        let folder = Folder::new();
        let program = Project::new(&folder, compiler).build("app", &[&["-gsplit-dwarf"], flags].concat(), &[]);
        let objects = folder.path("app.objects");
        let parts: Vec<PathBuf> =
            ["main", "second", "plain"].map(|name| objects.join(name).with_extension("dwo")).into();
        assert!(parts.iter().all(|part| part.exists()), "{parts:?}");
        let addresses = instructions(&program);
        let expected = told(&program, &addresses);
        Split { folder, program, parts, addresses, expected }
    }

    /// Packs the parts to the file `name` and removes them.
    #[track_caller]
    fn pack(&self, packer: &str, name: &str) {
        let package = self.folder.path(name);
        std::fs::create_dir_all(package.parent().expect("a folder")).expect("a folder");
        run(Command::new(packer).arg("-o").arg(package).args(&self.parts));
        self.remove_parts();
    }

    fn remove_parts(&self) {
        self.parts.iter().for_each(|part| std::fs::remove_file(part).expect("removing a part"));
    }

    /// Moves all parts to a folder.
    fn move_parts(&self, place: &str) {
        let place = self.folder.path(place);
        std::fs::create_dir_all(&place).expect("a folder");
        for part in &self.parts {
            std::fs::rename(part, place.join(part.file_name().expect("a name"))).expect("moving a part");
        }
    }

    /// What is found now, and the problems on the way.
    fn look(&self, debug_dir: Option<&str>) -> (Vec<Vec<Told>>, Vec<String>) {
        let debug_dirs = debug_dir.map(|dir| self.folder.path(dir)).into_iter().collect();
        let mut symbolizer = Symbolizer::new(Options { debug_dirs, ..Options::default() });
        let answers = symbolize_with(&mut symbolizer, &self.program, &self.addresses, None);
        let problems = symbolizer.report()[0].problems.iter().map(ToString::to_string).collect();
        (answers.iter().map(opinions::ours).collect(), problems)
    }

    #[track_caller]
    fn assert_complete(&self, debug_dir: Option<&str>) {
        let (answers, problems) = self.look(debug_dir);
        assert!(problems.is_empty(), "{problems:?}");
        assert_same(&self.program, &self.addresses, &answers, &self.expected);
    }

    /// What is left of the debug information of the parts that are missing are lines: right ones, and the innermost;
    /// names come from the symbol table. The one problem is as expected.
    #[track_caller]
    fn assert_lines_only(&self, expected_problems: &[&str]) {
        let (answers, problems) = self.look(None);
        assert_eq!(problems.len(), expected_problems.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected_problems) {
            assert!(problem.contains(expected), "{problems:?}");
        }
        let symbol_of = |name: &str| symbol(&self.program, name).0;
        for ((address, ours), expected) in self.addresses.iter().zip(&answers).zip(&self.expected) {
            let ([ours], [innermost, ..]) = (&ours[..], &expected[..]) else { panic!("at {address:#x}: {ours:?}") };
            assert_eq!((&ours.file, ours.line), (&innermost.file, innermost.line), "at {address:#x}");
            let function = &expected[expected.len() - 1].name;
            let is_same = ours.name.starts_with(function) || symbol_of(&ours.name) == symbol_of(function);
            assert!(is_same, "at {address:#x}: {} for {function}", ours.name);
        }
    }
}

/// Both compilers and versions; clang writes other forms than GCC.
const KINDS: [(&str, Compiler, &str); 4] = [
    ("gcc-4", GCC, "-gdwarf-4"),
    ("gcc-5", GCC, "-gdwarf-5"),
    ("clang-4", CLANG, "-gdwarf-4"),
    ("clang-5", CLANG, "-gdwarf-5"),
];

#[test]
fn in_a_file_for_each_object() {
    for (who, compiler, version) in KINDS {
        let split = Split::new(compiler, &[version]);
        assert_like_llvm(&split.program);
        // No less than what is said when nothing is split off, and nothing else.
        let whole = Project::new(&split.folder, compiler).build("whole", &[version], &[]);
        let expected = told(&whole, &instructions(&whole));
        assert_eq!(instructions(&whole), split.addresses, "{who}");
        assert_same(&split.program, &split.addresses, &split.expected, &expected);
        split.assert_complete(None);
    }
}

#[test]
fn in_a_package() {
    // Debian 12's llvm-dwp does not come to an end with what GCC writes for version 5, and dwp of binutils packs nothing
    // of version 5.
    for (who, compiler, version, packer) in [
        ("gcc-4", GCC, "-gdwarf-4", "llvm-dwp"),
        ("gcc-4", GCC, "-gdwarf-4", "dwp"),
        ("clang-4", CLANG, "-gdwarf-4", "llvm-dwp"),
        ("clang-4", CLANG, "-gdwarf-4", "dwp"),
        ("clang-5", CLANG, "-gdwarf-5", "llvm-dwp"),
    ] {
        let split = Split::new(compiler, &[version]);
        split.pack(packer, "app.dwp");
        assert_like_llvm(&split.program);
        split.assert_complete(None);
        assert!(!split.parts[0].exists(), "{who}");
    }
}

#[test]
fn with_units_of_types() {
    for (who, compiler, version) in KINDS {
        let split = Split::new(compiler, &[version, "-fdebug-types-section"]);
        assert_like_llvm(&split.program);
        if who != "gcc-5" {
            split.pack("llvm-dwp", "app.dwp");
            split.assert_complete(None);
        }
    }
}

#[test]
fn compressed() {
    for (_, compiler, version) in KINDS {
        let split = Split::new(compiler, &[version, "-gz=zlib"]);
        let sections = run(Command::new("readelf").arg("-SW").arg(&split.parts[0]));
        assert!(sections.contains(".zdebug_info.dwo") || sections.contains(" CE "), "{sections}");
        assert_like_llvm(&split.program);
        split.assert_complete(None);
    }
}

#[test]
fn in_the_object_file_itself() {
    let folder = Folder::new();
    let project = Project::new(&folder, CLANG);
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let name = format!("single{version}");
        let program = project.build(&name, &["-gsplit-dwarf=single", version], &[]);
        let sections = run(Command::new("readelf").arg("-SW").arg(folder.path(&format!("{name}.objects/main.o"))));
        assert!(sections.contains(".debug_info.dwo"), "{sections}");
        assert_like_llvm(&program);
    }
}

#[test]
fn files_that_were_moved() {
    let split = Split::new(CLANG, &["-gdwarf-5"]);
    // Beside the program, with and without the name of the folder; in a folder of debug information; packed there.
    for place in [".", "elsewhere", "elsewhere/app.objects"] {
        split.move_parts(place);
        split.assert_complete((place != ".").then_some("elsewhere"));
        for part in &split.parts {
            let at = split.folder.path(place).join(part.file_name().expect("a name"));
            std::fs::rename(at, part).expect("moving a part back");
        }
    }
    for package in ["app.dwp", "elsewhere/app.dwp"] {
        run(Command::new("llvm-dwp").arg("-o").arg(split.folder.path(package)).args(&split.parts));
    }
    split.remove_parts();
    split.assert_complete(None);
    std::fs::remove_file(split.folder.path("app.dwp")).expect("removing the package");
    split.assert_complete(Some("elsewhere"));
}

#[test]
fn a_stripped_program_with_a_debug_file_and_a_package() {
    for package in ["app.dwp", "app.debug.dwp"] {
        let split = Split::new(GCC, &["-gdwarf-4"]);
        split.pack("llvm-dwp", package);
        let debug = split.folder.path("app.debug");
        run(Command::new("objcopy").arg("--only-keep-debug").args([&split.program, &debug]));
        run(Command::new("objcopy").args(["--strip-all", "--add-gnu-debuglink"]).args([&debug, &split.program]));
        split.assert_complete(None);
    }
}

#[test]
fn files_that_are_missing() {
    for (_, compiler, version) in KINDS {
        let split = Split::new(compiler, &[version]);
        split.remove_parts();
        split.assert_lines_only(&["3 of its units"]);
    }
    // Only one of them: the others are as before.
    let split = Split::new(GCC, &[]);
    std::fs::remove_file(&split.parts[2]).expect("removing a part");
    let (answers, problems) = split.look(None);
    assert!(matches!(&problems[..], [problem] if problem.contains("1 of its units") && problem.contains("plain.dwo")));
    let mut symbolizer =
        Symbolizer::new(Options { debug_dirs: vec![split.folder.path("debug")], ..Options::default() });
    symbolize_with(&mut symbolizer, &split.program, &split.addresses, None);
    let report = &symbolizer.report()[0];
    for place in ["app.dwp", "debug/app.dwp", "app.objects/plain.dwo", "plain.dwo", "debug/plain.dwo"] {
        assert!(report.looked_at.contains(&split.folder.path(place)), "{place} not in {:?}", report.looked_at);
    }
    let remedy = report.remedy.as_deref().expect("a remedy");
    assert_eq!(remedy, r#"--debug-dir DIR  # a folder with "app.dwp", or with "plain.dwo" and the like"#);
    let differ = answers.iter().zip(&split.expected).filter(|(ours, expected)| ours != expected);
    let names: Vec<&str> = differ.map(|(_, expected)| &*expected[expected.len() - 1].name).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == "plain_c"), "{names:?}");
}

#[test]
fn files_of_another_build_are_refused() {
    for (_, compiler, version) in [KINDS[0], KINDS[3]] {
        let split = Split::new(compiler, &[version]);
        let other = Split::new(compiler, &[version, "-O0"]);
        for (part, other) in split.parts.iter().zip(&other.parts) {
            std::fs::copy(other, part).expect("another part");
        }
        let refused = "has no unit with the number";
        split.assert_lines_only(&[refused, refused, refused, "3 of its units"]);
        // A package with other units is none for these.
        split.remove_parts();
        other.pack("llvm-dwp", "app.dwp");
        std::fs::copy(other.folder.path("app.dwp"), split.folder.path("app.dwp")).expect("another package");
        split.assert_lines_only(&["3 of its units"]);
        // What is no package is not used, but named.
        std::fs::copy(&split.program, split.folder.path("app.dwp")).expect("no package");
        split.assert_lines_only(&["no .debug_cu_index", "3 of its units"]);
    }
}

#[test]
fn programs_in_rust() {
    let folder = Folder::new();
    let source = folder.write(
        "parts.rs",
        r#"
        #[inline(always)]
        fn inner(x: u64) -> u64 { std::hint::black_box(x.wrapping_mul(3)) }
        #[inline(always)]
        fn between(x: u64) -> u64 { inner(x) ^ inner(x + 1) }
        #[inline(never)]
        fn outer(x: u64) -> Vec<u64> { (0..x).map(between).collect() }
        fn main() { std::process::exit((outer(std::env::args().count() as u64).len() == 77) as i32) }
        "#,
    );
    for (name, kind, version) in [
        ("loose-4", "unpacked", "4"),
        ("packed-4", "packed", "4"),
        ("loose-5", "unpacked", "5"),
        ("packed-5", "packed", "5"),
    ] {
        let program = folder.path(name);
        let mut rustc = Command::new("rustc");
        rustc.args(["-g", "-Copt-level=2", "--edition=2024"]).arg(format!("-Csplit-debuginfo={kind}"));
        rustc.arg(format!("-Cdwarf-version={version}")).arg(&source).arg("-o").arg(&program);
        run(rustc.current_dir(folder.path("")));
        if kind == "packed" {
            assert!(program.with_extension("dwp").exists());
        }
        let addresses = common::code_of(&program, |name| name.contains("parts"));
        let ours = told(&program, &addresses);
        assert!(ours.iter().flatten().any(|told| told.name.contains("between")));
        common::compare::assert_like_llvm_at(&program, &addresses);
    }
}

#[test]
fn damaged_files() {
    let mut numbers = common::Numbers::new();
    for (who, compiler, version, is_packed) in
        [("gcc-4", GCC, "-gdwarf-4", true), ("gcc-5", GCC, "-gdwarf-5", false), ("clang-5", CLANG, "-gdwarf-5", true)]
    {
        let split = Split::new(compiler, &[version]);
        let mut victim = split.parts[1].clone();
        if is_packed {
            split.pack("llvm-dwp", "app.dwp");
            victim = split.folder.path("app.dwp");
        }
        let bytes = std::fs::read(&victim).expect("the file");
        let mut changed = 0;
        for round in 0..200 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + numbers.below(8) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
            if round % 10 == 0 {
                bytes.truncate(numbers.below(bytes.len()));
            }
            std::fs::write(&victim, bytes).expect("the changed file");
            changed += usize::from(split.look(None).0 != split.expected);
        }
        assert!(changed > 20, "only {changed} of the changes to {who} were noticed");
    }
}
