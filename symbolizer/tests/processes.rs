//! Files and code that only a running process has: deleted, replaced, in a container, made at run time, the kernel's.

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use common::tools::run;
use common::{Folder, build_id, lines, symbol, symbolize_with};
use mpp_symbolizer::{Error, Identity, Module, Options, Quality, SymbolSource, Symbolized, Symbolizer};

/// A program that prints the addresses of a function of its own, one of its library and one that it makes at run time,
/// then its memory map and an empty line; and that runs until its input ends. With an argument it writes a perf map
/// there, which calls what it made `made at run time`.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef WITH_LIBRARY
int library_function(int x);
#else
int library_function(int x) { return x; }
#endif
int own_function(int x) { return library_function(x) + 1; }
int main(int argc, char **argv)
{
    static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
    unsigned char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made + 0x100, code, sizeof code);
    if (argc > 1) {
        char path[99];
        snprintf(path, sizeof path, argv[1], getpid());
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx %lx made at run time\n", (long)made + 0x100, (long)sizeof code);
        fclose(map);
    }
    printf("%p %p %p\n", (void *)own_function, (void *)library_function, (void *)(made + 0x100));
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; maps && (c = fgetc(maps)) != EOF;)
        putchar(c);
    puts("");
    fflush(stdout);
    return getchar() == 'x';
}
"#;

/// A running program, ended with this.
struct Running {
    process: Child,
    /// Closing it ends the process.
    input: Option<ChildStdin>,
    /// Its own function, its library's, and the one made at run time.
    addresses: Vec<u64>,
    modules: Vec<Module>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (input, output) = (process.stdin.take(), process.stdout.take().expect("its output"));
        let mut lines = BufReader::new(output).lines().map(|line| line.expect("text"));
        let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a hex number");
        let addresses = lines.next().expect("addresses").split_whitespace().map(hex).collect();
        let module = |line: String| {
            let path = line.get(73..).unwrap_or_default().to_owned();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-').expect("a range");
            Module { start: hex(start), end: hex(end), file_offset: hex(words[2]), path: path.into(), build_id: None }
        };
        let modules = lines.take_while(|line| !line.is_empty()).map(module).collect();
        Running { process, input, addresses, modules }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Options that name this process.
    fn options(&self) -> Options {
        Options { pid: Some(self.pid()), ..Options::default() }
    }

    /// The answers for its addresses, by a symbolizer whose report can be read.
    fn look(&self, options: Options) -> (Vec<Symbolized>, Symbolizer) {
        let mut symbolizer = Symbolizer::new(options);
        let answers = symbolizer.symbolize(&self.modules, &self.addresses);
        (answers, symbolizer)
    }

    /// The map as it is after the file at `path` was deleted or replaced.
    fn mark_deleted(&mut self, path: &Path) {
        let deleted = PathBuf::from(format!("{} (deleted)", path.display()));
        self.modules.iter_mut().filter(|m| m.path == path).for_each(|module| module.path.clone_from(&deleted));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

fn names(answers: &[Symbolized]) -> Vec<String> {
    answers.iter().map(|answer| lines(answer).first().map_or("-".to_owned(), |line| line.0.clone())).collect()
}

/// The program, and its library.
fn build(folder: &Folder) -> (PathBuf, PathBuf) {
    let library = folder.path("liblibrary.so");
    let source = folder.write("library.c", "int library_function(int x) { return x * 2; }\n");
    let mut gcc = Command::new("gcc");
    run(gcc.args(["-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id"]).arg(&source).arg("-o").arg(&library));
    let (source, program) = (folder.write("program.c", PROGRAM), folder.path("program"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-DWITH_LIBRARY", "-Wl,--build-id", "-Wl,-rpath,$ORIGIN"]).arg(&source).arg(&library);
    run(gcc.arg("-o").arg(&program));
    (program, library)
}

#[test]
fn deleted_and_replaced_files_of_a_running_process() {
    let folder = Folder::new();
    let (program, library) = build(&folder);
    let mut running = Running::start(&mut Command::new(&program));
    std::fs::remove_file(&program).expect("deleted");
    std::fs::rename(folder.program("other", &[]), &library).expect("replaced");
    running.mark_deleted(&program);
    running.mark_deleted(&library);

    // Without the process there is nothing to be had.
    let (answers, symbolizer) = running.look(Options::default());
    assert_eq!(names(&answers), ["-", "-", "-"]);
    assert!(symbolizer.report().iter().filter(|r| r.path.ends_with("program (deleted)")).all(|report| {
        report.identity.is_none() && matches!(&report.problems[..], [Error::Deleted { path }] if *path == program)
    }));

    // The program can be had by whoever owns the process; of libraries only root gets hold.
    let (answers, symbolizer) = running.look(running.options());
    assert_eq!(names(&answers)[0], "own_function");
    assert_eq!(answers[0].quality, Quality::Lines);
    let may = std::fs::read_dir(format!("/proc/{}/map_files", running.pid())).expect("the folder").flatten();
    if may.take(1).any(|entry| std::fs::File::open(entry.path()).is_ok()) {
        assert_eq!(names(&answers)[1], "library_function");
    } else {
        assert_eq!(names(&answers)[1], "-");
    }
    for report in symbolizer.report().iter().filter(|report| report.source != SymbolSource::None) {
        assert_eq!(report.identity, Some(Identity::Mapped), "{report:?}");
        assert!(report.problems.is_empty() && report.looked_at[0].starts_with("/proc"), "{report:?}");
    }
}

#[test]
fn another_process_with_the_same_number_is_not_taken_for_it() {
    let folder = Folder::new();
    let (program, _) = build(&folder);
    let mut running = Running::start(&mut Command::new(&program));
    // The same code under another name, so that being taken in would show.
    let (source, other) = (folder.path("program.c"), folder.path("other"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-DWITH_LIBRARY", "-Down_function=other_function", "-Wl,-rpath,$ORIGIN"]);
    run(gcc.arg(&source).arg(folder.path("liblibrary.so")).arg("-o").arg(&other));
    let other = Running::start(&mut Command::new(&other));
    std::fs::remove_file(&program).expect("deleted");
    running.mark_deleted(&program);
    let (answers, _) = running.look(other.options());
    assert_eq!(names(&answers)[0], "-");
    let (answers, _) = running.look(running.options());
    assert_eq!(names(&answers)[0], "own_function");
}

#[test]
fn files_of_a_container() {
    let folder = Folder::new();
    let (source, root) = (folder.write("program.c", PROGRAM), folder.path("root"));
    std::fs::create_dir_all(root.join("usr/bin")).expect("a folder");
    std::fs::create_dir_all(root.join("proc")).expect("a folder");
    std::fs::create_dir_all(root.join("opt/debug")).expect("a folder");
    let (whole, program) = (folder.path("whole"), root.join("usr/bin/contained"));
    let mut gcc = Command::new("gcc");
    run(gcc.args(["-g", "-O1", "-static", "-Wl,--build-id"]).arg(&source).arg("-o").arg(&whole));
    run(Command::new("objcopy").args(["--only-keep-debug"]).arg(&whole).arg(root.join("opt/debug/contained.debug")));
    run(Command::new("objcopy").arg("--strip-all").args([&whole, &program]));
    // The debug file is found by a link that only makes sense in the container.
    let id: String = build_id(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
    let link = root.join(format!("usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    std::fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink("/opt/debug/contained.debug", &link).expect("a link");
    // Root folders are changed by root only, or by whoever is root in a namespace.
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "chroot"]).arg(&root).arg("/usr/bin/contained");
    let mut running = Running::start(&mut command);
    // Nothing is mounted there, so that it could not read its memory map; it is the same as the one seen from outside,
    // but for the path.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", running.pid())).expect("its memory map");
    let outer = program.to_str().expect("a path");
    assert!(running.modules.is_empty() && maps.contains(outer), "{maps}");
    let address = running.addresses[0];
    let hex = |word: &str| u64::from_str_radix(word, 16).expect("a hex number");
    for words in maps.lines().filter(|line| line.ends_with(outer)).map(|l| l.split_whitespace().collect::<Vec<_>>()) {
        let (start, end) = words[0].split_once('-').expect("a range");
        running.modules.push(Module {
            start: hex(start),
            end: hex(end),
            file_offset: hex(words[2]),
            path: "/usr/bin/contained".into(),
            build_id: None,
        });
    }
    assert_eq!(address, symbol(&whole, "own_function").0);
    let (answers, symbolizer) = running.look(Options::default());
    assert_eq!(names(&answers)[0], "-");
    assert!(symbolizer.report()[0].summary().is_some_and(|text| text.contains("/usr/bin/contained")));
    let (answers, symbolizer) = running.look(running.options());
    assert_eq!((names(&answers)[0].as_str(), answers[0].quality), ("own_function", Quality::Lines));
    let report = &symbolizer.report()[0];
    let inner_root = format!("/proc/{}/root", running.pid());
    let debug = format!("{inner_root}/opt/debug/contained.debug");
    assert_eq!(report.source, SymbolSource::Dwarf { file: debug.into() });
    assert_eq!(report.identity, Some(Identity::NotVerified));
}

#[test]
fn code_made_at_run_time() {
    let folder = Folder::new();
    let (program, _) = build(&folder);
    // Where everybody looks for it.
    let running = Running::start(Command::new(&program).arg("/tmp/perf-%d.map"));
    let path = PathBuf::from(format!("/tmp/perf-{}.map", running.pid()));
    let (answers, _) = running.look(Options::default());
    assert_eq!(names(&answers), ["own_function", "library_function", "-"]);
    let (answers, symbolizer) = running.look(running.options());
    assert_eq!(names(&answers), ["own_function", "library_function", "made at run time"]);
    assert_eq!(answers[2].quality, Quality::Name);
    assert!(answers[2].module.is_some_and(|index| running.modules[index].path == Path::new("")));
    let report = symbolizer.report().last().expect("a report of the map");
    let inside = PathBuf::from(format!("/proc/{}/root{}", running.pid(), path.display()));
    assert_eq!(report.source, SymbolSource::PerfMap { file: inside.clone() });
    assert_eq!((report.with_name, report.problems.len(), &report.looked_at[..]), (1, 0, &[inside][..]));
    // What comes from a map can travel.
    let stored = Symbolizer::new(running.options()).store(&running.modules, &running.addresses);
    let (answers, _) = running.look(Options { stored, only_stored: true, ..Options::default() });
    assert_eq!(names(&answers), ["own_function", "library_function", "made at run time"]);

    // Not through a link, not what is no file, and not what has been there before the process.
    let elsewhere = folder.path("map");
    std::fs::rename(&path, &elsewhere).or_else(|_| std::fs::copy(&path, &elsewhere).map(drop)).expect("moved");
    let _ = std::fs::remove_file(&path);
    std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
    let (answers, symbolizer) = running.look(running.options());
    assert_eq!(names(&answers)[2], "-");
    let report = symbolizer.report().last().expect("a report of the map");
    assert!(matches!(report.problems[0], Error::NotRegular { .. }), "{report:?}");
    std::fs::remove_file(&path).expect("the link");
    std::fs::copy(&elsewhere, &path).expect("a copy");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    let file = std::fs::File::options().write(true).open(&path).expect("the map");
    file.set_modified(yesterday).expect("an older map");
    let (answers, symbolizer) = running.look(running.options());
    std::fs::remove_file(&path).expect("the copy");
    assert_eq!(names(&answers)[2], "-");
    let report = symbolizer.report().last().expect("a report of the map");
    assert!(report.problems[0].to_string().contains("older than the process"), "{report:?}");
    // The user may name any.
    let (answers, symbolizer) = running.look(Options { perf_map: Some(elsewhere.clone()), ..Options::default() });
    assert_eq!(names(&answers)[2], "made at run time");
    assert_eq!(symbolizer.report().last().map(|r| r.source.clone()), Some(SymbolSource::PerfMap { file: elsewhere }));
}

#[test]
fn the_library_of_the_kernel() {
    let folder = Folder::new();
    let (program, _) = build(&folder);
    let running = Running::start(&mut Command::new(&program));
    let vdso = running.modules.iter().find(|module| module.path == Path::new("[vdso]")).expect("a vDSO");
    // As other tools see it.
    let memory = std::fs::File::open(format!("/proc/{}/mem", running.pid())).expect("its memory");
    let mut content = vec![0; (vdso.end - vdso.start) as usize];
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut content, vdso.start).expect("the vDSO");
    let copy = folder.path("vdso.so");
    std::fs::write(&copy, content).expect("a copy");
    let listing = run(Command::new("nm").args(["-D", "-S", "--defined-only"]).arg(&copy));
    let functions: Vec<(u64, u64)> = listing
        .lines()
        .filter(|line| line.contains(" T "))
        .filter_map(|line| {
            let number = |at| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok();
            number(0).zip(number(1))
        })
        .collect();
    assert!(functions.len() >= 3, "{listing}");

    let id = build_id(&copy);
    let look = |build_id: Option<Vec<u8>>, size: u64, options: Options| {
        let module = Module { build_id, end: vdso.start + size, ..vdso.clone() };
        let ends: Vec<u64> = functions.iter().map(|(start, size)| vdso.start + start + size - 1).collect();
        let mut symbolizer = Symbolizer::new(options);
        let answers = symbolizer.symbolize(&[module], &ends);
        (answers, symbolizer)
    };
    let whole = vdso.end - vdso.start;
    for (build_id, options, identity) in [
        (Some(id.clone()), Options::default(), Identity::BuildId),
        (Some(id), running.options(), Identity::BuildId),
        (None, Options::default(), Identity::NotVerified),
        (None, running.options(), Identity::Mapped),
    ] {
        let (answers, symbolizer) = look(build_id, whole, options);
        for (answer, (start, _)) in answers.iter().zip(&functions) {
            let name = &lines(answer)[0].0;
            let line = format!("{start:016x}");
            let is_such = |l: &&str| l.starts_with(&line) && l.contains(" T ") && l.contains(&format!(" {name}@"));
            assert!(listing.lines().any(|line| is_such(&line)), "{name} at {line}: {listing}");
        }
        let report = &symbolizer.report()[0];
        assert_eq!((&report.source, report.identity), (&SymbolSource::Vdso, Some(identity)), "{report:?}");
        assert!(report.problems.is_empty(), "{report:?}");
    }
    // That of another kernel.
    let (answers, symbolizer) = look(Some(vec![1; 20]), whole, running.options());
    assert!(answers.iter().all(|answer| answer.frames.is_empty()));
    assert!(matches!(symbolizer.report()[0].problems[..], [Error::WrongBuildId { .. }]), "{:?}", symbolizer.report());
    let (answers, symbolizer) = look(None, 2 * whole, Options::default());
    assert!(answers.iter().all(|answer| answer.frames.is_empty()));
    assert!(matches!(symbolizer.report()[0].problems[..], [Error::OtherVdso { .. }]), "{:?}", symbolizer.report());
}

#[test]
fn a_file_that_is_taken_for_its_path_is_not_verified() {
    let folder = Folder::new();
    let (program, _) = build(&folder);
    let address = [symbol(&program, "own_function").0];
    let mut symbolizer = Symbolizer::new(Options::default());
    symbolize_with(&mut symbolizer, &program, &address, None);
    assert_eq!(symbolizer.report()[0].identity, Some(Identity::NotVerified));
    symbolize_with(&mut symbolizer, &program, &address, Some(&build_id(&program)));
    assert_eq!(symbolizer.report()[0].identity, Some(Identity::BuildId));
    symbolize_with(&mut symbolizer, &program, &address, Some(&[1, 2, 3]));
    assert_eq!(symbolizer.report()[0].identity, None);
}
