//! What is told to people about memory that was returned, and about free memory that was not.

use super::purging;
use super::text::{OutputFn, Text};
use crate::arena;
use crate::heap::classes::CLASSES;
use crate::os::PAGE;
use crate::reclaim;
use crate::reclaim::survey::{self, Cause, Class, Survey};
use core::ffi::c_void;
use core::fmt::{self, Display, Write};

/// `mi_purge_holes_report`: why memory could not be returned, to the registered function. Nothing is changed.
pub fn purge_holes_report() {
    // SAFETY: there is no function.
    unsafe { purge_holes_report_out(None, core::ptr::null_mut()) }
}

/// The same to a function.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn purge_holes_report_out(function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    let mut text = unsafe { Text::to(function, arg) };
    let told = survey::survey(|survey| {
        let _ = report(&mut text, survey);
    });
    if !told {
        let _ = writeln!(text, "holes: no memory to look at the heap");
    }
    write_holes(&mut text);
}

/// Bytes as MiB with one place.
struct Mib(u64);

impl Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BEHIND: usize = ".0 MiB".len();
        let tenths = (self.0 as u128 * 10 + (1 << 19)) >> 20;
        write!(f, "{:>width$}.{} MiB", tenths / 10, tenths % 10, width = f.width().unwrap_or(0).saturating_sub(BEHIND))
    }
}

fn report(text: &mut Text, survey: &Survey) -> fmt::Result {
    let Survey { live, cached, returned, untouched, spans, span_bytes, runs, run_bytes, absent_run_bytes, .. } =
        *survey;
    writeln!(
        text,
        "slabs:         {} live, {} given back, {} never touched (in memory only in huge pages)",
        Mib(live),
        Mib(returned),
        Mib(untouched)
    )?;
    writeln!(text, "caches:        {} blocks, {}", survey.cached_blocks, Mib(cached))?;
    writeln!(text, "larger blocks: {spans}, {}", Mib(span_bytes))?;
    writeln!(text, "free runs:     {runs} in memory, {}; not in memory: {}", Mib(run_bytes), Mib(absent_run_bytes))?;
    let (parked, bytes) = (survey.parked_blocks, Mib(survey.parked));
    if parked != 0 {
        writeln!(
            text,
            "sampled:       {parked} blocks, {bytes}, stand in for sampled or guarded ones and count as live"
        )?;
    }
    causes(text, survey)?;
    write!(text, "\nfree in slabs, given back or not, if the kernel took it in pieces of\n ")?;
    for (number, &bytes) in survey.units.iter().enumerate() {
        write!(text, "  {} KiB: {}", (PAGE << number) / 1024, Mib(bytes))?;
    }
    writeln!(
        text,
        "\n\npages of slabs that live blocks keep: {} ({})",
        survey.pinned_pages,
        Mib(survey.pinned_pages * PAGE as u64)
    )?;
    worst(text, &survey.classes)?;
    table(text, &survey.classes)
}

fn causes(text: &mut Text, survey: &Survey) -> fmt::Result {
    writeln!(text, "\nfree and in memory: {}", Mib(survey.free_in_memory()))?;
    for (cause, _, meaning) in Cause::ALL {
        let bytes = survey.kept_by(cause);
        if bytes != 0 {
            writeln!(text, "  {:>12}  {meaning}", Mib(bytes))?;
        }
    }
    Ok(())
}

/// The three classes that keep most.
fn worst(text: &mut Text, classes: &[Class; CLASSES]) -> fmt::Result {
    let mut told = [0; 3];
    for number in 0..told.len() {
        let left = (1..CLASSES).filter(|class| !told.contains(class));
        let Some(class) = left.max_by_key(|&class| classes[class].pinned_free_bytes) else { break };
        let row = &classes[class];
        if row.pinned_free_bytes == 0 {
            break;
        }
        told[number] = class;
        write!(
            text,
            "  blocks of {}: {} free in {} pages that {} live blocks keep; of these pages have",
            row.block_size,
            Mib(row.pinned_free_bytes),
            row.pinned,
            row.survivors
        )?;
        for (pages, blocks) in row.histogram.iter().zip(["1 block", "2", "3-4", "5-8", "more"]) {
            let tenths = pages * 1000 / row.pinned;
            write!(text, "{} {blocks}: {}.{} %", if blocks == "1 block" { "" } else { "," }, tenths / 10, tenths % 10)?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn table(text: &mut Text, classes: &[Class; CLASSES]) -> fmt::Result {
    writeln!(
        text,
        "\n{:>12} {:>8} {:>10} {:>10} {:>10} {:>10} {:>14} {:>10}",
        "block size", "slabs", "live", "cached", "free", "pages kept", "free KiB there", "pages back"
    )?;
    for row in classes.iter().filter(|row| row.slabs != 0) {
        writeln!(
            text,
            "{:>12} {:>8} {:>10} {:>10} {:>10} {:>10} {:>14} {:>10}",
            row.block_size,
            row.slabs,
            row.live,
            row.cached,
            row.free,
            row.pinned,
            row.pinned_free_bytes / 1024,
            row.returned
        )?;
    }
    writeln!(text)
}

/// The lines of the statistics about memory that was returned, and about what is retained.
pub(super) fn write_returned(text: &mut Text) {
    let arena = arena::counts();
    let away = reclaim::holes_stats().purged_bytes as u64;
    let _ = writeln!(
        text,
        "heap: {} of address space, {} of it may be in memory; {} given back ever, {} of it not used again",
        Mib(arena.reserved),
        Mib(arena.committed.saturating_sub(away)),
        Mib(arena.purged),
        Mib(arena::purged_now())
    );
    survey::survey(|survey| {
        let _ = write!(text, "free and in memory: {}", Mib(survey.free_in_memory()));
        for (cause, name, _) in Cause::ALL {
            let bytes = survey.kept_by(cause);
            if bytes != 0 {
                let _ = write!(text, "; {name} {}", Mib(bytes));
            }
        }
        let _ = writeln!(text);
    });
    write_holes(text);
}

/// The lines about holes.
fn write_holes(text: &mut Text) {
    let holes = purging::holes_stats();
    let (now, ever) = (Mib(holes.purged_bytes as u64), Mib(holes.purged_bytes_total as u64));
    let (reuses, given_up) = (holes.reuse_calls, holes.pages_freed);
    let _ = writeln!(
        text,
        "holes: {now} given back now ({} blocks), {ever} ever; {reuses} times used again",
        holes.purged_blocks
    );
    let [sweeps, refused, splits] = Survey::events();
    let (calls, visited) = (holes.discard_calls, holes.blocks_visited);
    let _ = writeln!(
        text,
        "sweeps: {sweeps}, {visited} blocks looked at, {calls} calls to give memory back, {refused} ranges refused, {splits} huge pages split"
    );
    let (slabs, bytes) = (holes.ineligible_pages, Mib(holes.ineligible_bytes as u64));
    let free = Mib(holes.ineligible_free_bytes as u64);
    let _ =
        writeln!(text, "slabs: {given_up} empty ones given up; {slabs} cannot have holes ({bytes}, {free} of it free)");
}
