//! `mpp ctl` and a real process: what it says, and to whom it does not.

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use common::{Place, Ran, json, ran};

/// A program under `mpp run --ctl`, which is told to end when this is dropped.
struct Running {
    mpp: Child,
    /// The program itself.
    pid: String,
}

impl Running {
    fn start(place: &Place, flags: &[&str]) -> Running {
        let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nchar *volatile keep;\n\
                      int main(void) { keep = malloc(9 << 20); memset(keep, 1, 9 << 20); printf(\"%d\\n\", getpid()); \
                      fflush(stdout); while (getchar() != EOF) {} return 0; }";
        place.compile("patient", source, &["-g", "-O0"]);
        let mut command = place.mpp();
        command.args(["run", "-q"]).args(flags).args(["--", "./patient"]);
        command.env("XDG_RUNTIME_DIR", place.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut mpp = command.spawn().expect("mpp starts");
        let mut line = String::new();
        let stdout = mpp.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        Running { mpp, pid: line.trim().to_owned() }
    }

    fn ctl(&self, place: &Place, arguments: &[&str]) -> Ran {
        let mut command = place.mpp();
        command.args(["ctl", &self.pid]).args(arguments).env("XDG_RUNTIME_DIR", place.path(""));
        ran(&mut command)
    }

    /// Until it answers for the first time.
    fn wait(&self, place: &Place) {
        for _ in 0..500 {
            if self.ctl(place, &["status"]).status == Some(0) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("it never answers: {:?}", self.ctl(place, &["status"]));
    }

    fn end(mut self) {
        drop(self.mpp.stdin.take());
        assert!(self.mpp.wait().expect("it ends").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.mpp.stdin.take());
        let _ = self.mpp.wait();
    }
}

#[test]
fn a_conversation() {
    let place = Place::new();
    let running = Running::start(&place, &["-o", "rec", "--ctl", "--sample", "64KiB"]);
    running.wait(&place);
    let ctl = |arguments: &[&str]| running.ctl(&place, arguments);
    ctl(&["status"]).exits(0).prints("sampling").prints("yes").prints("64.0 KiB");
    let status = json(&ctl(&["--format", "json", "status"]).exits(0).stdout);
    assert_eq!((status["pid"].to_string(), &status["sample_rate"]), (running.pid.clone(), &65_536.into()));
    ctl(&["mark", "after \"warm-up\""]).exits(0);
    // A path is one of ours, not of the program's.
    ctl(&["dump", "now.prof"]).exits(0).prints("now.prof");
    ctl(&["dump", "now.pb.gz"]).exits(0);
    let text = std::fs::read_to_string(place.path("now.prof")).expect("a profile");
    assert!(text.contains("s after \"warm-up\"\n"), "{text}");
    for dump in ["now.prof", "now.pb.gz"] {
        place.run(["top", dump, "--limit", "3"]).exits(0).prints("main");
    }
    let timeline = place.run(["timeline", "rec"]).exits(0);
    timeline.prints("after \"warm-up\"");
    // Without a path it is a numbered one of the recording.
    ctl(&["dump"]).exits(0).prints("/heap.0001.pb.gz");
    ctl(&["stats"]).exits(0).prints("heap").prints("resident");
    ctl(&["purge"]).exits(0).prints("complete");
    ctl(&["options", "purge_delay=50"]).exits(0).prints("50");
    ctl(&["reset"]).exits(0);
    ctl(&["stop"]).exits(0);
    ctl(&["start", "1MiB"]).exits(0).prints("1.00 MiB");
    ctl(&["start", "soon"]).exits(1).says("refuses: the rate is not a size");
    ctl(&["dump", "/no/such/folder/at/all.prof"]).exits(1).says("refuses: no such folder");
    ctl(&["options", "no_such"]).exits(1).says("unknown option");
    ctl(&["mark"]).exits(2).says("mark takes 1 arguments");
    ctl(&["status", "now"]).exits(2);
    ctl(&["sing"]).exits(2);
    running.end();
}

#[test]
fn nobody_to_ask() {
    let place = Place::new();
    let running = Running::start(&place, &["-o", "rec"]);
    running.ctl(&place, &["status"]).exits(13).says("no control channel").says("mpp run --ctl");
    let other = Command::new("sleep").arg("30").spawn();
    let mut other = other.expect("sleep starts");
    let pid = other.id().to_string();
    place.run(["ctl", &pid, "status"]).exits(13).says("the allocator is not in it");
    other.kill().expect("it is ours");
    place.run(["ctl", &pid, "status"]).exits(13).says("no such process");
    other.wait().expect("it ends");
    place.run(["ctl", &pid, "status"]).exits(13).says("no such process");
    place.run(["ctl", "0", "status"]).exits(2);
    place.run(["ctl", "1", "status", "--timeout", "0s"]).exits(2);
    running.end();
}

/// Nobody waits for ever.
#[test]
fn an_answer_that_never_comes() {
    let place = Place::new();
    let running = Running::start(&place, &["-o", "rec"]);
    let socket = place.path(&format!("mpp-{}.sock", running.pid));
    let listener = UnixListener::bind(&socket).expect("a socket");
    let start = std::time::Instant::now();
    running.ctl(&place, &["status", "--timeout", "300ms"]).exits(1).says("none came within 300 ms");
    assert!(start.elapsed().as_secs() < 20);
    // Neither is nonsense taken for an answer.
    let answers = std::thread::spawn(move || {
        for answer in ["nonsense\n", "{}\n", "{\"ok\":false,\"error\":\"\u{1b}[31m\"}\n", "{\"ok\":true"] {
            // Who has given up is still in the queue.
            loop {
                let (stream, _) = listener.accept().expect("a connection");
                let mut line = String::new();
                let mut reader = BufReader::new(stream);
                if reader.read_line(&mut line).is_ok()
                    && std::io::Write::write_all(reader.get_mut(), answer.as_bytes()).is_ok()
                {
                    break;
                }
            }
        }
    });
    let mut seen = 0;
    for _ in 0..20 {
        if answers.is_finished() {
            break;
        }
        let ran = running.ctl(&place, &["status", "--timeout", "5s"]).exits(1);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
        seen += 1;
    }
    assert!(seen >= 3);
    running.end();
}

#[test]
fn signals_trigger_dumps() {
    let place = Place::new();
    let running = Running::start(&place, &["-o", "rec", "--on-signal", "USR1", "--ctl"]);
    running.wait(&place);
    assert!(Command::new("kill").args(["-USR1", &running.pid]).status().expect("kill runs").success());
    let dump = place.path(&format!("rec/{}/heap.0001.pb.gz", running.pid));
    for _ in 0..500 {
        if dump.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(dump.exists());
    place.run([std::ffi::OsStr::new("top"), dump.as_os_str()]).exits(0).prints("main");
    running.end();
}
