//! What was found, and the line that says so.

use crate::libc::{Place, dladdr};
use crate::unwind::End;
use crate::{compare, settings};
use core::ffi::CStr;
use core::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Our list of addresses beside libgcc's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same.
    Exact,
    /// The same, and then more: code without tables was crossed.
    Longer,
    /// The same as far as it goes, and it says that it is not whole.
    Short,
    /// Another address, or a stack called whole that is not.
    Mismatched,
}

const NAMES: [&str; 8] =
    ["exact", "longer", "short", "mismatched", "complete", "depth_limit", "no_unwind_info", "bad_frame"];
static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
static FRAMES: AtomicU64 = AtomicU64::new(0);
static TIMES: [Times; 2] = [const { Times::new() }; 2];
/// Where short and mismatched stacks part from libgcc's: the first few.
static EXAMPLES: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// How often a walk took how long. A median says more than a mean where other programs run at the same time.
struct Times([AtomicU64; Times::STEPS]);

impl Times {
    /// Eight steps for each doubling, up to a second.
    const STEPS: usize = 240;

    const fn new() -> Times {
        Times([const { AtomicU64::new(0) }; Times::STEPS])
    }

    fn add(&self, nanoseconds: u64) {
        let step = ((nanoseconds.max(1) as f64).log2() * 8.0).round() as usize;
        self.0[step.min(Times::STEPS - 1)].fetch_add(1, Relaxed);
    }

    fn median(&self) -> u64 {
        let half = self.0.iter().map(|count| count.load(Relaxed)).sum::<u64>() / 2;
        let mut below = 0;
        let step = self.0.iter().position(|count| {
            below += count.load(Relaxed);
            below > half
        });
        step.map_or(0, |step| (step as f64 / 8.0).exp2().round() as u64)
    }
}

/// Count one stack.
pub(crate) fn add(frames: usize, end: End, verdict: Verdict, at: Option<usize>, nanoseconds: [u64; 2]) {
    FRAMES.fetch_add(frames as u64, Relaxed);
    COUNTS[verdict as usize].fetch_add(1, Relaxed);
    COUNTS[4 + end as usize].fetch_add(1, Relaxed);
    for (times, time) in TIMES.iter().zip(nanoseconds) {
        times.add(time);
    }
    if matches!(verdict, Verdict::Short | Verdict::Mismatched)
        && let Some(free) = EXAMPLES.iter().find(|example| example.load(Relaxed) == 0)
    {
        free.store(at.unwrap_or(1), Relaxed);
    }
}

/// In a forked child: the parent reports what was counted so far.
pub(crate) extern "C" fn forget() {
    let times = TIMES.iter().flat_map(|times| &times.0);
    for count in COUNTS.iter().chain(times).chain([&FRAMES]) {
        count.store(0, Relaxed);
    }
    for example in &EXAMPLES {
        example.store(0, Relaxed);
    }
    compare::unlock();
}

/// Append the line to the file, if there is one.
pub(crate) fn report() {
    let Some(path) = settings::report() else { return };
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
    let mut line = format!("{{\"program\":\"{}\",\"pid\":{}", plain(&name), std::process::id());
    let count = |index: usize| COUNTS[index].load(Relaxed);
    let stacks: u64 = (0..4).map(count).sum();
    let _ = write!(line, ",\"stacks\":{stacks},\"frames\":{}", FRAMES.load(Relaxed));
    for (index, name) in NAMES.iter().enumerate() {
        let _ = write!(line, ",\"{name}\":{}", count(index));
    }
    let [ours, theirs] = TIMES.each_ref().map(Times::median);
    let _ = write!(line, ",\"median_ns\":{ours},\"libgcc_median_ns\":{theirs},\"examples\":[");
    let examples = EXAMPLES.iter().map(|example| example.load(Relaxed)).filter(|at| *at != 0);
    let examples: Vec<String> = examples.map(|at| format!("\"{}\"", plain(&describe(at)))).collect();
    let _ = writeln!(line, "{}]}}", examples.join(","));
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        // One write, so that lines of several processes do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}

/// `file+offset (symbol)`
fn describe(address: usize) -> String {
    let mut place = Place { file: core::ptr::null(), base: 0, symbol: core::ptr::null(), symbol_at: 0 };
    // SAFETY: the structure has the C library's layout; it points to strings of modules that are loaded.
    unsafe {
        if dladdr(address, &raw mut place) == 0 || place.file.is_null() {
            return format!("{address:#x}");
        }
        let file = CStr::from_ptr(place.file).to_string_lossy();
        let symbol = if place.symbol.is_null() { c"?" } else { CStr::from_ptr(place.symbol) };
        format!("{file}+{:#x} ({})", address - place.base, symbol.to_string_lossy())
    }
}

/// Without what JSON would have to escape.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '"' && *c != '\\').collect()
}
