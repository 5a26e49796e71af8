//! Events of a signal handler that has interrupted its thread in the middle of another event. The handler may not wait for the lock of
//! a program point, which its own thread may hold, so it leaves the event here, and whoever has the next event counts it as well.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const ROOM: usize = 64;

/// What is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Allocated { bytes: u64, at: u64 },
    Freed { bytes: u64, born: u64, at: u64 },
    Resized { from: u64, to: u64, at: u64 },
}

const FREE: u32 = 0;
const WRITTEN: u32 = 2;
/// Being written, or being read.
const BUSY: u32 = 1;

struct Slot {
    state: AtomicU32,
    /// Kind of the event in the upper byte, number of the point below.
    what: AtomicU32,
    words: [AtomicU64; 3],
}

impl Slot {
    const fn free() -> Slot {
        Slot { state: AtomicU32::new(FREE), what: AtomicU32::new(0), words: [const { AtomicU64::new(0) }; 3] }
    }
}

/// A few events, in no order: they are of different blocks, or add up to the same.
pub(super) struct Pending {
    /// Slots that are not free, or are about to be written.
    some: AtomicU32,
    slots: [Slot; ROOM],
}

impl Pending {
    pub(super) const fn new() -> Pending {
        Pending { some: AtomicU32::new(0), slots: [const { Slot::free() }; ROOM] }
    }

    /// False: there is no room.
    pub(super) fn put(&self, point: u32, event: Event) -> bool {
        let (kind, words) = match event {
            Event::Allocated { bytes, at } => (0, [bytes, at, 0]),
            Event::Freed { bytes, born, at } => (1, [bytes, born, at]),
            Event::Resized { from, to, at } => (2, [from, to, at]),
        };
        let take = |slot: &&Slot| slot.state.compare_exchange(FREE, BUSY, Acquire, Relaxed).is_ok();
        let Some(slot) = self.slots.iter().find(take) else { return false };
        slot.what.store(kind << 24 | point, Relaxed);
        for (to, word) in slot.words.iter().zip(words) {
            to.store(word, Relaxed);
        }
        slot.state.store(WRITTEN, Release);
        self.some.fetch_add(1, Release);
        true
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.some.load(Relaxed) == 0
    }

    /// Take all events that are there.
    #[cold]
    #[inline(never)]
    pub(super) fn take(&self, mut count: impl FnMut(u32, Event)) {
        for slot in &self.slots {
            if slot.state.compare_exchange(WRITTEN, BUSY, Acquire, Relaxed).is_err() {
                continue;
            }
            let what = slot.what.load(Relaxed);
            let [first, second, third] = [0, 1, 2].map(|i: usize| slot.words[i].load(Relaxed));
            let event = match what >> 24 {
                0 => Event::Allocated { bytes: first, at: second },
                1 => Event::Freed { bytes: first, born: second, at: third },
                _ => Event::Resized { from: first, to: second, at: third },
            };
            slot.state.store(FREE, Release);
            self.some.fetch_sub(1, Relaxed);
            count(what & 0xff_ffff, event);
        }
    }

    /// In a forked child: what a vanished thread was writing or reading is lost.
    pub(super) fn repair(&self) {
        let written = |slot: &&Slot| {
            let _ = slot.state.compare_exchange(BUSY, FREE, Relaxed, Relaxed);
            slot.state.load(Relaxed) == WRITTEN
        };
        self.some.store(self.slots.iter().filter(written).count() as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_is_put_is_taken_once() {
        let pending = Pending::new();
        let events = [
            Event::Allocated { bytes: 1, at: 2 },
            Event::Freed { bytes: 3, born: 4, at: 5 },
            Event::Resized { from: 6, to: u64::MAX, at: 8 },
        ];
        for (point, event) in (0xff_fff0..).zip(events) {
            assert!(pending.put(point, event));
        }
        assert!(!pending.is_empty());
        let mut taken = Vec::new();
        pending.take(|point, event| taken.push((point, event)));
        assert_eq!(taken, (0xff_fff0..).zip(events).collect::<Vec<_>>());
        pending.take(|_, _| panic!());
        assert!(pending.is_empty());
        assert_eq!((0..1000).filter(|_| pending.put(1, events[0])).count(), ROOM);
    }
}
