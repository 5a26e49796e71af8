//! gperftools' heap text with the header `heap_v2`, as google/pprof and `mpp` read it. What we add to the common form is in comment
//! lines.

use super::collect::{Collected, Line, truncation};
use crate::observe::modules::{DIGITS, without_deleted};
use crate::observe::output::Output;
use core::fmt::Write;

pub(super) fn write(collected: &Collected, output: &mut Output<'_>) {
    let totals = &collected.totals;
    let _ = write!(output, "heap profile: ");
    write_counts(output, [totals.live, totals.live_bytes, totals.allocated, totals.allocated_bytes]);
    let _ = writeln!(output, " heap_v2/{}", collected.rate);
    collected.lines.iter().for_each(|line| write_line(output, line));
    let _ = writeln!(output, "# mimalloc heap stats");
    collected.for_each_fact(|key, value| _ = writeln!(output, "# {key} = {value}"));
    write_build_ids(collected, output);
    let _ = writeln!(output, "MAPPED_LIBRARIES:");
    output.bytes(collected.modules.map().text());
}

fn write_counts(output: &mut Output<'_>, [live, live_bytes, allocated, allocated_bytes]: [u64; 4]) {
    let _ = write!(output, "{live:6}: {live_bytes:8} [{allocated:6}: {allocated_bytes:8}] @");
}

fn write_line(output: &mut Output<'_>, line: &Line) {
    let size = line.block_size();
    write_counts(output, [line.live, line.live * size, line.allocated, line.allocated * size]);
    let frames = line.site.frames();
    for frame in frames {
        let _ = write!(output, " {frame:#x}");
    }
    output.bytes(b"\n");
    if let Some(reason) = truncation(line.end()) {
        let at = frames.last().copied().unwrap_or(0);
        let _ = writeln!(output, "# stack truncated: {reason} at {at:#x}");
    }
}

/// A `# build_id HEX PATH` line for each module that has one.
fn write_build_ids(collected: &Collected, output: &mut Output<'_>) {
    let mut before: &[u8] = b"";
    for module in collected.modules.all() {
        let path = collected.modules.path(module);
        if path != before && !module.build_id.as_bytes().is_empty() {
            output.bytes(b"# build_id ");
            output.bytes(module.build_id.hex(&mut { DIGITS }));
            output.bytes(b" ");
            output.bytes(without_deleted(path));
            output.bytes(b"\n");
        }
        before = path;
    }
}
