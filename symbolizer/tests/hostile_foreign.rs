//! Programs of Windows and macOS, and the files with their debug information, damaged all over: cut at many lengths,
//! bytes changed, every number once as large as it can be.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, peak_memory, run};
use mpp_symbolizer::{Options, Symbolized, Symbolizer};

const PROGRAM: &str = "
volatile int sink;
static __attribute__((always_inline)) inline int leaf(int x) { sink += x; return x * 7 + sink; }
__attribute__((noinline)) int outer(int x)
{
    int s = leaf(x);
    for (int i = 0; i < x; i++)
        s -= leaf(i * 2);
    return s;
}
int start(void) { return outer(3) + leaf(4); }
";

/// A program, and the file that has its lines.
struct Subject {
    folder: Folder,
    program: PathBuf,
    debug: PathBuf,
    addresses: Vec<u64>,
    sound: Vec<Symbolized>,
}

impl Subject {
    fn windows() -> Self {
        let folder = Folder::new();
        let source = folder.write("program.c", PROGRAM);
        let (object, program) = (folder.path("program.obj"), folder.path("program.exe"));
        let mut compiler = Command::new("clang");
        compiler.args(["--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-O1", "-ffreestanding", "-c"]);
        run(compiler.arg(&source).arg("-o").arg(&object));
        let mut linker = Command::new("lld-link");
        linker.args(["/nodefaultlib", "/subsystem:console", "/entry:start", "/debug:full"]);
        run(linker.arg(format!("/out:{}", program.display())).arg(&object));
        let debug = program.with_extension("pdb");
        Self::new(folder, program, debug)
    }

    fn apple() -> Self {
        let folder = Folder::new();
        let source = folder.write("program.c", PROGRAM);
        let (object, program) = (folder.path("program.o"), folder.path("program.dylib"));
        let mut compiler = Command::new("clang");
        compiler.args(["--target=arm64-apple-macos11", "-g", "-O1", "-ffreestanding", "-c"]);
        run(compiler.arg(&source).arg("-o").arg(&object));
        let mut linker = Command::new("lld");
        linker.args(["-flavor", "darwin", "-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-dylib"]);
        run(linker.arg("-o").arg(&program).arg(&object));
        let dsym = folder.path("program.dylib.dSYM");
        run(Command::new("dsymutil").arg(&program).arg("-o").arg(&dsym));
        fs::remove_file(object).expect("removed");
        let debug = dsym.join("Contents/Resources/DWARF/program.dylib");
        Self::new(folder, program, debug)
    }

    fn new(folder: Folder, program: PathBuf, debug: PathBuf) -> Self {
        let text = run(Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(&program));
        let address = |line: &str| u64::from_str_radix(line.trim().split_once(':')?.0, 16).ok();
        let addresses: Vec<u64> = text.lines().filter_map(address).step_by(3).collect();
        let mut subject = Subject { folder, program, debug, addresses, sound: Vec::new() };
        subject.sound = subject.look();
        assert!(subject.sound.iter().filter(|answer| answer.frames.len() == 2).count() > 2, "{:?}", subject.sound);
        subject
    }

    /// An unreadable program gives no answers.
    fn look(&self) -> Vec<Symbolized> {
        let mut symbolizer = Symbolizer::new(Options { threads: 1, ..Options::default() });
        let answers = symbolizer.symbolize_file(&self.program, &self.addresses).unwrap_or_default();
        assert!(answers.iter().all(|answer| answer.frames.len() <= 256));
        for problem in symbolizer.report().iter().flat_map(|report| &report.problems) {
            let text = problem.to_string();
            assert!(text.len() < 1000 && !text.chars().any(char::is_control), "{text:?}");
        }
        answers
    }

    /// Damages a file in all places that `places` gives, and restores it.
    #[track_caller]
    fn damage(&self, path: &Path, places: impl Fn(usize) -> Vec<usize>) {
        let bytes = fs::read(path).expect("the file");
        let mut noticed = 0;
        for place in places(bytes.len()) {
            for change in [&[0xff; 1][..], &[0; 4], &[0xff; 4], &[0xff, 0xff, 0xff, 0x7f], &[0xff; 8]] {
                let mut bytes = bytes.clone();
                let end = bytes.len().min(place + change.len());
                bytes[place..end].copy_from_slice(&change[..end - place]);
                fs::write(path, bytes).expect("the damaged file");
                noticed += usize::from(self.look() != self.sound);
            }
        }
        for part in 0..200 {
            fs::write(path, &bytes[..bytes.len() * part / 200]).expect("the cut file");
            noticed += usize::from(self.look() != self.sound);
        }
        fs::write(path, bytes).expect("the file as it was");
        assert!(self.look() == self.sound);
        assert!(noticed > 200, "only {noticed} changes were noticed");
        assert!(peak_memory() < 1 << 30, "{} bytes", peak_memory());
    }
}

/// All of the first bytes, where headers are, and some of the rest.
fn headers_and_some(headers: usize, step: usize) -> impl Fn(usize) -> Vec<usize> {
    move |length| (0..headers.min(length)).chain((headers..length).step_by(step)).collect()
}

#[test]
fn programs_of_windows() {
    let subject = Subject::windows();
    subject.damage(&subject.program, headers_and_some(0x400, 5));
}

#[test]
fn pdb_files() {
    let subject = Subject::windows();
    // Streams are in blocks of 4,096 bytes, with their headers first; most of the file is names of types.
    subject.damage(&subject.debug, |length| {
        let starts = (0..length).step_by(4096).flat_map(|block| (block..length.min(block + 128)).step_by(2));
        (0..64).chain(starts).chain((64..length).step_by(211)).collect()
    });
}

#[test]
fn libraries_of_macos() {
    let subject = Subject::apple();
    subject.damage(&subject.program, headers_and_some(0x600, 67));
}

#[test]
fn files_of_dsym_bundles() {
    let subject = Subject::apple();
    subject.damage(&subject.debug, headers_and_some(0x600, 23));
}

#[test]
fn what_is_no_file_in_place_of_the_debug_information() {
    for subject in [Subject::windows(), Subject::apple()] {
        let beside = subject.folder.path("beside");
        let kinds: [&dyn Fn(&Path); 5] = [
            &|path| drop(run(Command::new("mkfifo").arg(path))),
            &|path| fs::create_dir(path).expect("a folder"),
            &|path| symlink("/dev/zero", path).expect("a link"),
            &|path| symlink(path, path).expect("a link"),
            &|path| fs::write(path, "").expect("an empty file"),
        ];
        fs::rename(&subject.debug, beside).expect("moved");
        for make in kinds {
            make(&subject.debug);
            let answers = subject.look();
            assert_eq!(answers.len(), subject.addresses.len());
            assert!(answers.iter().all(|answer| answer.frames.iter().all(|frame| frame.line == 0)));
            fs::remove_file(&subject.debug).or_else(|_| fs::remove_dir(&subject.debug)).expect("removed");
        }
    }
}
