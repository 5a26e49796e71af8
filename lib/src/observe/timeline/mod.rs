//! The timeline: what was sampled, when it was allocated and freed, and how much memory the process had meanwhile, in a file that grows
//! while the program runs. `docs/formats.md` describes it.
//!
//! The road of an event: the sampler says that a sampled block was allocated or has come to its end → the event waits with others of
//! like threads ([`shards`]) → ten times a second, whoever looks after what is due puts all of them into blocks and appends these
//! to the file ([`journal`], [`disk`]). A file that comes to the end of its budget is thinned ([`thin`]). What cannot be written ends
//! the recording, never the program.
//!
//! Locks: one for each place where events wait, and one for the file, which comes first. Nothing else is held under either but what
//! [`tick`] reads.

mod block;
mod code;
mod disk;
mod event;
mod journal;
mod numbering;
mod shards;
mod source;
mod thin;
mod tick;

#[cfg(test)]
mod tests;

pub(crate) use disk::Trouble;
pub(crate) use event::Place;

use super::path;
use super::settings::{Named, with_pattern};
use crate::os::{self, lock::Lock};
use crate::reclaim;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use disk::Header;
use event::{Event, Kind, is_kept};
use journal::{End, Journal};
use shards::Kept;
use tick::Tick;

/// Measurements take at most so small a part of one processor.
const THRIFT: u64 = 100;
/// Nanoseconds between ticks where nothing else is asked for.
pub(crate) const INTERVAL: u64 = 100_000_000;
/// Bytes of a file where nothing else is asked for.
pub(crate) const BUDGET: u64 = 1 << 30;

/// How often an event waits for room, before it is lost.
const ATTEMPTS: u32 = 1000;

/// What is asked for, besides the [name](Named::Timeline) of the file.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Bytes that the file may have.
    pub(crate) budget: u64,
    /// Nanoseconds between ticks, at least.
    pub(crate) interval: u64,
    /// Also while nothing happens in a program of one thread.
    pub(crate) takes_thread: bool,
}

/// Under [`LOCK`].
struct Guarded(UnsafeCell<State>);
// SAFETY: used only under LOCK, or in a forked child with one thread.
unsafe impl Sync for Guarded {}

struct State {
    journal: Journal,
    options: Options,
    /// The file was begun.
    begun: bool,
}

static LOCK: Lock = Lock::new();
static STATE: Guarded = Guarded(UnsafeCell::new(State {
    journal: Journal::NONE,
    options: Options { budget: 0, interval: 0, takes_thread: false },
    begun: false,
}));

/// Events are recorded.
static ON: AtomicBool = AtomicBool::new(false);
/// The process that records; in a child that shares its memory (vfork) nothing is written.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// When recording began, and how often the file was thinned: so that nobody waits with an event that is thinned away.
static START: AtomicU64 = AtomicU64::new(0);
static LEVEL: AtomicU32 = AtomicU32::new(0);
/// When the next tick is due.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Events that are missing in the file.
static LOST: AtomicU64 = AtomicU64::new(0);
/// What ended the recording: 1 + the [`Trouble`].
static TROUBLE: AtomicU32 = AtomicU32::new(0);

/// Begin to record; the file is made when the first tick is due. False: no memory.
///
/// Called once in a process, before the first sample.
pub(crate) fn start(options: Options) -> bool {
    if !shards::furnish() {
        return false;
    }
    LOCK.lock();
    // SAFETY: the lock is held.
    unsafe { (*STATE.0.get()).options = options };
    LOCK.unlock();
    restart(os::now());
    true
}

fn restart(now: u64) {
    // SAFETY: the caller is alone, or `start`; the interval does not change after that.
    let interval = unsafe { (*STATE.0.get()).options.interval };
    START.store(now, Relaxed);
    LEVEL.store(0, Relaxed);
    LOST.store(0, Relaxed);
    TROUBLE.store(0, Relaxed);
    PROCESS.store(os::process_id(), Relaxed);
    NEXT.store(now.saturating_add(interval), Relaxed);
    ON.store(true, Release);
}

pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// A sampled block was allocated by the thread with this number. Returns by what the block is known from now on; 0: the timeline does not
/// know it.
#[inline]
pub(crate) fn allocated(place: Place, requested: usize, thread: u32) -> u64 {
    if !is_on() {
        return 0;
    }
    let now = os::now();
    keep(Event::new(Kind::Allocated, place, now, now, thread, requested));
    now
}

/// A sampled block has come to its end: it was freed, or its content has `moved` to another block. `thread` does it.
#[inline]
pub(crate) fn ended(place: Place, birth: u64, thread: u32, moved: bool) {
    if is_on() {
        let kind = if moved { Kind::Moved } else { Kind::Freed };
        keep(Event::new(kind, place, birth, os::now(), thread, 0));
    }
}

/// A sampled block has another requested size.
#[inline]
pub(crate) fn resized(place: Place, birth: u64, requested: usize) {
    if is_on() {
        keep(Event::new(Kind::Resized, place, birth, os::now(), 0, requested));
    }
}

/// Write what waits: it cannot be explained any more after this.
pub(crate) fn catch_up() {
    if is_on() {
        with_journal(true, |state| state.write(|journal| journal.drain(&LOST)));
    }
}

fn keep(event: Event) {
    let start = START.load(Relaxed);
    if event.birth >= start && !is_kept((event.birth - start) / 1000, LEVEL.load(Relaxed)) {
        return;
    }
    let place = shards::mine();
    // Others may have filled it again before this thread goes on.
    for _ in 0..ATTEMPTS {
        match shards::push(place, event) {
            Kept::Yes => return,
            Kept::Busy => break,
            Kept::Full => with_journal(true, |state| state.write(|journal| journal.drain_place(place, &LOST))),
        }
    }
    LOST.fetch_add(1, Relaxed);
}

/// Do what is due, if anything is; when to look again. With no lock held.
pub(crate) fn due(now: u64) -> u64 {
    let next = NEXT.load(Relaxed);
    // In a signal handler that has interrupted this thread somewhere a tick would have to wait for it.
    if !is_on() || now < next || reclaim::must_not_wait() {
        return if is_on() { next } else { u64::MAX };
    }
    with_journal(false, |state| {
        let before = os::thread_cpu_time();
        let tick = Tick::take();
        let cost = os::thread_cpu_time().saturating_sub(before);
        state.write(|journal| {
            journal.drain(&LOST)?;
            journal.tick(now, &tick, LOST.load(Relaxed))
        });
        let rest = state.options.interval.max(cost.saturating_mul(THRIFT));
        NEXT.store(now.saturating_add(rest), Relaxed);
    });
    if is_on() { NEXT.load(Relaxed) } else { u64::MAX }
}

/// Add a mark with a text to the file, if there is one.
pub(crate) fn mark(text: &[u8]) {
    if is_on() {
        let now = os::now();
        with_journal(true, |state| state.write(|journal| journal.mark(now, text)));
    }
}

/// The process ends: write what waits, and that this is the end; or say what has ended the recording before.
pub(crate) fn finish() {
    if is_on() {
        end();
    }
    // Not where it happens: that may be a thread without standard error.
    if let Some(trouble) = Trouble::from_code(TROUBLE.swap(0, Relaxed)).filter(|trouble| !trouble.message().is_empty())
    {
        with_journal(true, |state| os::complain_about(trouble.message(), state.journal.disk.path.as_bytes()));
    }
}

fn end() {
    with_journal(true, |state| {
        let waits = !reclaim::must_not_wait();
        let now = os::now();
        let tick = if waits { Some(Tick::take()) } else { None };
        state.write(|journal| {
            journal.drain(&LOST)?;
            if let Some(tick) = &tick {
                journal.tick(now, tick, LOST.load(Relaxed))?;
            }
            journal.end(now, LOST.load(Relaxed), End::Exit)
        });
        ON.store(false, Relaxed);
    });
}

/// Run with the file's lock. Not at all in a signal handler that has interrupted its holder, nor in a process that only shares our memory;
/// `wait`: also when others are at it.
fn with_journal(wait: bool, run: impl FnOnce(&mut State)) {
    if LOCK.held_by_me() || PROCESS.load(Relaxed) != os::process_id() {
        return;
    }
    if wait {
        LOCK.lock();
    } else if !LOCK.try_lock() {
        return;
    }
    // SAFETY: the lock is held.
    run(unsafe { &mut *STATE.0.get() });
    LOCK.unlock();
}

impl State {
    /// Write something, to a file that is made if there is none. What goes wrong ends the recording.
    fn write(&mut self, write: impl FnOnce(&mut Journal) -> Result<(), Trouble>) {
        if !is_on() {
            return;
        }
        let outcome = self.begin().and_then(|()| write(&mut self.journal));
        LEVEL.store(self.journal.header.level, Relaxed);
        if let Err(trouble) = outcome {
            ON.store(false, Relaxed);
            TROUBLE.store(trouble.code(), Relaxed);
        }
    }

    fn begin(&mut self) -> Result<(), Trouble> {
        if self.begun {
            return Ok(());
        }
        let process = os::process_id();
        let path = &mut self.journal.disk.path;
        let expanded = with_pattern(Named::Timeline, |pattern| path::expand(pattern, 1, path).is_ok());
        if expanded != Some(true) {
            return Err(Trouble::Open);
        }
        let (now, wall, start) = (os::now(), os::calendar_time(), START.load(Relaxed));
        let wall = wall.saturating_sub(now.saturating_sub(start));
        let header = Header { level: 0, process, wall, start, interval: self.options.interval / 1000 };
        self.journal.begin(header, self.options.budget)?;
        self.begun = true;
        Ok(())
    }
}

/// In a forked child with one thread. `goes_on`: it has a recording of its own, which begins now, if the pattern tells processes apart.
pub(crate) fn forked(goes_on: bool) {
    let was_on = ON.swap(false, Relaxed);
    shards::forked();
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
    NEXT.store(u64::MAX, Relaxed);
    // Whom this thread has interrupted in there goes on to write, and finds that it is another process.
    if !was_on || LOCK.held_by_me() {
        return;
    }
    // SAFETY: one thread, and the lock is free.
    let state = unsafe { &mut *STATE.0.get() };
    state.begun = false;
    let tells_apart = with_pattern(Named::Timeline, path::tells_processes_apart);
    if goes_on && tells_apart == Some(true) {
        restart(os::now());
    }
}
