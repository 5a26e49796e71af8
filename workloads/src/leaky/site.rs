//! The table of sites: what each allocates, how often, and what of it stays.

use super::block::Made;
use super::{collections, dispatch, inlined, plain, plugin, recursion, temporary, workers};

/// Where a site's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Module {
    /// In the executable.
    Exe,
    /// In the plugin.
    Plugin,
}

/// What happens to the temporary blocks of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterlife {
    /// The thread that made them frees them, some allocations later.
    Pocket,
    /// Whoever looks into the mailbox next frees them, mostly another thread.
    Mailbox,
}

/// A place in the program that allocates.
#[derive(Debug)]
pub struct Site {
    /// A short name, for people and tests.
    pub id: &'static str,
    /// The size of its blocks in bytes. No two sites share one.
    pub block_size: u64,
    /// Whether the function that allocates is inlined into another.
    pub inlined: bool,
    /// Which module holds the code.
    pub module: Module,
    /// What the source line holds: the call that allocates.
    pub call: &'static str,
    /// Allocates one block, whose content may follow from the argument.
    pub(super) allocate: fn(u64) -> Made,
    /// How many blocks stay, at scale 1.
    pub(super) keep: u64,
    /// How many blocks come and go, at scale 1 and in one cycle.
    pub(super) temporary: u64,
    pub(super) afterlife: Afterlife,
}

impl Site {
    const fn new(id: &'static str, allocate: fn(u64) -> Made, call: &'static str, block_size: u64) -> Self {
        Self {
            id,
            block_size,
            inlined: false,
            module: Module::Exe,
            call,
            allocate,
            keep: 0,
            temporary: 0,
            afterlife: Afterlife::Pocket,
        }
    }

    const fn blocks(self, keep: u64, temporary: u64) -> Self {
        Self { keep, temporary, ..self }
    }

    const fn in_plugin(self) -> Self {
        Self { module: Module::Plugin, ..self }
    }
}

/// The sites of the main thread. All block sizes are size classes of common allocators: multiples of 16 up to 1 KiB, then
/// powers of two.
pub static MAIN: [Site; 19] = [
    Site::new("plain-tiny", plain::keep_tiny, "alloc(", 16).blocks(100_000, 20_000),
    Site::new("plain-small", plain::keep_small, "alloc(", 64).blocks(60_000, 60_000),
    Site::new("plain-zeroed", plain::keep_zeroed, "alloc_zeroed(", 256).blocks(20_000, 20_000),
    Site::new("plain-aligned", plain::keep_aligned, "alloc(", 2048).blocks(1_500, 1_500),
    Site::new("plain-64k", plain::keep_64_kib, "alloc(", 64 << 10).blocks(64, 200),
    Site::new("plain-1m", plain::keep_1_mib, "alloc(", 1 << 20).blocks(16, 16),
    Site { inlined: true, ..Site::new("inlined", inlined::keep_inlined, "alloc(", 512).blocks(16_000, 16_000) },
    Site::new("std-box", collections::keep_box, "Box::new(", 48).blocks(50_000, 50_000),
    Site::new("std-string", collections::keep_string, ".repeat(", 96).blocks(40_000, 40_000),
    Site::new("std-collected", collections::keep_collected, ".collect::<", 1024).blocks(8_000, 8_000),
    Site::new("std-grown", collections::keep_grown, ".push(", 16 << 10).blocks(400, 400),
    Site::new("generic-20", dispatch::keep_generic::<20>, "Box::new(", 160).blocks(10_000, 10_000),
    Site::new("generic-40", dispatch::keep_generic::<40>, "Box::new(", 320).blocks(10_000, 10_000),
    Site::new("closure", dispatch::keep_by_closure, "Box::new(", 128).blocks(20_000, 20_000),
    Site::new("trait-object", dispatch::keep_by_trait, "with_capacity(", 4096).blocks(2_000, 2_000),
    Site::new("recursive", recursion::keep_deep, "Box::new(", 192).blocks(20_000, 20_000),
    Site::new("temporary-scratch", temporary::make_scratch, "Box::new(", 768).blocks(0, 200_000),
    Site::new("temporary-buffer", temporary::make_buffer, "with_capacity(", 8192).blocks(0, 5_000),
    Site::new("temporary-greetings", temporary::make_greetings, "Box::new(", 832).blocks(0, 20_000),
];

/// The sites of the plugin, called by the main thread.
pub static PLUGIN: [Site; 2] = [
    Site::new("plugin-record", plugin::make_record, "alloc(", 640).blocks(8_000, 8_000).in_plugin(),
    Site::new("plugin-list", plugin::make_list, "with_capacity(", 576).blocks(5_000, 5_000).in_plugin(),
];

/// The sites of each worker thread.
pub static WORKER: [Site; 2] = [
    Site::new("worker-list", workers::keep_list, "vec![", 384).blocks(5_000, 5_000),
    Site {
        afterlife: Afterlife::Mailbox,
        ..Site::new("worker-mail", workers::make_mail, "Box::new(", workers::MAIL_BYTES).blocks(0, 20_000)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_and_name_belongs_to_one_site() {
        let mut seen = Vec::new();
        for site in MAIN.iter().chain(&PLUGIN).chain(&WORKER) {
            assert!(!seen.iter().any(|&(id, size)| id == site.id || size == site.block_size), "{}", site.id);
            let class = site.block_size % 16 == 0 && (site.block_size <= 1024 || site.block_size.is_power_of_two());
            assert!(class, "{}: {} bytes are no size class", site.id, site.block_size);
            seen.push((site.id, site.block_size));
        }
    }
}
