//! Bundles: what travels, what is shown elsewhere, and what must not leave the machine.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, json, ran};
use serde_json::Value;

/// A C++ program whose names are all secret, with memory below the standard library.
const SECRET: &str = r#"#include <cstdlib>
#include <cstring>
#include <vector>
struct ZebraKey { char bytes[4096]; };
namespace zebra {
static std::vector<ZebraKey> *vault;
__attribute__((noinline)) void fill_vault(int n) {
    vault = new std::vector<ZebraKey>;
    for (int i = 0; i < n; i++) vault->push_back(ZebraKey());
}
static inline __attribute__((always_inline)) void *inner_chamber(int i) { return memset(malloc(65536), i, 65536); }
void *volatile chambers[300];
__attribute__((noinline)) void dig_chambers(void) { for (int i = 0; i < 300; i++) chambers[i] = inner_chamber(i); }
}
int main(void) { zebra::fill_vault(2000); zebra::dig_chambers(); return 0; }
"#;

/// A recording of the secret program, made in a folder with a secret name.
struct Recorded {
    place: Place,
    recording: String,
    program: PathBuf,
}

impl Recorded {
    fn new(flags: &[&str]) -> Recorded {
        let place = Place::new();
        let source = place.write("zebra-lair/zebra.cc", SECRET);
        let program = place.path("zebra-lair/zebra-app");
        let built = Command::new("g++").args(["-g", "-O1", "-o"]).arg(&program).arg(&source).args(flags).status();
        assert!(built.expect("this test needs g++").success());
        let run = ["run", "-q", "--sample", "16KiB", "-o", "zebra-rec", "--"];
        place.run(run.iter().copied().chain(["./zebra-lair/zebra-app", "--zebra-flag"])).exits(0);
        Recorded { place, recording: "zebra-rec".to_owned(), program }
    }

    fn bundle(&self, file: &str, flags: &[&str]) -> common::Ran {
        let arguments = ["bundle", &self.recording, "-o", file].into_iter().chain(flags.iter().copied());
        self.place.run(arguments).exits(0)
    }

    fn folded(&self, input: &str) -> String {
        self.place.run(["flame", "-q", input, "--format", "folded", "--names", "full"]).exits(0).stdout
    }

    fn top(&self, input: &str) -> Value {
        json(&self.elsewhere().args(["top", "-q", input, "--group", "line", "--format", "json"]).exits(0).stdout)
    }

    /// As on a machine that has never seen the program: nothing is in the cache.
    fn elsewhere(&self) -> Elsewhere {
        let mut command = self.place.mpp();
        command.env("XDG_CACHE_HOME", self.place.path("another-cache"));
        Elsewhere(command)
    }

    fn lose_the_originals(&self) {
        std::fs::remove_dir_all(self.place.path("zebra-lair")).expect("it is ours");
        std::fs::remove_dir_all(self.place.path(&self.recording)).expect("it is ours");
    }
}

struct Elsewhere(Command);

impl Elsewhere {
    fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Elsewhere {
        self.0.args(arguments);
        self
    }

    #[track_caller]
    fn exits(mut self, status: i32) -> common::Ran {
        ran(&mut self.0).exits(status)
    }
}

/// All files of a bundle, unpacked down to the last layer.
fn contents(place: &Place, bundle: &str) -> Vec<(String, Vec<u8>)> {
    let folder = place.path(&format!("unpacked-{bundle}"));
    std::fs::create_dir(&folder).expect("a folder");
    let status = Command::new("tar").arg("-xzf").arg(place.path(bundle)).arg("-C").arg(&folder).status();
    assert!(status.expect("this test needs tar").success());
    let mut files = Vec::new();
    let mut pending = vec![folder];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let content = match path.extension().is_some_and(|extension| extension == "gz") {
                true => Command::new("gzip").arg("-dc").arg(&path).output().expect("this test needs gzip").stdout,
                false => std::fs::read(&path).expect("a file"),
            };
            files.push((path.display().to_string(), content));
        }
    }
    files
}

#[track_caller]
fn assert_nowhere(files: &[(String, Vec<u8>)], secrets: &[&str]) {
    for (name, content) in files {
        let content = String::from_utf8_lossy(content).to_lowercase();
        for secret in secrets {
            let at = content.find(secret);
            let around = at.map(|at| content[at.saturating_sub(60)..].chars().take(160).collect::<String>());
            assert!(at.is_none(), "{secret} is in {name}: {around:?}");
        }
    }
}

fn names(top: &Value) -> Vec<&str> {
    top["rows"].as_array().expect("rows").iter().map(|row| row["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_bundle_shows_the_same_without_the_originals() {
    let recorded = Recorded::new(&["-Wl,--build-id=0x0123456789abcdef0123"]);
    let (folded, top) = (recorded.folded("zebra-rec"), recorded.top("zebra-rec"));
    let timeline = ["timeline", "-q", "--format", "csv"];
    let timeline_before = recorded.place.run(timeline.iter().chain(&["zebra-rec"])).exits(0).stdout;
    assert!(folded.contains("zebra::dig_chambers();inner_chamber"), "inlined functions are there: {folded}");
    recorded.bundle("b.tar.gz", &[]).prints("b.tar.gz").says("with lines");
    let mode = std::fs::metadata(recorded.place.path("b.tar.gz")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    recorded.lose_the_originals();
    // Another program has the place and the build id now; nothing of it may be seen.
    let source = recorded
        .place
        .write("zebra-lair/other.c", "int other(int x) { return x; } int main(void) { return other(0); }");
    let flags = ["-g", "-Wl,--build-id=0x0123456789abcdef0123", "-o"];
    let built = Command::new("gcc").args(flags).args([&recorded.program, &source]).status();
    assert!(built.expect("this test needs gcc").success());

    assert_eq!(recorded.folded("b.tar.gz"), folded);
    let there = recorded.top("b.tar.gz");
    for key in ["rows", "total_bytes", "quality", "samples"] {
        assert_eq!(there[key], top[key], "{key}");
    }
    assert!(top["rows"].as_array().expect("rows").iter().any(|row| row["line"].as_u64() == Some(11)), "{top:#}");
    assert_eq!(recorded.place.run(timeline.iter().chain(&["b.tar.gz"])).exits(0).stdout, timeline_before);

    // Through a pipe, and unpacked by tar it is a recording again.
    let shell = format!("cat b.tar.gz | {} flame -q - --format folded --names full", env!("CARGO_BIN_EXE_mpp"));
    let piped = Command::new("sh").arg("-c").arg(shell).current_dir(recorded.place.path("")).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&piped.stdout), folded);
    contents(&recorded.place, "b.tar.gz");
    recorded.elsewhere().args(["top", "-q", "unpacked-b.tar.gz"]).exits(0);
}

#[test]
fn a_bundle_lends_its_symbols_to_other_profiles() {
    let recorded = Recorded::new(&["-Wl,--build-id"]);
    let folded = recorded.folded("zebra-rec");
    recorded.bundle("b.tar.gz", &[]);
    std::fs::rename(recorded.place.path("zebra-rec"), recorded.place.path("moved")).expect("it is ours");
    std::fs::remove_dir_all(recorded.place.path("zebra-lair")).expect("it is ours");
    let flame = ["flame", "-q", "moved", "--format", "folded", "--names", "full"];
    let nameless = recorded.elsewhere().args(flame).exits(0).stdout;
    assert!(!nameless.contains("dig_chambers"), "{nameless}");
    assert_eq!(recorded.elsewhere().args(flame).args(["--bundle", "b.tar.gz"]).exits(0).stdout, folded);
    recorded.place.run(["top", "moved", "--bundle", "moved/recording.json"]).exits(13).says("is no bundle");
}

#[test]
fn source_files_can_stay_at_home() {
    let recorded = Recorded::new(&["-Wl,--build-id"]);
    recorded.bundle("b.tar.gz", &["--strip-source"]);
    let files = contents(&recorded.place, "b.tar.gz");
    assert_nowhere(&files, &["zebra.cc", "stl_vector.h", "new_allocator.h"]);
    for (name, content) in files.iter().filter(|(name, _)| name.ends_with(".sym")) {
        let stored = mpp_symbolizer::StoredSymbols::from_bytes(Path::new(name), content).expect("stored symbols");
        let mut frames = stored.answers().flat_map(|answer| answer.frames);
        assert!(!stored.is_empty() && frames.all(|frame| frame.line == 0 && frame.file.is_none()), "{name}");
    }
    let folded = recorded.folded("zebra-rec");
    recorded.lose_the_originals();
    assert_eq!(recorded.folded("b.tar.gz"), folded);
    let top = recorded.top("b.tar.gz");
    assert!(
        top["rows"].as_array().expect("rows").iter().all(|row| row["line"].is_null() || row["line"] == 0),
        "{top:#}"
    );

    // A profile that has them in itself is written anew.
    let go = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds/profile_read/go.pb");
    let top = |input: &str| json(&recorded.place.run(["top", "-q", input, "--format", "json"]).exits(0).stdout);
    let before = top(go);
    assert!(before["rows"].as_array().expect("rows").iter().any(|row| row["file"] == "./main.go"), "{before:#}");
    recorded.place.run(["bundle", go, "--strip-source", "-o", "go.tar.gz"]).exits(0);
    assert_nowhere(&contents(&recorded.place, "go.tar.gz"), &["main.go", "builder.go"]);
    let after = top("go.tar.gz");
    assert_eq!((&after["total_bytes"], names(&after)), (&before["total_bytes"], names(&before)));
    recorded.place.run(["bundle", go, "--anonymize", "-o", "nobody.tar.gz"]).exits(0);
    assert_nowhere(&contents(&recorded.place, "nobody.tar.gz"), &["main.go", "builder.go", "main.", "builder"]);
    assert_eq!(top("nobody.tar.gz")["total_bytes"], before["total_bytes"]);
}

#[test]
fn names_can_stay_at_home() {
    let recorded = Recorded::new(&["-Wl,--build-id"]);
    let id = json(&std::fs::read_to_string(recorded.place.path("zebra-rec/recording.json")).expect("the index"));
    let plain = recorded.top("zebra-rec");
    recorded.bundle("a.tar.gz", &["--anonymize", "--salt", "pepper"]).says("timeline left out");
    recorded.bundle("b.tar.gz", &["--anonymize", "--salt", "pepper"]);
    recorded.bundle("c.tar.gz", &["--anonymize"]);
    recorded.bundle("plain.tar.gz", &[]);

    // The control: they are in a plain one.
    let secrets = ["zebra", "vault", "chamber", "pepper"];
    let is_in_plain = contents(&recorded.place, "plain.tar.gz")
        .iter()
        .any(|(_, content)| String::from_utf8_lossy(content).contains("chamber"));
    assert!(is_in_plain);
    let build_id = build_id(&recorded.program);
    let raw_id: Vec<u8> = (0..20).map(|i| u8::from_str_radix(&build_id[2 * i..2 * i + 2], 16).expect("hex")).collect();
    for bundle in ["a.tar.gz", "c.tar.gz"] {
        let files = contents(&recorded.place, bundle);
        assert!(files.len() >= 4, "{files:?}");
        assert_nowhere(&files, &secrets);
        assert_nowhere(&files, &[&build_id, &format!("{}", recorded.place.path("").display()).to_lowercase()]);
        for (name, content) in &files {
            assert!(!content.windows(20).any(|window| window == raw_id), "the build id is in {name}");
        }
    }
    let read = |name: &str| std::fs::read(recorded.place.path(name)).expect("it is there");
    assert_eq!(read("a.tar.gz"), read("b.tar.gz"), "the same salt gives the same");
    recorded.lose_the_originals();

    let (a, c) = (recorded.top("a.tar.gz"), recorded.top("c.tar.gz"));
    assert_eq!((&a["total_bytes"], &a["samples"]), (&plain["total_bytes"], &plain["samples"]));
    let flat = |top: &Value| -> Vec<u64> {
        top["rows"].as_array().expect("rows").iter().map(|row| row["flat_bytes"].as_u64().expect("bytes")).collect()
    };
    assert_eq!(flat(&a)[..2], flat(&plain)[..2], "{a:#}");
    assert_eq!(flat(&a), flat(&c));
    assert!(names(&a)[0].starts_with("fn_"), "{a:#}");
    assert_ne!(names(&a)[0], names(&c)[0]);
    let folded = recorded.folded("a.tar.gz");
    let shown =
        recorded.place.run(["flame", "-q", "a.tar.gz", "--runtime", "show", "--format", "folded"]).exits(0).stdout;
    assert!(shown.contains("std::vector"), "names of the standard library stay: {shown}");
    assert!(!folded.contains("zebra") && folded.contains("__libc_start"), "{folded}");
    assert_eq!(id["command"][1], "--zebra-flag");
}

/// In hex, by `readelf`.
fn build_id(program: &Path) -> String {
    let output = Command::new("readelf").arg("-n").arg(program).output().expect("this test needs readelf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("a build id").to_owned()
}

#[test]
fn a_bundle_can_be_packed_again() {
    let recorded = Recorded::new(&["-Wl,--build-id"]);
    recorded.bundle("b.tar.gz", &[]);
    recorded.bundle("direct.tar.gz", &["--anonymize", "--salt", "x"]);
    recorded.lose_the_originals();
    recorded.place.run(["bundle", "b.tar.gz", "-o", "same.tar.gz"]).exits(0);
    let read = |name: &str| std::fs::read(recorded.place.path(name)).expect("it is there");
    assert_eq!(read("same.tar.gz"), read("b.tar.gz"));
    recorded.place.run(["bundle", "b.tar.gz", "--anonymize", "--salt", "x", "-o", "later.tar.gz"]).exits(0);
    assert_eq!(read("later.tar.gz"), read("direct.tar.gz"));
    // Without -o it is called after what is in it.
    recorded.place.run(["bundle", "b.tar.gz"]).exits(0).prints("b.bundle.tar.gz");
    recorded.place.run(["bundle", "b.tar.gz"]).exits(1).says("exists");
    recorded.place.run(["bundle", "b.tar.gz", "--force"]).exits(0);
}

#[test]
fn a_process_can_be_chosen() {
    let place = Place::new();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <sys/wait.h>\nvoid *volatile keep;\n\
                  static void child_part(void) { keep = memset(malloc(4 << 20), 1, 4 << 20); }\n\
                  static void parent_part(void) { keep = memset(malloc(8 << 20), 1, 8 << 20); }\n\
                  int main(void) { free(malloc(9)); if (fork() == 0) { child_part(); exit(0); } wait(0); parent_part(); return 0; }";
    place.compile("two", source, &["-g", "-fno-builtin"]);
    place.run(["run", "-q", "--follow", "all", "--sample", "64KiB", "-o", "rec", "--", "./two"]).exits(0);
    place.run(["bundle", "-q", "rec", "-o", "all.tar.gz"]).exits(0);
    let index = json(&std::fs::read_to_string(place.path("rec/recording.json")).expect("the index"));
    let pids: Vec<u64> =
        index["processes"].as_array().expect("both").iter().filter_map(|it| it["pid"].as_u64()).collect();
    let started = index["pid"].as_u64().expect("a process");
    let child = *pids.iter().find(|pid| **pid != started).expect("a child");
    let shows = |input: &str, flags: &[&str]| {
        place.run(["flame", "-q", input, "--format", "folded"].iter().chain(flags)).exits(0).stdout
    };
    assert!(shows("all.tar.gz", &[]).contains("parent_part") && !shows("all.tar.gz", &[]).contains("child_part"));
    assert!(shows("all.tar.gz", &["--pid", &child.to_string()]).contains("child_part"));
    assert!(
        shows("all.tar.gz", &["--all"]).contains("child_part")
            && shows("all.tar.gz", &["--all"]).contains("parent_part")
    );
    place.run(["top", "all.tar.gz", "--pid", "1"]).exits(13).says("no profile of process 1");
    place.run(["bundle", "-q", "rec", "--pid", &child.to_string(), "-o", "one.tar.gz"]).exits(0);
    assert!(shows("one.tar.gz", &[]).contains("child_part"));
    place.run(["bundle", "rec", "--pid", "1"]).exits(13).says("no profile of process 1");
}

#[test]
fn single_profiles_and_what_is_wrong() {
    let place = Place::new();
    let app = common::data("app.heap");
    place.run(["bundle", &app]).exits(0).prints("app.heap.bundle.tar.gz");
    let top = |input: &str| json(&place.run(["top", "-q", input, "--format", "json"]).exits(0).stdout);
    assert_eq!(top("app.heap.bundle.tar.gz")["total_bytes"], top(&app)["total_bytes"]);
    place.run(["bundle", &app, "--salt", "x"]).exits(2).says("--anonymize");
    place.run(["bundle", "nothing-here"]).exits(13);
    place.run(["bundle", &app, "--pid", "7"]).exits(2);
    place.run(["top", "app.heap.bundle.tar.gz", "--pid", "7"]).exits(2);
    place.run(["timeline", "app.heap.bundle.tar.gz"]).exits(13).says("no such timeline");

    let whole = std::fs::read(place.path("app.heap.bundle.tar.gz")).expect("it is there");
    for end in [100, whole.len() / 2, whole.len() - 4] {
        place.write("cut.tar.gz", &whole[..end]);
        place.run(["top", "cut.tar.gz"]).exits(13).says("cut.tar.gz");
    }
    let plain = Command::new("tar").args(["-czf", "plain.tar.gz", "cut.tar.gz"]).current_dir(place.path("")).status();
    assert!(plain.expect("this test needs tar").success());
    place.run(["top", "plain.tar.gz"]).exits(13).says("a tar archive");
}
