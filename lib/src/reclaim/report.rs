//! What is told about memory that was returned. The layouts are those of mimalloc-pprof's C interface.

/// What one purge has done. Bytes and numbers are those of this purge alone. 88 bytes, as `mi_purge_all_report_t`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PurgeReport {
    /// Bytes of free runs and wholly free slabs that were returned.
    pub arena_bytes: usize,
    /// Bytes inside slabs that also have live blocks that were returned.
    pub hole_bytes: usize,
    /// Heaps of threads whose cached blocks were taken, the caller's included.
    pub theaps_swept: usize,
    /// Heaps of threads whose cached blocks could not be had.
    pub theaps_pending: usize,
    /// Heaps whose thread a fork has left behind. 0: in a forked child they are nobody's and are swept as all others.
    pub theaps_orphaned: usize,
    /// Threads announce that they are in the allocator. False: there is no such gate, and none is needed.
    pub gated: bool,
    /// Everything was looked at.
    pub complete: bool,
    /// Wholly free ranges of address space (of 2 MiB) whose metadata was returned.
    pub arenas_reclaimed: usize,
    /// Bytes of metadata that were returned.
    pub arena_reclaim_bytes: usize,
    /// Wholly free arenas that stay because the program has made them.
    pub arenas_kept: usize,
    /// Sub-processes whose free ranges could not be looked at. 0: they share them.
    pub subprocs_pending: usize,
    /// Metadata was to be returned, and was.
    pub reclaimed: bool,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<PurgeReport>() == 88);
    assert!(offset_of!(PurgeReport, gated) == 40 && offset_of!(PurgeReport, complete) == 41);
    assert!(offset_of!(PurgeReport, arenas_reclaimed) == 48 && offset_of!(PurgeReport, reclaimed) == 80);
};

impl PurgeReport {
    /// Nothing was looked at.
    pub(crate) const NOTHING: Self = PurgeReport {
        arena_bytes: 0,
        hole_bytes: 0,
        theaps_swept: 0,
        theaps_pending: 0,
        theaps_orphaned: 0,
        gated: false,
        complete: false,
        arenas_reclaimed: 0,
        arena_reclaim_bytes: 0,
        arenas_kept: 0,
        subprocs_pending: 0,
        reclaimed: false,
    };

    /// Bytes that are the operating system's again.
    pub fn bytes(&self) -> usize {
        self.arena_bytes + self.hole_bytes + self.arena_reclaim_bytes
    }
}

macro_rules! fields {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: usize,)* }) => {
        $(#[$doc])*
        pub struct $name {
            $($(#[$field_doc])* pub $field: usize,)*
        }

        impl $name {
            /// How many fields there are.
            pub(crate) const FIELDS: usize = [$(stringify!($field)),*].len();

            /// All of them with their names, in order.
            pub(crate) fn fields(&self) -> [(&'static str, usize); Self::FIELDS] {
                [$((stringify!($field), self.$field)),*]
            }
        }
    };
}

fields! {
/// Memory returned from inside slabs that also have live blocks: holes. `purged_bytes`, `purged_blocks` and `unformed_bytes` are what
/// is away now, `ineligible_…` what is so now, all others grow. 128 bytes, as `mi_purge_holes_stats_t`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct HolesStats {
    /// Bytes that are returned at present and were not used again.
    pub purged_bytes: usize,
    /// Free blocks that lie in them, wholly or in part.
    pub purged_blocks: usize,
    /// Bytes ever returned.
    pub purged_bytes_total: usize,
    /// System calls that returned them.
    pub discard_calls: usize,
    /// Times that blocks were taken from returned pages.
    pub reuse_calls: usize,
    /// Slabs that a sweep found wholly free and gave up.
    pub pages_freed: usize,
    /// Slabs that cannot have holes: sampled blocks, and memory of arenas that is pinned or committed by a function.
    pub ineligible_pages: usize,
    /// Their bytes.
    pub ineligible_bytes: usize,
    /// Free bytes in them.
    pub ineligible_free_bytes: usize,
    /// Bytes of blocks that were never handed out, in pages that were never touched. 0: such pages are not there to be returned.
    pub unformed_bytes: usize,
    /// The same, ever returned: 0.
    pub unformed_bytes_total: usize,
    /// System calls for that: 0.
    pub unformed_discard_calls: usize,
    /// Their reuses: 0.
    pub unformed_reuse_calls: usize,
    /// 0: sweeps know where blocks came back, and look nowhere else.
    pub pages_skipped: usize,
    /// Blocks of the slabs that sweeps looked at.
    pub blocks_visited: usize,
    /// Sweeps.
    pub full_sweeps: usize,
}
}

const _: () = assert!(size_of::<HolesStats>() == 128);
