//! The dump: gperftools' heap text with the header `heap_v2`, as google/pprof and `mpp` read it. `docs/formats.md` describes
//! it; what we add to the common form is in comment lines.

use super::output::{self, Output, Path};
use super::sampler::sites::{self, Site};
use super::sampler::{self, Hold};
use super::unwind::End;
use super::{files, modules};
use crate::heap::statistics;
use crate::os::{self, lock::Lock};
use core::fmt::Write;

/// Two buffers of this size: for what is written, and for the memory map that is read.
const BUFFER: usize = 16 * 1024;

/// One dump at a time.
static LOCK: Lock = Lock::new();

/// Sampled blocks and their bytes, now and ever.
#[derive(Clone, Copy, Default)]
struct Counts {
    live: u64,
    live_bytes: u64,
    live_requested: u64,
    allocated: u64,
    allocated_bytes: u64,
}

impl Counts {
    fn of(site: &Site) -> Counts {
        let sites::Counts { live, live_requested, allocated, .. } = site.counts();
        let allocated = allocated.max(live);
        let (live_bytes, allocated_bytes) = (live * site.block_size(), allocated * site.block_size());
        Counts { live, live_bytes, live_requested, allocated, allocated_bytes }
    }

    fn add(self, other: Counts) -> Counts {
        Counts {
            live: self.live + other.live,
            live_bytes: self.live_bytes + other.live_bytes,
            live_requested: self.live_requested + other.live_requested,
            allocated: self.allocated + other.allocated,
            allocated_bytes: self.allocated_bytes + other.allocated_bytes,
        }
    }
}

/// Write what the present or last run found. False: there was no run, or the file could not be written.
///
/// Other threads go on meanwhile.
pub(crate) fn write(path: &Path) -> bool {
    let Some(run) = sampler::hold() else { return false };
    let memory = os::map(2 * BUFFER);
    if memory.is_null() {
        return false;
    }
    // SAFETY: fresh memory of this size.
    let memory = unsafe { core::slice::from_raw_parts_mut(memory, 2 * BUFFER) };
    let (out, maps) = memory.split_at_mut(BUFFER);
    LOCK.lock();
    let written = output::write(path, out, |output| fill(output, maps, &run));
    LOCK.unlock();
    os::unmap(memory.as_mut_ptr(), 2 * BUFFER);
    written
}

/// In a forked child.
pub(crate) fn repair() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
}

fn fill(output: &mut Output<'_>, maps: &mut [u8], run: &Hold) {
    let total = run.sites().map(Counts::of).fold(Counts::default(), Counts::add);
    let _ = write!(output, "heap profile: ");
    write_counts(output, total);
    let _ = writeln!(output, " heap_v2/{}", run.rate());
    for site in run.sites() {
        write_site(output, site);
    }
    write_statistics(output, run, total);
    modules::write_build_ids(output, maps);
    let _ = writeln!(output, "MAPPED_LIBRARIES:");
    modules::write_map(output, maps);
}

fn write_counts(output: &mut Output<'_>, counts: Counts) {
    let Counts { live, live_bytes, allocated, allocated_bytes, .. } = counts;
    let _ = write!(output, "{live:6}: {live_bytes:8} [{allocated:6}: {allocated_bytes:8}] @");
}

fn write_site(output: &mut Output<'_>, site: &Site) {
    write_counts(output, Counts::of(site));
    for frame in site.frames() {
        let _ = write!(output, " {frame:#x}");
    }
    output.bytes(b"\n");
    let reason = match site.end() {
        End::Complete => return,
        End::DepthLimit => "depth limit",
        End::NoUnwindInfo => "no unwind info",
        End::BadFrame => "bad frame",
    };
    let at = site.frames().last().copied().unwrap_or(0);
    let _ = writeln!(output, "# stack truncated: {reason} at {at:#x}");
}

fn write_statistics(output: &mut Output<'_>, run: &Hold, total: Counts) {
    let exact = statistics::totals();
    let _ = writeln!(output, "# mimalloc heap stats");
    for (key, value) in [
        ("sample_rate", run.rate()),
        ("stacks_marked", 1),
        ("requested_live", total.live_requested),
        ("dropped_samples", run.dropped()),
        ("exact_live_blocks", exact.allocated_blocks.saturating_sub(exact.freed_blocks)),
        ("exact_live_bytes", exact.allocated_bytes.saturating_sub(exact.freed_bytes)),
        ("exact_allocated_blocks", exact.allocated_blocks),
        ("exact_allocated_bytes", exact.allocated_bytes),
    ] {
        let _ = writeln!(output, "# {key} = {value}");
    }
    files::facts(|key, value| {
        let _ = writeln!(output, "# {key} = {value}");
    });
}
