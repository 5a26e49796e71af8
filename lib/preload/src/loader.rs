//! Two functions of the loader that an allocator has to see.
//!
//! `dlopen` with `RTLD_DEEPBIND` would bind the library, and it alone, to the C library's `malloc` and `free`, which then
//! get blocks of ours: PHP loads its extensions like that. The flag is cleared, unless `MIMALLOC_DEEPBIND=1` asks to keep
//! it. `dlclose` makes what is known about code at some addresses untrue.

use allocator::api::life;
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

unsafe extern "C" {
    fn dlsym(handle: *mut u8, name: *const c_char) -> *mut u8;
}

const RTLD_NEXT: *mut u8 = usize::MAX as *mut u8;
const RTLD_DEEPBIND: u32 = 8;

/// Flags that `dlopen` passes on.
static PASSED: AtomicU32 = AtomicU32::new(!RTLD_DEEPBIND);
static DLOPEN: AtomicUsize = AtomicUsize::new(0);
static DLCLOSE: AtomicUsize = AtomicUsize::new(0);

/// Pass on all flags.
pub(crate) fn keep_deepbind() {
    PASSED.store(!0, Relaxed);
}

/// The next library's function of this name. 0 if there is none.
pub(crate) fn next(name: &CStr, known: &AtomicUsize) -> usize {
    if known.load(Relaxed) == 0 {
        // SAFETY: a look-up.
        known.store(unsafe { dlsym(RTLD_NEXT, name.as_ptr()) } as usize, Relaxed);
    }
    known.load(Relaxed)
}

extern "C" fn find_dlopen() -> usize {
    life::module_loading();
    next(c"dlopen", &DLOPEN)
}

/// A tail jump, because the C library takes the caller's search path and namespace from the return address.
///
/// # Safety
/// As `dlopen`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(_file: *const c_char, _flags: c_int) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "and esi, dword ptr [rip + {passed}]",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {find}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: ret",
        ".cfi_endproc",
        passed = sym PASSED,
        find = sym find_dlopen,
    )
}

/// # Safety
/// As `dlclose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut u8) -> c_int {
    let real = next(c"dlclose", &DLCLOSE);
    if real == 0 {
        return -1;
    }
    life::module_unloading();
    // SAFETY: the C library's function of this name and signature.
    let result = unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut u8) -> c_int>(real)(handle) };
    life::module_unloaded();
    result
}
