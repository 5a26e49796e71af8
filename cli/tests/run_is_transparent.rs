//! `mpp run` leaves its target alone: streams, status, arguments, signals, environment. These tests hold with any
//! library, so the targets fail on purpose: a status of 0 would be replaced if nothing was captured.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::{Place, ran};

#[test]
fn exit_status_is_that_of_the_program() {
    let place = Place::new();
    place.run(["run", "--", "sh", "-c", "exit 7"]).exits(7);
    place.run(["run", "sh", "-c", "exit 255"]).exits(255);
}

#[test]
fn a_signal_becomes_128_and_its_number() {
    let place = Place::new();
    place.run(["run", "--seed", "1", "--", "sh", "-c", "kill -9 $$"]).exits(137).says("SIGKILL");
    place.run(["run", "--seed", "1", "--", "sh", "-c", "kill -TERM $$"]).exits(143);
    assert_eq!(place.recordings(), [""; 0], "nothing was captured, nothing is left");
}

#[test]
fn output_is_the_same_to_the_byte() {
    let place = Place::new();
    let script = "printf 'a\\0b\\377\\n'; printf 'to stderr' >&2; exit 3";
    let direct = Command::new("sh").args(["-c", script]).output().expect("sh runs");
    let through = place.mpp().args(["run", "-q", "--", "sh", "-c", script]).output().expect("mpp runs");
    assert_eq!(through.stdout, direct.stdout);
    assert!(through.stderr.starts_with(&direct.stderr));
    assert_eq!(through.status.code(), Some(3));
}

#[test]
fn input_goes_to_the_program() {
    let place = Place::new();
    let mut child = place
        .mpp()
        .args(["run", "-q", "--", "sh", "-c", "cat; exit 4"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("mpp starts");
    child.stdin.take().expect("its input").write_all(b"through").expect("it reads");
    let output = child.wait_with_output().expect("mpp ends");
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"through"[..], Some(4)));
}

#[test]
fn arguments_and_name_arrive_as_given() {
    let place = Place::new();
    let source = "#include <stdio.h>\nint main(int n, char **v) { for (int i = 0; i < n; i++) puts(v[i]); return 9; }";
    place.compile("show", source, &[]);
    let ran = ran(place.mpp().args(["run", "--", "show", "-q", "--help", "", "a b", "--"]).env("PATH", "."));
    assert_eq!(ran.exits(9).stdout, "show\n-q\n--help\n\na b\n--\n");
}

#[test]
fn scripts_run_through_their_interpreter() {
    let place = Place::new();
    let script = place.script("script", "#!/usr/bin/env sh\necho \"$0 $1\"; exit 6\n");
    let ran = place.run(["run".as_ref(), "--".as_ref(), script.as_os_str(), "x".as_ref()]).exits(6);
    assert_eq!(ran.stdout, format!("{} x\n", script.display()));
}

/// Prints what is blocked, what is ignored, and the process group.
const STATE: &str = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { sigset_t set; struct sigaction a; sigprocmask(SIG_BLOCK, 0, &set);\n\
    for (int s = 1; s < 32; s++) { sigaction(s, 0, &a);\n\
    if (sigismember(&set, s)) printf(\"blocked %d\\n\", s); if (a.sa_handler == SIG_IGN) printf(\"ignored %d\\n\", s); }\n\
    printf(\"group %d\\n\", getpgrp()); return 3; }";

#[test]
fn signal_state_and_group_are_inherited() {
    let place = Place::new();
    let state = place.compile("state", STATE, &[]);
    let print = |mut command: Command| {
        // SAFETY: only system calls between fork and exec, on a set that was initialised.
        unsafe {
            command.pre_exec(|| {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR2);
                libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                libc::signal(libc::SIGUSR1, libc::SIG_IGN);
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
        ran(&mut command).exits(3).stdout
    };
    let direct = print(Command::new(&state));
    for (what, signal) in [("blocked", libc::SIGUSR2), ("ignored", libc::SIGUSR1), ("ignored", libc::SIGPIPE)] {
        assert!(direct.contains(&format!("{what} {signal}\n")), "{what} {signal} is not in {direct}");
    }
    let mut through = place.mpp();
    through.args(["run", "-q"]).arg(&state);
    assert_eq!(print(through), direct);
}

#[test]
fn signals_sent_to_mpp_reach_the_program() {
    for (signal, name) in
        [(libc::SIGTERM, "TERM"), (libc::SIGINT, "INT"), (libc::SIGHUP, "HUP"), (libc::SIGUSR1, "USR1")]
    {
        let place = Place::new();
        // It ends by itself, so that a signal that is lost fails the test instead of hanging it.
        let wait = "i=0; while [ $i -lt 500 ]; do sleep 0.02; i=$((i+1)); done; exit 99";
        let script = format!("trap 'exit 21' {name}; echo ready; {wait}");
        let mut mpp = place.mpp();
        mpp.args(["run", "-q", "--", "sh", "-c", &script]).stdout(Stdio::piped());
        // A shell cannot trap what it was started to ignore, as all that runs in the background ignores SIGINT.
        // SAFETY: one system call between fork and exec.
        unsafe {
            mpp.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = mpp.spawn().expect("mpp starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        // SAFETY: a plain system call on a child that has not been waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        assert_eq!(child.wait().expect("mpp ends").code(), Some(21), "{name}");
    }
}

/// Starts a command as the leader of a session with a terminal of its own, as a shell window does.
fn on_a_terminal(mut command: Command) -> (std::process::Child, std::fs::File) {
    use std::os::fd::FromRawFd;
    use std::ptr::{null, null_mut};
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: both descriptors are written by the call, and owned by nobody else; the other pointers may be null.
    let (master, slave) = unsafe {
        assert_eq!(libc::openpty(&mut master, &mut slave, null_mut(), null(), null()), 0);
        (std::fs::File::from_raw_fd(master), std::fs::File::from_raw_fd(slave))
    };
    command.stdin(slave.try_clone().expect("a descriptor")).stdout(slave);
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            if libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    (command.spawn().expect("mpp starts"), master)
}

#[test]
fn ctrl_c_arrives_once() {
    let place = Place::new();
    // A shell would notice two interrupts as one.
    let source = "#include <signal.h>\n#include <stdio.h>\n#include <time.h>\n\
                  static volatile sig_atomic_t n; static void count(int s) { (void)s; n++; }\n\
                  int main(void) { signal(SIGINT, count); puts(\"ready\"); fflush(stdout);\n\
                  for (int i = 0; i < 100; i++) { struct timespec t = {0, 20000000}; nanosleep(&t, 0); }\n\
                  return 40 + n; }";
    place.compile("count", source, &[]);
    let mut command = place.mpp();
    command.args(["run", "-q", "--", "./count"]);
    let (mut child, terminal) = on_a_terminal(command);
    let mut line = String::new();
    BufReader::new(terminal.try_clone().expect("a descriptor")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
    // Several times, because two interrupts at the same moment can count as one.
    for _ in 0..10 {
        (&terminal).write_all(b"\x03").expect("a key press");
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    assert_eq!(child.wait().expect("mpp ends").code(), Some(50), "ten interrupts for the program, none for mpp");
}

#[test]
fn environment_is_set_for_the_program_only() {
    let place = Place::new();
    let script = "echo \"$LD_PRELOAD\"; echo \"$MIMALLOC_PROF_SAMPLE_RATE $MIMALLOC_PROF_SEED $MIMALLOC_PROF_FOLLOW $A\"; \
                  echo \"$MIMALLOC_PROF_RECORDING\"; echo \"$MIMALLOC_PROF_PARENT $PPID\"; exit 2";
    let arguments = ["run", "-o", "out", "--sample", "64KiB", "--seed", "5", "--follow", "all", "--env", "A=b c"];
    let ran = ran(place.mpp().args(arguments).args(["--", "sh", "-c", script]).env("LD_PRELOAD", "/no/such.so"));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let [preload, settings, dump, parent] = lines.as_slice() else { panic!("{ran:?}") };
    let (library, rest) = preload.split_once(':').expect("two libraries");
    assert!(library.ends_with("/libmimalloc_pprof.so") && std::path::Path::new(library).is_file(), "{library}");
    assert_eq!(rest, "/no/such.so");
    assert_eq!(*settings, "65536 5 all b c");
    let place = std::fs::canonicalize(place.path("")).expect("the folder");
    assert_eq!(*dump, format!("{}/out", place.display()));
    let (ours, theirs) = parent.split_once(' ').expect("two ids");
    assert_eq!(ours, theirs, "mpp is the parent");
}

#[test]
fn the_library_goes_where_it_can_be_loaded_from() {
    let place = Place::new();
    let preload = |cache: &str, temporary: &str| {
        std::fs::create_dir_all(place.path(temporary)).expect("a folder");
        let mut command = place.mpp();
        command.args(["run", "-q", "--", "sh", "-c", "echo \"$LD_PRELOAD\"; exit 2"]);
        ran(command.env("XDG_CACHE_HOME", place.path(cache)).env("TMPDIR", place.path(temporary))).exits(2).stdout
    };
    assert!(preload("cache", "tmp").starts_with(&*place.path("cache/mpp/").to_string_lossy()));
    let fallback = preload("with space", "tmp");
    assert!(fallback.starts_with(&*place.path("tmp/mpp-preload-").to_string_lossy()), "{fallback}");
    let fallback = preload("with:colon", "with space too");
    assert!(fallback.starts_with("/tmp/mpp-preload-"), "{fallback}");
    let folder = std::path::Path::new(fallback.trim()).parent().expect("a folder");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn print_env_runs_nothing() {
    let place = Place::new();
    let ran = place.run(["run", "--print-env", "--sample", "1MB", "-o", "rec", "--", "touch", "it-ran"]).exits(0);
    let names: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let expected = ["LD_PRELOAD", "MIMALLOC_PROF", "MIMALLOC_PROF_SAMPLE_RATE", "MIMALLOC_PROF_RECORDING"];
    assert_eq!(names[..4], expected);
    assert!(ran.stdout.contains("MIMALLOC_PROF_SAMPLE_RATE=1000000\n"));
    assert!(!place.path("it-ran").exists() && !place.path("rec").exists());
}

#[test]
fn flags_come_from_the_environment_too() {
    let place = Place::new();
    let mut command = place.mpp();
    command.args(["run", "--", "sh", "-c", "echo $MIMALLOC_PROF_SAMPLE_RATE; exit 2"]).env("MPP_SAMPLE", "2KiB");
    assert_eq!(ran(&mut command).exits(2).stdout, "2048\n");
}
