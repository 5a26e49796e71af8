//! The counts of one heap, and of a sub-process.

use super::super::text::OutputFn;
use super::super::{HeapHandle, SubprocId};
use super::{Stats, get_scope, json, report};
use crate::heap::zone::Scope;
use core::ffi::{c_char, c_void};

/// `mi_heap_stats_get`: as [`get`](super::get).
///
/// # Safety
/// As [`get`](super::get), and the heap is in use.
pub unsafe fn heap_get(heap: HeapHandle, stats: *mut Stats) -> bool {
    // SAFETY: the caller's promise.
    unsafe { get_scope(Scope::Zone(heap.zone()), stats) }
}

/// `mi_heap_stats_get_json`: as [`get_json`](super::get_json).
///
/// # Safety
/// As [`get_json`](super::get_json), and the heap is in use.
pub unsafe fn heap_get_json(heap: HeapHandle, size: usize, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { json::scope_json(Scope::Zone(heap.zone()), size, buffer) }
}

/// `mi_heap_stats_print_out`.
///
/// # Safety
/// The function may be called with the argument, and the heap is in use.
pub unsafe fn heap_print_out(heap: HeapHandle, function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { report::print_scope(Scope::Zone(heap.zone()), function, arg) }
}

/// `mi_heap_stats_merge_to_subproc`: the counts of a sub-process are those of its heaps at any time.
///
/// # Safety
/// None is needed.
pub unsafe fn heap_merge(_: HeapHandle) {}

/// `mi_subproc_stats_get`: of all heaps of a sub-process.
///
/// # Safety
/// As [`get`](super::get), and the sub-process is in use.
pub unsafe fn subproc_get(process: SubprocId, stats: *mut Stats) -> bool {
    // SAFETY: the caller's promise.
    unsafe { get_scope(Scope::Subprocess(process.process()), stats) }
}

/// `mi_subproc_stats_get_exclusive`: what is counted in no heap: nothing.
///
/// # Safety
/// As [`subproc_get`].
pub unsafe fn subproc_get_exclusive(_: SubprocId, stats: *mut Stats) -> bool {
    // SAFETY: the caller's promise: no heap is at this address.
    unsafe { get_scope(Scope::Zone(core::ptr::dangling_mut()), stats) }
}

/// `mi_subproc_stats_get_json`.
///
/// # Safety
/// As [`get_json`](super::get_json), and the sub-process is in use.
pub unsafe fn subproc_get_json(process: SubprocId, size: usize, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { json::scope_json(Scope::Subprocess(process.process()), size, buffer) }
}

/// `mi_subproc_stats_print_out`.
///
/// # Safety
/// As [`heap_print_out`] for the sub-process.
pub unsafe fn subproc_print_out(process: SubprocId, function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { report::print_scope(Scope::Subprocess(process.process()), function, arg) }
}

/// `mi_subproc_heap_stats_print_out`: each heap by itself.
///
/// # Safety
/// As [`subproc_print_out`].
pub unsafe fn subproc_heap_print_out(process: SubprocId, function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { report::print_zones(process.process(), function, arg) }
}
