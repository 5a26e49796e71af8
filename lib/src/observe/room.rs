//! Lists in memory of their own, from the kernel: what is collected for a dump must not come from the heap that is looked at.

use super::output::Failure;
use crate::os;
use core::ops::{Deref, DerefMut};

/// Entries of a new list: some pages of them.
const FIRST: usize = 16 * 1024;

/// A list that grows. Given back when it is dropped.
pub(crate) struct Room<T: Copy> {
    at: *mut T,
    length: usize,
    /// In entries.
    capacity: usize,
}

impl<T: Copy> Room<T> {
    pub(crate) const fn new() -> Room<T> {
        Room { at: core::ptr::null_mut(), length: 0, capacity: 0 }
    }

    /// A list of so many entries, all bytes of them zero.
    ///
    /// # Safety
    /// A `T` may be all zeros.
    pub(crate) unsafe fn zeroed(length: usize) -> Result<Room<T>, Failure> {
        let mut room = Room::new();
        room.grow(length)?;
        room.length = length;
        Ok(room)
    }

    pub(crate) fn push(&mut self, entry: T) -> Result<(), Failure> {
        if self.length == self.capacity {
            self.grow(self.length + 1)?;
        }
        // SAFETY: there is room for one more.
        unsafe { self.at.add(self.length).write(entry) };
        self.length += 1;
        Ok(())
    }

    pub(crate) fn extend(&mut self, entries: &[T]) -> Result<(), Failure> {
        let length = self.length.checked_add(entries.len()).ok_or(Failure::NO_MEMORY)?;
        if length > self.capacity {
            self.grow(length)?;
        }
        // SAFETY: there is room for all, and a slice of somebody else's does not overlap it.
        unsafe { self.at.add(self.length).copy_from_nonoverlapping(entries.as_ptr(), entries.len()) };
        self.length = length;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Room for this many entries at least, twice as many as now if more is needed.
    fn grow(&mut self, least: usize) -> Result<(), Failure> {
        let wanted = least.max(self.capacity.saturating_mul(2)).max(FIRST.div_ceil(size_of::<T>()));
        let bytes = wanted.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_next_multiple_of(os::PAGE));
        let bytes = bytes.ok_or(Failure::NO_MEMORY)?;
        let new = os::map(bytes).cast::<T>();
        if new.is_null() {
            return Err(Failure::NO_MEMORY);
        }
        if !self.at.is_null() {
            // SAFETY: fresh memory that is larger than what was written.
            unsafe { new.copy_from_nonoverlapping(self.at, self.length) };
        }
        self.give_back();
        (self.at, self.capacity) = (new, bytes / size_of::<T>());
        Ok(())
    }

    fn give_back(&mut self) {
        if !self.at.is_null() {
            os::unmap(self.at.cast(), (self.capacity * size_of::<T>()).next_multiple_of(os::PAGE));
        }
    }
}

impl Room<u8> {
    /// Append what is put into the memory behind the list, at least so many bytes of it: `fill` says how many it has put there.
    pub(crate) fn extend_with(
        &mut self,
        least: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Failure> {
        if self.capacity - self.length < least {
            self.grow(self.length + least)?;
        }
        let room = self.capacity - self.length;
        // SAFETY: memory of the list's own; the kernel gave it with zeros in it.
        let filled = fill(unsafe { core::slice::from_raw_parts_mut(self.at.add(self.length), room) }).min(room);
        self.length += filled;
        Ok(filled)
    }
}

impl<T: Copy> Room<T> {
    /// Takes the first entries away; the others move up.
    pub(crate) fn drop_first(&mut self, count: usize) {
        let count = count.min(self.length);
        self.copy_within(count.., 0);
        self.length -= count;
    }
}

impl<T: Copy> Deref for Room<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: `length` entries were written (or zeroed), and the mapping lives as long as the list.
        unsafe { core::slice::from_raw_parts(self.at, self.length) }
    }
}

impl<T: Copy> DerefMut for Room<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.at.is_null() {
            return &mut [];
        }
        // SAFETY: as above, and the list is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.at, self.length) }
    }
}

impl<T: Copy> Drop for Room<T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow() {
        let mut list = Room::new();
        assert!(list.is_empty());
        for i in 0..100_000u32 {
            list.push([i, i * 3, 7]).unwrap();
        }
        assert!(list.iter().zip(0..).all(|(&entry, i)| entry == [i, i * 3, 7]));
        assert_eq!(list.len(), 100_000);
        list.clear();
        list.extend(&[[1; 3]; 9000]).unwrap();
        list[8999] = [2; 3];
        assert_eq!((list.len(), list[8998], list[8999]), (9000, [1; 3], [2; 3]));
        let mut text = Room::new();
        assert_eq!(
            text.extend_with(3, |room| {
                room[..3].copy_from_slice(b"abc");
                3
            }),
            Ok(3)
        );
        assert_eq!(text.extend_with(100_000, |room| room.len() + 1), Ok(text.len() - 3));
        assert!(text.len() > 100_000 && text[..4] == *b"abc\0");
        // SAFETY: numbers may be zero.
        let zeros = unsafe { Room::<u64>::zeroed(70_000) }.unwrap();
        assert!(zeros.len() == 70_000 && zeros.iter().all(|&n| n == 0));
        // SAFETY: as above.
        assert_eq!(unsafe { Room::<u64>::zeroed(usize::MAX / 4) }.err(), Some(Failure::NO_MEMORY));
    }
}
