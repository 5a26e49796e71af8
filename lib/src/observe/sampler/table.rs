//! A hash table of numbers that is only added to: which entry is that of a key?
//!
//! Lock-free: an entry is written completely before its number is published in a slot, and slots never change again. So there is
//! nothing to repair in a forked child, and nobody waits. `lib/tests/models/sites.rs` looks at every interleaving of two threads.
//!
//! A key is looked for in one bucket of a small level, then in one of the next level, which is twice as large, and so on: a table with
//! few entries is in a few pages, however many there may be. The last level is searched to its end.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Slots of a bucket: a line of the cache.
const BUCKET: usize = 8;
/// Buckets of the first level: a page.
const FIRST: usize = 64;
/// Of a slot: the entry's number; the other half is a part of its hash. 0 = the slot is free.
const NUMBER: u64 = 0xffff_ffff;

/// A table in memory that is zero at first.
pub(in crate::observe) struct Table {
    slots: *const AtomicU64,
    levels: u32,
}

// SAFETY: the slots are atomic.
unsafe impl Sync for Table {}

/// What [`Table::intern`] found.
pub(in crate::observe) struct Found {
    pub(in crate::observe) number: u32,
    /// It was not there before.
    pub(in crate::observe) is_new: bool,
}

impl Table {
    /// Bytes of a table.
    pub(in crate::observe) const fn bytes(levels: u32) -> usize {
        (FIRST << levels) * BUCKET * 8 - FIRST * BUCKET * 8
    }

    /// The fewest levels that have room for so many entries.
    pub(in crate::observe) fn levels_for(entries: usize) -> u32 {
        (1..).find(|&levels| Self::bytes(levels) / 8 >= entries).unwrap_or(1)
    }

    /// # Safety
    /// [`bytes`](Self::bytes) of zeroed memory at `slots`, for as long as the table is used.
    pub(in crate::observe) unsafe fn at(slots: *mut u8, levels: u32) -> Table {
        Table { slots: slots.cast(), levels }
    }

    fn slot(&self, i: usize) -> &AtomicU64 {
        debug_assert!(i < Self::bytes(self.levels) / 8);
        // SAFETY: as was promised in `at`.
        unsafe { &*self.slots.add(i) }
    }

    /// The number of the entry with this hash that `is` the right one, else of the one that `make` makes. `None`: there is none, and
    /// `make` cannot, or the table is full.
    pub(in crate::observe) fn intern(
        &self,
        hash: u64,
        is: impl Fn(u32) -> bool,
        mut make: impl FnMut() -> Option<u32>,
    ) -> Option<Found> {
        let tag = hash & !NUMBER;
        let mut made = None;
        for level in 0..self.levels {
            let (start, buckets) = ((FIRST << level) - FIRST, FIRST << level);
            let bucket = hash as u32 as usize & (buckets - 1);
            let length = if level + 1 == self.levels { buckets * BUCKET } else { BUCKET };
            for i in 0..length {
                let place = (bucket * BUCKET + i) & (buckets * BUCKET - 1);
                let slot = self.slot(start * BUCKET + place);
                let mut word = slot.load(Acquire);
                if word == 0 {
                    let number = match made {
                        Some(number) => number,
                        None => *made.insert(make()?),
                    };
                    match slot.compare_exchange(0, tag | number as u64, AcqRel, Acquire) {
                        Ok(_) => return Some(Found { number, is_new: true }),
                        Err(now) => word = now, // ours, if another thread was first with the same, is wasted
                    }
                }
                if word & !NUMBER == tag && is(word as u32) {
                    return Some(Found { number: word as u32, is_new: false });
                }
            }
        }
        None
    }

    /// The numbers of all entries.
    pub(in crate::observe) fn all(&self) -> impl Iterator<Item = u32> {
        let words = (0..Self::bytes(self.levels) / 8).map(|i| self.slot(i).load(Acquire));
        words.filter(|&word| word != 0).map(|word| word as u32)
    }
}

/// Mix a word into a hash: a multiplicative hash with the golden ratio; the fold brings the good high bits down.
#[inline(always)]
pub(in crate::observe) fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;
    use std::vec::Vec;

    fn table(levels: u32) -> Table {
        let memory = crate::os::map(Table::bytes(levels));
        // SAFETY: zeroed memory of this size, which the test leaves mapped.
        unsafe { Table::at(memory, levels) }
    }

    /// Keys are numbers here, and entries are places in a list.
    struct Keys(Vec<AtomicU32>, AtomicU32);

    impl Keys {
        fn new(room: usize) -> Keys {
            Keys((0..room).map(|_| AtomicU32::new(0)).collect(), AtomicU32::new(1))
        }

        fn intern(&self, table: &Table, key: u32, hash: u64) -> Option<u32> {
            let make = || {
                let number = self.1.fetch_add(1, Relaxed);
                self.0.get(number as usize)?.store(key, Relaxed);
                Some(number)
            };
            Some(table.intern(hash, |number| self.0[number as usize].load(Relaxed) == key, make)?.number)
        }
    }

    #[test]
    fn all_threads_get_the_same_number_for_a_key() {
        let (table, keys) = (table(3), Keys::new(100_000));
        // Few hashes, so that many keys want the same bucket.
        let hash = |key: u32| mix(0, (key % 50) as u64) & !NUMBER | (key % 7) as u64;
        let numbers: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let intern = || (1..1500).map(|key| keys.intern(&table, key, hash(key)).unwrap()).collect();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(intern)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|of_thread| *of_thread == numbers[0]));
        let mut all: Vec<u32> = table.all().collect();
        all.sort();
        let mut expected = numbers[0].clone();
        expected.sort();
        expected.dedup();
        assert_eq!((all.len(), all), (1499, expected));
    }

    /// All slots of the last level are used, and then there is no room; what is there is still found.
    #[test]
    fn it_is_full_when_it_is_full() {
        let (table, keys) = (table(2), Keys::new(10_000));
        let room = Table::bytes(2) / 8;
        let numbers: Vec<u32> =
            (1..=room as u32 + 100).map_while(|key| keys.intern(&table, key, mix(1, key as u64))).collect();
        // Of the first level some buckets may not be full.
        assert!(numbers.len() > room * 9 / 10 && numbers.len() <= room, "{} of {room}", numbers.len());
        for (i, &number) in numbers.iter().enumerate() {
            assert_eq!(keys.intern(&table, i as u32 + 1, mix(1, i as u64 + 1)), Some(number));
        }
        assert_eq!(table.all().count(), numbers.len());
        assert_eq!((Table::levels_for(1), Table::levels_for(512), Table::levels_for(513)), (1, 1, 2));
    }
}
