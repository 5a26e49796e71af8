//! `mpp doctor`: what stands in the way, and what to do.

mod common;

use std::process::{Command, Stdio};

use common::{Place, data, json, ran};

#[test]
fn this_machine() {
    let place = Place::new();
    let found = json(&place.run(["doctor", "--format", "json"]).exits(0).stdout);
    let findings = found["findings"].as_array().expect("findings");
    let library = findings.iter().find(|finding| finding["what"] == "preload library").expect("the library");
    assert!(library["found"].as_str().is_some_and(|path| std::path::Path::new(path).is_file()), "{library}");
    let left: Vec<_> = std::fs::read_dir(place.path("")).expect("the folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn programs() {
    let place = Place::new();
    let source = "int main(void) { return 0; }";
    let with_lines = place.compile("lines", source, &["-g"]);
    place
        .run(["doctor".as_ref(), with_lines.as_os_str()])
        .exits(0)
        .prints("nothing stands in the way")
        .prints("lines and inlined functions from");
    let stripped = place.compile("stripped", source, &["-s"]);
    place
        .run(["doctor".as_ref(), stripped.as_os_str()])
        .exits(0)
        .prints("hint")
        .prints("it is stripped: install its debug package");
    let fixed = place.compile("fixed", source, &["-static"]);
    place
        .run(["doctor".as_ref(), fixed.as_os_str()])
        .exits(14)
        .prints("it does not work as it is")
        .prints("is statically linked");
    let script = place.script("script", "#!/bin/sh\nexit 0\n");
    place.run(["doctor".as_ref(), script.as_os_str()]).exits(0).prints("a script");
    place.run(["doctor", "no-such-program"]).exits(14).prints("command not found");
}

#[test]
fn processes() {
    let place = Place::new();
    let waits = place.compile(
        "waits",
        "#include <unistd.h>\n#include <stdlib.h>\nint main(void) { free(malloc(9)); write(1, \"x\", 1); pause(); }",
        &[],
    );
    let mut plain = Command::new(&waits).stdout(Stdio::piped()).spawn().expect("it starts");
    wait_for_sign(&mut plain);
    place
        .run(["doctor", &plain.id().to_string()])
        .exits(14)
        .prints("is not in this process")
        .prints("mpp run --ctl -- ");
    plain.kill().expect("it ends");
    plain.wait().expect("it ends");

    let mut recorder = place
        .mpp()
        .args(["run", "-q", "--ctl", "-o", "rec", "--"])
        .arg(&waits)
        .stdout(Stdio::piped())
        .spawn()
        .expect("mpp starts");
    wait_for_sign(&mut recorder);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.id())).expect("children");
    let target = children.split_whitespace().next().expect("a child").to_owned();
    let found = place.run(["doctor", &target]);
    let ended = Command::new("kill").arg(&target).status().expect("kill runs");
    recorder.wait().expect("it ends");
    assert!(ended.success());
    found.exits(0).prints("is preloaded").prints("answers: ");
    place.run(["doctor", "4294967295"]).exits(14).prints("there is no process");
}

fn wait_for_sign(child: &mut std::process::Child) {
    let mut sign = [0];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut sign).expect("a sign");
}

#[test]
fn profiles() {
    let place = Place::new();
    std::fs::copy(data("app.heap"), place.path("app.heap")).expect("the fixture");
    let found = place.run(["doctor", "app.heap"]).exits(0);
    for part in
        ["15 only: 9.64 MiB ± 1.90 MiB", "--sample 32.0KiB", "no unwind info", "mpp modules app.heap says which files"]
    {
        assert!(found.stdout.contains(part), "no {part}: {}", found.stdout);
    }
    place.write("bad.heap", "heap profile: x");
    place.run(["doctor", "bad.heap"]).exits(13);
    // The advice about the rate is a command that works.
    let program = place.compile("app", "#include <stdlib.h>\nint main(void) { return malloc(9) == 0; }", &[]);
    ran(place.mpp().args(["run", "-q", "--sample", "32.0KiB", "-o", "rec", "--"]).arg(program)).exits(0);
}
