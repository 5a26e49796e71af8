//! The whole way with the real allocator: run a program whose truth is known, read what was recorded, name the site.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::{Place, json};
use serde_json::Value;

/// Keeps 1000 blocks of 64 KiB (65,536,000 bytes) from one line, and makes some noise that it frees.
const LEAKY: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *kept[1000];
__attribute__((noinline)) static void leak_exact_64m(void) {
    for (int i = 0; i < 1000; i++) { kept[i] = malloc(65536); memset(kept[i], i, 65536); } /* line 6 */
}
__attribute__((noinline)) static void noise(void) {
    for (int i = 0; i < 20000; i++) { char *p = malloc(100 + i % 1000); p[0] = 1; free(p); }
}
int main(void) { noise(); leak_exact_64m(); noise(); puts("done"); return kept[999] == 0; }
"#;

fn leaky(place: &Place) {
    place.compile("leaky", LEAKY, &["-g", "-O1", "-fno-builtin"]);
}

fn only_recording(place: &Place) -> String {
    let recordings = place.recordings();
    let [recording] = recordings.as_slice() else { panic!("one recording expected: {recordings:?}") };
    recording.clone()
}

#[test]
fn the_embedded_library_replaces_malloc() {
    let place = Place::new();
    let ran = place.run(["run", "--print-env"]).exits(0);
    let library = ran.stdout.lines().find_map(|line| line.strip_prefix("LD_PRELOAD=")).expect("the library");
    let symbols = Command::new("nm").args(["-D", "--defined-only", library]).output().expect("these tests need nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    for name in ["malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "malloc_usable_size"] {
        assert!(symbols.lines().any(|line| line.ends_with(&format!(" {name}"))), "{name} is not exported");
    }
}

#[test]
fn a_leak_is_found_named_and_drawn() {
    let place = Place::new();
    leaky(&place);
    let ran = place.run(["run", "--sample", "16KiB", "--", "./leaky"]).exits(0);
    assert_eq!(ran.stdout, "done\n");
    let recording = only_recording(&place);
    assert!(ran.stderr.lines().count() <= 10, "{ran:#?}");
    let ran = ran.says("leak_exact_64m").says("leaky.c:6").says(&format!("flame graph: {recording}/flame.svg"));
    ran.says(&format!("next: mpp top {recording}"));

    let top = json(&place.run(["top", "-q", "--format", "json"]).exits(0).stdout);
    let first = &top["rows"][0];
    assert_eq!(first["name"], "leak_exact_64m");
    assert!(first["file"].as_str().is_some_and(|file| file.ends_with("leaky.c")), "{first}");
    assert_eq!(first["line"], 6);
    // Nearly every block of 64 KiB is sampled at this rate: 1 - exp(-4) of them.
    let bytes = first["flat_bytes"].as_u64().expect("a number") as f64;
    assert!((bytes / 65_536_000.0 - 1.0).abs() < 0.05, "{first}");
    assert_eq!(top["quality"]["stack_complete_bytes"], top["total_bytes"], "{}", top["quality"]);
    let main = top["rows"].as_array().expect("rows").iter().find(|row| row["name"] == "main").expect("main");
    assert_eq!(main["cum_bytes"], top["total_bytes"]);

    let svg = std::fs::read_to_string(place.path(&format!("{recording}/flame.svg"))).expect("the graph");
    assert!(svg.contains("leak_exact_64m ("));
    place.run(["flame", &recording, "--format", "folded"]).exits(0).prints("main;leak_exact_64m ");
}

#[test]
fn the_recording_tells_what_was_run() {
    let place = Place::new();
    leaky(&place);
    place.run(["run", "-o", "rec", "-q", "--sample", "64KiB", "--", "./leaky", "x"]).exits(0);
    let index = json(&std::fs::read_to_string(place.path("rec/recording.json")).expect("the index"));
    assert_eq!((&index["schema"], &index["schema_version"]), (&"mpp-recording".into(), &1.into()));
    assert_eq!(index["command"], serde_json::json!(["./leaky", "x"]));
    assert_eq!((&index["exit_status"], &index["exit_signal"]), (&0.into(), &Value::Null));
    assert_eq!(index["sample_rate"], 65_536);
    assert!(index["started"].as_str() <= index["ended"].as_str() && index["ended"].is_string(), "{index}");
    assert!(index["environment"].as_array().expect("names").contains(&"LD_PRELOAD".into()));
    let process = &index["processes"][0];
    assert_eq!(process["pid"], index["pid"]);
    assert!(process["exe"].as_str().is_some_and(|path| path.ends_with("/leaky")), "{process}");
    assert!(process["live_bytes"].as_u64().is_some_and(|bytes| bytes > 50_000_000), "{process}");

    let dump = process["dump"].as_str().expect("a path");
    let mode = |name: &str| std::fs::metadata(place.path(name)).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode("rec"), 0o700);
    assert_eq!(mode("rec/recording.json"), 0o600);
    assert_eq!(mode(&format!("rec/{dump}")), 0o600);
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let place = Place::new();
    leaky(&place);
    let samples = |folder: &str, seed: &str| {
        place.run(["run", "-q", "-o", folder, "--seed", seed, "--", "./leaky"]).exits(0);
        json(&place.run(["top", "-q", folder, "--format", "json"]).exits(0).stdout)["samples"].clone()
    };
    let first = samples("a", "7");
    assert_eq!(first, samples("b", "7"));
    let others: Vec<Value> = (8..12).map(|seed| samples(&format!("s{seed}"), &seed.to_string())).collect();
    assert!(others.iter().any(|other| *other != first), "every seed gave {first} samples");
}

#[test]
fn a_small_program_is_told_apart_from_a_failure() {
    let place = Place::new();
    place.compile("tiny", "int main(void) { return 0; }", &[]);
    let ran = place.run(["run", "--", "./tiny"]).exits(0);
    ran.says("no allocation was sampled").says("--sample 1KiB");
}

#[test]
fn every_block_can_be_recorded() {
    let place = Place::new();
    let source = "#include <stdlib.h>\nvoid *volatile keep[10];\n\
                  int main(void) { for (int i = 0; i < 10; i++) keep[i] = malloc(1000); return 0; }";
    place.compile("ten", source, &["-g", "-O0"]);
    place.run(["run", "-q", "--sample", "1", "--", "./ten"]).exits(0);
    let top = json(&place.run(["top", "-q", "--format", "json", "--focus", "^main$"]).exits(0).stdout);
    assert_eq!((&top["rows"][0]["name"], &top["rows"][0]["flat_blocks"]), (&"main".into(), &10.into()), "{top:#}");
}

#[test]
fn a_program_that_ends_by_underscore_exit_is_captured() {
    let place = Place::new();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nchar *volatile keep;\n\
                  int main(int n, char **v) { (void)v; keep = malloc(9 << 20); memset(keep, 1, 9 << 20); _exit(n - 1); }";
    place.compile("hasty", source, &["-g"]);
    place.run(["run", "--", "./hasty"]).exits(0).says("live at exit:");
    place.run(["run", "--", "./hasty", "x"]).exits(1).says("live at exit:");
    assert_eq!(place.recordings().len(), 2);
    // A shell ends like that, too.
    place.run(["run", "--sample", "100", "-o", "sh", "--", "dash", "-c", "exit 0"]).exits(0).says("live at exit:");
}

/// What is killed leaves its last snapshot, and how old that is.
#[test]
fn a_killed_program_leaves_a_snapshot() {
    let place = Place::new();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <signal.h>\n#include <unistd.h>\nchar *volatile keep[600];\n\
                  int main(void) { for (int i = 0; i < 300; i++) { keep[i] = memset(malloc(1 << 20), 1, 1 << 20); usleep(8000); } \
                  kill(getpid(), SIGKILL); return 0; }";
    place.compile("victim", source, &["-g", "-O0"]);
    let ran = place.run(["run", "-o", "rec", "--sample", "64KiB", "--interval", "300ms", "--", "./victim"]).exits(137);
    let ran = ran.says("live at the last snapshot:").says("SIGKILL ended it: the profile is the last snapshot, ");
    assert!(!ran.stderr.contains("nothing captured"), "{ran:?}");
    let top = json(&place.run(["top", "rec", "-q", "--format", "json", "--focus", "^main$"]).exits(0).stdout);
    assert!(top["rows"][0]["flat_bytes"].as_u64() > Some(20 << 20), "{top:#}");
    let index = json(&std::fs::read_to_string(place.path("rec/recording.json")).expect("an index"));
    let numbered = index["processes"][0]["numbered"].as_array().expect("a list");
    assert!(numbered.len() >= 3, "{index:#}");
    for dump in numbered {
        let dump = place.path("rec").join(dump.as_str().expect("a path"));
        place.run([std::ffi::OsStr::new("top"), "-q".as_ref(), dump.as_os_str()]).exits(0);
    }
    // Without one there is the timeline, and nothing without both.
    let ran = place.run(["run", "-o", "timeline", "--snapshot", "0", "--", "./victim"]).exits(137);
    ran.says("no profile was written, but a timeline");
    let ran = place.run(["run", "-o", "none", "--snapshot", "0", "--no-timeline", "--", "./victim"]).exits(137);
    ran.says("nothing captured").says("SIGKILL");
}

#[test]
fn peaks_are_kept() {
    let place = Place::new();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
                  int main(void) { for (int i = 1; i <= 6; i++) { char *p = memset(malloc(i << 22), 1, i << 22); usleep(50000); free(p); } \
                  return 0; }";
    place.compile("waves", source, &["-g", "-O0"]);
    place.run(["run", "-o", "rec", "--sample", "64KiB", "--peak=2", "--", "./waves"]).exits(0);
    let index = json(&std::fs::read_to_string(place.path("rec/recording.json")).expect("an index"));
    let numbered = index["processes"][0]["numbered"].as_array().expect("a list");
    assert_eq!(numbered.len(), 2, "{index:#}");
    assert!(numbered.iter().all(|name| name.as_str().is_some_and(|name| name.contains("/peak.0"))), "{index:#}");
}

#[test]
fn a_program_that_loses_the_library_is_noticed_while_it_runs() {
    let place = Place::new();
    let ran = place.run(["run", "--seed", "1", "--", "env", "-i", "/bin/sleep", "2.5"]).exits(14);
    ran.says("warning: the allocator is not active").says("nothing captured").says("/sleep");
    assert_eq!(place.recordings(), [""; 0]);
}

#[test]
fn an_allocator_of_its_own_behind_a_launcher_is_named() {
    let place = Place::new();
    let source = "#include <stddef.h>\n#include <stdio.h>\nstatic char heap[1 << 20]; static size_t used;\n\
         void *malloc(size_t n) { char *p = heap + used; used += (n + 15) & ~15ul; return p; }\n\
         void free(void *p) { (void)p; }\nint main(void) { puts(\"ran\"); return malloc(9) == 0; }\n";
    place.compile("own-malloc", source, &["-rdynamic", "-fno-builtin"]);
    let ran = place.run(["run", "--", "env", "./own-malloc"]).exits(14).prints("ran");
    ran.says("own-malloc has an allocator of its own");
    assert_eq!(place.recordings(), [""; 0]);
}

#[test]
fn children_are_followed_as_asked() {
    let place = Place::new();
    leaky(&place);
    let fork = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                int main(void) { free(malloc(9)); if (fork() == 0) exit(0); wait(0); return system(\"./leaky\"); }";
    place.compile("parent", fork, &["-fno-builtin"]);
    let processes = |follow: &str| {
        place.run(["run", "-q", "-o", follow, "--follow", follow, "--", "./parent"]).exits(0);
        let index = json(&std::fs::read_to_string(place.path(&format!("{follow}/recording.json"))).expect("the index"));
        let processes = index["processes"].as_array().expect("processes").clone();
        let named = |name: &str| {
            let is = |process: &&Value| process["exe"].as_str().is_some_and(|path| path.ends_with(name));
            processes.iter().filter(is).count()
        };
        (named("/parent"), named("/leaky"))
    };
    assert_eq!(processes("none"), (1, 0));
    assert_eq!(processes("exec"), (1, 1));
    assert_eq!(processes("all"), (2, 1));
    place.run(["top", "exec", "--all"]).exits(0).prints("leak_exact_64m");
    let ran = place.run(["run", "--", "./parent"]).exits(0);
    ran.says("no allocation was sampled in parent").says("most in leaky").says("--pid");
}

#[test]
fn a_program_may_change_its_folder() {
    let place = Place::new();
    let source =
        "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { return chdir(\"/\") || !malloc(1 << 24); }";
    place.compile("wanderer", source, &["-g", "-fno-builtin"]);
    place.run(["run", "-q", "-o", "50%p rec", "--", "./wanderer"]).exits(0);
    place.run(["top", "50%p rec"]).exits(0).prints("main");
}

#[test]
fn another_verb_can_follow() {
    let place = Place::new();
    leaky(&place);
    let ran = place.run(["run", "--sample", "64KiB", "--then", "top", "--", "./leaky"]).exits(0);
    assert!(ran.stdout.starts_with("done\nlive: "), "{ran:#?}");
    ran.prints("leak_exact_64m");
    place.run(["run", "-o", "two", "--then", "flame", "--", "./leaky"]).exits(0).prints("done\nflame.svg\n");
    assert!(place.path("flame.svg").is_file());
}

#[test]
fn a_program_that_frees_everything_shows_what_it_allocated() {
    let place = Place::new();
    let source = "#include <stdlib.h>\n\
                  __attribute__((noinline)) void churn(void) { free(malloc(1 << 20)); }\n\
                  int main(void) { for (int i = 0; i < 200; i++) churn(); return 0; }";
    place.compile("tidy", source, &["-g", "-O1", "-fno-builtin"]);
    let ran = place.run(["run", "--", "./tidy"]).exits(0);
    ran.says("allocated in all:").says("churn").says("--metric alloc");
    place.run(["flame"]).exits(14).says("--metric alloc");
    place.run(["top", "--metric", "alloc"]).exits(0).prints("churn");
}

#[test]
fn python_is_profiled() {
    let place = Place::new();
    let script = "import sys; keep = [bytes(50000) for _ in range(1000)]; sys.stdout.write(str(len(keep)))";
    let ran = place.run(["run", "--", "python3", "-c", script]).exits(0);
    assert_eq!(ran.stdout, "1000", "these tests need python3");
    let top = json(&place.run(["top", "-q", "--metric", "alloc", "--format", "json"]).exits(0).stdout);
    assert!(top["total_bytes"].as_u64().is_some_and(|bytes| bytes > 30_000_000), "{top:#}");
    assert_eq!(top["rows"][0]["resolved"], true, "{top:#}");
}

/// One sample, of a block that was freed: nothing is live, and nothing is wrong.
#[test]
fn a_program_that_frees_its_only_sample() {
    let place = Place::new();
    let source = "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(100000); free(p); return 0; }";
    place.compile("one", source, &["-O1"]);
    let ran = place.run(["run", "--sample", "1KiB", "--no-timeline", "-o", "out", "--", "./one"]).exits(0);
    ran.says("allocated in all: ").says("--metric alloc");
}
