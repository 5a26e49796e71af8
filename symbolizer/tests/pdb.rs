//! Programs of Windows, built here with clang and lld: PDB files, and what to do when one is missing or another's.
//!
//! The compiler writes the same lines and inlined calls twice, as CodeView for the PDB and as DWARF. What
//! `llvm-symbolizer` reads from the DWARF is what our reader must find in the PDB. (Its own reader of PDBs is no measure:
//! version 14 takes the row after the right one within an inlined call.)

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, Line, run};
use mpp_symbolizer::{Error, Module, Options, SymbolSource, Symbolized, Symbolizer};

/// Functions of a header, inlined two deep.
const HEADER: &str = "
extern volatile int sink;
namespace shapes {
static __attribute__((always_inline)) inline int leaf(int x)
{
    sink += x;
    return x * 7 + sink;
}
}
";

const PROGRAM: &str = r#"
#include "shapes.h"
extern "C" int _fltused = 0;
volatile int sink;

namespace shapes {
struct Box {
    int value;
    __attribute__((always_inline)) inline int middle(int x)
    {
        int s = leaf(x);
        s ^= leaf(x + 1);
        return s + value;
    }
    __attribute__((noinline)) int outer(int x);
    template <class T> __attribute__((noinline)) T convert(T t)
    {
        sink += (int)t;
        return t + middle(3);
    }
};
int Box::outer(int x)
{
    int s = middle(x);
    for (int i = 0; i < x; i++)
        s -= middle(i * 2);
    return s;
}
union Either { int i; float f; static __attribute__((always_inline)) int pick(int x) { sink ^= x; return sink; } };
}

namespace {
__attribute__((noinline)) int apart(int x)
{
    if (__builtin_expect(x > 1000, 0)) {
        sink = shapes::leaf(x);
        return 3;
    }
    auto twice = [](int y) { sink -= y; return y * sink; };
    return twice(x) + shapes::Either::pick(x);
}
}

extern "C" __attribute__((noinline)) int plain(int *x)
{
    *x += 1;
    sink += *x;
    return *x;
}

extern "C" int mainCRTStartup(void)
{
    shapes::Box box{2};
    int z = box.outer(3);
    z += box.convert<short>((short)z) + apart(z);
    return plain(&z);
}
"#;

/// A program twice: with a PDB beside it, and with DWARF inside.
struct Twins {
    with_pdb: PathBuf,
    with_dwarf: PathBuf,
}

/// Compiles and links the program twice, as `name.exe` and `name-dwarf.exe`.
fn build(folder: &Folder, name: &str, target: &str, flags: &[&str], link_flags: &[&str]) -> Twins {
    folder.write("shapes.h", HEADER);
    let source = folder.write("program.cc", PROGRAM);
    let twin = |suffix: &str, format: &str, debug: &str| {
        let [object, program] = ["obj", "exe"].map(|kind| folder.path(&format!("{name}{suffix}.{kind}")));
        let mut compiler = Command::new("clang");
        compiler.arg(format!("--target={target}-pc-windows-msvc")).args(["-g", format]).args(flags);
        compiler.args(["-ffreestanding", "-fno-exceptions", "-fno-stack-protector", "-c"]);
        run(compiler.arg(&source).arg("-o").arg(&object));
        let mut linker = Command::new("lld-link");
        linker.args(["/nodefaultlib", "/subsystem:console", "/entry:mainCRTStartup", debug]).args(link_flags);
        run(linker.arg(format!("/out:{}", program.display())).arg(&object));
        program
    };
    Twins { with_pdb: twin("", "-gcodeview", "/debug:full"), with_dwarf: twin("-dwarf", "-gdwarf", "/debug:dwarf") }
}

/// Addresses of all instructions, and whether each could be padding between functions.
fn instructions(program: &Path) -> Vec<(u64, bool)> {
    let text = run(Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(program));
    let instruction = |line: &str| {
        let (address, instruction) = line.trim().split_once(':')?;
        let is_padding = ["nop", "int3", "cs", "data16"].iter().any(|word| instruction.trim().starts_with(word));
        Some((u64::from_str_radix(address, 16).ok()?, is_padding))
    };
    let instructions: Vec<_> = text.lines().filter_map(instruction).collect();
    assert!(instructions.len() > 60, "{text}");
    instructions
}

/// What `llvm-symbolizer` says, innermost first: function without parameters, name of the file, line.
fn theirs(program: &Path, addresses: &[u64]) -> Vec<Vec<Line>> {
    let list: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let object = format!("--obj={}", program.display());
    let text = run(Command::new("llvm-symbolizer").arg(object).args(list));
    let answer = |answer: &str| {
        let lines: Vec<&str> = answer.lines().collect();
        let frame = |frame: &[&str]| {
            let (place, _column) = frame[1].rsplit_once(':').expect("a column");
            let (file, line) = place.rsplit_once(':').expect("a line");
            let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
            (without_parameters(frame[0]), file.to_owned(), line.parse().unwrap_or(0))
        };
        lines.chunks_exact(2).map(frame).collect()
    };
    let answers: Vec<_> = text.trim_end().split("\n\n").map(answer).collect();
    assert_eq!(answers.len(), addresses.len());
    answers
}

fn ours(symbolized: &Symbolized) -> Vec<Line> {
    common::lines(symbolized).into_iter().map(|(name, file, line)| (without_parameters(&name), file, line)).collect()
}

/// The function without its parameters. What is local to a function has its name and parameters before its own in one
/// form, and only its name in the other.
fn without_parameters(function: &str) -> String {
    if function.contains("<lambda") {
        return "lambda".to_owned();
    }
    let function =
        function.replace("`anonymous namespace'", "(anonymous namespace)").replace("(anonymous", "{anonymous");
    function.split('(').next().unwrap_or_default().replace("{anonymous", "(anonymous").trim_end().to_owned()
}

#[track_caller]
fn assert_the_same(twins: &Twins) {
    let instructions = instructions(&twins.with_pdb);
    assert_eq!(instructions, self::instructions(&twins.with_dwarf));
    let addresses: Vec<u64> = instructions.iter().map(|(address, _)| *address).collect();
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize_file(&twins.with_pdb, &addresses).expect("a program");
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::Pdb { file: twins.with_pdb.with_extension("pdb") });
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let theirs = theirs(&twins.with_dwarf, &addresses);
    let mut compared = 0;
    for ((&(address, is_padding), answer), theirs) in instructions.iter().zip(&answers).zip(theirs) {
        // Padding between functions belongs to none, whatever others make of it.
        if is_padding && answer.frames.is_empty() {
            continue;
        }
        // Code that the compiler made of several lines has none in DWARF, and that of the code before in a PDB.
        if theirs.first().is_some_and(|(.., line)| *line == 0) {
            continue;
        }
        compared += 1;
        assert_eq!(ours(answer), theirs, "at {address:#x} of {}", twins.with_pdb.display());
    }
    assert!(compared * 2 > addresses.len(), "only {compared} of {} addresses have lines", addresses.len());
    let deepest = answers.iter().map(|answer| answer.frames.len()).max();
    assert_eq!(deepest, Some(3), "leaf in middle in outer");
}

#[test]
fn functions_inlined_calls_and_lines_are_those_of_the_dwarf() {
    let folder = Folder::new();
    for (name, target, flags) in [
        ("x64", "x86_64", &["-O1"][..]),
        ("x64-2", "x86_64", &["-O2"]),
        ("x86", "i686", &["-O1", "-fno-omit-frame-pointer"]),
        ("arm64", "aarch64", &["-O1"]),
    ] {
        let twins = build(&folder, name, target, flags, &[]);
        assert_the_same(&twins);
    }
}

#[test]
fn the_pdb_is_found_by_name_and_identity() {
    let folder = Folder::new();
    let program = build(&folder, "app", "x86_64", &["-O1"], &[]).with_pdb;
    let pdb = program.with_extension("pdb");
    let options = || Options { debug_dirs: vec![folder.path("store")], ..Options::default() };
    let at = |report: &str| folder.path(report);
    let source = |options: Options| {
        let mut symbolizer = Symbolizer::new(options);
        let answers = symbolizer.symbolize_file(&program, &[0x1_4000_1001]).expect("a program");
        let report = &symbolizer.report()[0];
        let problems: Vec<String> = report.problems.iter().map(Error::to_string).collect();
        (answers[0].frames.len(), report.source.clone(), problems, report.found_build_id.clone())
    };
    let (frames, found, problems, identity) = source(options());
    assert_eq!((frames, found, problems.len()), (3, SymbolSource::Pdb { file: pdb.clone() }, 0));

    // In the way of symbol servers: the identity as one word.
    let identity = identity.expect("GUID and age");
    let hex: String = identity[..16].iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(identity[16..], [0, 0, 0, 1]);
    let summary = run(Command::new("llvm-pdbutil").args(["dump", "--summary"]).arg(&pdb));
    let guid = summary.split("GUID: {").nth(1).and_then(|text| text.split('}').next()).expect("a GUID");
    assert_eq!(hex, guid.replace('-', ""));
    let stored = at(&format!("store/app.pdb/{hex}1/app.pdb"));
    std::fs::create_dir_all(stored.parent().expect("a folder")).expect("folders");
    std::fs::rename(&pdb, &stored).expect("moved");
    assert_eq!(source(options()).1, SymbolSource::Pdb { file: stored.clone() });

    // Nowhere: no names, since the program exports none.
    let (frames, found, problems, _) = source(Options::default());
    assert_eq!((frames, found, problems), (0, SymbolSource::None, Vec::new()));

    // One of another build is refused, and named.
    let other = build(&folder, "other", "x86_64", &["-O2"], &[]).with_pdb;
    std::fs::rename(other.with_extension("pdb"), &pdb).expect("moved");
    let (frames, found, problems, _) = source(Options::default());
    assert_eq!((frames, found, problems.len()), (0, SymbolSource::None, 1));
    assert!(problems[0].contains("app.pdb") && problems[0].contains(&hex.to_lowercase()), "{problems:?}");
}

#[test]
fn a_program_is_known_by_the_identity_of_its_pdb() {
    let folder = Folder::new();
    let program = build(&folder, "app", "x86_64", &["-O1"], &[]).with_pdb;
    let mut symbolizer = Symbolizer::new(Options::default());
    symbolizer.symbolize_file(&program, &[0]).expect("a program");
    let identity = symbolizer.report()[0].found_build_id.clone().expect("GUID and age");
    // A loader maps the whole image; offsets count from its start.
    let module = |build_id: Vec<u8>| Module {
        start: 0x7ff6_0000_0000,
        end: 0x7ff6_0000_4000,
        file_offset: 0,
        path: program.clone(),
        build_id: Some(build_id),
    };
    let answers = symbolizer.symbolize(&[module(identity.clone())], &[0x7ff6_0000_1001, 0x7ff6_0000_0001]);
    assert_eq!(answers[0].file_address, 0x1_4000_1001);
    assert_eq!((answers[0].frames.len(), answers[1].frames.len()), (3, 0));
    // On the machine that it comes from it has a path that means nothing here.
    let elsewhere = Module { path: r"C:\build\app.exe".into(), ..module(identity.clone()) };
    let folders = vec![program.parent().expect("a folder").to_owned()];
    let mut with_folder = Symbolizer::new(Options { debug_dirs: folders, ..Options::default() });
    for (symbolizer, frames) in [(&mut symbolizer, 0), (&mut with_folder, 3)] {
        let answers = symbolizer.symbolize(std::slice::from_ref(&elsewhere), &[0x7ff6_0000_1001]);
        assert_eq!(answers[0].frames.len(), frames, "{:?}", symbolizer.report());
    }
    let mut other = identity;
    other[19] ^= 1;
    let answers = symbolizer.symbolize(&[module(other)], &[0x7ff6_0000_1001]);
    assert_eq!(answers[0].frames.len(), 0);
    assert!(matches!(symbolizer.report()[0].problems[..], [Error::WrongBuildId { .. }]));
}

/// Two functions without debug information, and one that is only theirs.
const ASSEMBLER: &str = "
    .globl first, second, mainCRTStartup
    .text
first:
    addl $1, %eax
    ret
    .p2align 4
mainCRTStartup:
    .seh_proc mainCRTStartup
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
    call first
    call own
    call second
    addq $40, %rsp
    ret
    .seh_endproc
own:
    .seh_proc own
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
    call first
    addq $40, %rsp
    ret
    .seh_endproc
quiet:
    addl $3, %eax
    ret
second:
    addl $2, %eax
    ret
";

#[test]
fn functions_that_only_the_linker_knows_end_where_others_begin() {
    let folder = Folder::new();
    let source = folder.write("code.s", ASSEMBLER);
    let [object, program] = ["code.obj", "code.exe"].map(|name| folder.path(name));
    run(Command::new("clang").args(["--target=x86_64-pc-windows-msvc", "-c"]).arg(&source).arg("-o").arg(&object));
    let mut linker = Command::new("lld-link");
    linker.args(["/nodefaultlib", "/subsystem:console", "/entry:mainCRTStartup", "/debug:full"]);
    run(linker.arg(format!("/out:{}", program.display())).arg(&object));
    let text = run(Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(&program));
    let address = |line: &str| u64::from_str_radix(line.trim().split_once(':')?.0, 16).ok();
    let addresses: Vec<u64> = text.lines().filter_map(address).collect();
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize_file(&program, &addresses).expect("a program");
    let names: Vec<String> = answers.iter().flat_map(common::lines).map(|(name, ..)| name).collect();
    let mut shown = names.clone();
    shown.dedup();
    // `own` and `quiet` have no name for others, and do not get that of the function before them.
    assert_eq!(shown, ["first", "mainCRTStartup", "second"], "{text}");
    assert_eq!(answers.iter().filter(|answer| answer.frames.is_empty()).count(), 6, "{names:?}\n{text}");
}
