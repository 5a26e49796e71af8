//! Dumps of the profiler, through the real library: by call, into limits, and of modules that are gone.

mod support;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{compile, preloaded, succeed};

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");

/// Compiled once: a program that is being written cannot be started.
fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("prof_dump.c", &[INCLUDE, support::library().to_str().unwrap(), "-ldl"])).clone()
}

/// An empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn profiled(rate: &str, program: &Path, arguments: &[&str], folder: &Path) -> Command {
    let mut command = preloaded(program);
    command.args(arguments).arg(folder).env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", rate);
    command
}

/// What a text dump says.
#[derive(Default)]
struct Text {
    /// Live blocks and allocated ones, block size, frames.
    lines: Vec<(u64, u64, u64, Vec<u64>)>,
    /// Live blocks, their bytes, the same of all that was allocated.
    header: [u64; 4],
    sums: [u64; 4],
    facts: HashMap<String, u64>,
    build_ids: HashMap<String, String>,
    build_ids_at: Vec<(u64, u64, String, String)>,
    /// Of code: start, end, path.
    modules: Vec<(u64, u64, String)>,
}

impl Text {
    fn read(path: &Path) -> Text {
        let content = std::fs::read_to_string(path).unwrap();
        let (stacks, maps) = content.split_once("MAPPED_LIBRARIES:\n").unwrap();
        let mut text = Text::default();
        let hex = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap();
        let range = |text: &str| text.split_once('-').map(|(start, end)| (hex(start), hex(end))).unwrap();
        for (number, line) in stacks.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["#", "build_id", id, path] => drop(text.build_ids.insert(path.to_string(), id.to_string())),
                ["#", "build_id_at", at, id, path] => {
                    text.build_ids_at.push((range(at).0, range(at).1, id.to_string(), path.to_string()));
                }
                ["#", key, "=", value] => drop(text.facts.insert(key.to_string(), value.parse().unwrap())),
                ["#", ..] => {}
                _ => {
                    let (amounts, rest) = line.split_once(" @").unwrap();
                    let amounts = amounts.trim_start_matches("heap profile:").replace([':', '[', ']'], " ");
                    let amounts: Vec<u64> = amounts.split_whitespace().map(|number| number.parse().unwrap()).collect();
                    if number == 0 {
                        text.header = amounts.try_into().unwrap();
                        continue;
                    }
                    text.sums.iter_mut().zip(&amounts).for_each(|(sum, amount)| *sum += amount);
                    let frames = rest.split_whitespace().map(hex).collect();
                    text.lines.push((amounts[0], amounts[2], amounts[3] / amounts[2], frames));
                }
            }
        }
        for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.contains('x'))) {
            let (start, end) = range(line.split(' ').next().unwrap());
            let path = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
            text.modules.push((start, end, path));
        }
        text
    }

    /// The file with the code that a frame is in.
    fn module(&self, frame: u64) -> &str {
        let mut found = self.modules.iter().filter(|(start, end, _)| (*start..*end).contains(&(frame - 1)));
        let module = found.next().map_or("", |(_, _, path)| path);
        assert!(found.next().is_none(), "{frame:#x} is in two modules");
        module
    }
}

#[test]
fn by_call() {
    let (program, folder) = (program(), folder("dumps-by-call"));
    assert_eq!(succeed(&mut profiled("1", &program, &["calls"], &folder)), "");
    let text = Text::read(&folder.join("a.prof"));
    assert_eq!(text.header, text.sums);
    let live = |size: std::ops::Range<u64>| -> [u64; 2] {
        let of_size = text.lines.iter().filter(|line| size.contains(&line.2));
        of_size.fold([0; 2], |sum, line| [sum[0] + line.0, sum[1] + line.1])
    };
    assert_eq!((live(1000..1100), live(3000..3400), live(50_000..60_000)), ([50, 100], [20, 20], [10, 10]));
    assert_eq!((text.facts["sample_rate"], text.facts["dropped_samples"], text.facts["stacks_marked"]), (1, 0, 1));
    assert!(text.facts["estimated_peak_bytes"] >= 60 * 1000 + 500_000 && text.facts["duration_nanos"] > 0);
    assert!(text.facts["time_nanos"] > 1_700_000_000_000_000_000);
    assert!(!text.build_ids.is_empty() && text.build_ids_at.is_empty());
    // The two forms have the same blocks; cli/tests compares them in full.
    let proto = std::fs::read(folder.join("a.pb")).unwrap();
    for string in ["inuse_space", "another one", "stack_truncated", "sample_rate = 1", "libc.so.6"] {
        assert!(proto.windows(string.len()).any(|part| part == string.as_bytes()), "{string}");
    }
    assert!(folder.join("made/b.prof").exists() && !folder.join("again").exists());
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

#[test]
fn a_limit_on_file_sizes_is_an_error() {
    let (program, folder) = (program(), folder("dumps-limit"));
    assert_eq!(succeed(&mut profiled("1", &program, &["limit"], &folder)), "");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn modules_that_are_gone_keep_their_names() {
    let (program, folder) = (program(), folder("dumps-plugins"));
    for (name, id) in [("first", "0x0101"), ("second", "0x0202"), ("cycle", "0x0303"), ("other", "0x0404")] {
        let plugin = compile("prof_plugin.c", &["-shared", "-fPIC", &format!("-Wl,--build-id={id}")]);
        std::fs::rename(plugin, folder.join(format!("{name}.so"))).unwrap();
    }
    assert_eq!(succeed(&mut profiled("1", &program, &["plugins"], &folder)), "");
    let text = Text::read(&folder.join("p.prof"));
    assert_eq!(text.header, text.sums);
    let mut blocks: HashMap<String, (u64, u64)> = HashMap::new();
    for (live, _, size, frames) in text.lines.iter().filter(|line| (1000..1100).contains(&line.2)) {
        let module = text.module(frames[0]).rsplit('/').next().unwrap();
        let found = blocks.entry(module.to_owned()).or_default();
        (found.0, found.1) = (found.0 + live, found.1 + 1);
        assert!(size % 16 == 0);
    }
    let live = |name: &str| blocks.get(name).map_or(0, |found| found.0);
    assert_eq!((live("first.so"), live("cycle.so")), (60, 100), "{blocks:?}");
    assert_eq!((live("second.so"), live("second.so (deleted)")), (30, 10), "{blocks:?}");
    // What comes and goes makes no stack of its own each time.
    assert!(blocks["cycle.so"].1 <= 4, "{blocks:?}");
    assert!((4..8).contains(&text.facts["unloaded_modules"]), "{}", text.facts["unloaded_modules"]);
    for (name, id) in [("first.so", "0101"), ("second.so", "0202"), ("cycle.so", "0303")] {
        let known = |path: &str, at: &str| path.ends_with(name) && at == id;
        assert!(text.build_ids_at.iter().any(|(_, _, at, path)| known(path, at)), "{name}");
    }
    assert!(text.build_ids.iter().any(|(path, id)| path.ends_with("second.so") && id == "0202"));
}
