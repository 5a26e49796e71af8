//! Every block of a heap.
//!
//! Safe beside threads that allocate from the heap and free its blocks. A block that is live during the whole visit is visited exactly
//! once; one that is freed or allocated meanwhile, once or not at all. Visitors are called with no lock held.

use super::{HeapHandle, TheapHandle};
use crate::heap::zone;
use core::ffi::c_void;

/// `mi_heap_area_t`: blocks of one size that lie together.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapArea {
    /// Start of the first block.
    pub blocks: *mut u8,
    /// Bytes of address space.
    pub reserved: usize,
    /// Bytes that can be used.
    pub committed: usize,
    /// Live blocks.
    pub used: usize,
    /// Usable bytes of a block.
    pub block_size: usize,
    /// Bytes from one block to the next.
    pub full_block_size: usize,
    /// Null.
    pub reserved1: *mut u8,
}

/// Gets an area with a null block, and then its blocks; false ends the visit.
pub type BlockVisitor = unsafe extern "C" fn(
    heap: HeapHandle,
    area: *const HeapArea,
    block: *mut u8,
    block_size: usize,
    arg: *mut c_void,
) -> bool;

/// `mi_heap_visit_blocks`: every area of a heap, and with `blocks` every live block. False: the visitor has ended it, or there is none.
///
/// # Safety
/// The heap is in use, and is not ended by the visitor. The visitor may be called with the argument.
pub unsafe fn heap_visit_blocks(
    heap: HeapHandle,
    blocks: bool,
    visitor: Option<BlockVisitor>,
    arg: *mut c_void,
) -> bool {
    let Some(visitor) = visitor else { return false };
    let heap = HeapHandle::of(heap.zone());
    let visit = |area: &zone::Area, block: *mut u8| {
        let area = HeapArea {
            blocks: area.blocks,
            reserved: area.reserved,
            committed: area.reserved,
            used: area.used,
            block_size: area.block_size,
            full_block_size: area.block_size,
            reserved1: core::ptr::null_mut(),
        };
        // SAFETY: the caller's promise.
        unsafe { visitor(heap, &raw const area, block, area.block_size, arg) }
    };
    // SAFETY: the caller's promise.
    unsafe { zone::visit(heap.zone(), blocks, visit) }
}

/// `mi_heap_visit_abandoned_blocks`: blocks that no thread looks after. There are none: slabs belong to heaps, not to threads.
///
/// # Safety
/// None is needed.
pub unsafe fn heap_visit_abandoned_blocks(
    _: HeapHandle,
    _: bool,
    visitor: Option<BlockVisitor>,
    _: *mut c_void,
) -> bool {
    visitor.is_some()
}

/// `mi_theap_visit_blocks`: as [`heap_visit_blocks`] for the heap that this is a part of.
///
/// # Safety
/// As [`heap_visit_blocks`].
pub unsafe fn theap_visit_blocks(
    theap: TheapHandle,
    blocks: bool,
    visitor: Option<BlockVisitor>,
    arg: *mut c_void,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { heap_visit_blocks(theap.whole(), blocks, visitor, arg) }
}

/// `mi_unsafe_heap_page_is_under_utilized`: whether the block lies in a slab of the heap of which less than `percent` is live or
/// cached, so that it pays to allocate it anew and to free this one.
///
/// # Safety
/// The heap is in use.
pub unsafe fn heap_page_is_under_utilized(heap: HeapHandle, block: *const u8, percent: usize) -> bool {
    zone::is_under_utilized(heap.zone(), block, percent)
}
