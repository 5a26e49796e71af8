//! The observer: starts a subject, watches it from outside, and writes down what it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Args;
use super::cgroup::Group;
use super::link::{Kind, Note};
use super::process::{Process, Thread, between};
use super::purge::Purge;
use super::record::{Record, Returned, Sample, Three, Truth};
use super::system::{Splits, System};
use crate::driver::clock;

/// The command that makes a subject of this program: its own arguments, and the word that says so.
///
/// # Errors
/// When the program cannot be found.
pub fn subject(more: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments()).arg("--subject").args(more);
    // SAFETY: prctl is a plain system call, as what runs between fork and exec must be.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Ok(command)
}

/// The arguments of this program.
fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

/// Runs a subject and watches it.
///
/// # Errors
/// When it cannot be started, ends before its time, or prints what it should not.
pub fn observe(args: &Args) -> io::Result<Record> {
    let mut command = subject(&[])?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let group = Group::find(&format!("mpp-{}", std::process::id()));
    let mut child = command.spawn()?;
    let moved = group.as_ref().and_then(Group::door).is_none_or(|door| enter(&door, child.id()));
    let group = if moved { group } else { group.and_then(Group::without_door) };
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
    let mut watch = Watch::new(args, Process::new(child.id()), group, input);
    let watched = watch.until_end(output);
    if watched.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    watched?;
    if watch.has_ended {
        Ok(watch.record())
    } else {
        Err(io::Error::other(format!("the subject ended before its time: {status}")))
    }
}

/// Moves a process into a group. It waits for the answer to its first note meanwhile, or has not got that far.
fn enter(door: &Path, process: u32) -> bool {
    fs::write(door, process.to_string()).is_ok()
}

struct Watch {
    process: Process,
    group: Option<Group>,
    /// `None` when the subject has been told to come to its end.
    input: Option<ChildStdin>,
    /// Nanoseconds.
    every: u64,
    length: u64,
    settle: u64,
    call: Option<Purge>,
    malloc_from: String,
    known: BTreeSet<u64>,
    /// When the drain ended.
    drained: Option<u64>,
    next: u64,
    samples: Vec<(u64, u64, Option<u64>)>,
    rss: Three,
    charged: [Option<u64>; 3],
    systems: [System; 3],
    huge: [Option<u64>; 2],
    before: Option<Vec<Thread>>,
    after: Vec<Thread>,
    figures: BTreeMap<String, f64>,
    damaged: u64,
    has_ended: bool,
}

impl Watch {
    fn new(args: &Args, process: Process, group: Option<Group>, input: ChildStdin) -> Self {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        Self {
            process,
            group,
            input: Some(input),
            every: nanoseconds(args.sample).max(1_000_000),
            length: nanoseconds(args.watch),
            settle: nanoseconds(args.scenario.settle()),
            call: args.scenario.call(),
            malloc_from: String::new(),
            known: BTreeSet::new(),
            drained: None,
            next: clock::wall(),
            samples: Vec::with_capacity(4096),
            rss: Three::default(),
            charged: [None; 3],
            systems: [System::default(); 3],
            huge: [None; 2],
            before: None,
            after: Vec::new(),
            figures: BTreeMap::new(),
            damaged: 0,
            has_ended: false,
        }
    }

    /// Listens and looks until the subject closes its end.
    fn until_end(&mut self, mut output: ChildStdout) -> io::Result<()> {
        loop {
            let now = clock::wall();
            if self.input.is_some() {
                self.look(now)?;
            }
            let time = if self.input.is_some() { self.next_look().saturating_sub(clock::wall()) } else { u64::MAX };
            if readable(&output, time)? {
                match Note::read(&mut output)? {
                    Some(note) => self.hear(&note)?,
                    None => return Ok(()),
                }
            }
        }
    }

    /// When there is something to be done next.
    fn next_look(&self) -> u64 {
        let Some(drained) = self.drained else { return self.next };
        let quiet = if self.before.is_none() { drained + self.settle } else { u64::MAX };
        self.next.min(quiet).min(drained + self.length)
    }

    /// Does what is due.
    fn look(&mut self, now: u64) -> io::Result<()> {
        if now >= self.next {
            self.sample(now);
            self.next = match self.drained {
                // On a grid that begins with the drain.
                Some(drained) => drained + ((now - drained) / self.every + 1) * self.every,
                None => now + self.every,
            };
        }
        let Some(drained) = self.drained else { return Ok(()) };
        if self.before.is_none() && now >= drained + self.settle {
            self.before = Some(self.process.threads());
        }
        if now >= drained + self.length {
            self.after = self.process.threads();
            self.rss.end = self.sample(now);
            self.moment(2);
            self.huge[1] = self.process.huge();
            self.answer()?;
            self.input = None;
        }
        Ok(())
    }

    fn hear(&mut self, note: &Note) -> io::Result<()> {
        match note.kind {
            Kind::Start => {
                self.malloc_from = self.process.file_at(note.value);
                self.rss.start = self.sample(clock::wall());
                self.moment(0);
                self.answer()?;
            }
            Kind::Thread => drop(self.known.insert(note.value)),
            Kind::Peak => {
                self.sample(clock::wall());
                self.moment(1);
                self.huge[0] = self.process.huge();
                self.answer()?;
            }
            Kind::Drained => {
                self.drained = Some(note.time);
                self.next = note.time;
            }
            Kind::Figure => drop(self.figures.insert(note.name.clone(), f64::from_bits(note.value))),
            Kind::End => (self.has_ended, self.damaged) = (true, note.value),
        }
        Ok(())
    }

    fn answer(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), |input| input.write_all(b"."))
    }

    /// Looks at resident memory now.
    fn sample(&mut self, now: u64) -> u64 {
        let Some(memory) = self.process.memory() else { return 0 };
        self.rss.peak = self.rss.peak.max(memory.peak_rss).max(memory.rss);
        let charged = self.group.as_ref().and_then(Group::usage);
        self.samples.push((now, memory.rss, charged));
        memory.rss
    }

    /// Notes figures of the system: at the start, the peak, or the end.
    fn moment(&mut self, at: usize) {
        self.charged[at] = self.group.as_ref().and_then(Group::usage);
        self.systems[at] = System::now();
    }

    fn truth(&self) -> Truth {
        let charged = match self.charged {
            [Some(start), Some(peak), Some(end)] => Some(Three { start, peak, end }),
            _ => None,
        };
        let is_own = self.group.as_ref().is_some_and(|group| group.door().is_some());
        let [start, peak, end] = self.systems;
        let used = |system: System| start.free.saturating_sub(system.free);
        let used = Three { start: 0, peak: used(peak), end: used(end) };
        Truth {
            group: self.group.as_ref().map(|group| group.kind().to_owned()),
            charged,
            charged_returned: charged.map(|it| if is_own { it.returned() } else { it.returned_of_growth() }),
            used,
            used_returned: used.returned(),
            huge: self.huge,
            splits: Splits::since(end.splits, start.splits),
        }
    }

    fn record(self) -> Record {
        let drained = self.drained.unwrap_or(self.next);
        let sample = |&(time, rss, charged): &(u64, u64, Option<u64>)| Sample {
            ms: (time as f64 - drained as f64) / 1e6,
            rss,
            charged,
        };
        let samples: Vec<_> = self.samples.iter().map(sample).collect();
        let (switches, helpers) = between(self.before.as_deref().unwrap_or(&[]), &self.after, &self.known);
        let command: Vec<_> = arguments().map(|word| word.to_string_lossy().into_owned()).collect();
        Record {
            command: command.join(" "),
            purge: self.call.map(|call| call.name().to_owned()),
            rss: self.rss,
            returned: Returned::of(&samples, self.rss),
            truth: self.truth(),
            switches,
            helpers,
            damaged: self.damaged,
            samples,
            malloc_from: self.malloc_from,
            figures: self.figures,
        }
    }
}

/// Waits up to `time` nanoseconds until there is something to read.
fn readable(from: &impl AsRawFd, time: u64) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = time.min(60_000_000_000);
    let time = libc::timespec { tv_sec: (time / 1_000_000_000) as i64, tv_nsec: (time % 1_000_000_000) as i64 };
    // SAFETY: one valid entry, a valid time, and no signal mask.
    match unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) } {
        0 => Ok(false),
        1 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
