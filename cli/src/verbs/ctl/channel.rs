//! The socket of a process: where it is, and one question and answer on it.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use crate::sys::files;

/// An answer is shorter.
const LONGEST: u64 = 1 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Problem {
    NoSuchProcess,
    /// It belongs to this user, who is not us.
    NotOurs(u32),
    /// It has no channel, though the library is in it (or that cannot be told).
    NoChannel,
    /// The library is not in it.
    NoLibrary,
    /// There is a channel, and what it says is nothing.
    NoAnswer(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoSuchProcess => write!(to, "there is no such process"),
            Problem::NotOurs(user) => write!(to, "it belongs to another user ({user}); ask as that user or as root"),
            Problem::NoChannel => write!(
                to,
                "it has no control channel. Start it with `mpp run --ctl -- ...`, or with MIMALLOC_CTL=1 in its environment"
            ),
            Problem::NoLibrary => {
                write!(to, "the allocator is not in it, so it cannot be asked. Start it with `mpp run --ctl -- ...`")
            }
            Problem::NoAnswer(why) => write!(to, "no answer: {why}"),
        }
    }
}

/// Asks a process, and waits so long for the answer.
pub(super) fn ask(pid: u32, request: &str, time: Duration) -> Result<String, Problem> {
    let target = Target::look(pid)?;
    // Connecting, writing and reading may each wait: whoever does it is left alone when the time is over.
    let (told, answer) = mpsc::channel();
    let request = request.to_owned();
    std::thread::spawn(move || {
        let _ = told.send(target.ask(&request));
    });
    match answer.recv_timeout(time) {
        Ok(answer) => answer,
        Err(_) => Err(Problem::NoAnswer(format!("none came within {}", mpp_profile::units::duration(time)))),
    }
}

/// What is known of the process.
struct Target {
    pid: u32,
    /// Its number as it sees it itself: another one in a container.
    inner: u32,
    user: u32,
}

impl Target {
    fn look(pid: u32) -> Result<Target, Problem> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| Problem::NoSuchProcess)?;
        let words = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.into_iter().flat_map(str::split_whitespace).filter_map(|word| word.parse::<u32>().ok())
        };
        // Zombies have a status, too.
        let is_gone = status.lines().any(|line| line.starts_with("State:") && line.contains("Z ("));
        if is_gone || words("Tgid:").next().is_some_and(|process| process != pid) {
            return Err(Problem::NoSuchProcess);
        }
        // Real, effective, saved and of files.
        let user = words("Uid:").nth(1).unwrap_or(u32::MAX);
        let ours = files::ids().effective_user;
        if ours != 0 && ours != user {
            return Err(Problem::NotOurs(user));
        }
        Ok(Target { pid, inner: words("NSpid:").next_back().unwrap_or(pid), user })
    }

    /// Where its socket may be, in the order in which it looks for a place.
    fn places(&self) -> Vec<PathBuf> {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let theirs = environment.split(|&byte| byte == 0).find_map(|line| line.strip_prefix(b"XDG_RUNTIME_DIR="));
        let theirs = theirs.map(|folder| PathBuf::from(std::ffi::OsStr::from_bytes(folder)));
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let system = [format!("/run/user/{}", self.user), format!("/tmp/mpp-{}", self.user)].map(PathBuf::from);
        let folders = theirs.into_iter().chain(own).chain(system).filter(|folder| folder.is_absolute());
        let socket = format!("mpp-{}.sock", self.inner);
        let places: Vec<PathBuf> = folders.map(|folder| folder.join(&socket)).collect();
        // In another root they are to be reached through the process itself.
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let within = places.iter().filter_map(|place| place.strip_prefix("/").ok()).map(|place| root.join(place));
        places.iter().cloned().chain(within.collect::<Vec<_>>()).collect()
    }

    fn ask(&self, request: &str) -> Result<String, Problem> {
        let mut refused = None;
        for place in self.places() {
            match UnixStream::connect(&place) {
                Ok(stream) => return converse(stream, request).map_err(|error| Problem::NoAnswer(error.to_string())),
                // What a process of this number has left behind that is gone.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
                Err(error) => refused = refused.or(Some((place, error))),
            }
        }
        let maps = fs::read(format!("/proc/{}/maps", self.pid));
        match (refused, maps) {
            (Some((place, error)), _) if place.exists() => {
                Err(Problem::NoAnswer(format!("{}: {error}", place.display())))
            }
            // It has ended in this moment (or is one of the kernel's own).
            (_, Ok(maps)) if maps.is_empty() => Err(Problem::NoSuchProcess),
            (_, Ok(maps)) if !is_active(&maps) => Err(Problem::NoLibrary),
            _ if !Path::new(&format!("/proc/{}", self.pid)).exists() => Err(Problem::NoSuchProcess),
            _ => Err(Problem::NoChannel),
        }
    }
}

/// Whether the library is among what is mapped; as part of the program itself it cannot be told.
fn is_active(maps: &[u8]) -> bool {
    const NAME: &[u8] = b"mimalloc_pprof";
    maps.windows(NAME.len()).any(|name| name == NAME)
}

fn converse(mut stream: UnixStream, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).take(LONGEST).read_line(&mut answer)?;
    if answer.ends_with('\n') { Ok(answer) } else { Err(io::Error::other("it hung up")) }
}
