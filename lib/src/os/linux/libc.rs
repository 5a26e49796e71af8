//! What is needed of the C library. Nothing here is called while a lock is held.

unsafe extern "C" {
    pub(crate) fn __errno_location() -> *mut i32;
    pub(crate) fn abort() -> !;
    pub(crate) safe fn getauxval(kind: u64) -> usize;
    pub(crate) fn pthread_key_create(key: *mut u32, destructor: Option<unsafe extern "C" fn(*mut u8)>) -> i32;
    pub(crate) fn pthread_setspecific(key: u32, value: *const u8) -> i32;
    pub(crate) fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> i32;
    pub(super) fn pthread_attr_init(attributes: *mut u64) -> i32;
    pub(super) fn pthread_attr_setstacksize(attributes: *mut u64, bytes: usize) -> i32;
    pub(super) fn pthread_attr_destroy(attributes: *mut u64) -> i32;
    pub(super) fn pthread_create(
        thread: *mut usize,
        attributes: *const u64,
        run: unsafe extern "C" fn(*mut u8) -> *mut u8,
        argument: *mut u8,
    ) -> i32;
    pub(super) fn pthread_detach(thread: usize) -> i32;
    pub(super) fn pthread_self() -> usize;
    pub(super) fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
    pub(super) fn pthread_join(thread: usize, result: *mut *mut u8) -> i32;
    pub(crate) fn dlsym(handle: *mut u8, name: *const u8) -> *mut u8;
    /// The C library's own `free`, which programs cannot replace.
    pub(crate) fn __libc_free(block: *mut u8);
}

/// Search the libraries after this one (`dlsym`).
pub(crate) const RTLD_NEXT: *mut u8 = usize::MAX as *mut u8;
/// `getauxval`: the program's entry point.
pub(crate) const AT_ENTRY: u64 = 9;
/// `getauxval`: set in programs that run with more rights than their user.
pub(crate) const AT_SECURE: u64 = 23;

pub(crate) const ENOENT: i32 = 2;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EFAULT: i32 = 14;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EDEADLK: i32 = 35;
pub(crate) const ENAMETOOLONG: i32 = 36;
pub(crate) const EOVERFLOW: i32 = 75;
pub(crate) const ECANCELED: i32 = 125;

/// The calling thread's `errno`.
#[inline(always)]
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns a valid pointer for the life of the thread.
    unsafe { *__errno_location() }
}

/// Set the calling thread's `errno`.
#[inline(always)]
pub(crate) fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *__errno_location() = value }
}
