//! The structures of `mimalloc-stats.h`.

/// `version` of [`Stats`].
pub const STAT_VERSION: usize = 5;
/// Bins of block sizes: see [`bin_size`](super::bin_size).
pub const BINS: usize = 74;
/// Bins of runs of memory.
pub const CHUNK_BINS: usize = 6;

/// Something of which there is more or less at a time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Count {
    /// All there ever was.
    pub total: i64,
    /// The most at a time; 0 where it is not known.
    pub peak: i64,
    /// Now.
    pub current: i64,
}

/// Something that happens.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Counter {
    /// How often, or how much of it.
    pub total: i64,
}

/// A field as it is visited.
pub(super) enum Field<'a> {
    Count(&'a Count),
    Counter(&'a Counter),
}

macro_rules! stats {
    ($($kind:ident { $($field:ident)* })*) => {
        /// Everything that is counted.
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the header describes the fields that are not always 0")]
        pub struct Stats {
            pub size: usize,
            pub version: usize,
            $($(pub $field: $kind,)*)*
            pub _stat_reserved: [Count; 4],
            pub _stat_counter_reserved: [Counter; 4],
            pub malloc_bins: [Count; BINS],
            pub page_bins: [Count; BINS],
            pub chunk_bins: [Count; CHUNK_BINS],
        }

        impl Stats {
            /// All counts 0.
            pub(in crate::api) fn zero() -> Stats {
                Stats {
                    size: size_of::<Stats>(),
                    version: STAT_VERSION,
                    $($($field: $kind::default(),)*)*
                    _stat_reserved: Default::default(),
                    _stat_counter_reserved: Default::default(),
                    malloc_bins: [Count::default(); BINS],
                    page_bins: [Count::default(); BINS],
                    chunk_bins: Default::default(),
                }
            }

            /// Every single field with its name, in order.
            pub(super) fn each(&self, mut visit: impl FnMut(&'static str, Field<'_>)) {
                $($(visit(stringify!($field), Field::$kind(&self.$field));)*)*
            }
        }
    };
}

stats! {
    Count { pages reserved committed }
    Counter { reset purged }
    Count { page_committed pages_abandoned threads malloc_normal malloc_huge malloc_requested }
    Counter {
        mmap_calls commit_calls reset_calls purge_calls arena_count malloc_normal_count malloc_huge_count
        malloc_guarded_count arena_rollback_count arena_purges pages_extended pages_retire page_searches
        page_searches_count
    }
    Count { segments segments_abandoned segments_cache _segments_reserved heaps theaps }
    Counter {
        pages_reclaim_on_alloc pages_reclaim_on_free pages_reabandon_full pages_unabandon_busy_wait heaps_delete_wait
    }
}

const _: () = assert!(size_of::<Stats>() == 4368);
