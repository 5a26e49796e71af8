//! Small numbers for large ones, in the order in which they are met, and which of them the file explains.

use crate::os;

/// Entries at first.
const FIRST: usize = os::PAGE / size_of::<u64>();

/// A hash table that grows. Each entry is a key (not 0) above a small number and a bit: the file explains it.
pub(super) struct Numbering {
    entries: *mut u64,
    slots: usize,
    used: usize,
}

/// What is known of a key.
pub(super) struct Known<'a> {
    entry: &'a mut u64,
}

impl Known<'_> {
    pub(super) fn number(&self) -> u32 {
        *self.entry as u32 >> 1
    }

    pub(super) fn is_explained(&self) -> bool {
        *self.entry & 1 == 1
    }

    pub(super) fn set_explained(&mut self, explained: bool) {
        *self.entry = *self.entry & !1 | u64::from(explained);
    }
}

impl Numbering {
    pub(super) const NONE: Numbering = Numbering { entries: core::ptr::null_mut(), slots: 0, used: 0 };

    /// How many numbers were given: all are below this.
    pub(super) fn given(&self) -> usize {
        self.used
    }

    fn all(&mut self) -> &mut [u64] {
        if self.entries.is_null() {
            return &mut [];
        }
        // SAFETY: the mapping has as many entries, and is this table's.
        unsafe { core::slice::from_raw_parts_mut(self.entries, self.slots) }
    }

    /// The number of a key, a new one if there was none. `None`: no memory.
    pub(super) fn number(&mut self, key: u32) -> Option<Known<'_>> {
        // Numbers of forgotten keys count, too: a table is a little larger for it.
        if self.used * 2 >= self.slots {
            self.grow()?;
        }
        let next = self.used as u64;
        let (slots, mut used) = (self.slots, self.used);
        let at = place(self.all(), slots, key);
        let entry = &mut self.all()[at];
        if *entry == 0 {
            *entry = u64::from(key) << 32 | next << 1;
            used += 1;
        }
        self.used = used;
        Some(Known { entry: &mut self.all()[at] })
    }

    /// All keys and what is known of them, in no order.
    pub(super) fn each(&mut self) -> impl Iterator<Item = (u32, Known<'_>)> {
        self.all().iter_mut().filter(|entry| **entry != 0).map(|entry| ((*entry >> 32) as u32, Known { entry }))
    }

    /// The key in one of the table's slots, of which there are [`Numbering::slots`].
    pub(super) fn key_at(&mut self, slot: usize) -> Option<u32> {
        self.all().get(slot).filter(|&&entry| entry != 0).map(|entry| (entry >> 32) as u32)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Forget all keys (the process has gone on to other ones), but give none of their numbers again.
    pub(super) fn forget_keys(&mut self) {
        self.all().fill(0);
    }

    pub(super) fn forget(&mut self) {
        if !self.entries.is_null() {
            os::unmap(self.entries.cast(), self.slots * size_of::<u64>());
        }
        *self = Self::NONE;
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let slots = (self.slots * 2).max(FIRST);
        let entries = os::map(slots * size_of::<u64>()).cast::<u64>();
        if entries.is_null() {
            return None;
        }
        let mut larger = Numbering { entries, slots, used: self.used };
        for &entry in self.all().iter().filter(|&&entry| entry != 0) {
            let at = place(larger.all(), slots, (entry >> 32) as u32);
            larger.all()[at] = entry;
        }
        self.forget();
        *self = larger;
        Some(())
    }
}

/// Where a key is, or belongs. A half of the table is free.
fn place(entries: &[u64], slots: usize, key: u32) -> usize {
    let mut at = (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (slots - 1);
    while entries[at] != 0 && entries[at] >> 32 != u64::from(key) {
        at = (at + 1) & (slots - 1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_are_dense() {
        let mut numbering = Numbering::NONE;
        for round in 0..2 {
            for key in 1..=20_000u32 {
                let mut known = numbering.number(key * 37).unwrap();
                assert_eq!(known.number(), key - 1);
                assert_eq!(known.is_explained(), round == 1);
                known.set_explained(true);
            }
        }
        assert_eq!(numbering.given(), 20_000);
        numbering.each().filter(|(key, _)| key % 2 == 0).for_each(|(_, mut known)| known.set_explained(false));
        assert_eq!(numbering.each().filter(|(_, known)| known.is_explained()).count(), 10_000);
        assert_eq!(numbering.number(37).unwrap().number(), 0);
        numbering.forget();
        assert_eq!((numbering.given(), numbering.number(9).unwrap().number()), (0, 0));
        numbering.forget();
    }
}
