//! The dumps of a real program, as `mpp` and the viewers of others read them: the same numbers everywhere.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, json};
use serde_json::Value;

/// Many block sizes, deep and shallow stacks, threads with names, blocks that are freed, at once and later.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

void *volatile kept[40000];
static int count;

__attribute__((noinline)) static void *get(size_t size, int depth) {
  if (depth > 0) { void *block = get(size, depth - 1); __asm__ volatile("" ::: "memory"); return block; }
  return malloc(size);
}

__attribute__((noinline)) static void small(void) { for (int i = 0; i < 9000; i++) kept[count++] = get(16 + i % 900, i % 7); }
__attribute__((noinline)) static void large(void) { for (int i = 0; i < 300; i++) kept[count++] = get(5000 + i * 777, 2); }
__attribute__((noinline)) static void brief(void) { for (int i = 0; i < 20000; i++) free(get(100 + i % 50, 1)); }

static void *work(void *name) {
  pthread_setname_np(pthread_self(), name);
  small();
  brief();
  return NULL;
}

int main(void) {
  large();
  brief();
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, i ? "second" : "first");
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < count; i += 2) free((void *)kept[i]);
  return 0;
}
"#;

/// The two forms of the dump at exit of the program, sampled at this rate.
struct Dumps {
    place: Place,
    program: PathBuf,
    text: PathBuf,
    packed: PathBuf,
}

fn dumps(rate: u64) -> Dumps {
    let place = Place::new();
    let program = place.compile("program", PROGRAM, &["-g", "-O1", "-pthread"]);
    let environment = place.run(["run", "--print-env"]).exits(0).stdout;
    let library = environment.lines().find_map(|line| line.split_once("LD_PRELOAD=")).expect("the library's place").1;
    let folder = place.path("recording");
    std::fs::create_dir(&folder).expect("a folder");
    let mut child = Command::new(&program)
        .env("LD_PRELOAD", library.trim_matches(['\'', '"']))
        .env("MIMALLOC_PROF", "1")
        .env("MIMALLOC_PROF_SEED", "11")
        .env("MIMALLOC_PROF_SAMPLE_RATE", rate.to_string())
        .env("MIMALLOC_PROF_RECORDING", &folder)
        .spawn()
        .expect("the program starts");
    let own = folder.join(child.id().to_string());
    assert!(child.wait().expect("the program ends").success());
    Dumps { place, program, text: own.join("heap.prof"), packed: own.join("heap.pb.gz") }
}

impl Dumps {
    fn top(&self, profile: &Path, flags: &[&str]) -> Value {
        let all = [&["top", "-q", "--format", "json", "--limit", "0"], flags].concat();
        let mut command = self.place.mpp();
        json(&common::ran(command.args(all).arg(profile)).exits(0).stdout)
    }

    fn total(&self, metric: &str) -> [u64; 2] {
        let top = self.top(&self.text, &["--metric", metric]);
        ["total_blocks", "total_bytes"].map(|key| top[key].as_u64().expect("a number"))
    }

    /// Samples in the profile.
    fn lines(&self) -> u64 {
        let text = std::fs::read_to_string(&self.text).expect("the dump");
        text.lines().skip(1).filter(|line| line.contains("] @")).count() as u64
    }

    /// `google-pprof`'s total.
    fn google_pprof(&self, flag: &str) -> u64 {
        let output = Command::new("google-pprof")
            .args(["--text", "--show_bytes", flag])
            .args([&self.program, &self.text])
            .output()
            .expect("google-pprof is needed for this test; scripts/install-tools installs it");
        let text = String::from_utf8_lossy(&output.stdout);
        let total = text.lines().find_map(|line| line.strip_prefix("Total: "));
        let total = total.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
        total.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

#[test]
fn both_forms_tell_the_same() {
    for rate in [1, 65_536] {
        let dumps = dumps(rate);
        for (metric, unit) in [("live", "blocks"), ("alloc", "bytes"), ("freed", "bytes")] {
            let [text, packed] = [&dumps.text, &dumps.packed].map(|profile| {
                let mut top = dumps.top(profile, &["--metric", metric, "--unit", unit]);
                for key in ["source", "format"] {
                    assert!(!top[key].take().is_null());
                }
                top
            });
            assert!(text["total_bytes"].as_u64() > Some(0), "{text:#}");
            assert_eq!(text, packed, "one in {rate} bytes");
        }
        let [text, packed] = [&dumps.text, &dumps.packed].map(|profile| {
            let flags = ["flame", "-q", "--format", "folded", "-o", "-"];
            common::ran(dumps.place.mpp().args(flags).arg(profile)).exits(0).stdout
        });
        assert!(text == packed && text.contains("small"));
        // What only one of them has: see docs/formats.md.
        let peak = dumps.top(&dumps.packed, &["--metric", "peak"]);
        assert!(peak["total_bytes"].as_u64() > dumps.top(&dumps.packed, &[])["total_bytes"].as_u64());
    }
}

#[test]
fn google_pprof_reads_the_text() {
    for rate in [4096, 524_288] {
        let dumps = dumps(rate);
        let (live, allocated) = (dumps.total("live"), dumps.total("alloc"));
        // It rounds each line by itself.
        let rounding = dumps.lines();
        for (flag, expected) in [
            ("--inuse_space", live[1]),
            ("--inuse_objects", live[0]),
            ("--alloc_space", allocated[1]),
            ("--alloc_objects", allocated[0]),
        ] {
            let found = dumps.google_pprof(flag);
            assert!(
                expected > 0 && found.abs_diff(expected) <= rounding,
                "{flag}: {found}, mpp {expected} ± {rounding}"
            );
        }
    }
}

/// Go's tool is large, and its package brings all of Go: `scripts/test` runs this where it is installed.
#[test]
#[ignore = "needs `go tool pprof`, as in Debian's golang-1.19-go (450 MB)"]
fn go_tool_pprof_reads_both() {
    let dumps = dumps(4096);
    let (live, allocated) = (dumps.total("live"), dumps.total("alloc"));
    let peak = dumps.top(&dumps.packed, &["--metric", "peak"]);
    let peak = ["total_blocks", "total_bytes"].map(|key| peak[key].as_u64().expect("a number"));
    let raw = |profile: &Path| {
        let output = Command::new("go").args(["tool", "pprof", "-raw"]).arg(profile).output().expect("go is needed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let sums = |raw: &str| {
        let (_, samples) = raw.split_once("Samples:\n").expect("samples");
        let (samples, _) = samples.split_once("\nLocations\n").expect("locations");
        let mut sums = vec![0u64; samples.lines().next().map_or(0, |types| types.split_whitespace().count())];
        for line in samples.lines().filter_map(|line| Some(line.split_once(": ")?.0)) {
            let values: Option<Vec<u64>> = line.split_whitespace().map(|value| value.parse().ok()).collect();
            if let Some(values) = values.filter(|values| values.len() == sums.len()) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
        }
        sums
    };
    let packed = raw(&dumps.packed);
    let all = sums(&packed);
    assert_eq!(all.len(), 8, "{packed}");
    let expected = [allocated, live, peak].concat();
    // The columns are rounded as a whole, and so is what mpp adds up.
    for (found, expected) in all.iter().zip(&expected) {
        assert!(found.abs_diff(*expected) <= 1, "{all:?}, mpp {expected:?}");
    }
    for part in ["inuse_space/bytes[dflt]", "thread:[first]", "thread:[second]", "bytes:[", "Period: 4096", "Time: 20"]
    {
        assert!(packed.contains(part), "{part}");
    }
    // Mappings have ids; the program's is the first.
    let mappings = packed.split_once("Mappings\n").expect("mappings").1;
    assert!(
        mappings.lines().next().is_some_and(|first| first.starts_with("1: ") && first.contains("program")),
        "{mappings}"
    );
    assert!(mappings.contains("libc.so.6"));
    let text = sums(&raw(&dumps.text));
    for (found, expected) in text.iter().zip([allocated, live].concat()) {
        assert!(found.abs_diff(expected) <= dumps.lines(), "{text:?}, mpp {expected:?}");
    }
    // Names come out as those of the calls.
    let top =
        Command::new("go").args(["tool", "pprof", "-top", "-lines"]).args([&dumps.program, &dumps.packed]).output();
    let top = String::from_utf8_lossy(&top.expect("go is needed").stdout).into_owned();
    assert!(top.contains("program.c:11"), "{top}");
}
