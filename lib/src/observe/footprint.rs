//! Where the memory of the process is, as the kernel counts it: what a profile's total can be held against.

use super::modules::Mapping;
use super::output::Failure;
use super::room::Room;
use crate::heap::statistics::{self, Totals};
use crate::os::{self, File};
use crate::{arena, heap};
use core::ffi::CStr;
use core::ops::Range;

const SMAPS: &CStr = c"/proc/self/smaps";
/// Bytes to read at a time.
const PIECE: usize = 64 * 1024;
/// With more in memory the kernel is not asked for each mapping: it walks all page tables for that, 10 ms for each GiB.
const MOST: u64 = 8 << 30;

/// In bytes, all of about the same moment.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Footprint {
    /// In memory, all that the process has: its RSS. 0: the kernel does not say.
    pub(crate) resident: u64,
    /// Parts of it; `None` where it was not asked, because that would take long, or does not say.
    pub(crate) parts: Option<Parts>,
    /// Of the allocator's memory, what was handed out since it came from the kernel or was given back to it.
    pub(crate) committed: u64,
    /// Given back to the kernel and not handed out again.
    pub(crate) purged: u64,
    /// What the program holds: counted, not estimated.
    pub(crate) exact: Totals,
}

/// Parts of what is in memory. The rest is other people's anonymous memory: heaps of other allocators, `mmap` of the program.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parts {
    /// In the address space that blocks come from, with the metadata there.
    pub(crate) allocator: u64,
    /// Tables of the instruments and of the heaps.
    pub(crate) profiler: u64,
    /// Mappings of files, and shared memory.
    pub(crate) files: u64,
    /// Stacks of the main thread and of threads that have allocated.
    pub(crate) stacks: u64,
}

impl Footprint {
    /// Now. Callers hold no lock.
    pub(crate) fn now() -> Footprint {
        let (resident, _) = os::resident();
        let parts = if resident > MOST { None } else { Parts::read().ok().flatten() };
        let counts = arena::counts();
        Footprint {
            resident,
            parts,
            committed: counts.committed,
            purged: arena::purged_now(),
            exact: statistics::totals(),
        }
    }

    /// Names and values, as dumps have them.
    pub(crate) fn for_each_fact(&self, mut tell: impl FnMut(&'static str, u64)) {
        let Footprint { resident, parts, committed, purged, exact } = *self;
        tell("exact_live_blocks", exact.allocated_blocks.saturating_sub(exact.freed_blocks));
        tell("exact_live_bytes", exact.allocated_bytes.saturating_sub(exact.freed_bytes));
        tell("exact_allocated_blocks", exact.allocated_blocks);
        tell("exact_allocated_bytes", exact.allocated_bytes);
        tell("committed_bytes", committed);
        tell("purged_bytes", purged);
        if resident != 0 {
            tell("rss_bytes", resident);
        }
        if let Some(Parts { allocator, profiler, files, stacks }) = parts {
            tell("rss_allocator_bytes", allocator);
            tell("rss_profiler_bytes", profiler);
            tell("rss_file_bytes", files);
            tell("rss_stack_bytes", stacks);
        }
    }
}

impl Parts {
    /// `None`: there is no `/proc`, or no descriptor to read it with.
    fn read() -> Result<Option<Parts>, Failure> {
        let Some(file) = File::open(SMAPS) else { return Ok(None) };
        let mut survey =
            Survey { threads: Room::new(), own: Room::new(), parts: Parts::default(), class: Class::Other };
        heap::thread_ids().try_for_each(|id| survey.threads.push(id as usize))?;
        os::own_mappings().try_for_each(|own| survey.own.push(own))?;
        let mut text = Room::<u8>::new();
        while text.extend_with(PIECE, |room| file.read(room).unwrap_or(0))? > 0 {
            let Some(end) = text.iter().rposition(|&byte| byte == b'\n') else { continue };
            text[..end].split(|&byte| byte == b'\n').for_each(|line| survey.line(line));
            text.drop_first(end + 1);
        }
        Ok(Some(survey.parts))
    }
}

/// What is known while the kernel's text is read.
struct Survey {
    /// Addresses in the stacks of threads: the C library has the control block of a thread at the end of its stack.
    threads: Room<usize>,
    /// Start and length of the mappings of tables.
    own: Room<(usize, usize)>,
    parts: Parts,
    /// Of the mapping that is told about.
    class: Class,
}

/// What a mapping is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Class {
    Allocator,
    File,
    Stack,
    /// With tables in this range and perhaps other things: the kernel makes one mapping of neighbours.
    Tables(Range<usize>),
    Other,
}

impl Survey {
    /// A mapping begins, or something is told about the last one.
    fn line(&mut self, line: &[u8]) {
        if let Some(mapping) = Mapping::parse(line) {
            self.class = self.classify(&mapping);
        } else if let Some(bytes) = value(line, b"Rss:") {
            match &self.class {
                Class::Allocator => self.parts.allocator += bytes,
                Class::File => self.parts.files += bytes,
                Class::Stack => self.parts.stacks += bytes,
                Class::Tables(mapping) => self.parts.profiler += self.of_tables(mapping, bytes),
                Class::Other => {}
            }
        }
    }

    fn classify(&self, mapping: &Mapping<'_>) -> Class {
        if arena::holds(mapping.range.start) {
            return Class::Allocator;
        }
        if mapping.file != b"00:00 0" || mapping.path.starts_with(b"/") {
            return Class::File;
        }
        let is_stack = mapping.path == b"[stack]" || mapping.path.starts_with(b"[anon: glibc: pthread stack");
        let has_thread = mapping.path.is_empty() && self.threads.iter().any(|id| mapping.range.contains(id));
        if is_stack || has_thread {
            return Class::Stack;
        }
        match self.tables_in(&mapping.range).next() {
            Some(_) => Class::Tables(mapping.range.clone()),
            None => Class::Other,
        }
    }

    fn tables_in(&self, mapping: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let overlap = |&(start, length): &(usize, usize)| start.max(mapping.start)..(start + length).min(mapping.end);
        self.own.iter().map(overlap).filter(|overlap| !overlap.is_empty())
    }

    /// What tables have of the bytes of a mapping that are in memory. Where they share it with others, `mincore` tells; it counts
    /// pages that were only ever read, too, which take no memory.
    fn of_tables(&self, mapping: &Range<usize>, bytes: u64) -> u64 {
        if self.tables_in(mapping).map(|table| table.len()).sum::<usize>() == mapping.len() {
            return bytes;
        }
        let pages = |table: Range<usize>| os::resident_pages(table.start as *const u8, table.len() / os::PAGE);
        let resident: usize = self.tables_in(mapping).filter_map(pages).sum();
        bytes.min((resident * os::PAGE) as u64)
    }
}

/// `Rss:                 12 kB`, in bytes.
fn value(line: &[u8], key: &[u8]) -> Option<u64> {
    let number = line.strip_prefix(key)?.trim_ascii().strip_suffix(b" kB")?;
    Some(core::str::from_utf8(number).ok()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"7f00a000-7f00b000 r-xp 00001000 08:01 1234      /opt/a b/lib c.so (deleted)\n\
        Size:                  4 kB\nRss:                   4 kB\nAnonymous:             0 kB\n\
        7f00c000-7f00e000 rw-p 00000000 00:00 0 \nRss:                   8 kB\n\
        7f00f000-7f01f000 rw-p 00000000 00:00 0 \nRss:                  16 kB\nVmFlags: rd wr mr mw me ac \n\
        7ffe0000-7fff0000 rw-p 00000000 00:00 0                          [stack]\nRss:                  32 kB\n";

    #[test]
    fn mappings_are_told_apart() {
        let (mut threads, mut own) = (Room::new(), Room::new());
        threads.push(0x7f00d000).unwrap();
        own.push((0x7f00f000, 0x8000)).unwrap();
        own.push((0x7f017000, 0x8000)).unwrap();
        let mut survey = Survey { threads, own, parts: Parts::default(), class: Class::Other };
        SAMPLE.split(|&byte| byte == b'\n').for_each(|line| survey.line(line));
        let Parts { allocator, profiler, files, stacks } = survey.parts;
        assert_eq!((allocator, profiler, files, stacks), (0, 16 * 1024, 4096, (8 + 32) * 1024));
    }

    #[test]
    fn parts_are_less_than_the_whole() {
        let footprint = Footprint::now();
        let Parts { allocator, profiler, files, stacks } = footprint.parts.unwrap();
        let sum = allocator + profiler + files + stacks;
        // The kernel's quick count may lag behind by some pages for each thread.
        assert!(files > 0 && stacks > 0 && sum <= footprint.resident + (4 << 20), "{footprint:?}");
    }
}
