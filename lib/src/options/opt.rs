//! The options as users of the crate see them.

use super::{COUNT, Name, Unit, definition};
use core::ffi::{c_int, c_long};
use core::fmt::{self, Write};

/// An option of the allocator. The constants are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opt(c_int);

impl Opt {
    /// The option with this number; `None` when there is none.
    pub fn from_raw(raw: c_int) -> Option<Opt> {
        (0..COUNT as c_int).contains(&raw).then_some(Opt(raw))
    }

    /// Its number in mimalloc's C interface, `mi_option_t`.
    pub fn as_raw(self) -> c_int {
        self.0
    }

    /// Its name: `prof_sample_rate`. The environment variable is `MIMALLOC_` and the name in capitals.
    pub fn name(self) -> &'static str {
        definition(self.number()).map_or("", |definition| definition.name)
    }

    fn number(self) -> usize {
        self.0 as usize
    }
}

impl From<Name> for Opt {
    fn from(name: Name) -> Opt {
        Opt(name as c_int)
    }
}

macro_rules! constants {
    ($($doc:literal $constant:ident $name:ident)*) => {
        /// What each one means, and which of them have an effect in this version, says `docs/options.md`.
        impl Opt {
            $(#[doc = $doc] pub const $constant: Opt = Opt(Name::$name as c_int);)*
        }

        #[cfg(test)]
        const CONSTANTS: &[(&str, Opt)] = &[$((stringify!($constant), Opt::$constant)),*];
    };
}

constants! {
    "1: a line on standard error for what cannot be allocated." SHOW_ERRORS ShowErrors
    "1: statistics when the process ends." SHOW_STATS ShowStats
    "Trace messages." VERBOSE Verbose
    "No effect." DEPRECATED_EAGER_COMMIT DeprecatedEagerCommit
    "Commit arenas at once." ARENA_EAGER_COMMIT ArenaEagerCommit
    "1: memory that is given back is taken away at once; 0: when the kernel needs it." PURGE_DECOMMITS PurgeDecommits
    "Pages of 2 MiB." ALLOW_LARGE_OS_PAGES AllowLargeOsPages
    "Pages of 1 GiB to reserve at the start." RESERVE_HUGE_OS_PAGES ReserveHugeOsPages
    "Their NUMA node." RESERVE_HUGE_OS_PAGES_AT ReserveHugeOsPagesAt
    "Memory to reserve at the start, in KiB." RESERVE_OS_MEMORY ReserveOsMemory
    "No effect." DEPRECATED_SEGMENT_CACHE DeprecatedSegmentCache
    "No effect." DEPRECATED_PAGE_RESET DeprecatedPageReset
    "No effect." DEPRECATED_ABANDONED_PAGE_PURGE DeprecatedAbandonedPagePurge
    "No effect." DEPRECATED_SEGMENT_RESET DeprecatedSegmentReset
    "No effect." DEPRECATED_EAGER_COMMIT_DELAY DeprecatedEagerCommitDelay
    "Milliseconds before freed memory is given back; 0: at once, -1: never." PURGE_DELAY PurgeDelay
    "Most NUMA nodes to use; 0: all." USE_NUMA_NODES UseNumaNodes
    "Use reserved memory only." DISALLOW_OS_ALLOC DisallowOsAlloc
    "Tag of mappings on macOS." OS_TAG OsTag
    "Most error messages." MAX_ERRORS MaxErrors
    "Most warnings." MAX_WARNINGS MaxWarnings
    "No effect." DEPRECATED_MAX_SEGMENT_RECLAIM DeprecatedMaxSegmentReclaim
    "Free everything when the process ends." DESTROY_ON_EXIT DestroyOnExit
    "Size of an arena, in KiB." ARENA_RESERVE ArenaReserve
    "No effect: whole runs wait as long as pages." ARENA_PURGE_MULT ArenaPurgeMult
    "No effect." DEPRECATED_PURGE_EXTEND_DELAY DeprecatedPurgeExtendDelay
    "Use only arenas that are named." DISALLOW_ARENA_ALLOC DisallowArenaAlloc
    "Milliseconds to try again on Windows." RETRY_ON_OOM RetryOnOom
    "No effect." DEPRECATED_VISIT_ABANDONED DeprecatedVisitAbandoned
    "Least size of a guarded block, in bytes." GUARDED_MIN GuardedMin
    "Largest size of a guarded block, in bytes." GUARDED_MAX GuardedMax
    "Guard the last byte." GUARDED_PRECISE GuardedPrecise
    "Guard one in so many blocks; 0: none." GUARDED_SAMPLE_RATE GuardedSampleRate
    "Which ones; 0: by chance." GUARDED_SAMPLE_SEED GuardedSampleSeed
    "Slow allocations between two collections." GENERIC_COLLECT GenericCollect
    "Take over the slabs that an ended thread has left." PAGE_RECLAIM_ON_FREE PageReclaimOnFree
    "Full slabs that are kept at hand." PAGE_FULL_RETAIN PageFullRetain
    "Slabs to look at before one is taken." PAGE_MAX_CANDIDATES PageMaxCandidates
    "Most bits of an address; 0: all." MAX_VABITS MaxVabits
    "Commit the map of all slabs at once." PAGEMAP_COMMIT PagemapCommit
    "Commit slabs as they are touched." PAGE_COMMIT_ON_DEMAND PageCommitOnDemand
    "Most slabs to take over from this thread's past; -1: any number." PAGE_MAX_RECLAIM PageMaxReclaim
    "The same from other threads." PAGE_CROSS_THREAD_MAX_RECLAIM PageCrossThreadMaxReclaim
    "Transparent huge pages." ALLOW_THP AllowThp
    "Shortest range to give back, in KiB; 0: one page." MINIMAL_PURGE_SIZE MinimalPurgeSize
    "Largest block in an arena, in KiB." ARENA_MAX_OBJECT_SIZE ArenaMaxObjectSize
    "Each arena belongs to one NUMA node." ARENA_IS_NUMA_LOCAL ArenaIsNumaLocal
    "1: profile this process from its start. Only the environment can say so." PROF Prof
    "Mean distance between two samples, in bytes." PROF_SAMPLE_RATE ProfSampleRate
    "Most frames of a stack; 0: as many as can be kept." PROF_BT_MAX ProfBtMax
    "Count what was allocated and freed, too." PROF_ACCUM ProfAccum
    "The same seed samples in the same way; 0: by chance." PROF_SEED ProfSeed
    "Address space for stacks and counts, in bytes; 0: 64 MiB." PROF_MAX_BYTES ProfMaxBytes
    "Account for every call." MEMORY_EVENTS MemoryEvents
    "Memory that was given back is known to be zero." PURGE_ZEROES PurgeZeroes
    "Who gives memory back: 0 threads that allocate; 1 a thread when there are threads; 2 a thread." SCAVENGER Scavenger
    "0: give back no pages between live blocks." PURGE_HOLES PurgeHoles
    "A test aid for that." PURGE_HOLES_EAGER_ZERO PurgeHolesEagerZero
    "Least milliseconds between two sweeps of idle threads." PURGE_HOLES_MIN_INTERVAL PurgeHolesMinInterval
    "No effect: every sweep looks where something came back." PURGE_HOLES_FULL_EVERY PurgeHolesFullEvery
    "Write a heap snapshot at the end." SNAPSHOT_ON_EXIT SnapshotOnExit
    "Keep an empty large slab for the next thread." PAGE_RESERVE PageReserve
    "Use memory first that is still resident." RESIDENT_FIRST ResidentFirst
    "Size large slabs by demand." LARGE_SPAN LargeSpan
    "What such a slab may grow to, in KiB." LARGE_SPAN_MAX LargeSpanMax
}

/// The value of an option.
///
/// ```
/// use mimalloc_pprof::options::{self, Opt};
/// assert_eq!(options::get(Opt::ARENA_RESERVE), 1024 * 1024); // in KiB
/// ```
pub fn get(option: impl Into<Opt>) -> c_long {
    super::get_number(option.into().number())
}

/// The value of an option, but at least `min` and at most `max`; `min` where the two cross.
pub fn get_clamp(option: Opt, min: c_long, max: c_long) -> c_long {
    get(option).min(max).max(min)
}

/// The value of an option in bytes, also where its unit is KiB; 0 for a negative one.
///
/// ```
/// use mimalloc_pprof::options::{self, Opt};
/// assert_eq!(options::get_size(Opt::ARENA_RESERVE), 1 << 30);
/// ```
pub fn get_size(option: Opt) -> usize {
    let value = usize::try_from(get(option)).unwrap_or(0);
    match definition(option.number()) {
        Some(definition) if definition.unit == Unit::KiB => value.saturating_mul(1024),
        _ => value,
    }
}

/// Change an option.
pub fn set(option: Opt, value: c_long) {
    super::set_number(option.number(), value);
}

/// Change an option, unless the environment or [`set`] has given it a value.
pub fn set_default(option: Opt, value: c_long) {
    super::set_default_number(option.number(), value);
}

/// Whether an option is anything but 0.
pub fn is_enabled(option: Opt) -> bool {
    get(option) != 0
}

/// Set an option to 1.
pub fn enable(option: Opt) {
    set(option, 1);
}

/// Set an option to 0.
pub fn disable(option: Opt) {
    set(option, 0);
}

/// Set an option to 1 or 0.
pub fn set_enabled(option: Opt, on: bool) {
    set(option, on.into());
}

/// [`set_default`] to 1 or 0.
pub fn set_enabled_default(option: Opt, on: bool) {
    set_default(option, on.into());
}

/// Name and number of every option, in the order of the numbers.
///
/// ```
/// use mimalloc_pprof::options::{self, Opt};
/// let (name, number) = options::all()[0];
/// assert_eq!(Opt::from_raw(number), Some(Opt::SHOW_ERRORS));
/// assert_eq!(name, "show_errors");
/// ```
pub fn all() -> &'static [(&'static str, c_int)] {
    static ALL: [(&str, c_int); COUNT] = {
        let mut all = [("", 0); COUNT];
        let mut at = 0;
        while at < COUNT {
            all[at] = (super::table::TABLE[at].name, at as c_int);
            at += 1;
        }
        all
    };
    &ALL
}

/// Write all options and their values to standard error, or to the function that `mi_register_output` has named.
pub fn print() {
    crate::print_options();
}

/// Write all options and their values, one a line.
///
/// ```
/// let mut text = String::new();
/// mimalloc_pprof::options::write_to(&mut text).unwrap();
/// assert!(text.contains("option 'arena_reserve': 1048576 KiB"));
/// ```
///
/// # Errors
/// Those of `out`.
pub fn write_to(out: &mut dyn Write) -> fmt::Result {
    all().iter().try_for_each(|&(name, number)| {
        let option = Opt(number);
        let is_kib = definition(option.number()).is_some_and(|definition| definition.unit == Unit::KiB);
        writeln!(out, "option '{name}': {}{}", get(option), if is_kib { " KiB" } else { "" })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_options_in_order() {
        assert_eq!(CONSTANTS.len(), COUNT);
        for (number, (constant, option)) in CONSTANTS.iter().enumerate() {
            assert_eq!(option.as_raw() as usize, number);
            assert_eq!(option.name().to_ascii_uppercase(), *constant);
            assert_eq!(Opt::from_raw(number as c_int), Some(*option));
            assert_eq!(all()[number], (option.name(), option.as_raw()));
        }
        assert_eq!((Opt::from_raw(-1), Opt::from_raw(COUNT as c_int)), (None, None));
    }
}
