//! Surroundings that mean no good, through the real library: neither the program nor the files may suffer.

mod support;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::{compile, preloaded};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("hostile.c", &[]))
}

/// An empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}.{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The program with the profiler on; variables without what all of them begin with.
fn profiled(arguments: &[&str], variables: &[&str]) -> Command {
    let mut command = preloaded(program());
    command.args(arguments).env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "4096");
    for variable in variables {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(format!("MIMALLOC_PROF_{name}"), value);
    }
    command
}

/// The output of a command that must come to an end.
#[track_caller]
fn output(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// A whole dump as text: the header is the sum of the lines, and the map is there.
#[track_caller]
fn check(dump: &str) {
    let numbers = |line: &str| -> Vec<u64> {
        let line = line.split('@').next().unwrap();
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    assert!(dump.starts_with("heap profile: ") && dump.contains("\nMAPPED_LIBRARIES:\n"), "{dump:.300}");
    let mut lines = dump.lines();
    let header = numbers(lines.next().unwrap());
    let mut sums = vec![0; 4];
    for line in lines.take_while(|line| *line != "MAPPED_LIBRARIES:").filter(|line| line.contains(" @ 0x")) {
        sums.iter_mut().zip(numbers(line)).for_each(|(sum, number)| *sum += number);
    }
    assert_eq!(header, sums);
}

/// What a program opens where standard error was, or would be, is no place to complain in.
#[test]
fn files_of_the_programs_own_get_nothing_of_ours() {
    for close in [false, true] {
        let folder = folder(&format!("own-{close}"));
        let mut arguments = vec!["own_files", text(&folder)];
        arguments.extend(close.then_some("close"));
        let variables = ["DUMP_AT_EXIT=/no/such/folder/x", "SNAPSHOT=10ms", "DUMP=/no/such/%n", "DUMP_EVERY=100KiB"];
        let status = if close {
            output(&mut profiled(&arguments, &variables)).status
        } else {
            // From the start there is nothing at those numbers.
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"]);
            let inner = profiled(&arguments, &variables);
            shell.arg(inner.get_program()).args(inner.get_args());
            shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
            output(&mut shell).status
        };
        assert!(status.success(), "{status}");
        assert_eq!(names(&folder), ["own.0", "own.1", "own.2"]);
        for name in names(&folder) {
            assert_eq!(fs::read_to_string(folder.join(&name)).unwrap(), "own\n", "{name}");
        }
    }
}

/// What the program writes to a descriptor that it has closed does not get into our files, which might have got its number.
#[test]
fn files_of_ours_get_nothing_of_the_programs() {
    let folder = folder("writes");
    let dump = folder.join("heap.prof");
    for _ in 0..8 {
        let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
        let output = output(&mut profiled(&["writes_on", text(&folder)], &[&at_exit]));
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        check(&fs::read_to_string(&dump).unwrap());
        fs::remove_file(&dump).unwrap();
    }
}

/// Handlers interrupt threads in the allocator, and dump; our thread does at the same time.
#[test]
fn dumps_in_signal_handlers() {
    let folder = folder("handler");
    let (dump, at_exit) = (folder.join("called"), folder.join("heap.prof"));
    let variables = [&*format!("DUMP_AT_EXIT={}", text(&at_exit)), "DUMP_EVERY=1MiB", "DUMP_INTERVAL=10ms"];
    let output = output(&mut profiled(&["dump_in_handler", text(&dump)], &variables));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    for name in names(&folder) {
        check(&fs::read_to_string(folder.join(name)).unwrap());
    }
}

/// A pipe is written to if somebody reads it, and nobody waits for that; it is never replaced.
#[test]
fn pipes_are_left_in_their_places() {
    let folder = folder("pipe");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let at_exit = format!("DUMP_AT_EXIT={}", text(&pipe));
    let output = output(&mut profiled(&["work", ""], &[&at_exit, "SNAPSHOT=10ms"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("nobody reads the pipe"), "{output:?}");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(names(&folder), ["pipe"]);

    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    // The reader is there once a writer that does not wait finds it.
    let mut writer = Command::new("sh");
    writer.args(["-c", "exec 3>\"$PIPE\"; exec \"$@\"", "sh"]).env("PIPE", &pipe);
    let inner = profiled(&["work", ""], &[&at_exit]);
    writer.arg(inner.get_program()).args(inner.get_args());
    writer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = self::output(&mut writer);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    check(&reader.join().unwrap());
    assert_eq!(names(&folder), ["pipe"]);
}

/// Who ends the process at once does not do so in the midst of a file.
#[test]
fn nothing_half_written_is_left_behind() {
    for how in ["quick_exit", "_exit"] {
        let folder = folder(how);
        let pattern = format!("DUMP_AT_EXIT={}/heap.prof", text(&folder));
        for round in 0..6 {
            let ms = (20 + 3 * round).to_string();
            let variables = [&*pattern, "SNAPSHOT=10ms", "DUMP_EVERY=200KiB", "DUMP_INTERVAL=10ms"];
            let output = output(&mut profiled(&["ends_at_once", "", how, &ms], &variables));
            assert!(output.status.code() == Some(5) && output.stderr.is_empty(), "{output:?}");
            for name in names(&folder) {
                assert!(!name.ends_with(".tmp"), "{name} after {ms} ms");
                check(&fs::read_to_string(folder.join(&name)).unwrap());
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
    }
}
