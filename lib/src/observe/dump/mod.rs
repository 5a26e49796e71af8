//! Dumps: what the profiler found, for other programs to read. `docs/formats.md` describes the formats.
//!
//! Everything is collected first, in memory of the kernel's, and written afterwards, so that the parts of a dump agree although other
//! threads go on: totals are sums of what is written. No lock is held while something is written, and nobody waits for it.

mod busy;
mod collect;
mod deflate;
mod estimates;
mod gzip;
mod huffman;
mod locations;
mod matches;
mod proto;
mod protobuf;
mod strings;
mod text;

pub(crate) use busy::is_busy_here;

use super::output::{self, Failure, Output, Path, Sink};
use super::room::Room;
use busy::Busy;
use collect::Collected;
use gzip::Gzip;

/// Bytes written at a time.
const BUFFER: usize = 16 * 1024;

/// How a dump is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// gperftools' heap text, with the header `heap_v2`.
    Text,
    /// pprof's `profile.proto`.
    Proto,
    /// The same, packed with gzip.
    ProtoGz,
}

impl Format {
    /// By its name in settings: `text`, `proto` (or `1`), `proto-gz`; capitals do not matter.
    pub(crate) fn named(name: &[u8]) -> Option<Format> {
        let names = [("text", Format::Text), ("0", Format::Text), ("proto", Format::Proto), ("1", Format::Proto)];
        let names = names.into_iter().chain([("proto-gz", Format::ProtoGz)]);
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, format)| format)
    }
}

/// Write what the present or last run found; without one, a profile of nothing. Other threads go on meanwhile.
///
/// # Errors
/// When the file cannot be written; then there is none, or the one that was there before. When this is called by what a dump calls.
pub(crate) fn write(path: &Path, format: Format) -> Result<(), Failure> {
    let _busy = Busy::enter()?;
    output::to_file(path, |sink| write_into(sink, format))
}

/// [`write`] into a function, piece by piece; it may allocate, and says whether it wants more.
///
/// # Errors
/// When it does not, or when this is called by what a dump calls.
pub(crate) fn write_to(sink: &mut dyn FnMut(&[u8]) -> bool, format: Format) -> Result<(), Failure> {
    let _busy = Busy::enter()?;
    write_into(&mut |bytes| if sink(bytes) { Ok(()) } else { Err(Failure::REFUSED) }, format)
}

/// In a forked child.
pub(crate) fn repair() {
    busy::repair();
}

fn write_into(sink: &mut Sink<'_>, format: Format) -> Result<(), Failure> {
    let collected = Collected::now()?;
    // SAFETY: bytes may be zero.
    let mut buffer = unsafe { Room::<u8>::zeroed(BUFFER) }?;
    if format != Format::ProtoGz {
        return write_plain(&collected, sink, &mut buffer, format);
    }
    let mut gzip = Gzip::new(sink)?;
    write_plain(&collected, &mut |bytes| gzip.write(bytes), &mut buffer, format)?;
    gzip.finish()
}

fn write_plain(collected: &Collected, sink: &mut Sink<'_>, buffer: &mut [u8], format: Format) -> Result<(), Failure> {
    let mut output = Output::new(sink, buffer);
    match format {
        Format::Text => text::write(collected, &mut output),
        Format::Proto | Format::ProtoGz => proto::write(collected, &mut output).unwrap_or_else(|why| output.fail(why)),
    }
    output.finish()
}

#[cfg(test)]
mod tests;
