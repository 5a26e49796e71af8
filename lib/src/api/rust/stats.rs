//! What the allocator counts: blocks and bytes, exact at the moment they are read, and free of charge until then.
//!
//! They are those of the whole process: of what this crate serves as the global allocator, and nothing else.
//!
//! ```
//! # #[global_allocator] static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;
//! use mimalloc_pprof::stats;
//!
//! let before = stats::get().unwrap().malloc_normal.current;
//! let kept = vec![0u8; 10_000];
//! let after = stats::get().unwrap().malloc_normal.current;
//! assert!(after - before >= kept.len() as i64);
//! ```

use crate::api::c::stats as c;
use crate::api::c::{OutputFn, SubprocId, free, subproc_current, subproc_main};
use core::ffi::{CStr, c_char, c_void};
use core::fmt::{self, Write};
use core::ops::Deref;

pub use crate::api::c::stats::{BINS, CHUNK_BINS, Count, Counter, STAT_VERSION, Stats as Counts};

/// Counts, as they were at one moment. A dereference away are the single ones: `stats.malloc_normal.current` is the number of
/// bytes in live blocks of up to 512 KiB, `stats.malloc_huge.current` that in larger ones. 4368 bytes.
#[derive(Clone)]
pub struct Stats(Counts);

impl Stats {
    /// The structure of mimalloc's C interface, `mi_stats_t`.
    pub fn as_raw(&self) -> &Counts {
        &self.0
    }

    /// All counts as JSON. `None`: no memory.
    ///
    /// ```
    /// let json = mimalloc_pprof::stats::get().unwrap().to_json().unwrap();
    /// assert!(json.contains("\"malloc_normal\""));
    /// ```
    #[cfg(feature = "std")]
    pub fn to_json(&self) -> Option<std::string::String> {
        self.to_json_as()
    }

    /// [`to_json`](Stats::to_json) into any text that can be written to. `None`: no memory, or the text has no room.
    pub fn to_json_as<T: Default + Write>(&self) -> Option<T> {
        // SAFETY: the counts have the size and the version that are theirs; the text is made by the function.
        unsafe { collected(c::as_json(&raw const self.0, 0, core::ptr::null_mut())) }
    }
}

impl Deref for Stats {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.0
    }
}

impl fmt::Debug for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { malloc_normal, malloc_huge, malloc_normal_count, malloc_huge_count, .. } = &self.0;
        f.debug_struct("Stats")
            .field("malloc_normal", malloc_normal)
            .field("malloc_normal_count", malloc_normal_count)
            .field("malloc_huge", malloc_huge)
            .field("malloc_huge_count", malloc_huge_count)
            .finish_non_exhaustive()
    }
}

/// The present counts. `None` where they cannot be had, which does not happen in this version.
pub fn get() -> Option<Stats> {
    // SAFETY: size and version are set.
    filled(|counts| unsafe { c::get(counts) })
}

/// The present counts as JSON, as [`Stats::to_json`] gives them.
///
/// ```
/// let json = mimalloc_pprof::stats::json().unwrap();
/// assert!(json.starts_with('{') && json.contains("\"mimalloc_version\""));
/// ```
#[cfg(feature = "std")]
pub fn json() -> Option<std::string::String> {
    json_as()
}

/// [`json`] into any text that can be written to.
pub fn json_as<T: Default + Write>() -> Option<T> {
    get()?.to_json_as()
}

/// Write live and allocated blocks by size, and the process's time and memory, to standard error, or to the function that
/// `mi_register_output` has named.
pub fn print() {
    // SAFETY: the argument is not used.
    unsafe { c::print(core::ptr::null_mut()) }
}

/// What [`print`] prints. The process ends if `out` panics.
///
/// ```
/// let mut text = String::new();
/// mimalloc_pprof::stats::write_to(&mut text).unwrap();
/// assert!(text.contains("block size"));
/// ```
///
/// # Errors
/// Those of `out`.
pub fn write_to(out: &mut dyn Write) -> fmt::Result {
    // SAFETY: the function is called with the argument until the call returns.
    told(out, |function, sink| unsafe { c::print_out(function, sink) })
}

/// Have something told to a writer: by a function and its argument, which are valid until `tell` returns.
pub(super) fn told(out: &mut dyn Write, tell: impl FnOnce(Option<OutputFn>, *mut c_void)) -> fmt::Result {
    let mut sink = Sink { out, result: Ok(()) };
    tell(Some(pass_on), (&raw mut sink).cast());
    sink.result
}

/// The largest block of a bin in bytes: of `malloc_bins` in [`Counts`], whose index this is. 0 for the last one, of all larger
/// blocks, and where there is no bin.
pub fn bin_size(bin: usize) -> usize {
    c::bin_size(bin)
}

/// A sub-process: a part of the process whose heaps are counted apart. Only the C interface makes any; without that, all is in the
/// main one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subproc {
    /// The one that there is from the beginning.
    #[default]
    Main,
    /// That of the calling thread.
    Current,
}

impl Subproc {
    fn id(self) -> SubprocId {
        match self {
            Subproc::Main => subproc_main(),
            Subproc::Current => subproc_current(),
        }
    }
}

/// The present counts of all heaps of a sub-process. `None` as [`get`] says.
///
/// ```
/// use mimalloc_pprof::stats::{self, Subproc};
/// let main = stats::subproc_get(Subproc::Main).unwrap();
/// assert!(main.malloc_normal.total <= stats::get().unwrap().malloc_normal.total);
/// ```
pub fn subproc_get(which: Subproc) -> Option<Stats> {
    // SAFETY: the sub-process is there as long as a thread is in it; size and version are set.
    filled(|counts| unsafe { c::subproc_get(which.id(), counts) })
}

/// What is counted in no heap of a sub-process: nothing, in this allocator.
pub fn subproc_get_exclusive(which: Subproc) -> Option<Stats> {
    // SAFETY: as above.
    filled(|counts| unsafe { c::subproc_get_exclusive(which.id(), counts) })
}

/// [`subproc_get`] as JSON.
#[cfg(feature = "std")]
pub fn subproc_json(which: Subproc) -> Option<std::string::String> {
    subproc_json_as(which)
}

/// [`subproc_json`] into any text that can be written to.
pub fn subproc_json_as<T: Default + Write>(which: Subproc) -> Option<T> {
    // SAFETY: as above; the text is made by the function.
    unsafe { collected(c::subproc_get_json(which.id(), 0, core::ptr::null_mut())) }
}

/// Write the counts of a sub-process to where [`print`] writes.
pub fn subproc_print(which: Subproc) {
    // SAFETY: as above; there is no function.
    unsafe { c::subproc_print_out(which.id(), None, core::ptr::null_mut()) }
}

/// Write the counts of each heap of a sub-process to where [`print`] writes.
pub fn subproc_heap_print(which: Subproc) {
    // SAFETY: as above; there is no function.
    unsafe { c::subproc_heap_print_out(which.id(), None, core::ptr::null_mut()) }
}

/// Counts that a function fills in, if it does.
fn filled(fill: impl FnOnce(*mut Counts) -> bool) -> Option<Stats> {
    let mut counts = Counts::zero();
    fill(&raw mut counts).then_some(Stats(counts))
}

struct Sink<'a> {
    out: &'a mut dyn Write,
    result: fmt::Result,
}

impl Sink<'_> {
    fn add(&mut self, text: &CStr) {
        // What we print is ASCII, so a piece never ends within a character.
        let piece = text.to_str().unwrap_or_default();
        self.result = self.result.and_then(|()| self.out.write_str(piece));
    }
}

unsafe extern "C" fn pass_on(text: *const c_char, sink: *mut c_void) {
    // SAFETY: `write_to` passes a sink; the text is a C string.
    unsafe { (*sink.cast::<Sink<'_>>()).add(CStr::from_ptr(text)) }
}

/// A C string of ours as another text, and freed.
unsafe fn collected<T: Default + Write>(text: *mut c_char) -> Option<T> {
    if text.is_null() {
        return None;
    }
    let mut whole = T::default();
    let mut sink = Sink { out: &mut whole, result: Ok(()) };
    // SAFETY: the text is a C string and a block of ours.
    unsafe {
        sink.add(CStr::from_ptr(text));
        free(text.cast());
    }
    sink.result.ok().map(|()| whole)
}
