//! What was found, as a file of Valgrind's DHAT: version 2 of its format, which `dh_view` shows. `docs/formats.md` describes it.
//!
//! Everything is collected first and written afterwards: no lock is held while the file is written, and other threads go on.

use super::clock::Scale;
use super::frames::Frames;
use super::point::{Counts, Point};
use super::{CONTROL, Run, Totals, json, last, recorder, totals_of};
use crate::observe::footprint::Footprint;
use crate::observe::modules::{Module, Modules, without_deleted};
use crate::observe::output::{self, Failure, Output, Path};
use crate::observe::room::Room;
use crate::observe::unwind::End;
use crate::os::{self, File, libc};
use core::fmt::Write;

/// Bytes written at a time.
const BUFFER: usize = 16 * 1024;
/// Blocks that live shorter are short-lived, in microseconds: `dh_view` marks them.
const SHORT: u32 = 10;
/// What is read of the command line.
const LONGEST_COMMAND: usize = 64 * 1024;

/// The first frames of the list, which are no addresses.
const MARKS: [&str; 5] = [
    "[root]",
    "[no stack: not recorded]",
    "[the stack goes on: depth limit]",
    "[the stack goes on: no unwind info]",
    "[the stack goes on: bad frame]",
];
const WITHOUT_STACK: u32 = 1;

fn mark_of(end: End) -> Option<u32> {
    match end {
        End::Complete => None,
        End::DepthLimit => Some(2),
        End::NoUnwindInfo => Some(3),
        End::BadFrame => Some(4),
    }
}

/// A program point, and where its frames are in the list of all.
#[derive(Clone, Copy)]
struct Entry {
    counts: Counts,
    first: usize,
    length: usize,
    end: End,
    /// What the addresses mean.
    generation: u32,
}

/// Everything that is to be written.
struct Collected {
    entries: Room<Entry>,
    /// Return addresses, of one entry after the other.
    stacks: Room<usize>,
    totals: Totals,
    peak_at: u64,
    /// The end of the recording, or the present.
    now: Scale,
    footprint: Footprint,
}

/// Write what the present or last recording found; without one, a file with nothing in it.
///
/// # Errors
/// When the file cannot be written: then there is none, or the one that was there before.
pub(crate) fn write(path: &Path) -> Result<(), Failure> {
    if super::is_busy_here() {
        return Err(libc::EDEADLK.into());
    }
    // Before there are lists for the file.
    let footprint = Footprint::now();
    CONTROL.lock();
    let collected = collect(last(), footprint);
    CONTROL.unlock();
    let (collected, mut modules) = (collected?, Modules::read()?);
    let frames = collected.number(&mut modules)?;
    // SAFETY: bytes may be zero.
    let mut buffer = unsafe { Room::<u8>::zeroed(BUFFER) }?;
    output::write(path, &mut buffer, |output| put(&collected, &frames, &modules, output))
}

fn collect(run: Option<&Run>, footprint: Footprint) -> Result<Collected, Failure> {
    let mut collected = Collected {
        entries: Room::new(),
        stacks: Room::new(),
        totals: Totals::default(),
        peak_at: 0,
        now: Scale { ticks: 0, microseconds: 0 },
        footprint,
    };
    let Some((run, points)) = run.and_then(|run| Some((run, run.points()?))) else { return Ok(collected) };
    let mut failed = Ok(());
    recorder::each(points, &run.live, |point, counts| {
        if failed.is_ok() {
            failed = collected.add(counts, point);
        }
    });
    failed?;
    collected.totals = totals_of(run);
    collected.peak_at = run.live.peak_at();
    // After the points: no block is younger.
    collected.now = run.stopped.get().unwrap_or_else(|| run.start.get().scale());
    Ok(collected)
}

impl Collected {
    fn add(&mut self, counts: Counts, point: &Point) -> Result<(), Failure> {
        let (first, frames) = (self.stacks.len(), point.frames());
        self.stacks.extend(frames)?;
        let (end, generation) = (point.end(), point.generation());
        self.entries.push(Entry { counts, first, length: frames.len(), end, generation })
    }

    fn frames_of(&self, entry: &Entry) -> &[usize] {
        &self.stacks[entry.first..entry.first + entry.length]
    }

    /// The addresses of all stacks, as they are written: those in modules that are gone, and whose place is taken, have others.
    fn number(&self, modules: &mut Modules) -> Result<Frames, Failure> {
        let mut frames = Frames::new()?;
        self.entries.iter().for_each(|entry| modules.note(self.frames_of(entry), entry.generation));
        for entry in self.entries.iter() {
            for &frame in self.frames_of(entry) {
                frames.number(modules.place(frame, entry.generation))?;
            }
        }
        Ok(frames)
    }
}

fn put(collected: &Collected, frames: &Frames, modules: &Modules, output: &mut Output<'_>) {
    let Collected { now, totals, .. } = collected;
    output.bytes(b"{\"dhatFileVersion\":2,\"mode\":\"heap, by mimalloc-pprof\",\"verb\":\"Allocated\"\n");
    output.bytes(b",\"bklt\":true,\"bkacc\":false\n,\"tu\":\"\xc2\xb5s\",\"Mtu\":\"s\"");
    let _ = write!(output, ",\"tuth\":{SHORT}\n,\"cmd\":\"");
    put_command(output);
    let (peak, end) = (now.microseconds_of(collected.peak_at), now.microseconds);
    let _ = write!(output, "\"\n,\"pid\":{}\n,\"tg\":{},\"te\":{end}\n", os::process_id(), peak.min(end));
    let incomplete = totals.without_stack + totals.lost != 0;
    let _ = write!(output, ",\"mi_dhat_incomplete\":{incomplete}\n,\"mpp\":{{\"addresses\":\"return\"");
    let _ = write!(output, ",\"withoutStack\":{},\"lost\":{}", totals.without_stack, totals.lost);
    let _ = write!(output, ",\"unknown\":{},\"peakBytes\":{}", totals.unknown, totals.highest_bytes);
    let _ = write!(output, ",\"ppid\":{}", os::parent_id());
    put_facts(&collected.footprint, output);
    put_modules(modules, output);
    output.bytes(b"}\n,\"pps\":\n [");
    for (i, entry) in collected.entries.iter().enumerate() {
        output.bytes(if i == 0 { b"" } else { b"\n ," });
        put_point(collected, entry, frames, modules, output);
    }
    output.bytes(b"\n ]\n,\"ftbl\":\n [");
    for (i, mark) in MARKS.iter().enumerate() {
        output.bytes(if i == 0 { b"" } else { b"\n ," });
        json::string(output, mark.as_bytes());
    }
    for &address in frames.all() {
        // The call, not the address behind it, is in the module.
        let module = modules.find(address.saturating_sub(1)).and_then(|number| module_of(modules, number));
        let _ = write!(output, "\n ,\"{address:#x}: ???");
        if let Some(module) = module {
            output.bytes(b" (in ");
            json::inner(output, without_deleted(modules.path(module)));
            output.bytes(b")");
        }
        output.bytes(b"\"");
    }
    output.bytes(b"\n ]\n}\n");
}

fn put_point(collected: &Collected, entry: &Entry, frames: &Frames, modules: &Modules, output: &mut Output<'_>) {
    let (counts, now) = (&entry.counts, collected.now);
    let lifetimes = now.microseconds_of(counts.lifetimes(now.ticks));
    let _ = write!(output, "{{\"tb\":{},\"tbk\":{},\"tl\":{lifetimes}", counts.total_bytes, counts.total_blocks);
    let _ = write!(output, ",\"mb\":{},\"mbk\":{}", counts.max_bytes, counts.max_blocks);
    let _ = write!(output, ",\"gb\":{},\"gbk\":{}", counts.peak_bytes, counts.peak_blocks);
    let _ = write!(output, ",\"eb\":{},\"ebk\":{},\"fs\":[", counts.bytes, counts.blocks);
    let numbers = collected.frames_of(entry).iter().filter_map(|&frame| {
        let number = frames.find(modules.place(frame, entry.generation));
        number.map(|number| number + MARKS.len() as u32)
    });
    // No two points may have the same frames, and an empty stack is none: the mark tells them apart.
    let mark = mark_of(entry.end).or((entry.length == 0).then_some(WITHOUT_STACK));
    for (i, number) in numbers.chain(mark).enumerate() {
        let _ = write!(output, "{}{number}", if i == 0 { "" } else { "," });
    }
    output.bytes(b"]}");
}

/// A module by the number that [`Modules::find`] gives.
fn module_of(modules: &Modules, number: usize) -> Option<&Module> {
    modules.all().get(number).or_else(|| modules.gone().find(|(gone, _)| *gone == number).map(|(_, module)| module))
}

/// Where the memory of the process is.
fn put_facts(footprint: &Footprint, output: &mut Output<'_>) {
    output.bytes(b"\n ,\"facts\":{");
    let mut comma = "";
    footprint.for_each_fact(|key, value| {
        let _ = write!(output, "{comma}\"{key}\":{value}");
        comma = ",";
    });
    output.bytes(b"}");
}

/// What is needed to name the addresses later.
fn put_modules(modules: &Modules, output: &mut Output<'_>) {
    output.bytes(b"\n ,\"modules\":[");
    for (i, module) in modules.all().iter().chain(modules.gone().map(|(_, module)| module)).enumerate() {
        output.bytes(if i == 0 { b"\n  {" } else { b"\n  ,{" });
        let _ = write!(output, "\"start\":\"{:#x}\",\"end\":\"{:#x}\"", module.start, module.end);
        let _ = write!(output, ",\"offset\":\"{:#x}\",\"path\":", module.offset);
        json::string(output, modules.path(module));
        output.bytes(b",\"buildId\":\"");
        for byte in module.build_id.as_bytes() {
            let _ = write!(output, "{byte:02x}");
        }
        output.bytes(b"\"}");
    }
    output.bytes(b"]");
}

/// The command line, words apart by spaces.
fn put_command(output: &mut Output<'_>) {
    // SAFETY: bytes may be zero.
    let Ok(mut room) = (unsafe { Room::<u8>::zeroed(LONGEST_COMMAND) }) else { return };
    let Some(file) = File::open(c"/proc/self/cmdline") else { return };
    let mut length = 0;
    while let Some(n) = file.read(&mut room[length..])
        && n != 0
    {
        length += n;
    }
    // The last word ends in a zero, too.
    let words = &mut room[..length.saturating_sub(1)];
    words.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    json::inner(output, words);
}

#[cfg(test)]
mod tests {
    use super::super::points::Points;
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn text(collected: &Collected) -> String {
        let mut bytes = Vec::new();
        let mut sink = |more: &[u8]| {
            bytes.extend_from_slice(more);
            Ok(())
        };
        let mut buffer = [0; 100];
        let mut output = Output::new(&mut sink, &mut buffer);
        let mut modules = Modules::read().unwrap();
        let frames = collected.number(&mut modules).unwrap();
        put(collected, &frames, &modules, &mut output);
        output.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn points_become_text() {
        let run = Run::new();
        let points = Points::map(1 << 20).unwrap();
        run.points.store((&raw const *points).cast_mut(), core::sync::atomic::Ordering::Relaxed);
        run.start.set(super::super::Start::now());
        let here = points_become_text as fn() as usize + 8;
        let stacks: [(&[usize], End); 3] =
            [(&[here, 16], End::Complete), (&[here, 16], End::BadFrame), (&[], End::Complete)];
        for (i, (frames, end)) in (1..).zip(stacks) {
            let point = points.point(points.intern(frames, end).unwrap());
            point.allocate(i * 100, 0, &run.live);
            point.allocate(i, 0, &run.live);
            point.free(i, 0, 0, &run.live);
        }
        points.point(points.unknown()).allocate(7, 0, &run.live);
        let text = text(&collect(Some(&run), Footprint::default()).unwrap());
        for expected in [
            "\"tb\":101,\"tbk\":2,\"tl\":",
            ",\"mb\":101,\"mbk\":2,\"gb\":100,\"gbk\":1,\"eb\":100,\"ebk\":1,\"fs\":[5,6]}",
            "\"gb\":200,\"gbk\":1,\"eb\":200,\"ebk\":1,\"fs\":[5,6,4]}",
            // What has no stack is one point, whatever the reason.
            "\"mb\":307,\"mbk\":2,\"gb\":307,\"gbk\":2,\"eb\":307,\"ebk\":2,\"fs\":[1]}",
            "\n ,\"0x10: ???\"",
            &std::format!("\n ,\"{here:#x}: ??? (in {})\"", std::env::current_exe().unwrap().display()),
            "\"[root]\"",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn odd_text_is_escaped() {
        let mut bytes = Vec::new();
        let mut sink = |more: &[u8]| {
            bytes.extend_from_slice(more);
            Ok(())
        };
        let mut buffer = [0; 4];
        let mut output = Output::new(&mut sink, &mut buffer);
        json::string(&mut output, b"a\"b\\c\nd\x01\xff\xc3\xa9");
        output.finish().unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "\"a\\\"b\\\\c\\u000ad\\u0001\u{fffd}\u{e9}\"");
    }
}
