//! Asking whatever allocator is preloaded to give memory back: each has another name for it.

use std::ffi::{CStr, c_char, c_int, c_void};

/// A function that gives memory back, in the library that `malloc` is in.
#[derive(Clone, Copy, Debug)]
pub enum Purge {
    /// `mi_purge_all(true)`.
    MiPurgeAll(extern "C" fn(bool)),
    /// `mi_collect(true)`.
    MiCollect(extern "C" fn(bool)),
    /// jemalloc's `arena.<all>.purge`.
    Mallctl(Mallctl),
    /// gperftools' `MallocExtension_ReleaseFreeMemory`.
    ReleaseFreeMemory(extern "C" fn()),
    /// glibc's `malloc_trim(0)`.
    MallocTrim(extern "C" fn(usize) -> c_int),
    /// `mi_on_thread_idle()`: what the calling thread has.
    MiOnThreadIdle(extern "C" fn()),
    /// jemalloc's `thread.idle`: the same.
    ThreadIdle(Mallctl),
}

/// jemalloc's door to everything.
type Mallctl = extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

impl Purge {
    /// Finds one; the first of the list that there is.
    #[must_use]
    pub fn find() -> Option<Self> {
        // SAFETY: these names have had these signatures in every version of their libraries.
        unsafe {
            Some(if let Some(found) = symbol(c"mi_purge_all") {
                Self::MiPurgeAll(std::mem::transmute::<*mut c_void, extern "C" fn(bool)>(found))
            } else if let Some(found) = symbol(c"mi_collect") {
                Self::MiCollect(std::mem::transmute::<*mut c_void, extern "C" fn(bool)>(found))
            } else if let Some(found) = symbol(c"mallctl") {
                Self::Mallctl(std::mem::transmute::<*mut c_void, Mallctl>(found))
            } else if let Some(found) = symbol(c"MallocExtension_ReleaseFreeMemory") {
                Self::ReleaseFreeMemory(std::mem::transmute::<*mut c_void, extern "C" fn()>(found))
            } else {
                let found = symbol(c"malloc_trim")?;
                Self::MallocTrim(std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> c_int>(found))
            })
        }
    }

    /// Finds what a thread calls for itself when it will be idle; else the same as [`Purge::find`].
    #[must_use]
    pub fn of_thread() -> Option<Self> {
        // SAFETY: as above.
        unsafe {
            if let Some(found) = symbol(c"mi_on_thread_idle") {
                return Some(Self::MiOnThreadIdle(std::mem::transmute::<*mut c_void, extern "C" fn()>(found)));
            }
        }
        Self::find().map(|purge| if let Self::Mallctl(control) = purge { Self::ThreadIdle(control) } else { purge })
    }

    /// What it is, in a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MiPurgeAll(_) => "mi_purge_all(true)",
            Self::MiCollect(_) => "mi_collect(true)",
            Self::Mallctl(_) => "arena.all.purge",
            Self::ReleaseFreeMemory(_) => "ReleaseFreeMemory",
            Self::MallocTrim(_) => "malloc_trim(0)",
            Self::MiOnThreadIdle(_) => "mi_on_thread_idle",
            Self::ThreadIdle(_) => "thread.idle",
        }
    }

    /// Calls it.
    pub fn call(self) {
        match self {
            Self::MiPurgeAll(purge) | Self::MiCollect(purge) => purge(true),
            // 4096 is MALLCTL_ARENAS_ALL.
            Self::Mallctl(control) => command(control, c"arena.4096.purge"),
            Self::ThreadIdle(control) => command(control, c"thread.idle"),
            Self::ReleaseFreeMemory(call) | Self::MiOnThreadIdle(call) => call(),
            Self::MallocTrim(trim) => drop(trim(0)),
        }
    }
}

/// A command of jemalloc's that takes nothing and gives nothing.
fn command(control: Mallctl, name: &CStr) {
    let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
    control(name.as_ptr(), none, nothing, none, 0);
}

/// A symbol that is in the same file as `malloc`: the C library's function does nothing for another allocator's memory.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with 0.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let base = |address: *const c_void| {
        // SAFETY: all zeros is a valid value, and the place for the answer is valid.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            (libc::dladdr(address, &raw mut info) != 0).then_some(info.dli_fbase)
        }
    };
    (!found.is_null() && base(found) == base(libc::malloc as *const c_void)).then_some(found)
}
