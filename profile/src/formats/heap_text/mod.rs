//! Heap profiles as text: `heap_v2` as this project writes it, and its relatives.
//!
//! # Dialects
//!
//! | first line | written by | one record | sampling rate `R` |
//! |---|---|---|---|
//! | `heap profile: … @ heap_v2/N` | this project, tcmalloc | one line | `R = N` |
//! | `heap profile: … @ heapz_v2/N` | Google's servers | one line | `R = N` |
//! | `heap profile: … @ heap/N` | Go (`debug=1`) | one line | `R = N / 2`: Go writes twice its rate |
//! | `heap profile: … @ heapprofile` | gperftools' HEAPPROFILE | one line | 1: every block is recorded |
//! | `heap_v2/N` | jemalloc | `@` line, `t*:` line, `tN:` lines | `R = N` |
//!
//! Amounts in all of them are sums over the recorded blocks; [`Estimate`](crate::Estimate) scales them. A file is known
//! to be our own by the comment `# stacks_marked = 1`: then a stack without a `# stack truncated: …` line after it is
//! complete. Go's comments with symbols (`# 0x4b798f main.grow+0xaf …/main.go:21`) are used as names.
//!
//! # What is refused
//!
//! * A file that is cut off: a last line of the stack table that does not end, sums that differ from those that the
//!   header announces in a file without mapping table, a `heap_v2` dump of any writer without mapping table (all of them
//!   end with one). In a dump of our own, also sums that differ at all and a mapping table whose last line does not end.
//! * Two dumps joined, and the lines of one dialect under the header of another.
//! * Numbers that cannot be: a rate of 0, counts of 2^63 and more, negative counts, bytes without blocks, more live than
//!   was ever allocated (jemalloc's rounding can do that, there it is a warning), sums or estimates of 2^63 and more.
//!
//! Differences that other writers are known to make are a warning ([`Profile::warnings`](crate::Profile::warnings)).
//! jemalloc's totals in the first lines are not looked at: with `prof_unbias` they are not the sum of the stacks.

mod builder;
pub(super) mod comment;
mod go_symbols;
mod header;
mod jemalloc;
mod others;
pub(super) mod scan;
mod stack_table;
mod writer;

use std::io::Read;

use super::Limits;
use super::lines::{Fault, Lines};
use crate::error::ReadError;
use crate::model::Profile;
use builder::Builder;
use header::Header;

pub(super) use others::{write_gperftools, write_jemalloc};
pub use writer::write;

/// Reads any dialect, after skipping what precedes the header.
pub(super) fn read<R: Read>(
    mut lines: Lines<'_, R>,
    junk_bytes: usize,
    junk_lines: u64,
    limits: &Limits,
) -> Result<Profile, ReadError> {
    lines.skip(junk_bytes, junk_lines);
    let header = match lines.next()? {
        Some(line) if !line.ended => Err(CUT_OFF.to_owned()),
        Some(line) => header::parse(line.text),
        None => Err("expected a header".to_owned()),
    };
    let header = header.map_err(|message| lines.error(Fault::Damaged(message)))?;
    let mut builder = Builder::new(&header, limits);
    if junk_lines > 0 {
        builder.warn(format!("{junk_lines} lines before the header were skipped"));
    }
    let header_line = lines.number();
    match &header {
        Header::Jemalloc { .. } => jemalloc::read(&mut lines, &mut builder)?,
        Header::OneLine { .. } => stack_table::read(&mut lines, &mut builder)?,
    }
    builder.finish().map_err(|error| match error {
        builder::Incomplete::Totals(message) => lines.error_at(header_line, Fault::Damaged(message)),
        builder::Incomplete::End(message) => lines.error(Fault::Damaged(message)),
    })
}

/// What is said of a line that matters and has no end.
const CUT_OFF: &str =
    "the file is cut off: this line does not end; expected a line feed and a section MAPPED_LIBRARIES:";

#[cfg(test)]
mod tests;
