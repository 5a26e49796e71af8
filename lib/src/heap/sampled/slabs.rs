//! Slabs of sampled blocks: each has a record for every block, in memory apart.
//!
//! One that is wholly free goes back to the arena, and its records with it, unless it is the only such one of its class. Who looks at all
//! of them ([`each_slab`]) holds no lock; while anybody does, none goes back (see [`Users`]).

use super::Record;
use crate::arena::{self, Kind, Residence, Slice, slice};
use crate::heap::classes::CLASSES;
use crate::heap::slab;
use crate::os::{self, lock::Lock, users::Users};
use core::sync::atomic::{AtomicU32, Ordering::*};

static LOCK: Lock = Lock::new();
/// Per class, slabs with free blocks and others, through `next` and `previous`; 0 = none. `LOCK`.
static PARTIAL: [AtomicU32; CLASSES] = [const { AtomicU32::new(0) }; CLASSES];
/// The same of slabs with free blocks only.
static EMPTY: [AtomicU32; CLASSES] = [const { AtomicU32::new(0) }; CLASSES];
/// The newest of all sampled slabs; the others follow. Changed under `LOCK`.
static NEWEST: AtomicU32 = AtomicU32::new(0);
/// Who looks at all of them.
static READERS: Users = Users::new();

/// Before the records of a slab.
#[repr(C, align(64))]
struct Header {
    /// The slab that is older, 0 = none.
    older: AtomicU32,
    /// The slab that is newer. `LOCK`.
    newer: AtomicU32,
}

/// True while this thread is in here: a signal handler that allocates must not wait for itself.
pub(in crate::heap) fn is_busy_here() -> bool {
    LOCK.held_by_me()
}

unsafe fn header(index: usize) -> &'static Header {
    // SAFETY: sampled slabs have one, and this is about a slab that cannot go back meanwhile.
    unsafe { &*(*slice(index)).records.cast::<Header>() }
}

/// The record of a block.
pub(super) unsafe fn record(index: usize, bit: usize) -> *mut Record {
    // SAFETY: sampled slabs have a record per block, behind the header.
    unsafe { (*slice(index)).records.add(size_of::<Header>()).cast::<Record>().add(bit) }
}

fn bytes_of_records(slab: &Slice) -> usize {
    size_of::<Header>() + slab.blocks as usize * size_of::<Record>()
}

/// Every sampled slab and its class. None goes back meanwhile.
pub(in crate::heap) fn each_slab(mut visit: impl FnMut(usize, usize)) {
    let _reader = READERS.enter();
    let mut index = NEWEST.load(SeqCst) as usize;
    while index != 0 {
        // SAFETY: slabs that are found here do not go back while there is a reader, not even if they are off the list by now.
        unsafe {
            visit(index, (*slice(index)).class as usize);
            index = header(index).older.load(Acquire) as usize;
        }
    }
}

/// Look at a slab that was a sampled one a moment ago. `None`: it is not any more.
pub(super) fn while_there<T>(index: usize, look: impl FnOnce(&Slice) -> T) -> Option<T> {
    let _reader = READERS.enter();
    // SAFETY: metadata is never unmapped. A slab that is a sampled one now does not go back while there is a reader.
    let slab = unsafe { &*slice(index) };
    (slab.kind_now() == Kind::Sampled).then(|| look(slab))
}

/// Bytes of all records.
pub(crate) fn bytes() -> usize {
    let mut bytes = 0;
    // SAFETY: none goes back meanwhile, and their geometry does not change.
    each_slab(|index, _| bytes += bytes_of_records(unsafe { &*slice(index) }));
    bytes
}

/// A free block of a class: slab and bit. `None`: no memory.
pub(super) fn take(class: usize) -> Option<(usize, usize)> {
    LOCK.lock();
    // SAFETY: the lock is held.
    let taken = unsafe { take_locked(class) };
    LOCK.unlock();
    taken
}

unsafe fn take_locked(class: usize) -> Option<(usize, usize)> {
    let (partial, empty) = (PARTIAL[class].load(Relaxed) as usize, EMPTY[class].load(Relaxed) as usize);
    // SAFETY: the lock is held; listed slabs have a free block.
    unsafe {
        let index = match (partial, empty) {
            (0, 0) => create(class)?,
            (0, empty) => empty,
            (partial, _) => partial,
        };
        let slab = &mut *slice(index);
        let (word, bits) = free_bits(slab)?;
        slab.bitmap[word].store(bits & (bits - 1), Relaxed);
        slab.free -= 1;
        if partial == 0 {
            unlist(&EMPTY[class], index);
            if slab.free != 0 {
                list(&PARTIAL[class], index);
            }
        } else if slab.free == 0 {
            unlist(&PARTIAL[class], index);
        }
        Some((index, word * 64 + bits.trailing_zeros() as usize))
    }
}

/// A new slab, on the lists.
unsafe fn create(class: usize) -> Option<usize> {
    let index = slab::create(core::ptr::null_mut(), class, Kind::Transit)?;
    // SAFETY: in transit: ours alone; then the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        let records = os::map(bytes_of_records(slab));
        if records.is_null() {
            arena::free(index, Residence::UNKNOWN);
            return None;
        }
        slab.records = records;
        let slices = slab.length();
        let older = NEWEST.load(Relaxed);
        header(index).older.store(older, Relaxed);
        if older != 0 {
            header(older as usize).newer.store(index as u32, Relaxed);
        }
        slab.set_run(Kind::Sampled, slices);
        NEWEST.store(index as u32, Release);
        list(&EMPTY[class], index);
    }
    Some(index)
}

/// The first bitmap word with a free block.
fn free_bits(slab: &Slice) -> Option<(usize, u64)> {
    let words = slab.bitmap[..slab.words as usize].iter().map(|word| word.load(Relaxed));
    words.enumerate().find(|&(_, bits)| bits != 0)
}

/// A block is free again. No lock is held.
pub(super) fn give_back(index: usize, bit: usize) {
    LOCK.lock();
    // SAFETY: the lock is held.
    let gone = unsafe {
        let slab = &mut *slice(index);
        let class = slab.class as usize;
        let word = &slab.bitmap[bit / 64];
        word.store(word.load(Relaxed) | 1 << (bit % 64), Relaxed);
        slab.free += 1;
        let was_listed = slab.free != 1;
        if slab.free == slab.blocks {
            if was_listed {
                unlist(&PARTIAL[class], index);
            }
            list(&EMPTY[class], index);
        } else if !was_listed {
            list(&PARTIAL[class], index);
        }
        withdraw_spare(class, 1)
    };
    LOCK.unlock();
    gone.into_iter().for_each(free);
}

/// Give back all that are wholly free.
pub(crate) fn trim() {
    for class in 1..CLASSES {
        let mut more = !LOCK.held_by_me();
        while more {
            LOCK.lock();
            // SAFETY: the lock is held.
            let gone = unsafe { withdraw_spare(class, 0) };
            LOCK.unlock();
            more = gone.is_some();
            gone.into_iter().for_each(free);
        }
    }
}

/// Take a wholly free slab off all lists, if there are more of its class than are to be `kept`, and nobody looks: in transit, it is the
/// caller's.
unsafe fn withdraw_spare(class: usize, kept: usize) -> Option<usize> {
    let first = EMPTY[class].load(Relaxed) as usize;
    // SAFETY: the lock is held.
    unsafe {
        if first == 0 || (kept != 0 && (*slice(first)).next == 0) || !READERS.have_left() {
            return None;
        }
        let Header { older, newer } = header(first);
        let (older, newer) = (older.load(Relaxed), newer.load(Relaxed));
        if older != 0 {
            header(older as usize).newer.store(newer, Relaxed);
        }
        match newer {
            0 => NEWEST.store(older, SeqCst),
            newer => header(newer as usize).older.store(older, SeqCst),
        }
        let slab = &*slice(first);
        slab.set_run(Kind::Transit, slab.length());
        if !READERS.have_left() {
            // Somebody may have found it just now: it stays, as the newest. All of its blocks are free, so nobody misses any.
            slab.set_run(Kind::Sampled, slab.length());
            let newest = NEWEST.load(Relaxed);
            header(first).newer.store(0, Relaxed);
            header(first).older.store(newest, Release);
            if newest != 0 {
                header(newest as usize).newer.store(first as u32, Relaxed);
            }
            NEWEST.store(first as u32, Release);
            return None;
        }
        unlist(&EMPTY[class], first);
    }
    Some(first)
}

/// Give back a slab in transit, and its records.
fn free(index: usize) {
    // SAFETY: the slab is the caller's, and nobody looks at its records any more.
    unsafe {
        os::unmap((*slice(index)).records, bytes_of_records(&*slice(index)));
        slab::withdraw(index);
        arena::free(index, Residence::UNKNOWN);
    }
}

unsafe fn list(head: &AtomicU32, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let slab = &mut *slice(index);
        (slab.next, slab.previous) = (head.load(Relaxed), 0);
        if slab.next != 0 {
            (*slice(slab.next as usize)).previous = index as u32;
        }
        head.store(index as u32, Relaxed);
    }
}

unsafe fn unlist(head: &AtomicU32, index: usize) {
    // SAFETY: the lock is held.
    unsafe {
        let Slice { next, previous, .. } = *slice(index);
        match previous {
            0 => head.store(next, Relaxed),
            previous => (*slice(previous as usize)).next = next,
        }
        if next != 0 {
            (*slice(next as usize)).previous = previous;
        }
    }
}

/// In a forked child: rebuild counts and lists if a vanished thread was changing them.
pub(in crate::heap) fn repair() {
    if !LOCK.held_by_vanished() {
        return;
    }
    for list in PARTIAL.iter().chain(&EMPTY) {
        list.store(0, Relaxed);
    }
    NEWEST.store(0, Relaxed);
    arena::walk(|index, kind| {
        if kind != Kind::Sampled {
            return;
        }
        // SAFETY: one thread; a slab of this kind has its records.
        unsafe {
            let slab = &mut *slice(index);
            let older = NEWEST.swap(index as u32, Relaxed);
            header(index).older.store(older, Relaxed);
            header(index).newer.store(0, Relaxed);
            if older != 0 {
                header(older as usize).newer.store(index as u32, Relaxed);
            }
            let words = slab.words as usize;
            slab.free = slab.bitmap[..words].iter().map(|w| w.load(Relaxed).count_ones() as u16).sum();
            if slab.free != 0 {
                let lists = if slab.free == slab.blocks { &EMPTY } else { &PARTIAL };
                list(&lists[slab.class as usize], index);
            }
        }
    });
    LOCK.reset();
}

/// How many there are.
#[cfg(test)]
pub(in crate::heap) fn count() -> usize {
    let mut count = 0;
    each_slab(|_, _| count += 1);
    count
}
