//! Runs of slices: taken from bins by length, split, merged with free neighbours when they come back.
//!
//! The chain of heads is the truth; bins and back pointers are derived from it and rebuilt in a forked child that
//! inherited the lock from a thread it does not have. So each change commits by one store to a head:
//! split: the rear heads, then the store that shortens the front; merge: the store of the merged head, then the inner
//! heads are cleared; growth: the head, then `END`.

use super::window::{FIRST, address_of, map_to, mapped, slice};
use super::{Kind, SLICE, Slice, huge};
use crate::os::lock::Lock;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*, compiler_fence};

/// Bins for lengths 1 ..= EXACT; bin 0 holds longer runs.
const EXACT: usize = 64;
/// Longer runs looked at for the best fit.
const LOOKS: usize = 200;

static LOCK: Lock = Lock::new();
/// Slices below have a head.
static END: AtomicUsize = AtomicUsize::new(FIRST);
/// First run of each bin, 0 = none. `LOCK`.
static BINS: [AtomicU32; EXACT + 1] = [const { AtomicU32::new(0) }; EXACT + 1];

/// True while this thread is inside the arena: a signal handler that allocates must not wait for itself.
pub(crate) fn is_busy_here() -> bool {
    LOCK.held_by_me()
}

/// `slices` slices whose address is a multiple of `alignment` slices, in transit; `None` = no memory.
pub(crate) fn allocate(slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe { allocate_locked(slices, alignment) };
    LOCK.unlock();
    run
}

/// [`allocate`], but only what is there: the arena does not grow.
pub(crate) fn reuse(slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe { find(slices + alignment - 1).map(|run| take(run, slices, alignment)) };
    LOCK.unlock();
    run
}

/// Give a run in transit back. `clean`: all of it reads zero.
pub(crate) fn free(index: usize, clean: bool) {
    LOCK.lock();
    // SAFETY: the lock is held and the caller owns the run.
    unsafe { free_locked(index, clean) };
    LOCK.unlock();
}

/// Make a run of the caller's longer, to `slices` slices, if what follows it is free. False: it is as it was.
pub(crate) unsafe fn extend(run: usize, slices: usize) -> bool {
    LOCK.lock();
    // SAFETY: the lock is held, and the run is the caller's.
    let extended = unsafe { extend_locked(run, slices) };
    LOCK.unlock();
    extended
}

unsafe fn extend_locked(run: usize, slices: usize) -> bool {
    // SAFETY: the lock is held.
    unsafe {
        let Some((kind, length)) = (*slice(run)).run() else { return false };
        let (after, end) = (run + length, END.load(Relaxed));
        let mut free = 0;
        if after < end {
            match (*slice(after)).run() {
                Some((Kind::Free, n)) => free = n,
                _ => return false,
            }
        }
        if slices > length + free {
            // Only at the end of the window can more be had.
            if after + free != end || !map_to(run + slices) {
                return false;
            }
            huge::grown(run + slices, slices, mapped());
        }
        if free != 0 {
            unlink(after, free);
            if length + free > slices {
                release(run + slices, length + free - slices, (*slice(after)).clean);
            }
        }
        (*slice(run)).clean = false;
        (*slice(run)).set_run(kind, slices); // commit
        if free != 0 {
            (*slice(after)).clear_run();
        }
        compiler_fence(SeqCst);
        END.store(end.max(run + slices), Release);
        true
    }
}

unsafe fn allocate_locked(slices: usize, alignment: usize) -> Option<usize> {
    // SAFETY: the lock is held; every index is the head of a run.
    unsafe {
        let run = match find(slices + alignment - 1) {
            Some(run) => run,
            None => grow(slices, alignment)?,
        };
        Some(take(run, slices, alignment))
    }
}

/// Cut a run of `slices` out of a free one that is long enough.
unsafe fn take(run: usize, slices: usize, alignment: usize) -> usize {
    // SAFETY: the lock is held; every index is the head of a run.
    unsafe {
        let length = (*slice(run)).length();
        unlink(run, length);
        let clean = (*slice(run)).clean;
        let front = slices_to_alignment(run, alignment);
        let rear = length - front - slices;
        // Later heads first: the store that shortens the first one makes them visible to a walk.
        if rear > 0 {
            release(run + front + slices, rear, clean);
        }
        (*slice(run + front)).clean = clean;
        (*slice(run + front)).set_run(Kind::Transit, slices);
        if front > 0 {
            release(run, front, clean);
        }
        run + front
    }
}

/// The best fitting free run of at least `need` slices.
unsafe fn find(need: usize) -> Option<usize> {
    if let Some(bin) = (need..=EXACT).find(|&n| BINS[n].load(Relaxed) != 0) {
        return Some(BINS[bin].load(Relaxed) as usize);
    }
    let mut best: Option<(usize, usize)> = None;
    let mut run = BINS[0].load(Relaxed) as usize;
    for _ in 0..LOOKS {
        if run == 0 {
            break;
        }
        // SAFETY: runs in bins are heads of free runs.
        let (length, next) = unsafe { ((*slice(run)).length(), (*slice(run)).next as usize) };
        if length >= need && best.is_none_or(|(least, _)| length < least) {
            best = Some((length, run));
        }
        run = next;
    }
    best.map(|(_, run)| run)
}

/// Slices from `run` to the next one whose address is a multiple of `alignment` slices.
fn slices_to_alignment(run: usize, alignment: usize) -> usize {
    let address = address_of(run);
    (address.next_multiple_of(alignment * SLICE) - address) / SLICE
}

/// A free run that can hold the request, made by growing the last one (or from nothing) at the end of the window.
unsafe fn grow(slices: usize, alignment: usize) -> Option<usize> {
    let end = END.load(Relaxed);
    // SAFETY: the lock is held; new slices are known to nobody else.
    unsafe {
        let start = free_run_before(end).unwrap_or(end);
        let need = start.checked_add(slices_to_alignment(start, alignment))?.checked_add(slices)?;
        if need <= end {
            return Some(start); // the last run is just right, though `find` could not know
        }
        if !map_to(need) {
            return None;
        }
        huge::grown(need, slices, mapped());
        (*slice(end)).set_run(Kind::Transit, need - end);
        compiler_fence(SeqCst);
        END.store(need, Release);
        free_locked(end, true);
        Some(start)
    }
}

/// The free run that ends where `run` starts.
unsafe fn free_run_before(run: usize) -> Option<usize> {
    if run == FIRST {
        return None;
    }
    // SAFETY: the lock is held. A stale back pointer is recognised: the head it names does not reach to us.
    unsafe {
        let before = (*slice(run - 1)).back as usize;
        ((FIRST..run).contains(&before)
            && (*slice(before)).run().is_some_and(|(kind, n)| kind == Kind::Free && before + n == run))
        .then_some(before)
    }
}

/// Make a free run and put it into its bin.
unsafe fn release(run: usize, length: usize, clean: bool) {
    // SAFETY: the caller holds the lock and owns these slices.
    unsafe {
        (*slice(run)).clean = clean;
        (*slice(run)).set_run(Kind::Free, length);
        link(run, length);
    }
}

unsafe fn free_locked(mut run: usize, mut clean: bool) {
    // SAFETY: the lock is held; neighbours are looked at through heads and back pointers.
    unsafe {
        let mut length = (*slice(run)).length();
        let mut inner = [0usize; 2];
        let after = run + length;
        if after < END.load(Relaxed) && (*slice(after)).run().is_some_and(|(kind, _)| kind == Kind::Free) {
            let more = (*slice(after)).length();
            unlink(after, more);
            clean &= (*slice(after)).clean;
            length += more;
            inner[0] = after;
        }
        if let Some(before) = free_run_before(run) {
            let more = (*slice(before)).length();
            unlink(before, more);
            clean &= (*slice(before)).clean;
            length += more;
            inner[1] = run;
            run = before;
        }
        (*slice(run)).clean = clean;
        (*slice(run)).set_run(Kind::Free, length); // commit
        for head in inner {
            if head != 0 {
                (*slice(head)).clear_run();
            }
        }
        link(run, length);
    }
}

fn bin_of(length: usize) -> &'static AtomicU32 {
    &BINS[if length <= EXACT { length } else { 0 }]
}

unsafe fn link(run: usize, length: usize) {
    let bin = bin_of(length);
    // SAFETY: the lock is held; `run` is the head of a free run of this length.
    unsafe {
        let first = bin.load(Relaxed);
        (*slice(run)).previous = 0;
        (*slice(run)).next = first;
        if first != 0 {
            (*slice(first as usize)).previous = run as u32;
        }
        (*slice(run + length - 1)).back = run as u32;
    }
    bin.store(run as u32, Relaxed);
}

unsafe fn unlink(run: usize, length: usize) {
    // SAFETY: the lock is held; `run` is in the bin of its length.
    unsafe {
        let Slice { next, previous, .. } = *slice(run);
        if previous != 0 {
            (*slice(previous as usize)).next = next;
        } else {
            bin_of(length).store(next, Relaxed);
        }
        if next != 0 {
            (*slice(next as usize)).previous = previous;
        }
    }
}

/// The first run from `from` on that has blocks, and what `look` sees there before it can be handed out again. `None`: there is none.
pub(crate) fn next_with_blocks<T>(from: usize, look: impl FnOnce(usize, Kind) -> T) -> Option<(usize, usize, T)> {
    if LOCK.held_by_me() {
        return None;
    }
    LOCK.lock();
    let mut index = from.max(FIRST);
    let mut found = None;
    while index < END.load(Relaxed) {
        // SAFETY: slices below END have metadata. The end of the run before may be inside a free one by now.
        match unsafe { (*slice(index)).run() } {
            Some((kind @ (Kind::Slab | Kind::Zone | Kind::Span | Kind::Sampled), length)) => {
                found = Some((index, length, look(index, kind)));
                break;
            }
            Some((_, length)) => index += length,
            None => index += 1,
        }
    }
    LOCK.unlock();
    found
}

/// Every run from the first to the last, as it is at this moment.
pub(crate) fn walk(mut visit: impl FnMut(usize, Kind)) {
    let end = END.load(Acquire);
    let mut run = FIRST;
    while run < end {
        // SAFETY: slices below END have metadata.
        let Some((kind, length)) = (unsafe { (*slice(run)).run() }) else { break };
        visit(run, kind);
        run += length;
    }
}

/// In a forked child: rebuild what a vanished thread was changing. The process has one thread.
pub(crate) fn repair() {
    if !LOCK.held_by_vanished() {
        return;
    }
    for bin in &BINS {
        bin.store(0, Relaxed);
    }
    let unsure = super::window::repair();
    // A run may have been made longer just now, over a head that is now inside it, or over the end.
    walk(|run, _| {
        // SAFETY: one thread; slices below the end of a run have metadata.
        unsafe {
            let end = run + (*slice(run)).length();
            (run + 1..end).for_each(|inner| (*slice(inner)).clear_run());
            END.store(END.load(Relaxed).max(end), Relaxed);
        }
    });
    // Whether those slices are mapped cannot be told: they are given up, at most 16 MiB of address space and no memory.
    let end = END.load(Relaxed);
    if unsure > end {
        // SAFETY: one thread. The first of them has metadata: that is made before memory is mapped.
        unsafe { (*slice(end)).set_run(Kind::Transit, unsure - end) };
        END.store(unsure, Relaxed);
    }
    walk(|run, kind| {
        if kind == Kind::Free {
            // SAFETY: one thread; the chain of heads is valid at every instant.
            unsafe { link(run, (*slice(run)).length()) }
        }
    });
    LOCK.reset();
}

/// Slices of the window that were ever used.
#[cfg(test)]
pub(crate) fn used_slices() -> usize {
    END.load(Relaxed) - FIRST
}
