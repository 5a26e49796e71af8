//! What is written of a program while it runs, and however it ends.

mod support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use support::{compile, preloaded, succeed};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("observer.c", &[]))
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("observer-{name}.{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program under the profiler, with variables as `NAME=value`, whose names are `MIMALLOC_PROF_NAME`.
fn profiled(arguments: &[&str], variables: &[&str]) -> Command {
    let mut command = preloaded(program());
    command.args(arguments).env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "1000");
    for variable in variables {
        let (name, value) = variable.split_once('=').expect("NAME=value");
        command.env(format!("MIMALLOC_PROF_{name}"), value);
    }
    command
}

fn run(arguments: &[&str], variables: &[&str]) -> Output {
    profiled(arguments, variables).output().unwrap()
}

/// A whole profile, with something in it.
#[track_caller]
fn check(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.starts_with("heap profile: ") && text.contains("\nMAPPED_LIBRARIES:\n"), "{text}");
    assert!(text.lines().nth(1).is_some_and(|line| line.contains("@ 0x")), "{text}");
    text
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn ends_without_exit_handlers() {
    for (how, status) in [("_exit", 5), ("_Exit", 5), ("quick_exit", 5), ("signal_exit", 7), ("exit_then_exit", 0)] {
        let folder = folder(how);
        let dump = folder.join("heap.prof");
        let output = run(&[how], &[&format!("DUMP_AT_EXIT={}", text(&dump))]);
        assert_eq!(output.status.code(), Some(status), "{how}: {output:?}");
        assert!(output.stderr.is_empty() && output.stdout.is_empty(), "{how}: {output:?}");
        // A signal may come inside the allocator; then there is none.
        if how != "signal_exit" || dump.exists() {
            check(&dump);
        }
        assert!(names(&folder).len() <= 1);
    }
    let folder = folder("dash");
    let dump = folder.join("%p.prof");
    let output = profiled(&[], &[]).env("MIMALLOC_PROF_DUMP_AT_EXIT", &dump).get_envs().count();
    assert!(output > 0);
    let mut dash = preloaded("dash");
    dash.args(["-c", "exit 3"]).env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "100");
    assert_eq!(dash.env("MIMALLOC_PROF_DUMP_AT_EXIT", &dump).status().unwrap().code(), Some(3));
    assert_eq!(names(&folder).len(), 1);
    check(&folder.join(&names(&folder)[0]));
}

/// Statistics at the end are those of before: `_exit` prints none, and nothing is done where the user says so.
#[test]
fn an_end_that_is_nobodys_business() {
    let folder = folder("no-detach");
    let dump = folder.join("heap.prof");
    let mut command = profiled(&["_exit"], &[&format!("DUMP_AT_EXIT={}", text(&dump))]);
    assert_eq!(command.env("MIMALLOC_NO_PROCESS_DETACH", "1").status().unwrap().code(), Some(5));
    assert!(names(&folder).is_empty());
    assert_eq!(preloaded(program()).arg("_exit").status().unwrap().code(), Some(5));
}

#[test]
fn children_that_share_the_memory_write_nothing() {
    let folder = folder("vfork");
    let dump = folder.join("heap.prof");
    let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
    for variables in [&[&*at_exit] as &[&str], &[&at_exit, "SNAPSHOT=1s"]] {
        let _ = fs::remove_file(&dump);
        succeed(&mut profiled(&["vfork", text(&dump)], &variables[..1]));
        check(&dump);
        fs::remove_file(&dump).unwrap();
        let output = succeed(&mut profiled(&["vfork_allocates", text(&dump)], variables));
        assert_eq!(output, "0 1\n");
        check(&dump);
    }
}

#[test]
fn forked_children() {
    for (follow, files) in [("all", 6), ("exec", 1), ("none", 1)] {
        let folder = folder(&format!("fork-{follow}"));
        let pattern = format!("DUMP_AT_EXIT={}/heap.%p.prof", text(&folder));
        let follow = format!("FOLLOW={follow}");
        succeed(&mut profiled(&["fork_children"], &[&pattern, &follow]));
        let names = names(&folder);
        assert_eq!(names.len(), files, "{follow}: {names:?}");
        names.iter().for_each(|name| drop(check(&folder.join(name))));
    }
    let folder = folder("fork-exit");
    let pattern = format!("DUMP_AT_EXIT={}/heap.%p.prof", text(&folder));
    succeed(&mut profiled(&["fork_exit"], &[&pattern]));
    wait_for(|| names(&folder).iter().filter(|name| name.ends_with(".prof")).count() == 2);
    names(&folder).iter().for_each(|name| drop(check(&folder.join(name))));
}

/// What a child has from its parent is told apart.
#[test]
fn inherited_blocks() {
    let folder = folder("inherits");
    let pattern = format!("DUMP_AT_EXIT={}/%p", text(&folder));
    let children = succeed(&mut profiled(&["inherits"], &[&pattern]));
    let inherited = |name: &str| -> Option<u64> {
        let text = check(&folder.join(name));
        text.lines().find_map(|line| line.strip_prefix("# inherited_samples = ")?.parse().ok())
    };
    let of_children: Vec<u64> = children.lines().map(|child| inherited(child).unwrap()).collect();
    assert!(of_children[0] >= 30 && of_children[0] - of_children[1] == 10, "{of_children:?}");
    let parent = names(&folder).into_iter().find(|name| !children.lines().any(|child| child == name)).unwrap();
    assert_eq!(inherited(&parent), None);
}

/// At most ten seconds.
#[track_caller]
fn wait_for(mut what: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !what() {
        assert!(start.elapsed().as_secs() < 10, "it never came to pass");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn snapshots_outlive_a_kill() {
    for (how, threads) in [("killed", false), ("abort", false)] {
        let folder = folder(&format!("snapshot-{how}-{threads}"));
        let dump = folder.join("heap.prof");
        let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
        let output = run(&[how, "", "400"], &[&at_exit, "SNAPSHOT=50ms"]);
        assert_eq!(output.status.code(), None, "{output:?}");
        check(&dump);
        // Killed in the middle of one, it leaves a part of that beside the last whole one.
        assert!(names(&folder).iter().all(|name| name.starts_with("heap.prof")), "{:?}", names(&folder));
        fs::remove_file(&dump).unwrap();
        // Not without being asked.
        run(&[how, "", "100"], &[&at_exit]);
        assert!(!dump.exists());
    }
}

#[test]
fn threads_only_where_they_are_asked_for() {
    let folder = folder("threads");
    let at_exit = format!("DUMP_AT_EXIT={}/heap.prof", text(&folder));
    let cases: [(&[&str], &str); 6] = [
        (&[], "1\n0\n"),
        (&["SNAPSHOT=20ms"], "1\n1\n"),
        (&["DUMP_EVERY=1MB", "DUMP_PEAKS=2"], "1\n1\n"),
        (&["DUMP_SIGNAL=USR2"], "2\n1\n"),
        (&["DUMP_INTERVAL=1h"], "2\n1\n"),
        (&["SNAPSHOT=0", "DUMP_INTERVAL=0", "DUMP_PEAKS=0", "DUMP_EVERY=0"], "1\n0\n"),
    ];
    for (variables, expected) in cases {
        let all: Vec<&str> = variables.iter().copied().chain([&*at_exit]).collect();
        let output = succeed(profiled(&["count"], &all).env("MIMALLOC_SCAVENGER", "0"));
        assert_eq!(output, expected, "{variables:?}");
    }
}

#[test]
fn dumps_on_a_signal() {
    let folder = folder("signal");
    let dump = folder.join("heap");
    let variables = [&*format!("DUMP_AT_EXIT={}", text(&dump)), "DUMP_SIGNAL=SIGUSR2", "FOLLOW=exec"];
    succeed(&mut profiled(&["signals", text(&dump)], &variables));
    let expected = ["heap", "heap.0001", "heap.0002", "heap.0003"];
    assert_eq!(names(&folder), expected);
    names(&folder).iter().for_each(|name| drop(check(&folder.join(name))));
    expected.iter().for_each(|name| fs::remove_file(folder.join(name)).unwrap());
    succeed(&mut profiled(&["signal_of_its_own"], &variables));
    succeed(&mut profiled(&["signal_in_child"], &variables));
    assert_eq!(names(&folder), ["heap"]);
    // Ignored from the start, it stays so, and the user hears of it.
    let script = "trap '' USR2; exec env LD_PRELOAD=\"$1\" \"$0\" signal_taken";
    let mut ignored = Command::new("sh");
    ignored.args(["-c", script]).arg(program()).arg(support::library()).env("MIMALLOC_PROF", "1");
    let output = ignored.env("MIMALLOC_PROF_DUMP_AT_EXIT", &dump).env("MIMALLOC_PROF_DUMP_SIGNAL", "12").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("ignored or has a handler"), "{output:?}");
}

#[test]
fn dumps_every_so_often() {
    let folder = folder("every");
    let dump = folder.join("heap");
    let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
    succeed(&mut profiled(&["interval", text(&dump)], &[&at_exit, "DUMP_INTERVAL=50ms"]));
    assert!(names(&folder).len() >= 4);
    let folder = self::folder("bytes");
    let pattern = format!("DUMP={}/%n.prof", text(&folder));
    succeed(&mut profiled(&["bytes"], &[&pattern, "DUMP_EVERY=10MB"]));
    // 64 MB, and what the program has allocated before: by estimates, which may be off by a little.
    let names = names(&folder);
    assert!((5..=7).contains(&names.len()), "{names:?}");
    names.iter().for_each(|name| drop(check(&folder.join(name))));
}

#[test]
fn the_highest_peaks_are_kept() {
    let folder = folder("peaks");
    let at_exit = format!("DUMP_AT_EXIT={}/heap.prof", text(&folder));
    succeed(&mut profiled(&["peaks"], &[&at_exit, "DUMP_PEAKS=3"]));
    let names = names(&folder);
    let peaks: Vec<&String> = names.iter().filter(|name| name.starts_with("heap.peak.")).collect();
    assert_eq!((peaks.len(), names.len()), (3, 4), "{names:?}");
    let live = |name: &String| -> u64 {
        let text = check(&folder.join(name));
        let header = text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
        header[3].parse().unwrap()
    };
    // In the order of their numbers they are in that of their heights.
    let heights: Vec<u64> = peaks.iter().map(|name| live(name)).collect();
    assert!(heights.windows(2).all(|two| two[0] < two[1]), "{heights:?}");
    assert!(heights[2] > 5_000_000, "{heights:?}");
}

#[test]
fn nothing_wakes_without_a_reason() {
    let folder = folder("idle");
    let at_exit = format!("DUMP_AT_EXIT={}/heap.prof", text(&folder));
    succeed(&mut profiled(&["idle"], &[&at_exit, "DUMP_SIGNAL=USR2", "SNAPSHOT=100ms", "DUMP_PEAKS=2"]));
}

#[test]
fn daemons() {
    let folder = folder("daemon");
    let pattern = "DUMP_AT_EXIT=heap.%p.prof";
    let mut command = profiled(&["daemon"], &[pattern, "SNAPSHOT=10ms"]);
    assert_eq!(succeed(command.current_dir(&folder)), "");
    let finished = || names(&folder).iter().filter(|name| name.ends_with(".prof")).count() == 3;
    wait_for(finished);
    names(&folder).iter().for_each(|name| drop(check(&folder.join(name))));
}

#[test]
fn rights_and_roots_that_are_given_up() {
    let folder = folder("rights");
    let dump = folder.join("own/heap.prof");
    fs::create_dir(folder.join("own")).unwrap();
    let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
    // Only root can do this.
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        return;
    }
    let jail = folder.join("jail");
    fs::create_dir(&jail).unwrap();
    assert_eq!(succeed(&mut profiled(&["chroot", "", text(&jail)], &[&at_exit])), "");
    assert!(!dump.exists() && names(&jail).is_empty());
    let output = run(&["nobody"], &[&at_exit]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.lines().count() == 1, "{output:?}");
    assert!(stderr.starts_with("mimalloc-pprof: cannot write the profile /"), "{stderr}");
}

#[test]
fn the_end_in_a_thread_and_of_the_main_thread() {
    let folder = folder("thread-end");
    let dump = folder.join("heap.prof");
    let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
    for variables in [&[&*at_exit] as &[&str], &[&at_exit, "DUMP_INTERVAL=10ms", "SNAPSHOT=10ms"]] {
        for (arguments, status) in
            [(&["exit_in_thread"] as &[&str], 3), (&["exit_in_thread", "", "small"], 3), (&["main_ends"], 0)]
        {
            let output = run(arguments, variables);
            assert_eq!((output.status.code(), output.stderr.len()), (Some(status), 0), "{arguments:?}: {output:?}");
            check(&dump);
            fs::remove_file(&dump).unwrap();
        }
    }
}

#[test]
fn threads_of_children_and_small_stacks() {
    let folder = folder("child-thread");
    let dump = folder.join("heap");
    let pattern = format!("DUMP_AT_EXIT={}.%p", text(&dump));
    succeed(&mut profiled(&["child_thread", text(&dump)], &[&pattern, "DUMP_SIGNAL=USR2", "FOLLOW=all"]));
    for what in ["small_stack", "closes"] {
        let at_exit = format!("DUMP_AT_EXIT={}", text(&dump));
        let _ = fs::remove_file(&dump);
        succeed(&mut profiled(&[what, text(&dump)], &[&at_exit, "SNAPSHOT=1s"]));
        check(&dump);
    }
}

/// A bad value is told once, and the default is used.
#[test]
fn bad_values() {
    let folder = folder("bad");
    let at_exit = format!("DUMP_AT_EXIT={}/heap.prof", text(&folder));
    let bad = ["DUMP_SIGNAL=KILL", "DUMP_INTERVAL=soon", "DUMP_EVERY=-1", "DUMP_PEAKS=x", "SNAPSHOT=1d", "FOLLOW=me"];
    for variable in bad {
        let output = run(&["work", "", "20"], &[&at_exit, variable]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let name = variable.split('=').next().unwrap();
        assert!(output.status.success() && stderr.lines().count() == 1 && stderr.contains(name), "{stderr}");
        check(&folder.join("heap.prof"));
    }
    let output = run(&["work", "", "20"], &["DUMP_INTERVAL=10ms"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("does not say where"), "{stderr}");
}

/// Where no dump can be written, the program goes on, and the user hears of it once.
#[test]
fn files_that_cannot_be_written() {
    for path in ["/dev/null/heap.prof", "/proc/heap.prof", "/no/such/folder/heap.prof"] {
        let variables = [&*format!("DUMP_AT_EXIT={path}"), "SNAPSHOT=10ms", "DUMP_INTERVAL=10ms"];
        let output = run(&["work", "", "100"], &variables);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.lines().count() == 1, "{stderr}");
        assert!(stderr.contains("cannot write the profile"), "{stderr}");
    }
}
