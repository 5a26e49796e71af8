//! Arrays straight from the kernel, for a workload's own tables: the allocator that is measured neither serves them nor
//! is judged by their size.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Types whose value may be all zero bytes.
///
/// # Safety
/// All zero bytes must be a valid value, and dropping a value must do nothing.
pub unsafe trait Zeroed {}

// SAFETY: plain numbers.
unsafe impl Zeroed for u8 {}
// SAFETY: plain numbers.
unsafe impl Zeroed for u32 {}
// SAFETY: plain numbers.
unsafe impl Zeroed for u64 {}

/// A slice of zeroed values in pages of its own, all of them resident from the start.
#[derive(Debug)]
pub struct Mapped<T: Zeroed> {
    start: NonNull<T>,
    length: usize,
}

// SAFETY: the pages belong to this value alone.
unsafe impl<T: Zeroed + Send> Send for Mapped<T> {}
// SAFETY: a shared reference gives shared access to the values only.
unsafe impl<T: Zeroed + Sync> Sync for Mapped<T> {}

impl<T: Zeroed> Mapped<T> {
    /// Maps `length` values.
    ///
    /// # Panics
    /// When the kernel has no memory.
    #[must_use]
    pub fn new(length: usize) -> Self {
        const { assert!(align_of::<T>() <= 4096) };
        // Even nothing has an address, but no page.
        let resident = if length == 0 { 0 } else { libc::MAP_POPULATE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | resident;
        // SAFETY: a new anonymous mapping replaces nothing.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), Self::bytes(length), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        Self { start: NonNull::new(start.cast()).expect("the first page is never mapped"), length }
    }

    /// Maps what `values` yields.
    #[must_use]
    pub fn collect(values: impl ExactSizeIterator<Item = T>) -> Self {
        let mut mapped = Self::new(values.len());
        mapped.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        mapped
    }

    fn bytes(length: usize) -> usize {
        (length * size_of::<T>()).max(1)
    }
}

impl<T: Zeroed> Deref for Mapped<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `length` values were mapped and are valid from the start (`Zeroed`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Zeroed> DerefMut for Mapped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Zeroed> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped in `new` and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), Self::bytes(self.length)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_zeros_and_then_what_is_written() {
        let mut numbers: Mapped<u32> = Mapped::new(10_000);
        assert!(numbers.len() == 10_000 && numbers.iter().all(|&number| number == 0));
        numbers[9_999] = 7;
        assert_eq!(numbers.iter().sum::<u32>(), 7);
        assert_eq!(&Mapped::collect(0u32..3)[..], [0, 1, 2]);
        assert!(Mapped::<u8>::new(0).is_empty());
    }
}
