//! Programs built for the tests, and other tools' opinion of them.
//!
//! The compilers and binutils are part of what these tests need: without them they fail, and say so.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod compare;
pub(crate) mod opinions;
pub(crate) mod project;
pub(crate) mod tools;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpp_symbolizer::{Module, Options, Symbolized, Symbolizer};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};

pub(crate) use self::tools::run;

/// A folder that goes away with the test.
#[derive(Debug)]
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().expect("the temporary folder").join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for the file");
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        path
    }

    /// Compiles and links `source` with GCC to the program `name`.
    pub(crate) fn compile(&self, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
        let compiler = if source.extension() == Some(OsStr::new("cc")) { "g++" } else { "gcc" };
        let out = self.path(name);
        run(Command::new(compiler).args(flags).arg(source).arg("-o").arg(&out));
        out
    }

    /// The program of [`PROGRAM`], compiled.
    pub(crate) fn program(&self, name: &str, flags: &[&str]) -> PathBuf {
        self.write("shapes.h", HEADER);
        let source = self.write("shapes.c", PROGRAM);
        let mut all = vec!["-O2", "-g"];
        all.extend(flags);
        self.compile(&source, name, &all)
    }
}

/// A header with functions that are inlined two deep.
const HEADER: &str = "
static inline __attribute__((always_inline)) int leaf(int x)
{
    volatile int v = x;
    v += 3;
    return v * 7;
}

static inline __attribute__((always_inline)) int middle(int x)
{
    int s = leaf(x);
    s ^= leaf(x + 1);
    return s;
}
";

/// Functions of several shapes. It prints the addresses of two of them and its memory map.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "shapes.h"

__attribute__((noinline)) int outer(int x)
{
    int s = middle(x);
    for (int i = 0; i < x; i++)
        s -= middle(i * 2);
    return s;
}

__attribute__((noinline)) static int apart(int x)
{
    if (__builtin_expect(x > 1000, 0)) {
        printf("rare %d\n", leaf(x));
        return outer(x);
    }
    return x * 5;
}

__attribute__((noinline)) int plain(volatile int *x)
{
    *x += 1;
    return *x;
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("%p %p\n", (void *)outer, (void *)main);
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; maps && (c = fgetc(maps)) != EOF;)
        putchar(c);
    return apart(argc) + outer(argc) + plain(&argc) == 12345678;
}
"#;

/// The functions of [`PROGRAM`].
pub(crate) const FUNCTIONS: [&str; 4] = ["outer", "apart", "plain", "main"];

/// Addresses of all instructions of the functions called `names`, by `objdump`; of all functions, if there are no names.
#[track_caller]
pub(crate) fn instructions(file: &Path, names: &[&str]) -> Vec<u64> {
    let addresses = code_of(file, |name| names.is_empty() || names.contains(&name));
    assert!(!addresses.is_empty(), "no instructions of {names:?} in {}", file.display());
    addresses
}

/// Addresses of all instructions of the functions with names for which `is_wanted`, by `objdump`.
#[track_caller]
pub(crate) fn code_of(file: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let listing = run(Command::new("objdump").args(["-d", "--no-show-raw-insn", "-w"]).arg(file));
    let mut addresses = Vec::new();
    let mut is_in = false;
    for line in listing.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            is_in = is_wanted(name.1);
        } else if is_in && let Some((address, text)) = line.trim_start().split_once(":\t") {
            // Padding between functions belongs to none.
            if !text.contains("nop") && text != "int3" && !text.starts_with("xchg   %ax,%ax") && !text.contains("cs ") {
                addresses.extend(u64::from_str_radix(address, 16));
            }
        }
    }
    addresses
}

/// Address and size of a symbol, by `nm`.
#[track_caller]
pub(crate) fn symbol(file: &Path, name: &str) -> (u64, u64) {
    let listing = run(Command::new("nm").args(["-S", "--defined-only"]).arg(file));
    let line = listing.lines().find(|line| line.split_whitespace().last() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no symbol {name} in {}", file.display()));
    let number = |word: &str| u64::from_str_radix(word, 16);
    let words: Vec<&str> = line.split_whitespace().collect();
    (number(words[0]).expect("an address"), if words.len() == 4 { number(words[1]).expect("a size") } else { 0 })
}

/// One frame as text, to be compared: function, name of the file without folders, line.
pub(crate) type Line = (String, String, u32);

/// What binutils says about addresses, functions demangled, innermost first.
#[track_caller]
pub(crate) fn binutils(file: &Path, addresses: &[u64]) -> Vec<Vec<Line>> {
    let list: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let text = run(Command::new("addr2line").args(["-afiC", "-e"]).arg(file).args(list));
    let mut answers: Vec<Vec<Line>> = Vec::new();
    let mut lines = text.lines();
    while let Some(function) = lines.next() {
        if function.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let place = lines.next().expect("a place after each function");
        let place = place.split(" (discriminator").next().unwrap_or(place);
        let (path, line) = place.rsplit_once(':').expect("file:line");
        let file = path.rsplit('/').next().unwrap_or(path);
        let frame = (function.to_owned(), file.to_owned(), line.parse().unwrap_or(0));
        answers.last_mut().expect("an address first").push(frame);
    }
    assert_eq!(answers.len(), addresses.len());
    answers
}

/// Our frames in the form of [`binutils`].
pub(crate) fn lines(symbolized: &Symbolized) -> Vec<Line> {
    let text = |text: Option<&str>| text.unwrap_or("??").to_owned();
    let frame = |frame: &mpp_symbolizer::Frame| {
        let file = frame.file.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
        (text(frame.function.as_ref().map(|name| &*name.demangled)), text(file), frame.line)
    };
    symbolized.frames.iter().map(frame).collect()
}

/// The modules of a file as the kernel maps it, moved up by `bias`.
pub(crate) fn mapped(file: &Path, bias: u64) -> Vec<Module> {
    const PAGE: u64 = 4096;
    let bytes = std::fs::read(file).expect("the file");
    let header = elf::FileHeader64::<Endianness>::parse(&*bytes).expect("an ELF file");
    let endian = header.endian().expect("a byte order");
    let programs = header.program_headers(endian, &*bytes).expect("program headers");
    let loads = programs.iter().filter(|program| program.p_type(endian) == elf::PT_LOAD);
    let module = |program: &elf::ProgramHeader64<Endianness>| {
        let (offset, address, size) = (program.p_offset(endian), program.p_vaddr(endian), program.p_filesz(endian));
        let within_page = address % PAGE;
        Module {
            start: bias + address - within_page,
            end: bias + (address + size).next_multiple_of(PAGE),
            file_offset: offset - within_page,
            path: file.to_owned(),
            build_id: None,
        }
    };
    loads.filter(|program| program.p_flags(endian).contains(elf::PF_X)).map(module).collect()
}

/// The build id, by `readelf`.
#[track_caller]
pub(crate) fn build_id(file: &Path) -> Vec<u8> {
    let text = run(Command::new("readelf").arg("-n").arg(file));
    let id = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    let id = id.unwrap_or_else(|| panic!("no build id in {}", file.display()));
    (0..id.len() / 2).map(|i| u8::from_str_radix(&id[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// Symbolizes addresses of the file's own headers, with the file mapped somewhere.
pub(crate) fn symbolize(file: &Path, addresses: &[u64]) -> Vec<Symbolized> {
    symbolize_with(&mut Symbolizer::new(Options::default()), file, addresses, None)
}

/// The same with a symbolizer of one's own, to read its report, and a wanted build id.
pub(crate) fn symbolize_with(
    symbolizer: &mut Symbolizer,
    file: &Path,
    addresses: &[u64],
    build_id: Option<&[u8]>,
) -> Vec<Symbolized> {
    const BIAS: u64 = 0x7f12_3456_7000;
    let mut modules = mapped(file, BIAS);
    modules.iter_mut().for_each(|module| module.build_id = build_id.map(<[u8]>::to_vec));
    let moved: Vec<u64> = addresses.iter().map(|address| address + BIAS).collect();
    symbolizer.symbolize(&modules, &moved)
}

/// Compares with binutils for every instruction of the functions called `names`.
#[track_caller]
pub(crate) fn assert_like_binutils(file: &Path, names: &[&str]) {
    let addresses = instructions(file, names);
    let ours = symbolize(file, &addresses);
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(binutils(file, &addresses)) {
        assert_eq!(lines(ours), theirs, "at {address:#x} of {}", file.display());
        assert_eq!(ours.file_address, *address);
    }
}

/// The largest amount of memory that this process ever had, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// Numbers that look random and are the same in every run (xorshift64*).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new() -> Self {
        Numbers(0x9E37_79B9_7F4A_7C15)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}
