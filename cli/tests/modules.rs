//! `mpp modules` on a program whose parts are built with less and less debug information.

mod common;

use common::{Place, data, json};
use serde_json::Value;
use std::process::Command;

/// 400 blocks of 16 KiB in each of three functions: one of the program, one of a library, one that no symbol names.
const APP: &str = "\
#include <stdlib.h>
void *named_take(size_t size);
void *stripped_take(size_t size);
static void *kept[1200];
__attribute__((noinline)) static void own(void)
{
    for (int i = 0; i < 400; i++) kept[i] = malloc(16384);
}
int main(void)
{
    own();
    for (int i = 0; i < 400; i++) kept[400 + i] = named_take(16384);
    for (int i = 0; i < 400; i++) kept[800 + i] = stripped_take(16384);
    return kept[1199] == 0;
}
";
const NAMED: &str = "\
#include <stdlib.h>
__attribute__((noinline)) static void *inner(size_t size) { void *block = malloc(size); __asm__(\"\" ::: \"memory\"); return block; }
void *named_take(size_t size) { void *block = inner(size); __asm__(\"\" ::: \"memory\"); return block; }
";

/// Builds the parts and records a run in the folder `out`.
fn recording(place: &Place) {
    let flags = ["-shared", "-fPIC", "-O1", "-fno-builtin", "-Wl,--build-id=sha1"];
    place.compile("libnamed.so", NAMED, &flags);
    place.compile("libstripped.so", &NAMED.replace("named_take", "stripped_take"), &[&flags[..], &["-s"]].concat());
    let folder = place.path("");
    let folder = folder.to_str().expect("a plain path");
    let (search, load) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let app = ["-g", "-O1", "-fno-builtin", &search, &load, "-lnamed", "-lstripped", "-Wl,--build-id=sha1"];
    place.compile("app", APP, &app);
    place.run(["run", "-q", "-o", "out", "--sample", "4KiB", "--", "./app"]).exits(0);
}

/// The module whose file has this name.
fn module<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut modules = report["modules"].as_array().expect("modules").iter();
    let is_it = |module: &&Value| module["file"].as_str().is_some_and(|file| file.ends_with(&format!("/{name}")));
    modules.find(is_it).unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

/// Bytes: all, with lines, with names, with nothing; as shares of the total of the report.
fn shares(report: &Value, name: &str) -> [f64; 4] {
    let total = report["total_bytes"].as_f64().expect("a number");
    ["bytes", "lines_bytes", "names_bytes", "nothing_bytes"]
        .map(|key| module(report, name)[key].as_f64().expect("a number") / total)
}

#[track_caller]
fn assert_near(found: [f64; 4], expected: [f64; 4]) {
    // A third each, by samples of one in 4 KiB: nearly all blocks are recorded.
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 0.03);
    assert!(near, "{found:?}, expected {expected:?}");
}

fn build_id(place: &Place, name: &str) -> String {
    let output = Command::new("readelf").arg("-n").arg(place.path(name)).output().expect("readelf (binutils) runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("a build id").to_owned()
}

#[test]
fn each_file_is_judged_by_itself() {
    let place = Place::new();
    recording(&place);
    let report = json(&place.run(["modules", "-q", "out", "--format", "json"]).exits(0).stdout);
    assert_eq!((report["schema"].as_str(), report["schema_version"].as_u64()), (Some("mpp-modules"), Some(1)));
    assert_eq!(report["modules_total"], report["modules"].as_array().expect("modules").len());
    // Every stack goes through the program: `_start` without a line, `main`, and in a third of them `own`. Of a library,
    // both functions are in a stack, one of them has no name when it is stripped.
    assert_near(shares(&report, "app"), [1.0, 5.0 / 9.0, 4.0 / 9.0, 0.0]);
    assert_near(shares(&report, "libnamed.so"), [1.0 / 3.0, 0.0, 1.0 / 3.0, 0.0]);
    assert_near(shares(&report, "libstripped.so"), [1.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 6.0]);
    let symbols = ["app", "libnamed.so", "libstripped.so"].map(|name| module(&report, name)["symbols"].clone());
    assert_eq!(symbols, ["dwarf", "symtab", "dynsym"]);
    for name in ["app", "libnamed.so", "libstripped.so"] {
        assert_eq!(module(&report, name)["build_id"], build_id(&place, name).as_str());
    }

    let ran = place.run(["modules", "out"]).exits(0);
    assert!(ran.stdout.contains("libstripped.so: exported names only"), "{ran:#?}");
    assert!(!ran.stdout.contains("/app: "), "nothing can be done there: {ran:#?}");
    let verbose = place.run(["modules", "-v", "out"]).exits(0);
    assert!(verbose.stdout.contains("/app: lines and inlined functions from "), "{verbose:#?}");
    // The most bytes first.
    let rows: Vec<&str> = ran.stdout.lines().skip_while(|line| !line.contains("build id")).skip(1).take(3).collect();
    let order: Vec<bool> = rows.iter().map(|row| row.ends_with("/app") || row.contains("libc.so")).collect();
    assert_eq!(order, [true, true, false], "{rows:?}");
    assert!(rows.iter().any(|row| row.contains("       0%  dwarf  ") && row.ends_with("/app")), "{rows:?}");

    // Where it was looked for, and what would help.
    let stripped = module(&report, "libstripped.so");
    let places = stripped["looked_at"].as_array().expect("places");
    let id = build_id(&place, "libstripped.so");
    let debug_file = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    assert_eq!(places[0], place.path("libstripped.so").to_str().expect("a plain path"));
    assert!(places.iter().any(|place| *place == debug_file.as_str()), "{places:?}");
    assert!(stripped["to_do"].as_str().is_some_and(|text| text.contains("rebuild \"libstripped.so\"")), "{stripped}");
    assert_eq!(stripped["identity"], "build-id");
    assert!(ran.stdout.contains("  looked at: ") && ran.stdout.contains("  to do: rebuild"), "{ran:#?}");
    assert_eq!(module(&report, "app")["to_do"], Value::Null);

    // What other verbs say about it leads here.
    let top = place.run(["top", "out"]).exits(0);
    assert!(top.stdout.contains("no names: libstripped.so 3"), "{top:#?}");
    assert!(top.stdout.contains("(mpp modules out says why)"), "{top:#?}");
    place.run(["flame", "out"]).exits(0).says("(mpp modules out says why)");
    place.run(["run", "-o", "again", "--sample", "4KiB", "--", "./app"]).exits(0).says("(mpp modules again says why)");
}

#[test]
fn a_file_that_was_replaced_is_named() {
    let place = Place::new();
    recording(&place);
    let wanted = build_id(&place, "libnamed.so");
    place.compile("libnamed.so", &NAMED.replace("malloc(size)", "malloc(size + 1)"), &["-shared", "-fPIC"]);
    let report = json(&place.run(["modules", "-q", "out", "--format", "json"]).exits(0).stdout);
    assert_near(shares(&report, "libnamed.so"), [1.0 / 3.0, 0.0, 0.0, 1.0 / 3.0]);
    let module = module(&report, "libnamed.so");
    assert_eq!((module["symbols"].as_str(), module["build_id"].as_str()), (Some("none"), Some(wanted.as_str())));
    let problem = module["problems"][0].as_str().expect("a problem");
    assert!(problem.contains("is not the file that was profiled") && problem.contains(&wanted), "{problem}");
    let text = place.run(["modules", "out"]).exits(0).stdout;
    assert!(text.contains("  to do: mpp modules out --debug"), "{text}");
    assert!(text.contains("libnamed.so: no symbols\n  ") && text.contains("is not the file"), "{text}");
}

#[test]
fn tables_come_in_all_formats_and_lengths() {
    let place = Place::new();
    recording(&place);
    let csv = place.run(["modules", "-q", "out", "--format", "csv"]).exits(0).stdout;
    let keys = "bytes,bytes_percent,lines_percent,names_percent,nothing_percent,source,source_file,build_id,file,to_do";
    assert_eq!(csv.lines().next(), Some(keys));
    let app = csv.lines().find(|line| line.ends_with("/app,")).expect("the program");
    let cells: Vec<&str> = app.split(',').collect();
    let numbers = cells[1..5].iter().map(|cell| cell.parse().expect("a number"));
    let numbers: Vec<f64> = numbers.map(|percent: f64| percent / 100.0).collect();
    assert_near(numbers.try_into().expect("four"), [1.0, 5.0 / 9.0, 4.0 / 9.0, 0.0]);
    assert_eq!((cells[5], cells[7]), ("dwarf", build_id(&place, "app").as_str()));
    let all = csv.lines().count() - 1;
    let text = place.run(["modules", "out", "--limit", "1"]).exits(0).stdout;
    assert!(text.contains(&format!("{} more files (see --limit)", all - 1)), "{text}");
    let md = place.run(["modules", "out", "--format", "md", "-o", "report.md"]).exits(0);
    assert_eq!(md.stdout, "");
    let md = std::fs::read_to_string(place.path("report.md")).expect("the report");
    assert!(md.contains("| bytes | bytes% | lines | names | nothing | from | build id | file |"), "{md}");
    place.run(["modules", "out", "--format", "md", "-o", "report.md"]).exits(1).says("--force");
}

#[test]
fn names_of_the_profile_itself_are_told_as_such() {
    let place = Place::new();
    let report = json(&place.run(["modules", "-q", "--format", "json", &data("names.heap")]).exits(0).stdout);
    assert_eq!(report["unresolved_bytes"], 0);
    let modules = report["modules"].as_array().expect("modules");
    assert!(!modules.is_empty() && modules.iter().all(|module| module["symbols"] == "profile"), "{report:#}");
    place.run(["modules", "missing"]).exits(13).says("missing");
    place.run(["modules", "--metric", "peak", &data("names.heap")]).exits(2).says("--metric");
}

#[test]
fn debug_files_are_found_where_the_flags_say() {
    let place = Place::new();
    recording(&place);
    let debug = |arguments: &[&str]| {
        let status = Command::new("objcopy").current_dir(place.path("")).args(arguments).status();
        assert!(status.expect("objcopy (binutils) runs").success());
    };
    let id = build_id(&place, "app");
    let file = place.write(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]), "");
    debug(&["--only-keep-debug", "app", file.to_str().expect("a plain path")]);
    debug(&["--strip-debug", "app"]);
    let sources = |arguments: &[&str]| {
        let all = ["modules", "-q", "out", "--format", "json", "--no-symbol-cache"];
        let report = json(&place.run(all.iter().chain(arguments)).exits(0).stdout);
        module(&report, "app")["symbols"].as_str().expect("a word").to_owned()
    };
    assert_eq!(sources(&[]), "symtab");
    assert_eq!(sources(&["--debug-dir", "debug"]), "dwarf");
    assert_eq!(sources(&["--debug-dir", "nowhere", "--debug-dir", "debug"]), "dwarf");
    let report = place.mpp().args(["top", "-q", "out", "--no-symbol-cache"]).env("MPP_DEBUG_DIR", "debug").output();
    assert!(String::from_utf8(report.expect("mpp runs").stdout).expect("text").contains("app.c:7"));

    // In debuginfod's cache, as GDB may have left it; nobody is asked.
    let cached = place.write(&format!("cache/{id}/debuginfo"), "");
    std::fs::copy(place.path(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..])), cached).expect("a copy");
    let with_cache = |arguments: &[&str]| {
        let mut command = place.mpp();
        command.args(["modules", "-q", "out", "--format", "json", "--no-symbol-cache"]).args(arguments);
        command.env("DEBUGINFOD_CACHE_PATH", place.path("cache")).env("DEBUGINFOD_URLS", "http://127.0.0.1:1/");
        let output = command.output().expect("mpp runs");
        module(&json(&String::from_utf8_lossy(&output.stdout)), "app")["symbols"].as_str().expect("a word").to_owned()
    };
    assert_eq!(with_cache(&[]), "dwarf");
    assert_eq!(with_cache(&["--debuginfod", "off"]), "symtab");

    place.run(["modules", "out", "--debuginfod", "maybe"]).exits(2).says("off, cache, on");
    // Nobody listens there: asked once, told once.
    let mut command = place.mpp();
    command.args(["modules", "out", "--debuginfod", "on", "--no-symbol-cache"]);
    command.env("DEBUGINFOD_URLS", "http://127.0.0.1:1/").env("DEBUGINFOD_CACHE_PATH", place.path("empty"));
    assert!(command.output().expect("mpp runs").status.success());
}

/// A recording of process `pid` in the folder `name`: one block of 8 bytes for a call that returns to `address`.
fn made_up(place: &Place, name: &str, pid: u32, address: u64, maps: &str) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_nanos();
    let facts = format!("# stacks_marked = 1\n# time_nanos = {now}\n# duration_nanos = 60000000000\n");
    let dump = format!("heap profile: 1: 8 [1: 8] @ heap_v2/1\n1: 8 [1: 8] @ {address:#x}\n");
    place.write(&format!("{name}/{pid}/heap.prof"), format!("{dump}{facts}MAPPED_LIBRARIES:\n{maps}"));
}

#[test]
fn code_made_at_run_time_has_the_names_of_the_perf_map() {
    let place = Place::new();
    let mut child = Command::new("true").spawn().expect("`true` runs");
    let pid = child.id();
    let anonymous = "7f0000000000-7f0000001000 rwxp 00000000 00:00 0\n";
    made_up(&place, "jit", pid, 0x7f00_0000_0124, anonymous);
    child.wait().expect("an end");
    let report = |arguments: &[&str]| {
        let all = ["top", "-q", "--format", "json", "jit"];
        let report = json(&place.run(all.iter().chain(arguments)).exits(0).stdout);
        report["rows"][0]["name"].as_str().expect("a name").to_owned()
    };
    assert_ne!(report(&[]), "LazyCompile:~work app.js:7");
    let map = place.write("map", "7f0000000100 40 LazyCompile:~work app.js:7\n");
    assert_eq!(report(&["--perf-map", "map"]), "LazyCompile:~work app.js:7");
    // Where the process itself would have left it.
    let left = std::path::PathBuf::from(format!("/tmp/perf-{pid}.map"));
    std::fs::copy(map, &left).expect("a copy");
    let found = std::panic::catch_unwind(|| report(&[]));
    std::fs::remove_file(left).expect("it was there");
    assert_eq!(found.expect("a report"), "LazyCompile:~work app.js:7");
}

#[test]
fn a_deleted_program_is_found_while_it_runs() {
    let place = Place::new();
    let program = place.compile(
        "waits",
        "#include <stdio.h>\n__attribute__((noinline)) int wait_for_it(void) { return getchar(); }\n\
         int main(void) { puts(\"here\"); fflush(stdout); return wait_for_it(); }\n",
        &["-g", "-O1", "-Wl,--build-id=sha1"],
    );
    let id = build_id(&place, "waits");
    let table = Command::new("nm").arg(&program).output().expect("nm (binutils) runs");
    let table = String::from_utf8(table.stdout).expect("names");
    let line = table.lines().find(|line| line.ends_with(" wait_for_it")).expect("the function");
    let offset = u64::from_str_radix(line.split(' ').next().expect("a number"), 16).expect("a number");
    let mut child = Command::new(&program)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut here = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut here).expect("a line");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).expect("its memory map");
    let start = u64::from_str_radix(maps.split('-').next().expect("a number"), 16).expect("a number");
    std::fs::remove_file(&program).expect("the program was there");
    let maps = format!("# build_id {id} {}\n", program.display()) + "MAPPED_LIBRARIES:\n" + &maps;
    made_up(&place, "live", child.id(), start + offset + 1, "");
    let dump = format!("live/{}/heap.prof", child.id());
    let text = std::fs::read_to_string(place.path(&dump)).expect("the dump");
    place.write(&dump, text.replace("MAPPED_LIBRARIES:\n", &maps));
    let report = |folder: &str| {
        let report =
            json(&place.run(["modules", "-q", "--no-symbol-cache", "--format", "json", folder]).exits(0).stdout);
        module(&report, "waits").clone()
    };
    let while_it_runs = report("live");
    drop(child.stdin.take());
    child.wait().expect("an end");
    assert_eq!((&while_it_runs["symbols"], &while_it_runs["identity"]), (&"dwarf".into(), &"build-id".into()));
    assert_eq!(while_it_runs["lines_bytes"], 8, "{while_it_runs:#}");
    let afterwards = report("live");
    assert_eq!((&afterwards["symbols"], &afterwards["identity"]), (&"none".into(), &Value::Null), "{afterwards:#}");
}
