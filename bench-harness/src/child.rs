//! Runs one program with a limit on its time, and says what it used.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until its socket is there.
const SERVER_STARTS: Duration = Duration::from_secs(10);

/// What to run, and for how long at most.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program: a path, or a name to be found in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables on top of the caller's environment, of which `LD_PRELOAD` is never passed on.
    pub environment: Vec<(String, String)>,
    /// What it reads from standard input; nothing if `None`.
    pub input: Option<PathBuf>,
    /// The working directory; the caller's if `None`.
    pub folder: Option<PathBuf>,
    /// The file that standard output and standard error go to.
    pub output: PathBuf,
    /// After this much wall time the program and its children are killed.
    pub limit: Duration,
    /// If the program is a server, who talks to it.
    pub client: Option<Client>,
}

/// A program that gives a server work, in the caller's environment without any preloaded library. When it has ended the
/// server gets SIGTERM.
#[derive(Clone, Debug)]
pub struct Client {
    /// A socket that the server creates when it is ready.
    pub socket: PathBuf,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
    /// It was killed because its time was up.
    TimedOut,
}

/// What a program used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// How it ended.
    pub end: End,
    /// Processor time of it and the children it waited for, user and system.
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Peak resident memory in bytes. The kernel lets a program inherit the peak of the one that started it, so a value up to
    /// the caller's own says nothing, and is `None`.
    pub peak_rss: Option<u64>,
}

/// Runs `job` to its end.
///
/// # Errors
/// When the program cannot be started or waited for, or the server's client fails.
pub fn run(job: &Job) -> io::Result<Usage> {
    let output = File::create(&job.output)?;
    let mut command = Command::new(&job.program);
    command.args(&job.arguments).env_remove("LD_PRELOAD").envs(job.environment.iter().map(|(key, value)| (key, value)));
    command.stdin(match &job.input {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    });
    command.stdout(output.try_clone()?).stderr(output);
    if let Some(folder) = &job.folder {
        command.current_dir(folder);
    }
    // A group of its own, so that it can be killed with its children.
    command.process_group(0);
    // SAFETY: prctl is a plain system call, as what runs between fork and exec must be.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let start = Instant::now();
    let pid = command.spawn()?.id() as libc::pid_t;
    let talked = job.client.as_ref().map_or(Ok(()), |client| talk(client, pid, job.limit));
    let in_time = match &talked {
        Ok(()) => wait_until(pid, job.limit.saturating_sub(start.elapsed()))?,
        Err(_) => false,
    };
    if !in_time {
        // SAFETY: the group is the child's, which has not been waited for, so its number is not reused.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
    let usage = reap(pid, in_time, start)?;
    talked?;
    Ok(usage)
}

/// Lets the client do its work, and ends the server.
fn talk(client: &Client, server: libc::pid_t, limit: Duration) -> io::Result<()> {
    let start = Instant::now();
    while !client.socket.exists() {
        if start.elapsed() > SERVER_STARTS || wait_until(server, Duration::from_millis(10))? {
            return Err(io::Error::other("the server did not start"));
        }
    }
    let mut command = Command::new(&client.program);
    command
        .args(&client.arguments)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let in_time = wait_until(child.id() as libc::pid_t, limit)?;
    if !in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    // SAFETY: the server has not been waited for, so its number is not reused.
    unsafe { libc::kill(server, libc::SIGTERM) };
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the client of the server: {status}"))) }
}

/// Waits until process `pid`, a child, has ended. Whether it did within `limit`. It stays to be reaped.
fn wait_until(pid: libc::pid_t, limit: Duration) -> io::Result<bool> {
    let end = Instant::now() + limit;
    // SAFETY: a system call without pointers.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as libc::c_int;
    if handle < 0 {
        return Err(io::Error::last_os_error());
    }
    let ended = loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis().min(60_000) as libc::c_int;
        let mut poll = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        match unsafe { libc::poll(&raw mut poll, 1, left) } {
            1 => break Ok(true),
            0 if Instant::now() >= end => break Ok(false),
            0 => {}
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => break Err(error),
            },
        }
    };
    // SAFETY: the descriptor is ours.
    unsafe { libc::close(handle) };
    ended
}

/// Takes the status and the usage of the ended child `pid`.
fn reap(pid: libc::pid_t, in_time: bool, start: Instant) -> io::Result<Usage> {
    let mut status = 0;
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid places for the answers.
    while unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    let end = match () {
        () if !in_time => End::TimedOut,
        () if libc::WIFEXITED(status) => End::Status(libc::WEXITSTATUS(status)),
        () => End::Signal(libc::WTERMSIG(status)),
    };
    let (peak, own) = (usage.ru_maxrss as u64 * 1024, crate::rss::of_process(std::process::id()));
    Ok(Usage {
        end,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        wall: start.elapsed(),
        peak_rss: Some(peak).filter(|&peak| own.is_ok_and(|own| peak > own.peak_rss)),
    })
}

/// The last lines of what a program printed, for a message: `: ` and the lines, or nothing. A result is no part of the reason.
#[must_use]
pub fn last_words(output: &Path) -> String {
    const LINES: usize = 3;
    let text = std::fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('{')).collect();
    if lines.is_empty() {
        return String::new();
    }
    let words = lines[lines.len().saturating_sub(LINES)..].join(" / ");
    format!(": {words}").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Usage, String) {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output");
        let job = Job {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("GREETING".into(), "hello".into())],
            input: None,
            folder: Some("/".into()),
            output: output.clone(),
            limit,
            client: None,
        };
        let usage = run(&job).unwrap();
        (usage, std::fs::read_to_string(output).unwrap())
    }

    #[test]
    fn status_signal_output_and_time() {
        let (usage, output) = shell("echo $GREETING; pwd; exit 7", Duration::from_secs(60));
        assert_eq!((usage.end, output.as_str()), (End::Status(7), "hello\n/\n"));
        assert_eq!(shell("kill -SEGV $$", Duration::from_secs(60)).0.end, End::Signal(libc::SIGSEGV));
        let (usage, _) = shell("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done", Duration::from_secs(60));
        assert!(usage.cpu > Duration::ZERO && usage.wall >= usage.cpu / 4);
    }

    #[test]
    fn what_hangs_is_killed_with_its_children() {
        let start = Instant::now();
        let (usage, output) = shell("sleep 1000 & echo $!; wait", Duration::from_millis(300));
        assert_eq!(usage.end, End::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(100));
        let path = format!("/proc/{}/stat", output.trim());
        // Whoever inherits the orphan reaps it at leisure; it must be dead, not gone.
        while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(start.elapsed() < Duration::from_secs(100), "the child lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let output = tempfile::NamedTempFile::new().unwrap();
        let job = Job {
            program: "/nowhere/at/all".into(),
            arguments: vec![],
            environment: vec![],
            input: None,
            folder: None,
            output: output.path().into(),
            limit: Duration::from_secs(1),
            client: None,
        };
        assert!(run(&job).is_err());
    }
}
