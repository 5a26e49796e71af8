//! `mi_unwrapped_…`: memory straight from the operating system, which no instrument sees and no statistics count; for programs that
//! instrument this allocator themselves. In whole pages.

use super::process::is_in_heap_region;
use crate::heap::allocate::no_memory;
use crate::os::{self, PAGE, libc};

/// Before each block.
#[repr(C)]
struct Header {
    magic: usize,
    /// The mapping, and its bytes.
    start: *mut u8,
    length: usize,
    /// Bytes from the block to the end of the mapping.
    room: usize,
}

const MAGIC: usize = 0x756e_7772_6170_7065;

/// `mi_unwrapped_malloc`: zeroed memory at a multiple of `alignment`, which is a power of two, or 0 for that of a pointer. Null with `EINVAL` or
/// `ENOMEM`.
pub fn unwrapped_malloc(size: usize, alignment: usize) -> *mut u8 {
    if alignment != 0 && !alignment.is_power_of_two() {
        libc::set_errno(libc::EINVAL);
        return core::ptr::null_mut();
    }
    let alignment = alignment.max(align_of::<Header>());
    // At most so much lies before the block.
    let before = size_of::<Header>() + alignment - 1;
    let length = size.max(1).checked_add(before).and_then(|length| length.checked_next_multiple_of(PAGE));
    let Some(length) = length.filter(|&length| length <= isize::MAX as usize) else { return no_memory() };
    let start = os::map(length);
    if start.is_null() {
        return no_memory();
    }
    let lead = (start as usize + size_of::<Header>()).next_multiple_of(alignment) - start as usize;
    let block = start.wrapping_add(lead);
    // SAFETY: the header lies in the mapping, before the block, which is aligned well enough for it.
    unsafe { block.cast::<Header>().sub(1).write(Header { magic: MAGIC, start, length, room: length - lead }) };
    block
}

/// The header of a block; `None`, with `EINVAL`, if it is none of those.
///
/// # Safety
/// As [`unwrapped_free`].
unsafe fn header_of(block: *mut u8) -> Option<*mut Header> {
    let header = block.cast::<Header>().wrapping_sub(1);
    // SAFETY: what lies before a block that is not ours to know is the caller's to answer for.
    let known = header.is_aligned() && !is_in_heap_region(block) && unsafe { (*header).magic == MAGIC };
    if !known {
        libc::set_errno(libc::EINVAL);
        (crate::HOOKS.failed)(libc::EINVAL, b"mi_unwrapped_free: not a block of mi_unwrapped_malloc", false);
    }
    known.then_some(header)
}

/// `mi_unwrapped_free`: null is allowed. A block of `malloc` is told as a mistake and left alone.
///
/// # Safety
/// The block came from [`unwrapped_malloc`] or [`unwrapped_realloc`] and is used no more, or is one of this allocator.
pub unsafe fn unwrapped_free(block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's block.
    unsafe {
        if let Some(header) = header_of(block) {
            let Header { start, length, .. } = header.read();
            (*header).magic = 0;
            os::unmap(start, length);
        }
    }
}

/// `mi_unwrapped_realloc`: of null it allocates, to 0 bytes it frees and gives null. On failure null, and the block is as it was.
///
/// # Safety
/// As [`unwrapped_free`].
pub unsafe fn unwrapped_realloc(block: *mut u8, size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the caller's block, which is as large as its header says.
    unsafe {
        if block.is_null() {
            return unwrapped_malloc(size, alignment);
        }
        if size == 0 {
            unwrapped_free(block);
            return core::ptr::null_mut();
        }
        let Some(header) = header_of(block) else { return core::ptr::null_mut() };
        let new = unwrapped_malloc(size, alignment);
        if !new.is_null() {
            new.copy_from_nonoverlapping(block, size.min((*header).room));
            unwrapped_free(block);
        }
        new
    }
}
