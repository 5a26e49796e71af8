//! Every option: number (its place), name, default, unit. The order is part of the interface: new ones go to the end.

/// What a value counts, and how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// A switch, a count, or a time as the option says.
    Plain,
    /// KiB; written as a size in bytes or with a suffix.
    KiB,
    /// Bytes, which may be written with a suffix.
    Bytes,
    /// 64 bits without a meaning.
    Seed,
}

/// What is known of an option.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) default: i64,
    pub(crate) unit: Unit,
    /// A second name, which counts more than the first; empty = none.
    pub(crate) alias: &'static str,
    /// A name from before, which counts less; empty = none.
    pub(crate) legacy: &'static str,
}

/// A variant, its name, its default and its unit; then a second name and a former one, if there are any.
macro_rules! options {
    ($($variant:ident = $name:literal $default:literal $unit:ident $(alias $alias:literal)? $(was $legacy:literal)?,)*) => {
        /// The options by name; the number is the place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(dead_code, reason = "all of them have a number, also those that nothing reads")]
        pub(crate) enum Name {
            $($variant),*
        }

        pub(super) static TABLE: [Definition; COUNT] = [$(Definition {
            name: $name,
            default: $default,
            unit: Unit::$unit,
            alias: concat!($($alias)?),
            legacy: concat!($($legacy)?),
        }),*];

        /// How many options there are.
        pub(crate) const COUNT: usize = [$($name),*].len();
    };
}

options! {
    ShowErrors = "show_errors" 0 Plain,
    ShowStats = "show_stats" 0 Plain,
    Verbose = "verbose" 0 Plain,
    DeprecatedEagerCommit = "deprecated_eager_commit" 1 Plain,
    ArenaEagerCommit = "arena_eager_commit" 2 Plain was "eager_region_commit",
    PurgeDecommits = "purge_decommits" 1 Plain was "reset_decommits",
    AllowLargeOsPages = "allow_large_os_pages" 0 Plain was "large_os_pages",
    ReserveHugeOsPages = "reserve_huge_os_pages" 0 Plain,
    ReserveHugeOsPagesAt = "reserve_huge_os_pages_at" -1 Plain,
    ReserveOsMemory = "reserve_os_memory" 0 KiB,
    DeprecatedSegmentCache = "deprecated_segment_cache" 0 Plain,
    DeprecatedPageReset = "deprecated_page_reset" 0 Plain,
    DeprecatedAbandonedPagePurge = "deprecated_abandoned_page_purge" 0 Plain,
    DeprecatedSegmentReset = "deprecated_segment_reset" 0 Plain,
    DeprecatedEagerCommitDelay = "deprecated_eager_commit_delay" 1 Plain,
    PurgeDelay = "purge_delay" 100 Plain was "reset_delay",
    UseNumaNodes = "use_numa_nodes" 0 Plain,
    DisallowOsAlloc = "disallow_os_alloc" 0 Plain was "limit_os_alloc",
    OsTag = "os_tag" 240 Plain,
    MaxErrors = "max_errors" 32 Plain,
    MaxWarnings = "max_warnings" 32 Plain,
    DeprecatedMaxSegmentReclaim = "deprecated_max_segment_reclaim" 10 Plain,
    DestroyOnExit = "destroy_on_exit" 0 Plain,
    ArenaReserve = "arena_reserve" 1_048_576 KiB,
    ArenaPurgeMult = "arena_purge_mult" 4 Plain,
    DeprecatedPurgeExtendDelay = "deprecated_purge_extend_delay" 1 Plain was "decommit_extend_delay",
    DisallowArenaAlloc = "disallow_arena_alloc" 0 Plain,
    RetryOnOom = "retry_on_oom" 400 Plain,
    DeprecatedVisitAbandoned = "deprecated_visit_abandoned" 1 Plain,
    GuardedMin = "guarded_min" 0 Plain,
    GuardedMax = "guarded_max" 1_073_741_824 Plain,
    GuardedPrecise = "guarded_precise" 0 Plain,
    GuardedSampleRate = "guarded_sample_rate" 0 Plain,
    GuardedSampleSeed = "guarded_sample_seed" 0 Plain,
    GenericCollect = "generic_collect" 10_000 Plain,
    PageReclaimOnFree = "page_reclaim_on_free" 0 Plain was "abandoned_reclaim_on_free",
    PageFullRetain = "page_full_retain" 2 Plain,
    PageMaxCandidates = "page_max_candidates" 4 Plain,
    MaxVabits = "max_vabits" 0 Plain,
    PagemapCommit = "pagemap_commit" 0 Plain,
    PageCommitOnDemand = "page_commit_on_demand" 0 Plain,
    PageMaxReclaim = "page_max_reclaim" -1 Plain,
    PageCrossThreadMaxReclaim = "page_cross_thread_max_reclaim" 32 Plain,
    AllowThp = "allow_thp" 1 Plain,
    MinimalPurgeSize = "minimal_purge_size" 0 KiB,
    ArenaMaxObjectSize = "arena_max_object_size" 2_097_152 KiB,
    ArenaIsNumaLocal = "arena_is_numa_local" 0 Plain,
    Prof = "prof" 0 Plain,
    ProfSampleRate = "prof_sample_rate" 524_288 Bytes alias "prof_sample_interval",
    ProfBtMax = "prof_bt_max" 0 Plain,
    ProfAccum = "prof_accum" 0 Plain,
    ProfSeed = "prof_seed" 0 Seed,
    ProfMaxBytes = "prof_max_bytes" 0 Bytes,
    MemoryEvents = "memory_events" 0 Plain,
    PurgeZeroes = "purge_zeroes" 0 Plain,
    Scavenger = "scavenger" 1 Plain,
    PurgeHoles = "purge_holes" 1 Plain,
    PurgeHolesEagerZero = "purge_holes_eager_zero" 0 Plain,
    PurgeHolesMinInterval = "purge_holes_min_interval" 100 Plain,
    PurgeHolesFullEvery = "purge_holes_full_every" 64 Plain,
    SnapshotOnExit = "snapshot_on_exit" 0 Plain,
    PageReserve = "page_reserve" 1 Plain,
    ResidentFirst = "resident_first" 1 Plain,
    LargeSpan = "large_span" 1 Plain,
    LargeSpanMax = "large_span_max" 1024 Plain,
}
