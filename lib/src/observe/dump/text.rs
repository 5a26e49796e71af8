//! gperftools' heap text with the header `heap_v2`, as google/pprof and `mpp` read it. What we add to the common form is in comment
//! lines.

use super::collect::{Collected, Line, truncation};
use crate::observe::modules::{BuildId, DIGITS, Module, Modules, without_deleted};
use crate::observe::output::Output;
use core::fmt::{self, Write};

pub(super) fn write(collected: &Collected, output: &mut Output<'_>) {
    let totals = &collected.totals;
    let _ = write!(output, "heap profile: ");
    write_counts(output, [totals.live, totals.live_bytes, totals.allocated, totals.allocated_bytes]);
    let _ = writeln!(output, " heap_v2/{}", collected.rate);
    collected.lines.iter().for_each(|line| write_line(output, line, &collected.modules));
    let _ = writeln!(output, "# mimalloc heap stats");
    collected.for_each_fact(|key, value| _ = writeln!(output, "# {key} = {value}"));
    write_build_ids(collected, output);
    let _ = writeln!(output, "MAPPED_LIBRARIES:");
    write_map(&collected.modules, output);
}

fn write_counts(output: &mut Output<'_>, [live, live_bytes, allocated, allocated_bytes]: [u64; 4]) {
    let _ = write!(output, "{live:6}: {live_bytes:8} [{allocated:6}: {allocated_bytes:8}] @");
}

fn write_line(output: &mut Output<'_>, line: &Line, modules: &Modules) {
    let size = line.block_size();
    write_counts(output, [line.live, line.live * size, line.allocated, line.allocated * size]);
    let mut last = 0;
    for frame in line.frames(modules) {
        let _ = write!(output, " {frame:#x}");
        last = frame;
    }
    output.bytes(b"\n");
    if let Some(reason) = truncation(line.end()) {
        let _ = writeln!(output, "# stack truncated: {reason} at {last:#x}");
    }
}

/// A `# build_id HEX PATH` line for each file that has one, and `# build_id_at START-END HEX PATH` for a mapping of a file that is gone,
/// or is not the only one of its name.
fn write_build_ids(collected: &Collected, output: &mut Output<'_>) {
    let modules = &collected.modules;
    for (index, module) in modules.all().iter().enumerate().filter(|(_, module)| module.build_id != BuildId::NONE) {
        let (path, id) = (without_deleted(modules.path(module)), &module.build_id);
        let same_name =
            |other: &&Module| other.build_id != BuildId::NONE && without_deleted(modules.path(other)) == path;
        match modules.all()[..index].iter().find(same_name) {
            None => write_build_id(output, format_args!("build_id"), id, path),
            Some(other) if other.build_id == *id => {}
            Some(_) => {
                write_build_id(output, format_args!("build_id_at {:x}-{:x}", module.start, module.end), id, path)
            }
        }
    }
    for (_, module) in modules.gone() {
        if let Some(from) = module.moved_from() {
            let _ = writeln!(output, "# moved: {from:x} was unloaded, and is told as {:x}", module.start);
        }
        if module.build_id != BuildId::NONE {
            write_build_id(
                output,
                format_args!("build_id_at {:x}-{:x}", module.start, module.end),
                &module.build_id,
                modules.path(module),
            );
        }
    }
}

fn write_build_id(output: &mut Output<'_>, what: fmt::Arguments<'_>, id: &BuildId, path: &[u8]) {
    let _ = write!(output, "# {what} ");
    for part in [id.hex(&mut { DIGITS }), b" ", path, b"\n"] {
        output.bytes(part);
    }
}

/// The map as it is, and below it what is gone and still referred to.
fn write_map(modules: &Modules, output: &mut Output<'_>) {
    output.bytes(modules.map().text());
    for (_, module) in modules.gone() {
        let _ = write!(output, "{:x}-{:x} r-xp {:08x} 00:00 0 ", module.start, module.end, module.offset);
        output.bytes(modules.path(module));
        output.bytes(b"\n");
    }
}
