//! The return of memory under attack: refused system calls, forks, threads and heaps that come and go, while purges run in a tight
//! loop. Short here: `MPP_RECLAIM_SCALE` multiplies how long and how often (ten is a good hunt), `MPP_RECLAIM_SEED` chooses another seed.

mod support;
use std::path::Path;
use std::process::Command;
use support::{compile, preloaded, succeed};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn scale() -> u64 {
    number("MPP_RECLAIM_SCALE", 1)
}

/// Of milliseconds, in seconds.
fn scaled(milliseconds: u64) -> String {
    format!("{:.3}", (milliseconds * scale()) as f64 / 1000.0)
}

fn seed() -> String {
    number("MPP_RECLAIM_SEED", 1).to_string()
}

/// With options as `NAME=value`, whose variables are `MIMALLOC_NAME`.
fn with(program: &Path, options: &[&str]) -> Command {
    let mut command = preloaded(program);
    for option in options {
        let (name, value) = option.split_once('=').expect("NAME=value");
        command.env(format!("MIMALLOC_{name}"), value);
    }
    command
}

#[test]
fn what_the_kernel_refuses() {
    let program = compile("reclaim_refused.c", &["-ldl"]);
    let advice = ["madvise:12", "process_madvise:12"];
    let cases: &[(&str, &str, &[&str], &[&str])] = &[
        ("later", "two", &advice, &[]),
        ("start", "one", &["madvise:22", "process_madvise:1"], &[]),
        ("later", "two", &["madvise:11", "process_madvise:38", "membarrier:1", "munmap:12", "mremap:12"], &[]),
        ("start", "two", &["process_madvise:38"], &[]),
        ("start", "two", &["process_madvise:1", "membarrier:38"], &["SCAVENGER=2"]),
        ("later", "two", &["membarrier:1"], &[]),
        // Some advice, some addresses, some lengths.
        ("later", "two", &["process_madvise:22", "madvise:22:2=4"], &[]),
        ("later", "one", &["madvise:12:0&10000"], &[]),
        ("later", "two", &["process_madvise:1", "madvise:12:0&200000"], &["PURGE_DELAY=0"]),
        (
            "start",
            "two",
            &["madvise:22:2=14", "madvise:22:2=15", "process_madvise:22", "madvise:22:2=20"],
            &["ALLOW_THP=2"],
        ),
        ("later", "two", &["madvise:22:2=8", "process_madvise:11:1&1"], &["PURGE_DECOMMITS=0"]),
        // No memory.
        ("later", "two", &["mmap:12", "mremap:12"], &[]),
        ("later", "one", &["mmap:12", "madvise:12", "process_madvise:12"], &[]),
        // No thread.
        ("start", "one", &["clone:11", "clone3:11"], &["SCAVENGER=2"]),
        ("start", "one", &["clone:1", "clone3:38"], &["SCAVENGER=1"]),
        // Now this one, now that one.
        ("every", "one", &["madvise:3", "process_madvise:2", "munmap:2", "membarrier:2", "mremap:2"], &[]),
        ("every", "two", &["madvise:1", "process_madvise:1", "membarrier:1", "mremap:1"], &["SCAVENGER=0"]),
        ("every", "two", &["madvise:5", "process_madvise:3", "membarrier:3", "munmap:1", "mmap:2"], &["SCAVENGER=0"]),
        ("every", "two", &["madvise:2", "process_madvise:2", "membarrier:2"], &["SCAVENGER=2", "PURGE_DELAY=0"]),
    ];
    for (when, who, rules, options) in cases {
        succeed(with(&program, options).args([&seed(), &scaled(100)]).args([when, who]).args(*rules));
    }
}

#[test]
fn forks_while_memory_is_given_back() {
    let program = compile("reclaim_fork.c", &["-ldl"]);
    for (forks, mode) in [(5, "main"), (10, "handler"), (10, "clone"), (5, "return")] {
        let forks = (forks * scale()).to_string();
        let output = succeed(preloaded(&program).args([&seed(), &forks, mode]));
        assert_eq!(output, format!("{forks} forks, 0 failed, 0 hung\n"), "{mode}");
    }
    let output = succeed(with(&program, &["PROF=1", "PROF_SAMPLE_RATE=4096"]).args([&seed(), "4", "main"]));
    assert_eq!(output, "4 forks, 0 failed, 0 hung\n");
}

#[test]
fn purges_beside_everything_else() {
    let program = compile("reclaim_storm.c", &["-ldl"]);
    for kind in ["mixed", "threads", "heaps", "subprocs", "visit", "sampling", "zeroed", "many"] {
        succeed(preloaded(&program).args([&seed(), &scaled(500), kind]));
    }
}

#[test]
fn purges_under_all_options() {
    let program = compile("reclaim_storm.c", &["-ldl"]);
    let kinds = ["mixed", "zeroed", "heaps", "threads"];
    let options: &[&[&str]] = &[
        &["PURGE_HOLES_EAGER_ZERO=1"],
        &["SECURE=3"],
        &["SECURE=5"],
        &["GUARDED_SAMPLE_RATE=100"],
        &["ALLOW_THP=0"],
        &["ALLOW_THP=2"],
        &["PURGE_DECOMMITS=0"],
        &["PURGE_DELAY=0"],
        &["PURGE_DELAY=-1"],
        &["PURGE_DELAY=1", "SCAVENGER=2"],
        &["SCAVENGER=0"],
        &["PURGE_HOLES=0"],
        &["PROF=1", "PROF_SAMPLE_RATE=2000"],
        &["PURGE_DELAY=0", "SCAVENGER=2", "PURGE_HOLES_EAGER_ZERO=1", "SECURE=2"],
    ];
    for (number, options) in options.iter().enumerate() {
        succeed(with(&program, options).args([&seed(), &scaled(250), kinds[number % kinds.len()]]));
        succeed(with(&program, options).args([&seed(), &scaled(250), "mixed"]));
    }
}

#[test]
fn what_is_taken_to_be_true_of_memory() {
    let program = compile("reclaim_truths.c", &["-ldl"]);
    for what in ["outside", "split", "counted", "locked"] {
        succeed(preloaded(&program).arg(what));
    }
    for options in [["SCAVENGER=2"], ["SCAVENGER=1"]] {
        assert_eq!(succeed(with(&program, &options).arg("last")), "handled\n");
    }
}

/// Who gives memory back wakes up only for that.
#[test]
fn sleep() {
    let program = compile("reclaim_truths.c", &["-ldl"]);
    let cases: [(&[&str], &[&str]); 3] = [(&[], &[]), (&["PURGE_DELAY=-1"], &[]), (&[], &["locked"])];
    let sleepers = cases.map(|(options, arguments)| {
        let mut command = with(&program, options);
        command.arg("quiet").args(arguments);
        std::thread::spawn(move || succeed(&mut command))
    });
    sleepers.into_iter().for_each(|sleeper| drop(sleeper.join().unwrap()));
}

#[test]
fn what_is_zero_and_what_errno_is() {
    let program = compile("reclaim_zero.c", &["-ldl"]);
    for options in [&[] as &[&str], &["PURGE_DELAY=0"], &["PURGE_DECOMMITS=0"], &["ALLOW_THP=2"]] {
        succeed(with(&program, options).args([&seed(), "2", "errno"]));
    }
    succeed(preloaded(&program).args([&seed(), "2", "errno", "refuse"]));
    let options: &[&[&str]] = &[
        &["PURGE_DELAY=0"],
        &["PURGE_DELAY=1", "ALLOW_THP=0"],
        &["PURGE_DELAY=1", "ALLOW_THP=2"],
        &["PURGE_DELAY=1", "PURGE_DECOMMITS=0"],
        &["SCAVENGER=0", "MINIMAL_PURGE_SIZE=16"],
    ];
    for options in options {
        succeed(with(&program, options).args([&seed(), &scaled(400), "zero"]));
    }
}

/// The allocator's own thread meets nothing of the program, and the program nothing of it.
#[test]
fn a_guest() {
    let program = compile("reclaim_guest.c", &["-ldl"]);
    for (scavenger, threads) in [("0", "1 2\n"), ("1", "1 3\n"), ("2", "2 3\n")] {
        let options = [&*format!("SCAVENGER={scavenger}")];
        assert_eq!(succeed(with(&program, &options).arg("count")), threads, "scavenger={scavenger}");
    }
    let alone =
        ["identity", "signals", "namespaces", "descriptors", "no_table", "ends", "children", "daemons", "cancel"];
    for what in alone.iter().chain(&["no_threads", "no_proc"]) {
        succeed(preloaded(&program).arg(what));
    }
    for what in ["children", "daemons"] {
        succeed(with(&program, &["SCAVENGER=2", "PURGE_DELAY=0"]).arg(what));
    }
    let script = "ulimit -s 64; exec env LD_PRELOAD=\"$1\" \"$0\" children";
    succeed(Command::new("bash").args(["-c", script]).arg(&program).arg(support::library()));
}

/// What is discarded is overwritten first, so that a discard of what is in use shows at once.
#[test]
fn stress_with_poison() {
    let program = compile("reclaim_storm.c", &["-ldl"]);
    succeed(with(&program, &["PURGE_HOLES_EAGER_ZERO=1", "PURGE_DELAY=0"]).args([&seed(), &scaled(2500), "mixed"]));
}
