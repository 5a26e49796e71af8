//! `mpp explain`, `config`, `completions`, `man`, and values from mpp.toml.

mod common;

use std::process::{Command, Stdio};

use common::{Place, data, json, ran};

#[test]
fn exit_codes_are_explained() {
    let place = Place::new();
    place.run(["explain", "14"]).exits(0).prints("14: nothing was captured").prints("mpp doctor PROGRAM");
    place.run(["explain", "137"]).exits(0).prints("137: mpp run: a signal ended").prints("what to do");
    place.run(["explain", "77"]).exits(0).prints("the status of the program that `mpp run` ran");
    let all = place.run(["explain", "--format", "json"]).exits(0).stdout;
    let codes: Vec<u64> =
        json(&all)["codes"].as_array().expect("codes").iter().filter_map(|code| code["first"].as_u64()).collect();
    assert_eq!(codes, [0, 1, 2, 10, 11, 12, 13, 14, 15, 125, 126, 127, 129]);
}

/// What mpp itself ends with can be looked up.
#[test]
fn codes_that_happen_are_known() {
    let place = Place::new();
    let happened = [
        place.run(["top", "gone.heap"]).status,
        place.run(["top", "--metric", "nonsense"]).status,
        place.run(["run", "--", "/nowhere/at/all"]).status,
        place.run(["run", "--", "/etc/passwd"]).status,
    ];
    assert_eq!(happened.map(|status| status.expect("a status")), [13, 2, 127, 126]);
    for status in happened.into_iter().flatten() {
        let explained = place.run(["explain", &status.to_string()]).exits(0);
        assert!(!explained.stdout.contains("mpp itself never"), "{explained:?}");
    }
}

#[test]
fn values_come_from_files_and_the_environment() {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    let rows = |command: &mut Command| ran(command).exits(0).stdout.lines().count() - 1;
    let top = || {
        let mut command = place.mpp();
        command.args(["top", "names.heap", "--format", "csv"]).env("XDG_CONFIG_HOME", place.path("user"));
        command
    };
    assert_eq!(rows(&mut top()), 4);
    place.write("user/mpp/mpp.toml", "limit = 3\n");
    assert_eq!(rows(&mut top()), 3);
    place.write("mpp.toml", "# of the project\n[top]\nlimit = 2\n");
    assert_eq!(rows(&mut top()), 2);
    assert_eq!(rows(top().env("MPP_LIMIT", "1")), 1);
    assert_eq!(rows(top().env("MPP_LIMIT", "1").args(["--limit", "3"])), 3);

    let show = |arguments: &[&str]| {
        let mut command = place.mpp();
        command.args(["config", "show"]).args(arguments).env("XDG_CONFIG_HOME", place.path("user"));
        ran(command.env("MPP_NAMES", "full")).exits(0).stdout
    };
    let values = json(&show(&["top", "--format", "json"]));
    let origin = |flag: &str| {
        let found = values["values"].as_array().expect("values").iter().find(|value| value["flag"] == flag);
        let found = found.unwrap_or_else(|| panic!("no {flag}: {values:#}"));
        (found["value"].as_str().expect("a value").to_owned(), found["origin"].as_str().expect("an origin").to_owned())
    };
    assert_eq!(origin("limit"), ("2".to_owned(), "file".to_owned()));
    assert_eq!(origin("names"), ("full".to_owned(), "environment".to_owned()));
    assert_eq!(origin("metric"), ("live".to_owned(), "default".to_owned()));
    let changed = show(&[]);
    assert!(
        changed.contains("MPP_NAMES") && changed.contains("mpp.toml") && !changed.contains("built in"),
        "{changed}"
    );
}

#[test]
fn mistakes_in_files_are_named_and_help_still_works() {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    place.write("mpp.toml", "[top]\nlimt = 2\n");
    place.run(["top", "names.heap"]).exits(2).says("mpp.toml: limt in [top] is no flag of `mpp top`");
    place.run(["help", "top"]).exits(0);
    place.run(["top", "--help"]).exits(0);
    place.write("mpp.toml", "[top]\n\nlimit = = 2\n");
    place.run(["top", "names.heap"]).exits(2).says("mpp.toml:3: ");
    // A folder of strangers does not decide where files are written or whom mpp asks.
    for stranger in ["output = 'x'", "[top]\ndebuginfod = 'on'", "[flame]\nopen = true"] {
        place.write("mpp.toml", stranger);
        place.run(["top", "names.heap"]).exits(2).says("cannot be set by a project");
    }
    place.write("mpp.toml", "[top]\nlimit = 'many'\n");
    place.run(["top", "names.heap"]).exits(2).says("invalid value 'many' for '--limit");
}

#[test]
fn completions_are_scripts_that_shells_accept() {
    let place = Place::new();
    let script = place.run(["completions", "bash"]).exits(0).prints("mpp__").stdout;
    let path = place.write("mpp.bash", script);
    let status = Command::new("bash").arg("-n").arg(&path).stdin(Stdio::null()).status().expect("bash");
    assert!(status.success());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        place.run(["completions", shell]).exits(0).prints("timeline");
    }
}

#[test]
fn every_verb_has_a_page() {
    let place = Place::new();
    place.run(["man"]).exits(0).prints(".TH MPP 1").prints("timeline");
    place.run(["man", "top"]).exits(0).prints(".TH MPP-TOP 1").prints("metric");
    place.run(["man", "nonsense"]).exits(2).says("there is no verb nonsense");
    place.run(["man", "-o", "pages"]).exits(0);
    place.run(["man", "-o", "pages"]).exits(1).says("--force");
    place.run(["man", "-o", "pages", "--force"]).exits(0);
    let help = place.run(["help"]).exits(0).stdout;
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // Others go on with the sentence of the line before.
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|verb| !verb.is_empty()))
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() >= 12, "{help}");
    for verb in verbs {
        let page = std::fs::read_to_string(place.path(&format!("pages/mpp-{verb}.1")));
        assert!(page.unwrap_or_else(|_| panic!("no page of {verb}")).contains(".SH NAME"));
    }
}

#[test]
fn the_demo_finds_what_is_in_it() {
    let place = Place::new();
    let found = place.run(["demo"]).exits(0).prints("the shop has served 20000 pages");
    let after = |command: &str| {
        let rest = found
            .stdout
            .split_once(&format!("$ mpp {command}"))
            .unwrap_or_else(|| panic!("no {command}: {found:#?}"))
            .1;
        rest.lines().skip_while(|line| !line.contains("function")).nth(1).unwrap_or_default().to_owned()
    };
    assert!(after("leaks").contains("remember_session"), "{}", found.stdout);
    assert!(after("top").contains("render_page"), "{}", found.stdout);
    place.run(["top", "mpp-demo", "--focus", "load_catalogue"]).exits(0).prints("load_catalogue");
    place.run(["demo"]).exits(1);
}
