//! Files that are damaged in every place that is read first: cut at many lengths, headers changed byte by byte and
//! field by field, sizes that no machine has, and files that change while they are read.
//!
//! A damaged file may lose names, and it may have other ones where the damage is in them. It may not make the reader
//! panic, hang, or take memory that the file does not have.

mod common;

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{FUNCTIONS, Folder, instructions, peak_memory, run};
use mpp_symbolizer::{Module, Options, Symbolized, Symbolizer};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, elf};

/// A program, where it is mapped, and what is true of it.
struct Victim {
    path: PathBuf,
    bytes: Vec<u8>,
    modules: Vec<Module>,
    addresses: Vec<u64>,
    sound: Vec<Symbolized>,
}

impl Victim {
    fn new(folder: &Folder, name: &str, flags: &[&str]) -> Self {
        let path = folder.program(name, flags);
        let modules = common::mapped(&path, 0);
        // A few of each function: each look takes time, and there are thousands.
        let addresses: Vec<u64> = instructions(&path, &FUNCTIONS).into_iter().step_by(7).collect();
        let sound = look(&modules, &addresses);
        assert!(sound.iter().all(|answer| !answer.frames.is_empty()));
        Victim { bytes: fs::read(&path).expect("the program"), path, modules, addresses, sound }
    }

    fn look(&self) -> Vec<Symbolized> {
        look(&self.modules, &self.addresses)
    }

    fn look_at(&self, bytes: &[u8]) -> Vec<Symbolized> {
        fs::write(&self.path, bytes).expect("the damaged program");
        self.look()
    }

    /// Each address has the name of its function, or none.
    #[track_caller]
    fn assert_right_or_nothing(&self, answers: &[Symbolized], when: &str) {
        for ((address, answer), sound) in self.addresses.iter().zip(answers).zip(&self.sound) {
            let function = |answer: &Symbolized| answer.frames.last()?.function.as_ref().map(|name| name.raw.clone());
            if let Some(name) = function(answer) {
                assert_eq!(Some(name), function(sound), "{address:#x} {when}");
            }
        }
    }
}

fn look(modules: &[Module], addresses: &[u64]) -> Vec<Symbolized> {
    let mut symbolizer = Symbolizer::new(Options { threads: 1, ..Options::default() });
    let answers = symbolizer.symbolize(modules, addresses);
    assert_eq!(answers.len(), addresses.len());
    for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
        let text = problem.to_string();
        assert!(text.len() < 1000 && !text.chars().any(char::is_control), "{text:?}");
    }
    answers
}

/// The layouts that differ in how their sections are read.
const LAYOUTS: [(&str, &[&str]); 3] =
    [("plain", &["-no-pie"]), ("packed", &["-no-pie", "-gz"]), ("old", &["-no-pie", "-gdwarf-3"])];

/// Offsets and sizes of the file header, the program headers and the section headers.
fn headers(bytes: &[u8]) -> [(usize, usize); 3] {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).expect("an ELF file");
    let endian = header.endian().expect("a byte order");
    let (programs, sections) = (header.e_phoff(endian) as usize, header.e_shoff(endian) as usize);
    let program_size = usize::from(header.e_phentsize(endian)) * usize::from(header.e_phnum(endian));
    let section_size = usize::from(header.e_shentsize(endian)) * usize::from(header.e_shnum(endian));
    [(0, 64), (programs, program_size), (sections, section_size)]
}

#[test]
fn cut_at_many_lengths() {
    let folder = Folder::new();
    for (name, flags) in LAYOUTS {
        let victim = Victim::new(&folder, name, flags);
        let mut lengths: Vec<usize> = (0..80).chain((0..200).map(|part| victim.bytes.len() * part / 200)).collect();
        // Around the ends of sections, too.
        let header = elf::FileHeader64::<Endianness>::parse(&*victim.bytes).expect("an ELF file");
        let endian = header.endian().expect("a byte order");
        for section in header.section_headers(endian, &*victim.bytes).expect("sections") {
            let end = (section.sh_offset(endian) + section.sh_size(endian)) as usize;
            lengths.extend([end.saturating_sub(1), end, end + 1]);
        }
        for length in lengths {
            let answers = victim.look_at(&victim.bytes[..length.min(victim.bytes.len())]);
            victim.assert_right_or_nothing(&answers, &format!("in {name}, cut at {length}"));
        }
        assert!(victim.look_at(&victim.bytes) == victim.sound);
    }
}

#[test]
fn each_byte_of_the_headers_changed() {
    let folder = Folder::new();
    let victim = Victim::new(&folder, "bytes", &["-no-pie"]);
    let mut noticed = 0;
    for (start, size) in headers(&victim.bytes) {
        for at in start..start + size {
            let changes = [0, 0xff, victim.bytes[at] ^ 1, victim.bytes[at] ^ 0x80];
            // All of them in the file header, one of them elsewhere.
            for &changed in if start == 0 { &changes[..] } else { &changes[at % 4..][..1] } {
                let mut bytes = victim.bytes.clone();
                bytes[at] = changed;
                noticed += usize::from(victim.look_at(&bytes) != victim.sound);
            }
        }
    }
    assert!(noticed > 100, "only {noticed} changes were noticed");
}

#[test]
fn each_byte_of_symbols_stubs_and_links_changed() {
    let folder = Folder::new();
    let mut victim = Victim::new(&folder, "symbols", &["-no-pie", "-rdynamic", "-Wl,--build-id", "-Wl,-z,lazy"]);
    run(Command::new("objcopy").args(["--only-keep-debug"]).arg(&victim.path).arg(folder.path("symbols.debug")));
    let link = format!("--add-gnu-debuglink={}", folder.path("symbols.debug").display());
    run(Command::new("objcopy").args(["--strip-debug", &link]).arg(&victim.path));
    fs::remove_file(folder.path("symbols.debug")).expect("removed");
    victim.bytes = fs::read(&victim.path).expect("the program");
    victim.modules = common::mapped(&victim.path, 0);
    // A stub for each function of other libraries.
    victim.addresses.extend(instructions(&victim.path, &["printf@plt", "puts@plt", "fopen@plt"]));
    victim.sound = victim.look();
    assert!(victim.sound.iter().all(|answer| !answer.frames.is_empty()));
    let parsed = object::File::parse(&*victim.bytes).expect("an ELF file");
    let mut noticed = 0;
    let wanted =
        [".symtab", ".strtab", ".dynsym", ".dynstr", ".rela.plt", ".plt", ".gnu_debuglink", ".note.gnu.build-id"];
    for name in wanted {
        let section = parsed.section_by_name(name).unwrap_or_else(|| panic!("no {name}"));
        let (start, size) = section.file_range().expect("content");
        // Tables have entries of 24 bytes; a step that shares no factor with that gets to every field.
        for at in (start..start + size).step_by(if size > 500 { 5 } else { 1 }) {
            let (at, end) = (at as usize, (start + size) as usize);
            for change in [&[0xff; 1][..], &[0xff; 8], &[0; 8]] {
                let mut bytes = victim.bytes.clone();
                let length = change.len().min(end - at);
                bytes[at..at + length].copy_from_slice(&change[..length]);
                noticed += usize::from(victim.look_at(&bytes) != victim.sound);
            }
        }
    }
    assert!(noticed > 100, "only {noticed} changes were noticed");
    assert!(peak_memory() < 1 << 30, "{} bytes", peak_memory());
}

/// Sizes, offsets and addresses that mean harm.
const NUMBERS: [u64; 8] = [0, 1, 0xfff, 1 << 32, 1 << 40, 1 << 63, u64::MAX - 63, u64::MAX];

#[test]
fn sections_and_segments_of_impossible_sizes() {
    let folder = Folder::new();
    for (name, flags) in LAYOUTS {
        let victim = Victim::new(&folder, name, flags);
        let [_, programs, sections] = headers(&victim.bytes);
        // The 8-byte fields: of a program header all but the first, of a section header from the third word on.
        let of_programs = (programs.0..programs.0 + programs.1).step_by(56).flat_map(|at| (at + 8..at + 56).step_by(8));
        let of_sections = (sections.0..sections.0 + sections.1).step_by(64).flat_map(|at| (at + 8..at + 64).step_by(8));
        let mut noticed = 0;
        for (number, at) in of_programs.chain(of_sections).enumerate() {
            // All of them for the first layout; for the others, which differ in sections only, some.
            let numbers = if name == "plain" { &NUMBERS[..] } else { &NUMBERS[number % 8..][..1] };
            for value in numbers {
                let mut bytes = victim.bytes.clone();
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                noticed += usize::from(victim.look_at(&bytes) != victim.sound);
            }
        }
        assert!(noticed > 10, "only {noticed} changes of {name} were noticed");
    }
    // All of these files have less than a hundred kilobytes.
    assert!(peak_memory() < 1 << 30, "{} bytes", peak_memory());
}

#[test]
fn numbers_of_headers_that_are_not_there() {
    let folder = Folder::new();
    let victim = Victim::new(&folder, "counts", &["-no-pie"]);
    // e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx; 0xffff and 0 mean that the first section tells.
    for at in (54..64).step_by(2) {
        for count in [0, 1, 2, 0x7fff, 0xff00, 0xfffe, 0xffff_u16] {
            let mut bytes = victim.bytes.clone();
            bytes[at..at + 2].copy_from_slice(&count.to_le_bytes());
            victim.look_at(&bytes);
            let first = headers(&victim.bytes)[2].0;
            for value in NUMBERS {
                for field in [32, 40] {
                    bytes[first + field..first + field + 8].copy_from_slice(&value.to_le_bytes());
                }
                victim.look_at(&bytes);
            }
        }
    }
    assert!(peak_memory() < 1 << 30, "{} bytes", peak_memory());
}

/// Cuts the file and writes it anew, again and again, until told to stop. It always has the first bytes of `bytes`.
fn shrink_and_grow(path: &Path, bytes: &[u8], stop: &AtomicBool) {
    let mut file = fs::OpenOptions::new().write(true).open(path).expect("the program");
    let mut length = 0;
    while !stop.load(Relaxed) {
        length = (length * 7 + 4099) % bytes.len();
        file.set_len(length as u64).expect("cut");
        thread::yield_now();
        file.seek(SeekFrom::Start(length as u64)).expect("the end");
        file.write_all(&bytes[length..]).expect("written");
        thread::yield_now();
    }
}

#[test]
fn files_that_shrink_while_they_are_read() {
    let folder = Folder::new();
    for (name, flags) in LAYOUTS {
        let victim = Victim::new(&folder, name, flags);
        let stop = AtomicBool::new(false);
        let mut right = 0;
        thread::scope(|scope| {
            scope.spawn(|| shrink_and_grow(&victim.path, &victim.bytes, &stop));
            for _ in 0..400 {
                let answers = victim.look();
                victim.assert_right_or_nothing(&answers, "of a file that shrinks");
                right += usize::from(answers == victim.sound);
            }
            stop.store(true, Relaxed);
        });
        assert!(right < 400, "it never shrank while it was read");
        assert!(victim.look_at(&victim.bytes) == victim.sound);
    }
}
