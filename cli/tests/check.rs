//! `mpp check`: a program that leaks, in CI.

mod common;

use common::{Place, Ran, json, ran};
use serde_json::Value;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) char *forget(void) { return memset(malloc(5000), 1, 5000); }
__attribute__((noinline)) char *cache(void) { return memset(malloc(3000), 1, 3000); }
static char *volatile used;
__attribute__((noinline)) void work(void) { used = malloc(900); memset(used, 1, 900); free(used); }
int main(int argc, char **argv) {
    for (int i = 0; i < atoi(argv[1]); i++) forget();
    for (int i = 0; i < 100; i++) cache();
    for (int i = 0; i < 5000; i++) work();
    return 0;
}
"#;

/// A recording of the program with so many leaks.
fn recorded(place: &Place, name: &str, leaks: u32, sample: &str) {
    let program = place.compile("leaking", PROGRAM, &["-g", "-O1"]);
    let mut command = place.mpp();
    command
        .args(["run", "-q", "--seed", "1", "--sample", sample, "-o", name, "--"])
        .arg(program)
        .arg(leaks.to_string());
    ran(&mut command).exits(0);
}

fn check(place: &Place, arguments: &[&str]) -> Ran {
    place.run([&["check", "-q"], arguments].concat())
}

#[test]
fn limits_pass_and_fail() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    check(&place, &["rec", "--max-live-end", "6MiB", "--max-peak", "6MiB", "--max-allocs", "6200"])
        .exits(0)
        .prints("passed: 3 gates");
    let failed = check(&place, &["rec", "--max-live-end", "4MiB", "--max-peak", "6MiB"]).exits(10);
    let first = failed.stdout.lines().next().expect("a line");
    assert!(
        first.starts_with("failed: 1 of 2 gates; live at the end: 5.")
            && first.ends_with("allowed is at most 4.00 MiB"),
        "{first}"
    );
    let sites: Vec<&str> = failed.stdout.lines().skip_while(|line| !line.starts_with("most of")).skip(1).collect();
    assert!(sites.len() <= 5 && sites[0].contains("forget") && sites[0].contains("leaking.c:4"), "{sites:?}");
    // Of 6,100 allocations 5,000 are gone before the next one.
    check(&place, &["rec", "--max-temp", "75%"]).exits(10).prints("temporary allocations").prints("work");
    check(&place, &["rec", "--max-temp", "90%"]).exits(0);
    check(&place, &["rec", "--min-symbolized", "99", "--min-complete", "99%"]).exits(0);
    check(&place, &["rec"]).exits(2).says("nothing to check");
    check(&place, &["gone", "--max-peak", "1"]).exits(13);
    check(&place, &["rec", "--max-peak", "lots"]).exits(2);
}

#[test]
fn known_leaks_do_not_count() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    check(&place, &["rec", "--max-leak", "1MiB"]).exits(10);
    place.write("known.txt", "leak:forget\nleak:stdio\n");
    let passed = check(&place, &["rec", "--max-leak", "1MiB", "--suppressions", "known.txt"]).exits(0);
    passed.prints("suppresses nothing: leak:stdio");
    check(&place, &["rec", "--max-leak", "100KiB", "--suppressions", "known.txt"]).exits(10).prints("  cache");
    // Filters make it a gate on a part.
    check(&place, &["rec", "--max-live-end", "1MiB", "--focus", "cache"]).exits(0);
}

#[test]
fn baselines() {
    let place = Place::new();
    recorded(&place, "before", 1000, "1");
    recorded(&place, "after", 1200, "1");
    check(&place, &["before", "--baseline", "base.json"]).exits(12).says("there is no baseline");
    check(&place, &["before", "--write-baseline", "base.json"]).exits(0);
    check(&place, &["before", "--baseline", "base.json"]).exits(0).prints("passed: 8 gates");
    check(&place, &["after", "--baseline", "base.json"]).exits(10).prints("live at the end").prints("(baseline 5.");
    check(&place, &["after", "--baseline", "base.json", "--tolerance", "30%"]).exits(0);
    check(&place, &["before", "--write-baseline", "base.json"]).exits(1).says("--force");
    for (text, why) in [
        ("{}", "missing field"),
        ("{\"schema\":\"x\",\"schema_version\":1,\"mpp_version\":\"\",\"metrics\":{}}", "expected \"mpp-baseline\""),
    ] {
        place.write("bad.json", text);
        check(&place, &["before", "--baseline", "bad.json"]).exits(13).says(why);
    }
}

#[test]
fn a_rough_estimate_decides_nothing() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "64KiB");
    // A part of the profile was not counted by the allocator: there is an estimate only, of 5 MB give or take 0.5.
    check(&place, &["rec", "--focus", "forget", "--max-live-end", "5MB"])
        .exits(11)
        .prints("inconclusive: 1 of 1 gate")
        .prints("--mode exact");
    check(&place, &["rec", "--focus", "forget", "--max-live-end", "20MB"]).exits(0);
    check(&place, &["rec", "--focus", "forget", "--max-live-end", "1MB"]).exits(10);
    // The whole was.
    check(&place, &["rec", "--max-live-end", "5MB"]).exits(10);
}

#[test]
fn results_for_ci_systems() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    let mut command = place.mpp();
    command.args(["check", "rec", "--max-live-end", "1MiB", "--max-peak", "1GiB", "--github"]);
    command
        .args(["--junit", "out.xml", "--sarif", "out.sarif", "--verdict", "out.json"])
        .env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
    let found = ran(&mut command).exits(10);
    let annotation = found.stdout.lines().find(|line| line.starts_with("::error ")).expect("an annotation");
    assert!(annotation.contains("leaking.c,line=4,title=mpp check live-end::live at the end: 5."), "{annotation}");
    assert!(annotation.contains("%0A") && found.stdout.lines().count() == 3, "{}", found.stdout);

    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let summary = read("summary.md");
    assert!(summary.contains("| live at the end | 5.") && summary.contains("forget"), "{summary}");
    let verdict: Value = json(&read("out.json"));
    assert_eq!(
        (&verdict["verdict"], &verdict["gates"][1]["verdict"]),
        (&"failed".into(), &"failed".into()),
        "{verdict:#}"
    );
    assert_eq!(verdict["gates"][1]["sites"][0]["function"], "forget");
    let xml = read("out.xml");
    assert!(
        xml.contains("tests=\"2\" failures=\"1\" errors=\"0\"") && xml.contains("<failure type=\"limit\""),
        "{xml}"
    );
    assert_is_xml(&place, "out.xml");
    let sarif = json(&read("out.sarif"));
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!(
        (&sarif["version"], &results[0]["level"], &results[0]["ruleId"]),
        (&"2.1.0".into(), &"error".into(), &"mpp/live-end".into())
    );
    let place_of = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place_of["region"]["startLine"], 4);
    assert!(place_of["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("leaking.c")));
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    let index = results[0]["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(rules[index]["id"], results[0]["ruleId"]);
}

/// What a tool that reads the report gets is the report alone.
#[test]
fn annotations_stay_out_of_reports_for_programs() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    let ran = check(&place, &["rec", "--max-live-end", "1MiB", "--max-temp", "99.5%", "--github", "--format", "json"]);
    let report = json(&ran.exits(10).says("::error file=").stdout);
    let gates = report["gates"].as_array().expect("gates");
    assert!(gates[0]["value"].is_u64() && gates[0]["error"] == 0 && gates[0]["limit"] == 1 << 20, "{report:#}");
    assert_eq!(gates[1]["limit"], 99.5);
    let csv = check(&place, &["rec", "--max-live-end", "1MiB", "--format", "csv"]).exits(10).stdout;
    assert!(csv.lines().nth(1).is_some_and(|line| line.ends_with(",0,1048576")), "{csv}");
}

/// Zero samples are not zero bytes.
#[test]
fn what_was_never_sampled_can_still_be_there() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "64KiB");
    let gate = |limit| check(&place, &["rec", "--focus", "no_such_function", "--max-live-end", limit]);
    gate("100KiB").exits(11).prints("0 B ±").prints("nothing of the profile is selected");
    gate("200KiB").exits(0).prints("nothing of the profile is selected");
    recorded(&place, "all", 1000, "1");
    check(&place, &["all", "--focus", "no_such_function", "--max-live-end", "0"]).exits(0);
}

/// A baseline that cannot be compared in full is not passed in silence.
#[test]
fn what_was_not_compared_is_told() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    check(&place, &["rec", "--write-baseline", "base.json"]).exits(0);
    let baseline = std::fs::read_to_string(place.path("base.json")).expect("a baseline");
    assert!(json(&baseline)["metrics"]["peak"]["value"].is_u64(), "{baseline}");
    place.write("newer.json", baseline.replace("\"alloc-bytes\"", "\"shinies\""));
    let ran = check(&place, &["rec", "--baseline", "newer.json", "--junit", "out.xml"]).exits(0);
    ran.prints("passed: 7 gates").prints("not compared: shinies, which this mpp does not know");
    let xml = std::fs::read_to_string(place.path("out.xml")).expect("JUnit");
    assert!(xml.contains("<system-out>not compared: shinies"), "{xml}");
    // A profile of live memory only.
    place.write(
        "live.heap",
        "heap profile: 2: 8192 [2: 8192] @ heapprofile\n 2: 8192 [2: 8192] @ 0x1000\n\nMAPPED_LIBRARIES:\n",
    );
    check(&place, &["live.heap", "--baseline", "base.json", "--github"])
        .prints("::notice title=mpp check::not compared: peak, which this profile does not tell");
    check(&place, &["rec", "--focus", "cache", "--baseline", "base.json"])
        .prints("the baseline is of the whole program, this of a part of the program");
    place.write("bad.json", baseline.replacen("\"error\": 0", "\"error\": -1", 1));
    check(&place, &["rec", "--baseline", "bad.json"]).exits(13).says("is negative");
}

/// GitHub refuses SARIF in which one result has no place.
#[test]
fn each_result_has_a_place() {
    let place = Place::new();
    place.write(
        "bare.heap",
        "heap profile: 2: 8192 [2: 8192] @ heapprofile\n 2: 8192 [2: 8192] @ 0x1000\n\nMAPPED_LIBRARIES:\n",
    );
    check(&place, &["bare.heap", "--max-live-end", "1KiB", "--min-symbolized", "90%", "--sarif", "out.sarif"])
        .exits(10);
    let sarif = json(&std::fs::read_to_string(place.path("out.sarif")).expect("SARIF"));
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert!(results.len() >= 2, "{sarif:#}");
    for result in results {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(
            (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
            (&"bare.heap".into(), &1.into())
        );
    }
}

/// A gate in the command that records.
#[test]
fn a_gate_follows_a_run() {
    let place = Place::new();
    place.compile("leaking", PROGRAM, &["-g", "-O1"]);
    place.script("failing", "#!/bin/sh\n./leaking 1000\nexit 3\n");
    let run = |name: &str, then: &str, program: &[&str]| {
        place.run([&["run", "-q", "--sample", "1", "-o", name, "--then", then, "--"], program].concat())
    };
    let leaking = ["./leaking", "1000"];
    run("a", "check --max-live-end 100MiB", &leaking).exits(0).prints("passed: 1 gate");
    run("b", "check --max-live-end 1MiB --junit 'the result.xml'", &leaking).exits(10).prints("failed: 1 of 1 gate;");
    assert!(place.path("the result.xml").is_file() && place.path("b/recording.json").is_file());
    run("c", "leaks --fail", &leaking).exits(10).prints("forget");
    run("d", "check --max-live-end 1MiB --baseline gone.json", &leaking).exits(12);
    // What the program says comes first, but the verdict is told.
    run("e", "check --all --max-live-end 1MiB", &["./failing"]).exits(3).prints("failed: 1 of 1 gate;");
    run("e2", "check --max-live-end 1MiB --baseline gone.json", &["./failing"]).exits(3).says("there is no baseline");
    // Limits of the project.
    place.write("mpp.toml", "[check]\nmax-live-end = \"1MiB\"\n");
    run("f", "check", &leaking).exits(10);
    run("f2", "check --max-live-end=8MiB", &leaking).exits(0);
    // Mistakes are found before anything runs.
    for (then, why) in [
        ("check --max-peek 1MiB", "--max-peek"),
        ("check other --max-peak 1MiB", "unexpected argument"),
        ("run ls", "the verbs are"),
        ("check 'x", "quotation mark"),
    ] {
        run("g", then, &["touch", "ran"]).exits(2).says(why);
    }
    assert!(!place.path("ran").exists() && !place.path("g").exists());
}

/// Another program's opinion.
fn assert_is_xml(place: &Place, name: &str) {
    let script = "import sys, xml.etree.ElementTree as t; print(len(t.parse(sys.argv[1]).getroot()[0]))";
    let output = std::process::Command::new("python3").args(["-c", script]).arg(place.path(name)).output();
    let output = output.expect("these tests need python3");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2", "{output:?}");
}

/// Limits of a project stand in its mpp.toml.
#[test]
fn limits_come_from_the_project() {
    let place = Place::new();
    recorded(&place, "rec", 1000, "1");
    place.write("mpp.toml", "[check]\nmax-live-end = \"1MiB\"\n");
    check(&place, &["rec"]).exits(10);
    place.write("mpp.toml", "[check]\nmax-live-end = \"8MiB\"\n");
    check(&place, &["rec"]).exits(0);
}

/// The steps of the action, as a runner runs them.
#[test]
fn the_action_does_what_it_says() {
    let place = Place::new();
    let program = place.compile("leaking", PROGRAM, &["-g", "-O1"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/ci-check");
    let action = |run: &str, gates: &str| {
        let mut command = std::process::Command::new("bash");
        command.arg(script).current_dir(place.path("")).env("MPP_ACTION_MPP", env!("CARGO_BIN_EXE_mpp"));
        command.env("MPP_ACTION_RUN", run).env("MPP_ACTION_GATES", gates).env("MPP_ACTION_SAMPLE", "1");
        command
            .env("MPP_ACTION_SARIF", "out.sarif")
            .env("MPP_ACTION_INPUT", format!("rec-{}", gates.len() + run.len()));
        command
            .env("GITHUB_OUTPUT", place.path("output"))
            .env("RUNNER_TEMP", place.path(""))
            .env_remove("GITHUB_STEP_SUMMARY");
        ran(command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")))
    };
    let run = format!("{} 1000", program.display());
    action(&run, "--max-live-end 1MiB").exits(10).prints("::error ").prints("forget");
    action(&run, "--max-live-end 100MiB").exits(0).prints("passed: live at the end");
    // In YAML they can stand on lines of their own, and in quotation marks.
    action(&run, "--max-live-end 100MiB\n--focus 'forget|x y'\n--max-peak 1MiB\n").exits(10).prints("live at the peak");
    action(&run, "--max-live-end '1").exits(2).says("quotation mark");
    action("exit 3", "--max-live-end 100MiB").exits(3).says("the command itself has failed (exit status 3)");
    let verdicts = std::fs::read_to_string(place.path("output")).expect("outputs");
    assert_eq!(verdicts, "verdict=failed\nverdict=passed\nverdict=failed\n");
    // action.yml hands over just what the script reads.
    let yaml = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../action.yml")).expect("the action");
    let text = std::fs::read_to_string(script).expect("the script");
    for name in ["RUN", "INPUT", "SAMPLE", "GATES", "SARIF", "JUNIT", "MPP"] {
        let variable = format!("MPP_ACTION_{name}");
        assert!(text.contains(&format!("${{{variable}:-")), "{variable}");
        assert!(yaml.contains(&format!("{variable}: ${{{{ inputs.{} }}}}", name.to_lowercase())), "{variable}");
    }
}
