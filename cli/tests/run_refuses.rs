//! `mpp run` on programs that cannot be profiled or started: nothing runs, the reason is named, nothing is left behind.

mod common;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{Place, set_mode};

/// A program that leaves a trace if it is run after all.
const TRACE: &str = r#"#include <stdio.h>
int main(void) { FILE *f = fopen("it-ran", "w"); if (f) fclose(f); return 0; }
"#;

#[track_caller]
fn refuses(place: &Place, program: &Path, status: i32, reason: &str) {
    place.run(["run".as_ref(), "--".as_ref(), program.as_os_str()]).exits(status).says(reason);
    assert!(!place.path("it-ran").exists(), "{} was run", program.display());
    assert_eq!(place.recordings(), [""; 0], "a recording was left");
}

#[test]
fn what_does_not_exist() {
    let place = Place::new();
    place.run(["run", "--", "no-such-program-anywhere"]).exits(127).says("command not found");
    refuses(&place, Path::new("./no-such-file"), 127, "no such file");
}

#[test]
fn what_cannot_be_executed() {
    let place = Place::new();
    refuses(&place, &place.write("plain", "#!/bin/sh\n"), 126, "permission denied");
    refuses(&place, Path::new("/"), 126, "is a directory");
    refuses(&place, &place.script("text", "echo no first line\n"), 126, "exec format error");
    refuses(&place, &place.script("orphan", "#!/no/such/interpreter\n"), 126, "/no/such/interpreter does not exist");
    refuses(&place, &place.script("env-orphan", "#!/usr/bin/env no-such-interpreter\n"), 126, "not in PATH");
    refuses(&place, &place.script("empty", ""), 126, "exec format error");
    refuses(&place, &place.script("cut", "\u{7f}ELF"), 126, "exec format error");
}

#[test]
fn static_programs() {
    let place = Place::new();
    let program = place.compile("static", TRACE, &["-static"]);
    refuses(&place, &program, 14, "statically linked");
    refuses(&place, &place.compile("pie", TRACE, &["-static-pie"]), 14, "statically linked");
    let script = place.script("script", &format!("#!{} -x\n", program.display()));
    refuses(&place, &script, 14, "statically linked");
}

#[test]
fn programs_that_gain_rights() {
    let place = Place::new();
    let program = gains_rights(&place);
    refuses(&place, &program, 14, "is set-user-id (it would run as user");
}

/// A set-user-id program of another user: only such a one makes the dynamic loader ignore a preload.
fn gains_rights(place: &Place) -> PathBuf {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::getuid() } == 0 {
        let program = place.compile("setuid", TRACE, &[]);
        std::os::unix::fs::chown(&program, Some(65_534), None).expect("root may give files away");
        set_mode(&program, 0o4755);
        return program;
    }
    let usual = ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/chsh", "/bin/su"];
    let is_setuid = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.mode() & 0o4000 != 0);
    usual.iter().map(PathBuf::from).find(is_setuid).expect("run as root, or with one of the usual set-user-id programs")
}

#[test]
fn set_user_id_of_oneself_gains_nothing() {
    let place = Place::new();
    let program = place.compile("own", "int main(void) { return 5; }", &[]);
    set_mode(&program, 0o4755);
    place.run(["run".as_ref(), program.as_os_str()]).exits(5);
}

#[test]
fn programs_of_another_architecture() {
    let place = Place::new();
    let program = place.compile("app", TRACE, &[]);
    let mut bytes = std::fs::read(&program).expect("the program");
    bytes[18..20].copy_from_slice(&[8, 0]);
    std::fs::write(&program, bytes).expect("a changed program");
    refuses(&place, &program, 14, "machine 8");
}

#[test]
fn programs_of_another_c_library() {
    let place = Place::new();
    let program = place.compile("musl", TRACE, &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
    refuses(&place, &program, 14, "musl");
    let program = place.compile("lost", TRACE, &["-Wl,--dynamic-linker=/no/such/loader.so"]);
    refuses(&place, &program, 126, "/no/such/loader.so does not exist");
}

#[test]
fn programs_with_an_allocator_of_their_own() {
    let place = Place::new();
    let source = format!(
        "{TRACE}\n#include <stddef.h>\nstatic char heap[1 << 20]; static size_t used;\n\
         void *malloc(size_t n) {{ used += (n + 15) & ~15ul; return heap + used - ((n + 15) & ~15ul); }}\n\
         void free(void *p) {{ (void)p; }}\n"
    );
    let program = place.compile("own-malloc", &source, &["-rdynamic", "-fno-builtin"]);
    refuses(&place, &program, 14, "allocator of its own");
}

#[test]
fn recording_folders_that_hold_something() {
    let place = Place::new();
    place.write("full/precious", "");
    place.run(["run", "-o", "full", "--", "sh", "-c", "touch it-ran"]).exits(125).says("not empty");
    assert!(!place.path("it-ran").exists() && place.path("full/precious").exists());
}

#[test]
fn wrong_command_lines() {
    let place = Place::new();
    for arguments in [
        &["run"][..],
        &["run", "--sample", "0", "--", "true"],
        &["run", "--sample", "-1", "--", "true"],
        &["run", "--mode", "guess", "--", "true"],
        &["run", "--env", "NOTHING", "--", "true"],
        &["no-such-verb"],
        &[],
    ] {
        let ran = place.run(arguments).exits(2);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
    assert_eq!(place.recordings(), [""; 0]);
}
