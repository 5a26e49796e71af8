//! A block from the C allocator, and the two ways to use one: touched, or filled and read back.

use std::hint::black_box;
use std::ptr::NonNull;

use crate::driver::mapped::Zeroed;
use crate::driver::seed::mix;

/// The smallest block, in bytes: its first word holds a stamp.
pub const SMALLEST: usize = 8;

/// A block that `malloc` or one of its siblings gave out. It is not freed when it goes out of scope; a block that is dropped
/// is leaked.
#[derive(Debug)]
#[repr(transparent)]
pub struct Block(NonNull<u8>);

// SAFETY: a block is plain memory with one owner.
unsafe impl Send for Block {}
// SAFETY: all zeros is `None`, because a block is a non-null pointer; nothing happens on drop.
unsafe impl Zeroed for Option<Block> {}

#[cold]
#[inline(never)]
fn refused() -> ! {
    // Not a panic: its message would need memory.
    std::process::abort()
}

impl Block {
    /// Wraps what an allocation function returned. Ends the process on null: a run without the memory has no figures.
    ///
    /// The optimiser may not see that the pointer is only freed: it would remove a pair of `malloc` and `free` as a whole.
    #[inline(always)]
    fn owned(start: *mut libc::c_void) -> Self {
        match NonNull::new(black_box(start).cast()) {
            Some(start) => Self(start),
            None => refused(),
        }
    }

    /// `malloc(size)`; `size` is at least [`SMALLEST`].
    #[inline(always)]
    #[must_use]
    pub fn new(size: usize) -> Self {
        debug_assert!(size >= SMALLEST);
        // SAFETY: malloc may be called with any size.
        Self::owned(unsafe { libc::malloc(size) })
    }

    /// `calloc(1, size)`.
    #[inline(always)]
    #[must_use]
    pub fn zeroed(size: usize) -> Self {
        debug_assert!(size >= SMALLEST);
        // SAFETY: calloc may be called with any size.
        Self::owned(unsafe { libc::calloc(1, size) })
    }

    /// `posix_memalign` with `alignment`, a power of two of at least the size of a pointer.
    #[inline(always)]
    #[must_use]
    pub fn aligned(alignment: usize, size: usize) -> Self {
        debug_assert!(size >= SMALLEST && alignment.is_power_of_two());
        let mut start = std::ptr::null_mut();
        // SAFETY: `start` is a valid place for the answer; when the call fails it stays null.
        unsafe { libc::posix_memalign(&raw mut start, alignment, size) };
        Self::owned(start)
    }

    /// `realloc(self, size)`.
    #[inline(always)]
    #[must_use]
    pub fn resized(self, size: usize) -> Self {
        debug_assert!(size >= SMALLEST);
        // SAFETY: the block came from the same allocator and is given up here.
        Self::owned(unsafe { libc::realloc(self.0.as_ptr().cast(), size) })
    }

    /// `free(self)`.
    #[inline(always)]
    pub fn free(self) {
        // SAFETY: the block came from the same allocator and is given up here.
        unsafe { libc::free(self.0.as_ptr().cast()) };
    }

    /// A block from another function of the same allocator, such as C++'s `new`.
    ///
    /// # Safety
    /// `start` is null or at least [`SMALLEST`] bytes that belong to the caller.
    #[inline(always)]
    #[must_use]
    pub unsafe fn adopt(start: *mut libc::c_void) -> Self {
        Self::owned(start)
    }

    /// Gives the block up as a pointer.
    #[inline(always)]
    #[must_use]
    pub fn into_raw(self) -> *mut libc::c_void {
        self.0.as_ptr().cast()
    }

    /// Where it is.
    #[inline(always)]
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Writes the first byte, as any user of a block would.
    #[inline(always)]
    pub fn touch(&mut self) {
        // SAFETY: a block has at least `SMALLEST` bytes.
        unsafe { self.0.as_ptr().write_volatile(1) };
    }

    /// Writes the byte at `offset`, which must be inside the block.
    #[inline(always)]
    pub fn touch_at(&mut self, offset: usize) {
        // SAFETY: the caller's promise, which is kept by `measured` alone: no offset comes from outside.
        unsafe { self.0.as_ptr().add(offset).write_volatile(1) };
    }

    /// Writes one byte of each page of a block of `size` bytes, and its last.
    #[inline(always)]
    pub fn touch_pages(&mut self, size: usize) {
        for offset in (0..size).step_by(4096) {
            self.touch_at(offset);
        }
        self.touch_at(size - 1);
    }

    /// Writes `stamp` into the first word.
    #[inline(always)]
    pub fn mark(&mut self, stamp: u64) {
        // SAFETY: a block has at least `SMALLEST` bytes and is aligned for a word.
        unsafe { self.0.as_ptr().cast::<u64>().write_volatile(stamp) };
    }

    /// The first word.
    #[inline(always)]
    #[must_use]
    pub fn read(&self) -> u64 {
        // SAFETY: as in `mark`; whoever reads has marked before.
        unsafe { self.0.as_ptr().cast::<u64>().read_volatile() }
    }

    /// All whole words of a block of `size` bytes.
    pub fn words(&mut self, size: usize) -> &mut [u64] {
        // SAFETY: the caller's `size` is that of the block, its words are aligned, and any bits are a number. What was never
        // written is written by the one caller before it is read.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr().cast(), size / 8) }
    }
}

/// The stamp of what is number `number` of its kind; never 0, which is what fresh memory holds.
#[inline(always)]
#[must_use]
pub const fn stamp_of(number: u64) -> u64 {
    // A bijection that maps only 0 to 0.
    mix(number + 1)
}

/// What was read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Follows from the seed and the number of operations, whatever the allocator.
    pub checksum: u64,
    /// Blocks that did not hold what was written into them.
    pub damaged: u64,
}

impl Tally {
    /// Adds a block whose first word should be `expected`.
    #[inline(always)]
    pub fn add(&mut self, found: u64, expected: u64) {
        self.checksum = self.checksum.wrapping_add(found);
        self.damaged += u64::from(found != expected);
    }

    /// Adds another thread's tally.
    pub fn merge(&mut self, other: Self) {
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.damaged += other.damaged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_gives_memory_that_can_be_used() {
        for mut block in [Block::new(100), Block::zeroed(100), Block::aligned(256, 100)] {
            block.mark(7);
            block.touch_at(99);
            let mut block = block.resized(10_000);
            assert_eq!(block.read(), 7);
            block.touch_pages(10_000);
            block.words(10_000).fill(3);
            assert_eq!(block.read(), 3);
            block.free();
        }
        let mut block = Block::zeroed(4096);
        assert!(block.words(4096).iter().all(|&word| word == 0));
        block.free();
    }

    #[test]
    fn damage_is_counted_and_changes_the_sum() {
        let (mut good, mut bad) = (Tally::default(), Tally::default());
        good.add(5, 5);
        bad.add(4, 5);
        assert_eq!((good.damaged, bad.damaged), (0, 1));
        assert_ne!(good.checksum, bad.checksum);
    }
}
