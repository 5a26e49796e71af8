//! Counting system calls from outside, by ptrace(2): of a whole program, and of single parts of a thread between two marks.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::link::{Kind, Note};

/// A system call that has no effect is the mark: `getpriority` of no kind of thing, with the begin or the end of a part.
const MARK: [libc::c_long; 2] = [0x4d50_5001, 0x4d50_5002];

/// Runs `part` between two marks.
pub fn marked<T>(part: impl FnOnce() -> T) -> T {
    mark(0);
    let result = part();
    mark(1);
    result
}

fn mark(end: usize) {
    // SAFETY: a system call without pointers that fails.
    unsafe { libc::syscall(libc::SYS_getpriority, MARK[end], 0) };
}

/// How often each system call was made, by name; those that have nothing to do with memory are together under `other`.
pub type Calls = BTreeMap<String, u64>;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// By all threads, from the start of the program to its end.
    pub calls: Calls,
    /// Between the first pair of marks of any thread, by that thread.
    pub marked: Option<Calls>,
    /// Blocks that were damaged.
    pub damaged: u64,
}

/// Calls that ask for memory or give it back.
#[must_use]
pub fn about_memory(calls: &Calls) -> u64 {
    NAMES.iter().filter(|(.., is_about_memory)| *is_about_memory).filter_map(|(_, name, _)| calls.get(*name)).sum()
}

/// Numbers, names, and whether they are calls about memory.
const NAMES: [(libc::c_long, &str, bool); 8] = [
    (libc::SYS_mmap, "mmap", true),
    (libc::SYS_munmap, "munmap", true),
    (libc::SYS_madvise, "madvise", true),
    (libc::SYS_process_madvise, "process_madvise", true),
    (libc::SYS_mremap, "mremap", true),
    (libc::SYS_brk, "brk", true),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_membarrier, "membarrier", false),
];

/// Answers for a subject that nobody watches: more than it asks for.
const ANSWERS: &[u8] = &[b'.'; 16];

/// Runs `command`, a subject, to its end and counts.
///
/// # Errors
/// When it cannot be started or traced, or does not end well.
pub fn count(mut command: Command) -> io::Result<Counted> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: a plain system call, as what runs between fork and exec must be.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn()?;
    let (mut input, mut output) = (child.stdin.take(), child.stdout.take());
    input.as_mut().map_or(Ok(()), |pipe| pipe.write_all(ANSWERS))?;
    let mut counter = Counter::default();
    let status = counter.follow(child.id() as libc::pid_t)?;
    drop(input);
    let mut counted = counter.counted();
    let mut has_ended = false;
    while let Some(note) = output.as_mut().map_or(Ok(None), Note::read)? {
        if note.kind == Kind::End {
            (has_ended, counted.damaged) = (true, note.value);
        }
    }
    if has_ended { Ok(counted) } else { Err(io::Error::other(format!("the subject ended with status {status:#x}"))) }
}

/// What was seen so far, by number of the call.
#[derive(Debug, Default)]
struct Counter {
    calls: BTreeMap<u64, u64>,
    marked: Option<BTreeMap<u64, u64>>,
    /// The thread that is between its marks.
    marking: Option<libc::pid_t>,
}

impl Counter {
    /// Follows the process `first`, which stops when it executes its program, and all its threads. Returns its status.
    fn follow(&mut self, first: libc::pid_t) -> io::Result<libc::c_int> {
        let mut known = HashSet::from([first]);
        let mut result = wait(first)?.1;
        if libc::WIFSTOPPED(result) {
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
            request(libc::PTRACE_SETOPTIONS, first, options as usize)?;
            request(libc::PTRACE_SYSCALL, first, 0)?;
        }
        loop {
            let (thread, status) = match wait(-1) {
                Ok(stopped) => stopped,
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(result),
                Err(error) => return Err(error),
            };
            if !libc::WIFSTOPPED(status) {
                if thread == first {
                    result = status;
                }
                continue;
            }
            let is_new = known.insert(thread);
            let signal = match libc::WSTOPSIG(status) {
                stop if stop == libc::SIGTRAP | 0x80 => {
                    self.stopped_at_call(thread)?;
                    0
                }
                // Events, and the stop with which a new thread begins.
                libc::SIGTRAP => 0,
                libc::SIGSTOP if is_new => 0,
                signal => signal,
            };
            // A thread that was killed meanwhile is met by the next wait.
            let _ = request(libc::PTRACE_SYSCALL, thread, signal as usize);
        }
    }

    fn stopped_at_call(&mut self, thread: libc::pid_t) -> io::Result<()> {
        // SAFETY: all zeros is a valid value of plain numbers.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        // SAFETY: the place for the answer is valid and as large as told.
        let got = unsafe {
            libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size_of_val(&info), std::ptr::from_mut(&mut info))
        };
        if got <= 0 {
            return Err(io::Error::last_os_error());
        }
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return Ok(());
        }
        // SAFETY: at an entry it is this member that is valid.
        let entry = unsafe { info.u.entry };
        let is_mark = |end: usize| entry.nr == libc::SYS_getpriority as u64 && entry.args[0] == MARK[end] as u64;
        if is_mark(0) {
            if self.marked.is_none() {
                (self.marked, self.marking) = (Some(BTreeMap::new()), Some(thread));
            }
        } else if is_mark(1) {
            self.marking = self.marking.filter(|&marking| marking != thread);
        } else {
            *self.calls.entry(entry.nr).or_default() += 1;
            if let Some(marked) = self.marked.as_mut().filter(|_| self.marking == Some(thread)) {
                *marked.entry(entry.nr).or_default() += 1;
            }
        }
        Ok(())
    }

    fn counted(&self) -> Counted {
        Counted { calls: named(&self.calls), marked: self.marked.as_ref().map(named), damaged: 0 }
    }
}

fn named(calls: &BTreeMap<u64, u64>) -> Calls {
    let mut named = Calls::new();
    for (&number, &count) in calls {
        let name = NAMES.iter().find(|(known, ..)| *known as u64 == number).map_or("other", |(_, name, _)| *name);
        *named.entry(name.to_owned()).or_default() += count;
    }
    named
}

fn wait(thread: libc::pid_t) -> io::Result<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: a valid place for the status.
        let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
        if found >= 0 {
            return Ok((found, status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn request(request: libc::c_uint, thread: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: these requests take no pointers.
    match unsafe { libc::ptrace(request, thread, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_subject_is_counted_and_refused() {
        let mut command = Command::new("true");
        command.env_remove("LD_PRELOAD");
        let error = count(command).unwrap_err();
        assert!(error.to_string().contains("status 0x0"), "{error}");
    }

    #[test]
    fn names_and_sums() {
        let calls = named(&BTreeMap::from([
            (libc::SYS_mmap as u64, 3),
            (libc::SYS_madvise as u64, 4),
            (libc::SYS_read as u64, 9),
            (libc::SYS_write as u64, 1),
        ]));
        assert_eq!(
            calls,
            Calls::from([("mmap", 3), ("madvise", 4), ("other", 10)].map(|(name, count)| (name.to_owned(), count)))
        );
        assert_eq!(about_memory(&calls), 7);
    }
}
