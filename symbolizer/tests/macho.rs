//! Libraries of macOS, built here with clang and lld, and their dSYM bundles, compared with `llvm-symbolizer`.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::opinions::llvm_lines;
use common::{Folder, run};
use mpp_symbolizer::{Error, Module, Options, SymbolSource, Symbolizer};

const PROGRAM: &str = r#"
volatile int sink;
namespace shapes {
static __attribute__((always_inline)) inline int leaf(int x)
{
    sink += x;
    return x * 7 + sink;
}
__attribute__((noinline)) int outer(int x)
{
    int s = leaf(x);
    for (int i = 0; i < x; i++)
        s -= leaf(i * 2);
    return s;
}
}
static __attribute__((noinline)) int hidden(int x)
{
    sink += 3;
    return x + sink;
}
extern "C" __attribute__((noinline)) int plain(int *x)
{
    *x += 1;
    sink += *x;
    return *x;
}
extern "C" int start(void)
{
    int z = shapes::outer(3);
    z += hidden(z);
    return plain(&z);
}
"#;

/// A library for one processor, with its dSYM beside it.
struct Library {
    path: PathBuf,
    dsym: PathBuf,
}

fn build(folder: &Folder, name: &str, processor: &str, flag: &str) -> Library {
    let source = folder.write("program.cc", PROGRAM);
    let (object, path) = (folder.path(&format!("{name}.o")), folder.path(&format!("{name}.dylib")));
    let mut compiler = Command::new("clang");
    compiler.arg(format!("--target={processor}-apple-macos11")).args(["-stdlib=libc++", "-g", "-ffreestanding", "-c"]);
    run(compiler.arg(flag).arg(&source).arg("-o").arg(&object));
    let mut linker = Command::new("lld");
    linker.args(["-flavor", "darwin", "-arch", processor, "-platform_version", "macos", "11.0", "11.0", "-dylib"]);
    run(linker.arg("-o").arg(&path).arg(&object));
    let dsym = folder.path(&format!("{name}.dylib.dSYM"));
    run(Command::new("dsymutil").arg(&path).arg("-o").arg(&dsym));
    // What is found must be in the dSYM.
    std::fs::remove_file(object).expect("removed");
    Library { path, dsym }
}

fn instructions(library: &Path) -> Vec<u64> {
    let text = run(Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(library));
    let address = |line: &str| u64::from_str_radix(line.trim().split_once(':')?.0, 16).ok();
    let addresses: Vec<u64> = text.lines().filter_map(address).collect();
    assert!(addresses.len() > 40, "{text}");
    addresses
}

#[track_caller]
fn assert_the_same(library: &Library, source: SymbolSource) {
    let addresses = instructions(&library.path);
    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize_file(&library.path, &addresses).expect("a library");
    assert_eq!(symbolizer.report()[0].source, source);
    for ((address, answer), theirs) in addresses.iter().zip(&answers).zip(llvm_lines(&library.path, &addresses)) {
        assert_eq!(common::lines(answer), theirs, "at {address:#x} of {}", library.path.display());
    }
}

fn file_in(dsym: &Path) -> PathBuf {
    dsym.join("Contents/Resources/DWARF").join(dsym.file_stem().expect("a name"))
}

#[test]
fn every_instruction_with_and_without_a_dsym() {
    let folder = Folder::new();
    for processor in ["arm64", "x86_64"] {
        let library = build(&folder, processor, processor, "-O1");
        assert_the_same(&library, SymbolSource::Dwarf { file: file_in(&library.dsym) });
        std::fs::rename(&library.dsym, folder.path("elsewhere")).expect("moved");
        assert_the_same(&library, SymbolSource::Symtab { file: library.path.clone() });
        std::fs::remove_dir_all(folder.path("elsewhere")).expect("removed");
    }
}

#[test]
fn the_dsym_of_another_build_is_refused_and_named() {
    let folder = Folder::new();
    let library = build(&folder, "a", "arm64", "-O1");
    let other = build(&folder, "b", "arm64", "-O2");
    std::fs::rename(file_in(&other.dsym), file_in(&library.dsym)).expect("moved");
    let mut symbolizer = Symbolizer::new(Options::default());
    let address = instructions(&library.path)[0];
    let answers = symbolizer.symbolize_file(&library.path, &[address]).expect("a library");
    // A name is still known; lines of the other build are not told.
    assert_eq!(answers[0].frames[0].line, 0);
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::Symtab { file: library.path.clone() });
    let [Error::WrongBuildId { path, .. }] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert_eq!(*path, file_in(&library.dsym));
}

/// A file for several processors: the highest byte of a number first, each part at the start of a page.
fn fat(folder: &Folder, name: &str, parts: &[&Path]) -> PathBuf {
    let page = 0x4000;
    let parts: Vec<Vec<u8>> = parts.iter().map(|part| std::fs::read(part).expect("a part")).collect();
    let mut file: Vec<u8> = [0xcafe_babe_u32, parts.len() as u32].iter().flat_map(|n| n.to_be_bytes()).collect();
    let mut offset = page;
    for part in &parts {
        // Type and variant of processor are in the part's own header, the lowest byte first.
        for at in [4, 8] {
            file.extend(part[at..at + 4].iter().rev());
        }
        file.extend([offset as u32, part.len() as u32, 14].iter().flat_map(|number| number.to_be_bytes()));
        offset = (offset + part.len()).next_multiple_of(page);
    }
    for part in parts {
        file.resize(file.len().next_multiple_of(page), 0);
        file.extend(part);
    }
    let path = folder.path(name);
    std::fs::write(&path, file).expect("written");
    path
}

#[test]
fn the_part_of_a_fat_file_is_chosen_by_its_uuid() {
    let folder = Folder::new();
    let libraries = ["arm64", "x86_64"].map(|processor| build(&folder, processor, processor, "-O1"));
    let paths = libraries.each_ref().map(|library| library.path.as_path());
    let file = fat(&folder, "both.dylib", &paths);
    // The dSYM may be for several processors as well.
    let dsym = file_in(&folder.path("both.dylib.dSYM"));
    std::fs::create_dir_all(dsym.parent().expect("a folder")).expect("folders");
    let symbols = libraries.each_ref().map(|library| file_in(&library.dsym));
    std::fs::rename(fat(&folder, "symbols", &[&symbols[0], &symbols[1]]), &dsym).expect("moved");
    for library in &libraries {
        let mut symbolizer = Symbolizer::new(Options::default());
        let addresses = instructions(&library.path);
        let alone = symbolizer.symbolize_file(&library.path, &addresses).expect("a library");
        let uuid = symbolizer.report()[0].found_build_id.clone();
        assert_eq!(uuid.as_ref().map(Vec::len), Some(16));
        // The image as the loader maps it: offsets count from the start of the part.
        let base = 0x1_0450_0000;
        let module = Module { start: base, end: base + 0x10_0000, file_offset: 0, path: file.clone(), build_id: uuid };
        let mapped: Vec<u64> = addresses.iter().map(|address| base + address).collect();
        let together = symbolizer.symbolize(&[module], &mapped);
        assert_eq!(symbolizer.report()[0].source, SymbolSource::Dwarf { file: dsym.clone() });
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!((alone.file_address, &alone.frames), (together.file_address, &together.frames));
        }
    }
    // Without a UUID none is taken for the other, and a UUID that none has is refused.
    let mut symbolizer = Symbolizer::new(Options::default());
    assert!(matches!(symbolizer.symbolize_file(&file, &[0x400]), Err(Error::BadMachO { .. })));
    let module = Module { start: 0, end: 0x10_0000, file_offset: 0, path: file, build_id: Some(vec![7; 16]) };
    let answers = symbolizer.symbolize(&[module], &[0x400]);
    assert!(answers[0].frames.is_empty());
    assert!(matches!(symbolizer.report()[0].problems[..], [Error::WrongBuildId { .. }]));
}
