//! The preload library under programs that test what a replacement for `malloc` must honour.

mod support;
use std::process::Command;
use support::{build, compile, library, preloaded, succeed};

#[test]
fn the_contract_of_malloc() {
    let program = compile("contract.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "");
    // The same with every allocation sampled: a sampled block must differ from others in nothing.
    let folder = tempfolder("contract");
    let dump = folder.join("heap.prof");
    assert_eq!(succeed(profiled(&program, 1).env("MIMALLOC_PROF_DUMP_AT_EXIT", &dump)), "");
    assert!(std::fs::read_to_string(dump).unwrap().starts_with("heap profile: "));
}

fn tempfolder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn profiled(program: &std::path::Path, rate: u64) -> Command {
    let mut command = preloaded(program);
    command.env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", rate.to_string());
    command
}

#[test]
fn operators_of_cxx() {
    let program = compile("operators.cpp", &["-std=c++17"]);
    assert_eq!(succeed(&mut preloaded(&program)), "fine\n");
    assert_eq!(succeed(&mut profiled(&program, 100)), "fine\n");
}

#[test]
fn the_header_with_the_shared_and_the_static_library() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let folder = library().parent().unwrap();
    let search = format!("-L{}", folder.display());
    let shared = compile("header.c", &[include, &search, "-lmimalloc_pprof"]);
    assert_eq!(succeed(Command::new(&shared).env("LD_LIBRARY_PATH", folder)), "fine\n");
    let archive = folder.join("libmimalloc_pprof.a");
    let linked = compile("header.c", &[include, archive.to_str().unwrap(), "-ldl"]);
    assert_eq!(succeed(&mut Command::new(&linked)), "fine\n");
}

#[test]
fn threads_with_small_stacks_and_late_destructors() {
    let program = compile("threads.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "fine\n");
    assert_eq!(succeed(&mut profiled(&program, 1000)), "fine\n");
}

#[test]
fn fork_with_threads() {
    let program = compile("fork_storm.c", &[]);
    for (forks, mode) in [("60", "main"), ("60", "handler"), ("60", "clone")] {
        let output = succeed(preloaded(&program).args([forks, mode]));
        assert_eq!(output, format!("{forks} forks, 0 failed, 0 hung\n"), "{mode}");
        let output = succeed(profiled(&program, 4096).args([forks, mode]));
        assert_eq!(output, format!("{forks} forks, 0 failed, 0 hung\n"), "{mode}, profiled");
    }
}

#[test]
fn fork_while_the_heap_grows() {
    let program = compile("fork_growth.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "0 of 400 children failed\n");
}

#[test]
fn blocks_that_grow() {
    let program = compile("grow.c", &[]);
    assert_eq!(succeed(&mut preloaded(&program)), "fine\n");
    assert_eq!(succeed(&mut profiled(&program, 1000)), "fine\n");
    // A sandbox may not allow pages to be moved.
    assert_eq!(succeed(preloaded(&program).arg("refused")), "fine\n");
}

#[test]
fn foreign_mappings_in_the_way() {
    let program = compile("in_the_way.c", &["-rdynamic"]);
    assert_eq!(succeed(&mut preloaded(&program)), "39 obstacles\n");
}

/// Where the kernel places mappings from the bottom up, they must not get into the window.
#[test]
fn mappings_from_the_bottom_up() {
    let upwards = |command: &[&str]| {
        let mut setarch = Command::new("setarch");
        setarch.arg("--addr-compat-layout").args(command).env("LD_PRELOAD", library());
        setarch
    };
    if !upwards(&["true"]).status().is_ok_and(|status| status.success()) {
        return; // not allowed in some containers
    }
    let script = "import mmap
kept = [mmap.mmap(-1, 1 << 20) for _ in range(300)]
print(len([bytes(1000 + i % 3000) for i in range(100000)]))";
    assert_eq!(succeed(&mut upwards(&["python3", "-c", script])), "100000\n");
}

#[test]
fn misuse_is_told_and_ends_the_program() {
    let program = compile("misuse.c", &[]);
    for (what, message) in [
        ("twice", "double free of the pointer 0x"),
        ("inside", "free of an invalid pointer 0x"),
        ("span", "invalid pointer"),
    ] {
        let output = preloaded(&program).arg(what).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(message), "{what}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn misuse_is_told_to_the_program() {
    let program = compile("misuse_told.c", &["-ldl"]);
    assert_eq!(succeed(&mut preloaded(&program)), "");
    let output = preloaded(&program).env("MIMALLOC_SHOW_ERRORS", "1").env("MIMALLOC_MAX_ERRORS", "5").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.lines().count() == 5, "{stderr}");
    assert!(stderr.starts_with("mimalloc-pprof: double free of the pointer 0x"), "{stderr}");
    // A sampled block differs from others in nothing.
    let output = profiled(&program, 1).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

/// Levels of hardening: each does what it says, and programs run as before.
#[test]
fn levels_of_hardening() {
    let (program, contract) = (compile("secure.c", &["-ldl"]), compile("contract.c", &[]));
    let (threads, forks) = (compile("threads.c", &[]), compile("fork_storm.c", &[]));
    for level in ["0", "1", "2", "3", "4", "5"] {
        let secure = |program: &std::path::Path| {
            let mut command = preloaded(program);
            command.env("MIMALLOC_SECURE", level);
            command
        };
        assert_eq!(succeed(secure(&program).arg(level)), "", "level {level}");
        assert_eq!(succeed(&mut secure(&contract)), "", "level {level}");
        if ["2", "5"].contains(&level) {
            assert_eq!(succeed(&mut secure(&threads)), "fine\n", "level {level}");
            assert_eq!(succeed(secure(&forks).args(["20", "main"])), "20 forks, 0 failed, 0 hung\n", "level {level}");
        }
    }
    let output = preloaded(&program).args(["3", "stop"]).env("MIMALLOC_SECURE", "3").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(stderr.contains("double free of the pointer 0x") && stderr.contains("class 7 of 112 bytes"), "{stderr}");
    let output = preloaded("/bin/true").env("MIMALLOC_SECURE", "much").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "mimalloc-pprof: MIMALLOC_SECURE is not a number; the default is used\n");
}

#[test]
fn guarded_blocks() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let search = format!("-L{}", library().parent().unwrap().display());
    let program = compile("api_guarded.c", &[include, &search, "-lmimalloc_pprof"]);
    let folder = library().parent().unwrap();
    assert_eq!(succeed(preloaded(&program).env("LD_LIBRARY_PATH", folder)), "");
    let every = |program: &std::path::Path, rate: &str| {
        let mut command = preloaded(program);
        command.env("LD_LIBRARY_PATH", folder).env("MIMALLOC_GUARDED_SAMPLE_RATE", rate);
        command
    };
    assert_eq!(succeed(every(&program, "1").arg("all")), "");
    let output = every(&program, "1").arg("slack").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("memory was written beyond the end of the block 0x") && !output.status.success());
    // A guarded block differs from others in nothing, also when it is sampled.
    let (contract, threads, forks) =
        (compile("contract.c", &[]), compile("threads.c", &[]), compile("fork_storm.c", &[]));
    for rate in ["1", "7"] {
        assert_eq!(succeed(&mut every(&contract, rate)), "");
        assert_eq!(succeed(every(&contract, rate).env("MIMALLOC_SECURE", "5")), "");
        assert_eq!(succeed(profiled(&contract, 1).env("MIMALLOC_GUARDED_SAMPLE_RATE", rate)), "");
    }
    assert_eq!(succeed(&mut every(&threads, "7")), "fine\n");
    assert_eq!(succeed(every(&forks, "7").args(["20", "main"])), "20 forks, 0 failed, 0 hung\n");
}

/// The library built with all its features.
#[test]
fn features() {
    let library = build(&["--features", "secure,no-process-detach"], "features");
    let with = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", &library);
        command
    };
    let program = compile("secure.c", &["-ldl"]);
    assert_eq!(succeed(with(&program).arg("4")), "");
    assert_eq!(succeed(&mut with(&compile("contract.c", &[]))), "");
    // The environment chooses another level.
    assert_eq!(succeed(with(&program).arg("5").env("MIMALLOC_SECURE", "5")), "");
    assert_eq!(succeed(with("/bin/true".as_ref()).env("MIMALLOC_SHOW_STATS", "1")), "");
}

/// Nothing is done at the end where that is asked for.
#[test]
fn no_work_at_the_end() {
    for (name, value) in [("MIMALLOC_NO_PROCESS_DETACH", "1"), ("MIMALLOC_DESTROY_ON_EXIT", "2")] {
        let folder = tempfolder("end");
        let dump = folder.join(format!("{name}.prof"));
        let mut command = profiled("/bin/true".as_ref(), 1);
        command.env("MIMALLOC_PROF_DUMP_AT_EXIT", &dump).env("MIMALLOC_SHOW_STATS", "1").env(name, value);
        assert_eq!(succeed(&mut command), "", "{name}");
        assert!(!dump.exists(), "{name}");
        let shown = command.env(name, "0").output().unwrap();
        assert!(!shown.stderr.is_empty() && dump.exists(), "{name}");
    }
}

#[test]
fn zeroed_blocks() {
    let program = compile("zeroed.c", &["-ldl"]);
    // Where pages are huge, a block that has to be cleared makes others resident with it.
    for (name, value) in [("MIMALLOC_ALLOW_THP", "0"), ("MIMALLOC_PURGE_DELAY", "-1")] {
        assert_eq!(succeed(preloaded(&program).env(name, value).arg("untouched")), "", "{name}={value}");
    }
    assert_eq!(succeed(preloaded(&program).arg("large")), "");
    for (name, value) in [("MIMALLOC_SECURE", "2"), ("MIMALLOC_SECURE", "3"), ("MIMALLOC_GUARDED_SAMPLE_RATE", "9")] {
        assert_eq!(succeed(preloaded(&program).env(name, value)), "", "{name}={value}");
    }
    assert_eq!(succeed(&mut profiled(&program, 100_000)), "");
}

#[test]
fn little_address_space() {
    let script = "ulimit -v 500000; exec python3 -c '
blocks = [bytes(1000) for _ in range(50000)]
try:
    bytearray(900_000_000)
except MemoryError:
    print(len(blocks))'";
    let mut shell = Command::new("bash");
    let library = library().display();
    assert_eq!(succeed(shell.args(["-c", &format!("export LD_PRELOAD={library}; {script}")])), "50000\n");
}

#[test]
fn a_sandbox_without_membarrier() {
    let program = compile("no_membarrier.c", &["-ldl"]);
    assert_eq!(succeed(&mut preloaded(&program)), "fine\n");
}

/// Allocators on top of ours that drain and refill are not answered by system calls, however many rounds there are.
#[test]
fn what_drains_and_refills_asks_the_kernel_for_nothing() {
    let program = compile("resonance.c", &[]);
    let output = preloaded(&program).output().unwrap();
    if output.status.code() == Some(77) {
        return; // not allowed in some containers
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{lines}");
    assert_eq!(lines.lines().count(), 17, "{lines}");
    assert!(lines.lines().all(|line| line.ends_with(" calm")), "{lines}");
    // The C library's allocator does resonate: calls are seen.
    let other = Command::new(&program).args(["1", "chunks-1m"]).output().unwrap();
    assert!(String::from_utf8(other.stdout).unwrap().contains(" calls in "));
}

/// valgrind gives a program less address space than our window takes, and its own order of mappings.
#[test]
fn under_valgrind() {
    let program = compile("threads.c", &[]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=none", "-q"]).arg(&program).env("LD_PRELOAD", library());
    assert_eq!(succeed(&mut valgrind), "fine\n");
}

/// Nothing but the C library comes along, and nothing that allocates is called.
#[test]
fn the_library_needs_little() {
    let output = |args: &[&str]| {
        let output = Command::new(args[0]).args(&args[1..]).arg(library()).output().expect("binutils are needed");
        String::from_utf8(output.stdout).unwrap()
    };
    let needed: Vec<_> =
        output(&["readelf", "-d"]).lines().filter(|l| l.contains("NEEDED")).map(str::to_owned).collect();
    assert!(needed.len() == 1 && needed[0].contains("libc.so.6"), "{needed:?}");
    let wanted = output(&["nm", "-D", "--undefined-only"]);
    for name in ["malloc", "calloc", "getenv", "fopen", "opendir", "pthread_mutex_lock", "dl_iterate_phdr"] {
        assert!(!wanted.lines().any(|line| line.ends_with(&format!(" {name}")) || line.contains(&format!(" {name}@"))));
    }
    // Static TLS is scarce: three words.
    let tls = output(&["readelf", "-lW"]);
    let size =
        tls.lines().find(|l| l.trim_start().starts_with("TLS")).unwrap().split_whitespace().nth(5).unwrap().to_owned();
    assert_eq!(size, "0x000018", "{tls}");
}
