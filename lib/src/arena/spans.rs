//! Runs of slices: taken from bins by length, split, merged with free neighbours when they come back.
//!
//! Free runs that are in memory and those that are not ([`Residence::clean`]) are not merged with each other, so that what was given
//! back to the kernel is not given back again, and so that a run which reads zero is known to. Only where no run is long enough are
//! neighbours of both kinds joined.
//!
//! The chain of heads is the truth; bins and back pointers are derived from it and rebuilt in a forked child that
//! inherited the lock from a thread it does not have. So each change commits by one store to a head:
//! split: the rear heads, then the store that shortens the front; merge: the store of the merged head, then the inner
//! heads are cleared; growth: the head, then `END`.

use super::arenas;
use super::bins::{self, find_for, link, unlink};
use super::layout::FIRST;
use super::walk::walk;
use super::window::{address_of, end_of_mapped, map_behind, map_to, settle, slice};
use super::{Kind, Pool, Residence, SLICE, SLICES, counts, foreign, huge, regions};
use crate::options::{self, Name};
use crate::os::{self, Refusal, lock::Lock};
use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

/// How many times its own length a growing run is offered.
const ROOM: usize = 4;

pub(super) static LOCK: Lock = Lock::new();
/// Slices below have a head.
static END: AtomicUsize = AtomicUsize::new(FIRST);

/// True while this thread is inside the arena: a signal handler that allocates must not wait for itself.
pub(crate) fn is_busy_here() -> bool {
    LOCK.held_by_me()
}

/// `slices` slices whose address is a multiple of `alignment` slices, in transit; `None` = no memory.
pub(crate) fn allocate(slices: usize, alignment: usize) -> Option<usize> {
    allocate_in(Pool::COMMON, slices, alignment)
}

/// [`allocate`] from the slices of one pool. [`free`] and [`extend`] find the pool from the run.
pub(crate) fn allocate_in(pool: Pool, slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe {
        let mut found = find_for(pool, slices, alignment);
        if found.is_none() && pool == Pool::COMMON {
            found = arenas::open(slices).find_map(|pool| find_for(pool, slices, alignment));
            if found.is_none() && may_grow() {
                found = grow(slices, alignment);
            }
        }
        if found.is_none() && join_all(pool) {
            found = find_for(pool, slices, alignment);
        }
        found.map(|run| cut(run, slices, alignment))
    };
    LOCK.unlock();
    run.filter(|&run| pool_of(run) == Pool::COMMON || usable(run))
}

/// Whether the program wants arenas only.
fn may_grow() -> bool {
    options::get(Name::DisallowOsAlloc) == 0
}

/// Have a run of an arena made usable, or give it back.
#[cold]
fn usable(run: usize) -> bool {
    let committed = arenas::commit(run);
    if !committed {
        free(run, Residence::UNKNOWN);
    }
    committed
}

/// A run that is going to be extended, with free slices behind it. `None`: there is none to be had without growing.
pub(crate) fn with_room(slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe {
        let roomy = find_for(Pool::COMMON, slices.saturating_mul(ROOM), alignment);
        roomy.map(|run| cut(run, slices, alignment))
    };
    LOCK.unlock();
    run
}

/// [`allocate`], but from no arena.
pub(super) fn allocate_in_window(slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe {
        let run = find_for(Pool::COMMON, slices, alignment).or_else(|| grow(slices, alignment));
        run.map(|run| cut(run, slices, alignment))
    };
    LOCK.unlock();
    run
}

/// The pool that a run belongs to.
pub(crate) fn pool_of(run: usize) -> Pool {
    // SAFETY: the caller has the run, so its metadata is there; a run never changes its pool.
    unsafe { (*slice(run)).pool }
}

/// Make a run in transit the memory of a pool of its own.
pub(super) fn found(run: usize, pool: Pool) {
    LOCK.lock();
    // SAFETY: the lock is held and the caller owns the run.
    unsafe {
        (*slice(run)).pool = pool;
        let length = (*slice(run)).length();
        // Of what was cut from a free run, no more is known.
        let residence = if (*slice(run)).clean { Residence::fresh(length) } else { Residence::UNKNOWN };
        release(run, length, residence);
    }
    LOCK.unlock();
}

/// [`allocate`], but only what is there: the arena does not grow.
pub(crate) fn reuse(slices: usize, alignment: usize) -> Option<usize> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let run = unsafe { find_for(Pool::COMMON, slices, alignment).map(|run| cut(run, slices, alignment)) };
    LOCK.unlock();
    run
}

/// Give a run in transit back.
pub(crate) fn free(index: usize, residence: Residence) {
    LOCK.lock();
    // SAFETY: the lock is held and the caller owns the run.
    unsafe { free_locked(index, residence) };
    LOCK.unlock();
}

/// Make a run of the caller's longer, to `slices` slices, if what follows it is free. False: it is as it was.
pub(crate) unsafe fn extend(run: usize, slices: usize) -> bool {
    if !arenas::is_extensible(run) {
        return false;
    }
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
        debug_assert!(slices > length);
        let (pool, end, wanted) = (pool_of(run), END.load(Relaxed), run + slices);
        // Free runs of both kinds may follow one another.
        let after = run + length;
        let mut last = after;
        while last < wanted && has_head(last) {
            match (*slice(last)).run() {
                Some((Kind::Free, n)) if pool_of(last) == pool => last += n,
                _ => break,
            }
        }
        if last < wanted {
            // Only at the end of the window can more be had.
            if pool != Pool::COMMON || last != end || !may_grow() || map_to(wanted).is_err() {
                return false;
            }
            huge::grown(wanted, slices, end_of_mapped());
        }
        let mut at = after;
        while at < last {
            let n = (*slice(at)).length();
            let mut residence = (*slice(at)).residence();
            unlink(at, n);
            at += n;
            if at > wanted {
                (*slice(wanted)).pool = pool;
                let rest = if residence.clean {
                    let taken = residence.split_off(n, n - (at - wanted));
                    counts::note_reuse(taken.returned as usize);
                    residence
                } else {
                    let rest = residence.split_off(n, at - wanted);
                    counts::note_reuse(residence.returned as usize);
                    rest
                };
                release(wanted, at - wanted, rest);
            } else {
                counts::note_reuse(residence.returned as usize);
            }
        }
        (*slice(run)).clean = false;
        (*slice(run)).set_run(kind, slices); // commit
        let mut inner = after;
        while inner < last.min(wanted) {
            let n = (*slice(inner)).length();
            (*slice(inner)).clear_run();
            inner += n;
        }
        compiler_fence(SeqCst);
        if wanted > end && run < SLICES {
            END.store(wanted, Release);
        }
        true
    }
}

/// Take a part of a free run that is large enough.
unsafe fn cut(run: usize, slices: usize, alignment: usize) -> usize {
    // SAFETY: the lock is held; `run` is the head of a free run.
    unsafe {
        let (length, pool, mut left) = ((*slice(run)).length(), pool_of(run), (*slice(run)).residence());
        unlink(run, length);
        let front = slices_to_alignment(run, alignment);
        let rear = length - front - slices;
        // What is said to have been given back of the part that is taken is rather too little than too much.
        let taken = left.clean.then(|| left.split_off(length, slices).returned);
        let rest = if left.clean { front + rear } else { length };
        let of_front = left.split_off(rest, front);
        let of_rear = left.split_off(rest - front, rear);
        counts::note_reuse((taken.unwrap_or(0) + left.returned) as usize);
        // Later heads first: the store that shortens the first one makes them visible to a walk.
        if rear > 0 {
            (*slice(run + front + slices)).pool = pool;
            release(run + front + slices, rear, of_rear);
        }
        (*slice(run + front)).clean = left.clean;
        (*slice(run + front)).pool = pool;
        (*slice(run + front)).set_run(Kind::Transit, slices);
        if front > 0 {
            release(run, front, of_front);
        }
        run + front
    }
}

/// Slices from `run` to the next one whose address is a multiple of `alignment` slices.
pub(super) fn slices_to_alignment(run: usize, alignment: usize) -> usize {
    let address = address_of(run);
    (address.next_multiple_of(alignment * SLICE) - address) / SLICE
}

/// A free run that can hold the request, made by growing the last one (or from nothing) at the end of the window.
unsafe fn grow(slices: usize, alignment: usize) -> Option<usize> {
    let end = END.load(Relaxed);
    // SAFETY: the lock is held; new slices are known to nobody else.
    unsafe {
        let start = free_run_before(end, Pool::COMMON).unwrap_or(end);
        let need = start.checked_add(slices_to_alignment(start, alignment))?.checked_add(slices)?;
        if need <= end {
            return Some(start); // the last run is just right, though `find` could not know
        }
        match map_to(need) {
            Ok(()) => {}
            Err(Refusal::Taken) => return grow_behind(slices, alignment),
            Err(Refusal::NoMemory) => return None,
        }
        huge::grown(need, slices, end_of_mapped());
        append(end, need);
        // The last run may be of the other kind than what is new.
        if start < end && (*slice(end)).run().is_some() {
            join(start, end);
        }
        Some(start)
    }
}

/// The same, where somebody has a mapping at the end of the window.
#[cold]
unsafe fn grow_behind(slices: usize, alignment: usize) -> Option<usize> {
    let end = END.load(Relaxed);
    // SAFETY: as in `grow`.
    unsafe {
        let length = slices.checked_add(alignment - 1)?;
        let (foreign, start) = map_behind(length)?;
        huge::skip_to(start);
        if foreign > end {
            append(end, foreign);
        }
        (*slice(start)).pool = Pool::COMMON;
        (*slice(start)).set_run(Kind::Transit, length);
        compiler_fence(SeqCst);
        END.store(start + length, Release); // the foreign run has its head already
        settle();
        free_locked(start, Residence::fresh(length));
        Some(start)
    }
}

/// Slices from the end of the window to `end` become a free run.
unsafe fn append(run: usize, end: usize) {
    // SAFETY: the lock is held, the slices are mapped, and nobody knows them.
    unsafe {
        (*slice(run)).pool = Pool::COMMON;
        (*slice(run)).set_run(Kind::Transit, end - run);
        compiler_fence(SeqCst);
        END.store(end, Release);
        free_locked(run, Residence::fresh(end - run));
    }
}

/// Whether a run may begin here: not beyond the end of the window. Outside it there is a slice without a head behind each range.
fn has_head(index: usize) -> bool {
    index < END.load(Relaxed) || index >= SLICES
}

/// The free run of the pool that ends where `run` starts.
pub(super) unsafe fn free_run_before(run: usize, pool: Pool) -> Option<usize> {
    if run == FIRST {
        return None;
    }
    // SAFETY: the lock is held. A stale back pointer is recognised: the head it names does not reach to us.
    unsafe {
        let before = (*slice(run - 1)).back as usize;
        ((FIRST..run).contains(&before)
            && pool_of(before) == pool
            && (*slice(before)).run().is_some_and(|(kind, n)| kind == Kind::Free && before + n == run))
        .then_some(before)
    }
}

/// Make a free run and put it into its bin. Its head knows its pool.
pub(super) unsafe fn release(run: usize, length: usize, residence: Residence) {
    // SAFETY: the caller holds the lock and owns these slices.
    unsafe {
        (*slice(run)).set_residence(residence);
        (*slice(run)).set_run(Kind::Free, length);
        link(run, length);
    }
    if !residence.clean {
        regions::touch(run);
    }
}

/// Make one of two free runs that follow one another.
unsafe fn join(run: usize, after: usize) {
    // SAFETY: the lock is held; both are heads of free runs.
    unsafe {
        let (length, more) = ((*slice(run)).length(), (*slice(after)).length());
        let residence = (*slice(run)).residence().merge(length, (*slice(after)).residence(), more);
        unlink(run, length);
        unlink(after, more);
        release(run, length + more, residence); // commit
        (*slice(after)).clear_run();
    }
}

/// Join free runs that follow one another. False: there were none.
#[cold]
unsafe fn join_all(pool: Pool) -> bool {
    let mut joined = false;
    let mut join_range = |first: usize, end: usize| {
        let mut at = first;
        // SAFETY: the lock is held; these slices have metadata.
        unsafe {
            while at < end
                && let Some((kind, length)) = (*slice(at)).run()
            {
                let after = at + length;
                let both = kind == Kind::Free
                    && after < end
                    && (*slice(after)).run().is_some_and(|(kind, _)| kind == Kind::Free)
                    && (pool_of(at), pool_of(after)) == (pool, pool);
                if both {
                    join(at, after);
                    joined = true;
                } else {
                    at = after;
                }
            }
        }
    };
    join_range(FIRST, END.load(Relaxed));
    for arena in arenas::all().filter(|arena| arena.is_outside()) {
        let (first, slices) = arena.range();
        join_range(first, first + slices);
    }
    joined
}

pub(super) unsafe fn free_locked(mut run: usize, mut residence: Residence) {
    let clean = residence.clean;
    // SAFETY: the lock is held; neighbours are looked at through heads and back pointers.
    unsafe {
        let (mut length, pool) = ((*slice(run)).length(), pool_of(run));
        let mut inner = [0usize; 2];
        let after = run + length;
        let is_like = |run: usize| {
            pool_of(run) == pool
                && (*slice(run)).run().is_some_and(|(kind, _)| kind == Kind::Free)
                && (*slice(run)).clean == clean
        };
        if has_head(after) && is_like(after) {
            let more = (*slice(after)).length();
            residence = residence.merge(length, (*slice(after)).residence(), more);
            unlink(after, more);
            length += more;
            inner[0] = after;
        }
        if let Some(before) = free_run_before(run, pool).filter(|&before| is_like(before)) {
            let more = (*slice(before)).length();
            residence = residence.merge(length, (*slice(before)).residence(), more);
            unlink(before, more);
            length += more;
            inner[1] = run;
            run = before;
        }
        (*slice(run)).set_residence(residence);
        (*slice(run)).set_run(Kind::Free, length); // commit
        for head in inner {
            if head != 0 {
                (*slice(head)).clear_run();
            }
        }
        link(run, length);
    }
    if !clean {
        regions::touch(run);
    }
}

/// Slices that are mapped and have never been in a run.
pub(super) fn unused_slices() -> usize {
    end_of_mapped().saturating_sub(END.load(Acquire))
}

/// Put a fresh mapping in the place of a run in transit, which becomes one with those around it. False: the kernel refuses.
pub(crate) fn renew(run: usize) -> bool {
    // SAFETY: the run is the caller's.
    let end = run + unsafe { (*slice(run)).length() };
    renew_slices(run, end)
}

fn renew_slices(start: usize, end: usize) -> bool {
    let done = os::renew(address_of(start) as *mut u8, (end - start) * SLICE);
    if done {
        huge::mapped(start, end);
    }
    done
}

/// Make a run in transit shorter, to `slices` slices (all of it if there are none), and map what is cut off afresh.
pub(super) fn give_back_rear(run: usize, slices: usize) {
    // SAFETY: the run is the caller's.
    let length = unsafe { (*slice(run)).length() };
    if slices == length || !renew_slices(run + slices, run + length) {
        return;
    }
    LOCK.lock();
    // SAFETY: the lock is held. The rear head first.
    unsafe {
        (*slice(run + slices)).pool = pool_of(run);
        (*slice(run + slices)).set_run(Kind::Transit, length - slices);
        if slices != 0 {
            (*slice(run)).set_run(Kind::Transit, slices);
        }
        free_locked(run + slices, Residence::fresh(length - slices));
    }
    LOCK.unlock();
}

/// In a forked child: rebuild what a vanished thread was changing. The process has one thread.
pub(crate) fn repair() {
    if !LOCK.held_by_vanished() {
        return;
    }
    bins::forget();
    foreign::forget();
    arenas::repair();
    let unsure = super::window::repair();
    // A run may have been made longer just now, over a head that is now inside it, or over the end.
    walk(|run, kind| {
        // SAFETY: one thread; slices below the end of a run have metadata.
        unsafe {
            let end = run + (*slice(run)).length();
            if kind == Kind::Foreign {
                foreign::add(run, end - run);
            } else {
                (run + 1..end)
                    .filter(|&inner| (*slice(inner)).run().is_some())
                    .for_each(|inner| (*slice(inner)).clear_run());
            }
            if run < SLICES {
                END.store(END.load(Relaxed).max(end), Relaxed);
            }
        }
    });
    // Whether those slices are mapped, and by whom, cannot be told: they are given up, which costs address space and no memory.
    let end = END.load(Relaxed);
    if unsure > end {
        // The first of them has metadata: that is made before memory is mapped.
        foreign::add(end, unsure - end);
        END.store(unsure, Relaxed);
    }
    walk(|run, kind| {
        if kind == Kind::Free {
            // SAFETY: one thread; the chain of heads is valid at every instant, and so is whether a run reads zero. How much is absent may
            // be that of what it was to become.
            unsafe {
                let length = (*slice(run)).length();
                let residence = if (*slice(run)).clean { Residence::fresh(length) } else { Residence::UNKNOWN };
                (*slice(run)).set_residence(residence);
                link(run, length);
            }
        }
    });
    LOCK.reset();
}

/// Slices of the window below have a head.
pub(super) fn end_of_runs() -> usize {
    END.load(Acquire)
}

/// Whether a slice may be the first of a run.
pub(crate) fn is_used(index: usize) -> bool {
    index < END.load(Acquire) || index >= SLICES
}

/// Slices of the window that were ever used.
#[cfg(test)]
pub(crate) fn used_slices() -> usize {
    END.load(Relaxed) - FIRST
}
