//! Blocks that callbacks have allocated: nobody is told of those, neither when they are allocated nor when they are freed, wherever that
//! may be. So they have to be known; there are few of them.
//!
//! What was hidden before tracking was switched on anew is not hidden any more: it may have been freed meanwhile, and nobody was told. A thread may
//! have been on its way to hide a block since then, so it says for which run.
//!
//! A table of addresses, searched from where an address hashes to, under a lock that is taken only if there are any. Where it cannot grow, or a
//! signal handler has interrupted this thread in here, a block is not hidden: its free is told.

use super::Sum;
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

#[derive(Clone, Copy)]
struct Entry {
    /// 0 = none.
    block: usize,
    usable: usize,
}

const NONE: Entry = Entry { block: 0, usable: 0 };

static LOCK: Lock = Lock::new();
static TABLE: AtomicPtr<Entry> = AtomicPtr::new(core::ptr::null_mut());
/// Places in the table, a power of two; 0 = there is no table yet.
static PLACES: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Ever hidden since [`forget_all`].
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);

/// How often tracking was switched on.
static RUN: AtomicUsize = AtomicUsize::new(0);

const FIRST_PLACES: usize = os::PAGE / size_of::<Entry>();

/// What is hidden.
pub(super) struct Sums {
    pub(super) live: Sum,
    pub(super) allocated: Sum,
}

pub(super) fn sums() -> Sums {
    Sums {
        live: Sum { blocks: BLOCKS.load(Relaxed) as u64, bytes: BYTES.load(Relaxed) as u64 },
        allocated: Sum { blocks: ALLOCATED.load(Relaxed), bytes: ALLOCATED_BYTES.load(Relaxed) },
    }
}

/// The present run. To be asked before it is asked whether tracking is on.
#[inline]
pub(super) fn run() -> usize {
    RUN.load(SeqCst)
}

/// Hide a block that was just allocated, in this run.
pub(super) fn add(block: usize, usable: usize, run: usize) {
    if keep(block, usable, run) {
        ALLOCATED.fetch_add(1, Relaxed);
        ALLOCATED_BYTES.fetch_add(usable as u64, Relaxed);
    }
}

fn keep(block: usize, usable: usize, run: usize) -> bool {
    let mut kept = false;
    within(|table| kept = run == RUN.load(Relaxed) && insert(table, Entry { block, usable }));
    kept
}

/// A block is to be freed: true if it was hidden.
#[inline]
pub(super) fn remove(block: usize) -> bool {
    BLOCKS.load(Relaxed) != 0 && take(block).is_some()
}

/// Another block takes the place of one, or it has another size: true if that was hidden, and so is the new one.
#[inline]
pub(super) fn replace(old: usize, new: usize, usable: usize) -> bool {
    if BLOCKS.load(Relaxed) == 0 {
        return false;
    }
    let Some(before) = take(old) else { return false };
    keep(new, usable, run());
    // The heap counts a block that moves or grows as a new one.
    if new != old || usable != before {
        ALLOCATED.fetch_add(1, Relaxed);
        ALLOCATED_BYTES.fetch_add(usable as u64, Relaxed);
    }
    true
}

/// A new run: what is hidden is not any more. Before tracking is switched on.
pub(super) fn forget_all() {
    within(|table| {
        RUN.fetch_add(1, SeqCst);
        table.fill(NONE);
        for sum in [&BLOCKS, &BYTES] {
            sum.store(0, Relaxed);
        }
        for sum in [&ALLOCATED, &ALLOCATED_BYTES] {
            sum.store(0, Relaxed);
        }
    });
}

fn within(act: impl FnOnce(&mut [Entry])) {
    if LOCK.held_by_me() {
        return;
    }
    LOCK.lock();
    // SAFETY: the lock is held, and the table has that many places.
    act(unsafe { table() });
    LOCK.unlock();
}

/// The lock is held.
unsafe fn table() -> &'static mut [Entry] {
    let places = PLACES.load(Relaxed);
    if places == 0 {
        return &mut [];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts_mut(TABLE.load(Relaxed), places) }
}

fn place_of(block: usize, places: usize) -> usize {
    block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 & (places - 1)
}

/// False: there is no memory for it.
fn insert(mut table: &mut [Entry], entry: Entry) -> bool {
    if BLOCKS.load(Relaxed) * 2 >= table.len() {
        let Some(larger) = grow(table) else { return false };
        table = larger;
    }
    put(table, entry);
    BLOCKS.fetch_add(1, Relaxed);
    BYTES.fetch_add(entry.usable, Relaxed);
    true
}

fn put(table: &mut [Entry], entry: Entry) {
    let mut at = place_of(entry.block, table.len());
    while table[at].block != 0 {
        at = (at + 1) % table.len();
    }
    table[at] = entry;
}

fn grow(table: &mut [Entry]) -> Option<&'static mut [Entry]> {
    let places = (table.len() * 2).max(FIRST_PLACES);
    let memory = os::map(places * size_of::<Entry>()).cast::<Entry>();
    if memory.is_null() {
        return None;
    }
    // SAFETY: fresh memory, all zero.
    let larger = unsafe { core::slice::from_raw_parts_mut(memory, places) };
    table.iter().filter(|entry| entry.block != 0).for_each(|&entry| put(larger, entry));
    TABLE.store(memory, Relaxed);
    PLACES.store(places, Release);
    if !table.is_empty() {
        os::unmap(table.as_mut_ptr().cast(), size_of_val(table));
    }
    Some(larger)
}

/// Its usable bytes, if it was there.
#[cold]
#[inline(never)]
fn take(block: usize) -> Option<usize> {
    let mut found = None;
    within(|table| {
        if table.is_empty() {
            return;
        }
        let mut at = place_of(block, table.len());
        while table[at].block != block {
            if table[at].block == 0 {
                return;
            }
            at = (at + 1) % table.len();
        }
        let usable = table[at].usable;
        found = Some(usable);
        close_gap(table, at);
        BLOCKS.fetch_sub(1, Relaxed);
        BYTES.fetch_sub(usable, Relaxed);
    });
    found
}

/// Take an entry out, and move up those behind it that were only there because places before were taken.
fn close_gap(table: &mut [Entry], mut gap: usize) {
    let places = table.len();
    let mut at = gap;
    loop {
        at = (at + 1) % places;
        if table[at].block == 0 {
            break;
        }
        let wanted = place_of(table[at].block, places);
        // Not if its own place lies behind the gap.
        if (at + places - wanted) % places >= (at + places - gap) % places {
            table[gap] = table[at];
            gap = at;
        }
    }
    table[gap] = NONE;
}

/// In a forked child: what a vanished thread was changing is begun anew, with nothing hidden.
pub(super) fn repair() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
        TABLE.store(core::ptr::null_mut(), Relaxed);
        PLACES.store(0, Relaxed);
        BLOCKS.store(0, Relaxed);
        BYTES.store(0, Relaxed);
    }
}
