//! `operator new` and `operator delete` of the Itanium C++ ABI, in all their forms.
//!
//! A throwing form calls the program's new-handler until memory is found; when there is none it has the C++ runtime
//! throw `std::bad_alloc`. The exception must not pass through a Rust frame (which would abort): the throwing function
//! is reached by tail jumps only, so that to the unwinder our caller has called it.

use crate::malloc::export;
use allocator::api::c;
use core::arch::naked_asm;
use core::mem::transmute;

unsafe extern "C" {
    fn abort() -> !;
    fn dlsym(handle: *mut u8, name: *const core::ffi::c_char) -> *mut u8;
}

export! {
    _Znwm(size: usize) -> *mut u8 = new;
    _Znam(size: usize) -> *mut u8 = new;
    _ZnwmSt11align_val_t(size: usize, alignment: usize) -> *mut u8 = new_aligned;
    _ZnamSt11align_val_t(size: usize, alignment: usize) -> *mut u8 = new_aligned;
    _ZnwmRKSt9nothrow_t(size: usize, tag: *const u8) -> *mut u8 = new_nothrow;
    _ZnamRKSt9nothrow_t(size: usize, tag: *const u8) -> *mut u8 = new_nothrow;
    _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const u8) -> *mut u8 = new_aligned_nothrow;
    _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, alignment: usize, tag: *const u8) -> *mut u8 = new_aligned_nothrow;
    _ZdlPv(block: *mut u8) = c::free;
    _ZdaPv(block: *mut u8) = c::free;
    _ZdlPvm(block: *mut u8, size: usize) = c::free_told;
    _ZdaPvm(block: *mut u8, size: usize) = c::free_told;
    _ZdlPvSt11align_val_t(block: *mut u8, alignment: usize) = c::free_told;
    _ZdaPvSt11align_val_t(block: *mut u8, alignment: usize) = c::free_told;
    _ZdlPvmSt11align_val_t(block: *mut u8, size: usize, alignment: usize) = c::free_told_both;
    _ZdaPvmSt11align_val_t(block: *mut u8, size: usize, alignment: usize) = c::free_told_both;
    _ZdlPvRKSt9nothrow_t(block: *mut u8, tag: *const u8) = delete_nothrow;
    _ZdaPvRKSt9nothrow_t(block: *mut u8, tag: *const u8) = delete_nothrow;
    _ZdlPvSt11align_val_tRKSt9nothrow_t(block: *mut u8, alignment: usize, tag: *const u8) = delete_aligned_nothrow;
    _ZdaPvSt11align_val_tRKSt9nothrow_t(block: *mut u8, alignment: usize, tag: *const u8) = delete_aligned_nothrow;

    mi_new(size: usize) -> *mut u8 = new;
    mi_new_aligned(size: usize, alignment: usize) -> *mut u8 = new_aligned;
    mi_new_nothrow(size: usize) -> *mut u8 = mi_nothrow;
    mi_new_aligned_nothrow(size: usize, alignment: usize) -> *mut u8 = mi_aligned_nothrow;
    mi_new_n(count: usize, size: usize) -> *mut u8 = new_n;
    mi_new_realloc(block: *mut u8, size: usize) -> *mut u8 = new_realloc;
    mi_new_reallocn(block: *mut u8, count: usize, size: usize) -> *mut u8 = new_reallocn;
    mi_heap_alloc_new(heap: c::HeapHandle, size: usize) -> *mut u8 = heap_new;
    mi_heap_alloc_new_n(heap: c::HeapHandle, count: usize, size: usize) -> *mut u8 = heap_new_n;
}

#[inline(always)]
unsafe fn new(size: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    let block = unsafe { c::malloc(size) };
    // SAFETY: the tail call keeps our caller's frame on top.
    if block.is_null() { unsafe { new_slow(size, 16) } } else { block }
}

#[inline(always)]
unsafe fn new_aligned(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    let block = unsafe { c::aligned_alloc(alignment, size) };
    // SAFETY: as above.
    if block.is_null() { unsafe { new_slow(size, alignment) } } else { block }
}

/// The C++ standard has these return null where the throwing forms throw, after the same calls of the new-handler.
unsafe fn new_nothrow(size: usize, _: *const u8) -> *mut u8 {
    // SAFETY: no preconditions.
    let block = unsafe { c::malloc(size) };
    if block.is_null() { retry(size, 16) } else { block }
}

unsafe fn new_aligned_nothrow(size: usize, alignment: usize, _: *const u8) -> *mut u8 {
    // SAFETY: no preconditions.
    let block = unsafe { c::aligned_alloc(alignment, size) };
    if block.is_null() { retry(size, alignment) } else { block }
}

unsafe fn mi_nothrow(size: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { new_nothrow(size, core::ptr::null()) }
}

unsafe fn mi_aligned_nothrow(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    unsafe { new_aligned_nothrow(size, alignment, core::ptr::null()) }
}

#[inline(always)]
unsafe fn new_n(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: a tail call to what may throw.
        Some(size) => unsafe { new(size) },
        // SAFETY: as above.
        None => unsafe { throw(0, 0) },
    }
}

#[inline(always)]
unsafe fn new_realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller owns the block.
    let new = unsafe { c::mi_realloc(block, size) };
    // SAFETY: as above.
    if new.is_null() { unsafe { realloc_slow(block as usize, size) } } else { new }
}

#[inline(always)]
unsafe fn new_reallocn(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: as above.
        Some(size) => unsafe { new_realloc(block, size) },
        // SAFETY: as above.
        None => unsafe { throw(0, 0) },
    }
}

#[inline(always)]
unsafe fn heap_new(heap: c::HeapHandle, size: usize) -> *mut u8 {
    // SAFETY: the heap is in use.
    let block = unsafe { c::heap_malloc(heap, size) };
    // SAFETY: as above.
    if block.is_null() { unsafe { heap_slow(heap.address(), size) } } else { block }
}

#[inline(always)]
unsafe fn heap_new_n(heap: c::HeapHandle, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: as above.
        Some(size) => unsafe { heap_new(heap, size) },
        // SAFETY: as above.
        None => unsafe { throw(0, 0) },
    }
}

unsafe fn delete_nothrow(block: *mut u8, _: *const u8) {
    // SAFETY: as `free`.
    unsafe { c::free(block) }
}

unsafe fn delete_aligned_nothrow(block: *mut u8, _: usize, _: *const u8) {
    // SAFETY: as `free`.
    unsafe { c::free(block) }
}

/// The program's function of this name, if it has a C++ runtime. We link to none ourselves.
fn runtime(name: &core::ffi::CStr) -> Option<*mut u8> {
    // SAFETY: searches the loaded libraries in their usual order.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Ask the new-handler for memory until there is some or the handler is gone: null then.
fn ask(attempt: impl Fn() -> *mut u8) -> *mut u8 {
    while let Some(get) = runtime(c"_ZSt15get_new_handlerv") {
        // SAFETY: std::get_new_handler() and std::new_handler have these signatures.
        unsafe {
            let get = transmute::<*mut u8, unsafe extern "C" fn() -> Option<unsafe extern "C" fn()>>(get);
            let Some(handler) = get() else { break };
            handler();
        }
        let block = attempt();
        if !block.is_null() {
            return block;
        }
    }
    core::ptr::null_mut()
}

extern "C" fn retry(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: no preconditions.
    ask(|| unsafe { c::aligned_alloc(alignment, size) })
}

extern "C" fn retry_realloc(block: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller of the slow path owns the block.
    ask(|| unsafe { c::mi_realloc(block as *mut u8, size) })
}

extern "C" fn retry_heap(heap: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller of the slow path has a heap.
    ask(|| unsafe { c::heap_malloc(c::HeapHandle::at(heap), size) })
}

extern "C" fn give_up(_: usize, _: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// A function that tries again, and if that finds nothing, throws.
macro_rules! try_or_throw {
    ($name:ident, $retry:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_first: usize, _second: usize) -> *mut u8 {
            naked_asm!(
                ".cfi_startproc",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {retry}",
                "test rax, rax",
                "jnz 2f",
                "call {thrower}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                "2:",
                ".cfi_adjust_cfa_offset 8",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                retry = sym $retry,
                thrower = sym thrower,
            )
        }
    };
}
try_or_throw!(new_slow, retry);
try_or_throw!(realloc_slow, retry_realloc);
try_or_throw!(heap_slow, retry_heap);
try_or_throw!(throw, give_up);

/// libstdc++'s `std::__throw_bad_alloc()`; without that runtime, `abort`.
extern "C" fn thrower() -> *const u8 {
    runtime(c"_ZSt17__throw_bad_allocv").map_or(abort as *const u8, |throw| throw.cast_const())
}
