//! Where events wait to be written: in as many places as threads are unlikely to meet in one.
//!
//! Each place has a lock of its own, and the section under it is a copy of 32 bytes. A signal handler that has interrupted this thread
//! in there must not wait for it, and is told so. A forked child forgets what waits, which is its parent's.

use super::event::Event;
use crate::os::{self, lock::Lock};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

/// Places.
pub(super) const SHARDS: usize = 16;
/// Events that wait in one place at most: 128 KiB of address space, touched as it is used.
pub(super) const EVENTS: usize = 4096;

#[repr(align(64))]
struct Shard {
    lock: Lock,
    /// Events that wait. Under `lock`.
    used: AtomicUsize,
}

static ALL: [Shard; SHARDS] = [const { Shard { lock: Lock::new(), used: AtomicUsize::new(0) } }; SHARDS];
/// Their memory, one after the other. Null until it is needed; never unmapped.
static MEMORY: AtomicPtr<Event> = AtomicPtr::new(core::ptr::null_mut());

/// What has become of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    Yes,
    /// There is no room in this place: it has to be emptied first.
    Full,
    /// This is a signal handler that has interrupted its thread in here.
    Busy,
}

/// Get the memory. False: there is none.
pub(super) fn furnish() -> bool {
    if !MEMORY.load(Acquire).is_null() {
        return true;
    }
    let bytes = SHARDS * EVENTS * size_of::<Event>();
    let memory = os::map(bytes);
    if memory.is_null() {
        return false;
    }
    if MEMORY.compare_exchange(core::ptr::null_mut(), memory.cast(), AcqRel, Acquire).is_err() {
        os::unmap(memory, bytes);
    }
    true
}

/// The place of the calling thread.
pub(super) fn mine() -> usize {
    // Thread control blocks lie at like places of their mappings: the high bits of the product depend on all of theirs.
    (os::thread_id().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SHARDS.trailing_zeros())) as usize
}

/// Let an event wait in a place.
pub(super) fn push(place: usize, event: Event) -> Kept {
    let shard = &ALL[place];
    if shard.lock.held_by_me() {
        return Kept::Busy;
    }
    shard.lock.lock();
    let used = shard.used.load(Relaxed);
    let kept = if used < EVENTS { Kept::Yes } else { Kept::Full };
    if kept == Kept::Yes {
        // SAFETY: `furnish` came before the first event, the place is below EVENTS, and the lock is held.
        unsafe { MEMORY.load(Relaxed).add(place * EVENTS + used).write(event) };
        shard.used.store(used + 1, Relaxed);
    }
    shard.lock.unlock();
    kept
}

/// Move what waits in a place to `events`, which has room for [`EVENTS`]; how many these are.
///
/// # Safety
/// `events` is valid for that many, and nobody else uses it.
pub(super) unsafe fn take(place: usize, events: *mut Event) -> usize {
    let shard = &ALL[place];
    if shard.used.load(Relaxed) == 0 || shard.lock.held_by_me() {
        return 0;
    }
    shard.lock.lock();
    let used = shard.used.load(Relaxed).min(EVENTS);
    // SAFETY: as in `push`, and as the caller promises.
    unsafe { events.copy_from_nonoverlapping(MEMORY.load(Relaxed).add(place * EVENTS), used) };
    shard.used.store(0, Relaxed);
    shard.lock.unlock();
    used
}

/// In a forked child: nothing waits. A place that this thread was interrupted in may get one more event of the parent; it is known by its
/// time.
pub(super) fn forked() {
    for shard in &ALL {
        if shard.lock.held_by_vanished() {
            shard.lock.reset();
        }
        shard.used.store(0, Relaxed);
    }
}
