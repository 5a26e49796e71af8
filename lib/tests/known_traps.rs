//! What has broken other allocators that were preloaded: forks, early and late calls, libraries that come and go, sandboxes, blocks
//! that cross over.

mod support;
use std::path::Path;
use std::process::Command;
use support::{compile, library, preloaded, succeed};

/// The command with the profiler looking at everything.
fn profiled(program: impl AsRef<Path>) -> Command {
    let mut command = preloaded(program);
    command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "1000");
    command
}

#[test]
fn ways_to_fork() {
    let program = compile("fork_traps.c", &[]);
    for way in ["opendir", "popen", "crowd", "handlers"] {
        assert_eq!(succeed(preloaded(&program).arg(way)), "", "{way}");
        assert_eq!(succeed(profiled(&program).arg(way)), "", "{way}, profiled");
    }
}

#[test]
fn before_and_after_everything_else() {
    let program = compile("early_and_late.c", &[]);
    for _ in 0..10 {
        assert_eq!(succeed(&mut preloaded(&program)), "40 at the end\n");
    }
    assert_eq!(succeed(&mut profiled(&program)), "40 at the end\n");
    assert_eq!(succeed(preloaded(&program).env("MIMALLOC_SECURE", "5")), "40 at the end\n");
}

#[test]
fn a_library_that_comes_late_and_is_closed_early() {
    let program = compile("late_library.c", &["-ldl"]);
    assert_eq!(succeed(Command::new(program).arg(library())), "fine\n");
}

#[test]
fn an_audited_loader() {
    let audit = compile("audit.c", &["-shared", "-fPIC"]);
    let output = succeed(preloaded("/bin/ls").arg("/dev/null").env("LD_AUDIT", audit));
    assert_eq!(output, "/dev/null\n");
}

#[test]
fn refused_by_the_kernel() {
    let program = compile("refused.c", &[]);
    for what in ["advice", "memory", "everything"] {
        assert_eq!(succeed(preloaded(&program).arg(what)), "", "{what}");
    }
    // Without guards, then.
    let hardened = |what| succeed(preloaded(&program).arg(what).env("MIMALLOC_SECURE", "5"));
    assert_eq!(hardened("advice"), "");
    assert_eq!(succeed(preloaded(&program).arg("advice").env("MIMALLOC_GUARDED_SAMPLE_RATE", "3")), "");
}

#[test]
fn blocks_that_cross_over() {
    let program = compile("foreign.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "");
    assert_eq!(succeed(&mut profiled(&program)), "");
    let output = preloaded(&program).arg("stranger").output().unwrap();
    assert!(!output.status.success() && !output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_library_bound_deeply() {
    let part = compile("deepbind.c", &["-DPART", "-shared", "-fPIC"]);
    let kept = part.with_extension("so");
    std::fs::rename(&part, &kept).unwrap(); // the program is made under the same name
    let program = compile("deepbind.c", &["-ldl"]);
    assert_eq!(succeed(preloaded(&program).arg(&kept)), "fine\n");
}
