//! The counts as JSON, in the order and under the names of mimalloc's.

use super::super::blocks::class_of;
use super::super::process::{VERSION, info};
use super::super::purging::holes_stats;
use super::super::standard::malloc;
use super::gather::{bin_size, gather};
use super::layout::{Count, Field, Stats};
use crate::arena::SLICE;
use crate::heap::classes::slab_slices;
use crate::heap::zone::Scope;
use crate::reclaim::HolesStats;
use crate::reclaim::survey::{self, CAUSES, Cause};
use core::ffi::c_char;
use core::fmt::{self, Write};

/// The letters of the bins of runs.
const CHUNKS: [&str; 6] = ["S", "X", "M", "L", "H", " "];

/// Writes into room of a given size what fits, and counts what would be needed.
struct Bounded {
    at: *mut u8,
    /// Bytes that may be written.
    room: usize,
    /// Bytes that were to be written.
    needed: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let n = text.len().min(self.room.saturating_sub(self.needed));
        if n != 0 {
            // SAFETY: `needed + n` is at most the room.
            unsafe { self.at.add(self.needed).copy_from_nonoverlapping(text.as_ptr(), n) };
        }
        self.needed += text.len();
        Ok(())
    }
}

/// `mi_stats_get_json`: into `buffer`, as much as fits with a zero behind it, or if that is null into a block of ours
/// that the caller frees. Null: no memory, or no room.
///
/// # Safety
/// `buffer` is null or has `size` bytes.
pub unsafe fn get_json(size: usize, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { scope_json(Scope::Process, size, buffer) }
}

/// The counts of a scope.
pub(super) unsafe fn scope_json(scope: Scope, size: usize, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { write_to(&gather(scope), size, buffer) }
}

/// `mi_stats_as_json`: the same for counts that were read before.
///
/// # Safety
/// As [`get_json`], and for `stats` as [`get`](super::get).
pub unsafe fn as_json(stats: *const Stats, size: usize, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe {
        if stats.is_null() || (*stats).size != size_of::<Stats>() || (*stats).version != super::STAT_VERSION {
            return core::ptr::null_mut();
        }
        write_to(&*stats, size, buffer)
    }
}

unsafe fn write_to(stats: &Stats, size: usize, buffer: *mut c_char) -> *mut c_char {
    let (process, memory) = (info(), Memory::look());
    let (mut at, mut size) = (buffer.cast::<u8>(), size);
    if at.is_null() {
        let mut counting = Bounded { at, room: 0, needed: 0 };
        let _ = write(&mut counting, stats, &process, &memory);
        size = counting.needed + 1;
        // SAFETY: no preconditions.
        at = unsafe { malloc(size) };
    }
    if at.is_null() || size == 0 {
        return core::ptr::null_mut();
    }
    let mut out = Bounded { at, room: size - 1, needed: 0 };
    let _ = write(&mut out, stats, &process, &memory);
    // SAFETY: one byte of the room was kept for this.
    unsafe { at.add(out.needed.min(out.room)).write(0) };
    at.cast()
}

/// What is not in [`Stats`], of the process and of this moment.
struct Memory {
    holes: [(&'static str, u64); HolesStats::FIELDS],
    /// All 0 if there is no memory to look at the heap.
    retained: [(&'static str, u64); CAUSES],
}

impl Memory {
    fn look() -> Memory {
        let mut retained = Cause::ALL.map(|(_, name, _)| (name, 0));
        survey::survey(|survey| retained = Cause::ALL.map(|(cause, name, _)| (name, survey.kept_by(cause))));
        Memory { holes: holes_stats().fields().map(|(name, value)| (name, value as u64)), retained }
    }
}

fn write(out: &mut Bounded, stats: &Stats, process: &[(&str, u64)], memory: &Memory) -> fmt::Result {
    writeln!(out, "{{\n  \"stat_version\": {},\n  \"mimalloc_version\": {VERSION},\n  \"process\": {{", stats.version)?;
    for (at, (name, value)) in process.iter().enumerate() {
        writeln!(out, "    \"{name}\": {value}{}", comma(at, process.len()))?;
    }
    writeln!(out, "  }},")?;
    stats.each(|name, field| {
        let _ = write!(out, "  \"{name}\": ");
        let _ = match field {
            Field::Counter(counter) => writeln!(out, "{},", counter.total),
            Field::Count(count) => write_count(out, count).and_then(|()| writeln!(out, " }},")),
        };
    });
    for (name, bins) in [("malloc_bins", &stats.malloc_bins), ("page_bins", &stats.page_bins)] {
        writeln!(out, "  \"{name}\": [")?;
        for (bin, count) in bins.iter().enumerate() {
            write!(out, "    ")?;
            write_count(out, count)?;
            let (block, page) = (bin_size(bin), slab_size(bin_size(bin)));
            writeln!(out, ", \"block_size\": {block}, \"page_size\": {page} }}{}", comma(bin, bins.len()))?;
        }
        writeln!(out, "  ],")?;
    }
    writeln!(out, "  \"chunk_bins\": [")?;
    for (at, (count, letter)) in stats.chunk_bins.iter().zip(CHUNKS).enumerate() {
        write!(out, "    ")?;
        write_count(out, count)?;
        writeln!(out, ", \"bin\": \"{letter}\" }}{}", comma(at, CHUNKS.len()))?;
    }
    writeln!(out, "  ],")?;
    write_memory(out, memory)
}

/// What is given back inside slabs, and what is free and is not given back, by what keeps it: additions of ours, behind all else.
fn write_memory(out: &mut Bounded, memory: &Memory) -> fmt::Result {
    for (name, fields) in [("holes", &memory.holes[..]), ("retained", &memory.retained[..])] {
        writeln!(out, "  \"{name}\": {{")?;
        for (at, (name, value)) in fields.iter().enumerate() {
            writeln!(out, "    \"{name}\": {value}{}", comma(at, fields.len()))?;
        }
        writeln!(out, "  }}{}", if name == "holes" { "," } else { "" })?;
    }
    writeln!(out, "}}")
}

/// An object without its end.
fn write_count(out: &mut Bounded, count: &Count) -> fmt::Result {
    let Count { total, peak, current } = count;
    write!(out, "{{ \"total\": {total}, \"peak\": {peak}, \"current\": {current}")
}

fn comma(at: usize, count: usize) -> &'static str {
    if at + 1 == count { "" } else { "," }
}

/// Bytes of the slabs that blocks of this size come from; 0 if they come from none.
fn slab_size(block: usize) -> usize {
    class_of(block).filter(|_| block != 0).map_or(0, |class| slab_slices(class) * SLICE)
}
