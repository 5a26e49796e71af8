//! The exact profiler, under C programs that know what they do.

mod support;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{compile, library, preloaded, succeed};

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");

/// A folder for what a test writes.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dhat-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiled once: all tests run the same file.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let search = format!("-L{}", library().parent().unwrap().display());
        compile("dhat.c", &[INCLUDE, &search, "-lmimalloc_pprof"])
    })
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    // Without the allocator's own thread, for which the C library allocates a block.
    command.env("LD_LIBRARY_PATH", library().parent().unwrap()).env("MIMALLOC_SCAVENGER", "0");
    command
}

fn field(text: &str, key: &str) -> u64 {
    let start = text.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} in {text}")) + key.len() + 3;
    let digits: String = text[start..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{key} in {text}"))
}

/// The sum of a key over all program points.
fn sum(text: &str, key: &str) -> u64 {
    text.match_indices(&format!("\"{key}\":")).map(|(at, _)| field(&text[at..], key)).sum()
}

#[test]
fn counts_are_those_of_a_shadow_count() {
    let (folder, program) = (folder("counts"), program());
    let file = folder.join("dhat.json");
    assert_eq!(succeed(command(program).arg(&file)), "");
    // The sequence's last recording saw nothing: the file is whole all the same.
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"[root]\"") && text.ends_with("]\n}\n"), "{text}");
    // While it samples as well.
    let environment = [("MIMALLOC_PROF", "1"), ("MIMALLOC_PROF_SAMPLE_RATE", "1000")];
    assert_eq!(succeed(command(program).arg(&file).envs(environment)), "");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_has_no_room_is_counted_without_its_stack() {
    let (folder, program) = (folder("budget"), program());
    let file = folder.join("%p.json");
    let mut command = command(program);
    command.arg("budget").env("MIMALLOC_DHAT", "1").env("MIMALLOC_DHAT_MAX_BYTES", "64KiB");
    assert_eq!(succeed(command.env("MIMALLOC_DHAT_DUMP_AT_EXIT", &file)), "");
    let [file] = files(&folder).try_into().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("\"mi_dhat_incomplete\":true"), "{text}");
    assert!(field(&text, "withoutStack") > 1000 && field(&text, "lost") == 0);
    assert!(sum(&text, "tbk") >= 2048);
    std::fs::remove_dir_all(folder).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_forked_child_has_a_file_of_its_own() {
    let (folder, program) = (folder("fork"), program());
    let pattern = folder.join("%p.json");
    let run = |follow: &str| {
        let mut command = command(program);
        command.arg("fork").env("MIMALLOC_DHAT", "1").env("MIMALLOC_DHAT_DUMP_AT_EXIT", &pattern);
        let output = command.env("MIMALLOC_PROF_FOLLOW", follow).output().unwrap();
        let child = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), folder.join(format!("{}.json", child.trim())))
    };
    let (fine, child) = run("all");
    assert!(fine);
    let parent = files(&folder).into_iter().find(|path| *path != child).expect("the parent's");
    let [child, parent] = [child, parent].map(|path| std::fs::read_to_string(path).unwrap());
    // The child has freed 50 of the 100 blocks that it has from its parent, and has made 10 of its own.
    assert_eq!(sum(&child, "tb") - sum(&parent, "tb"), 10 * 7777);
    assert_eq!(sum(&parent, "ebk") - sum(&child, "ebk"), 40);
    assert_ne!(field(&child, "pid"), field(&parent, "pid"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Children that were forked in the middle of other threads' events go on, however they were forked, and each can write what it has.
#[test]
fn forks_in_the_middle_of_events() {
    let folder = folder("storm");
    let program = compile("fork_storm.c", &[]);
    for mode in ["main", "handler", "clone"] {
        let mut command = preloaded(&program);
        command.args(["60", mode]).env("MIMALLOC_DHAT", "1").env("MIMALLOC_DHAT_DUMP_AT_EXIT", folder.join("%p.json"));
        assert_eq!(succeed(&mut command), "60 forks, 0 failed, 0 hung\n", "{mode}");
    }
    let texts = files(&folder).into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    assert!(texts.inspect(|text| assert!(text.ends_with("]\n}\n"))).count() >= 3);
    std::fs::remove_dir_all(folder).unwrap();
}
