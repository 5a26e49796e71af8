//! A program that is to be run.

use std::ffi::OsStr;
use std::path::Path;

use mpp_symbolizer::{SymbolSource, Symbolizer};
use object::{Object, ObjectSection};

use super::Finding;
use crate::args::SymbolArgs;
use crate::symbols;
use crate::verbs::run;

/// Places in a program that are looked up.
const LOOKED_AT: u64 = 64;
/// Larger files are not read for this.
const LARGEST: u64 = 4 << 30;

pub(super) fn look(program: &OsStr, args: &SymbolArgs) -> Vec<Finding> {
    let path = match run::preflight(program) {
        Ok((path, is_go)) => {
            let found = format!("{} is dynamic and can have the allocator preloaded", path.display());
            if is_go {
                let advice = "use Go's runtime/pprof for Go's own heap; `mpp top` reads its profiles";
                return vec![Finding::hint(
                    "preload",
                    format!("{found}, but is a Go program with a heap of its own"),
                    advice,
                )];
            }
            (path, Finding::ok("preload", found))
        }
        Err(failure) => {
            // The reason is the advice: a table may shorten what was found, but not that.
            return vec![Finding::bad("preload", "it cannot be recorded as it is", format!("{:#}", failure.error))];
        }
    };
    let (path, preload) = path;
    let mut findings = vec![preload];
    findings.extend(file(&path, args));
    findings
}

/// What the file of the program itself offers; a script has none of it.
fn file(path: &Path, args: &SymbolArgs) -> Vec<Finding> {
    let metadata = std::fs::metadata(path);
    if metadata.map_or(true, |metadata| metadata.len() > LARGEST) {
        return Vec::new();
    }
    let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
    let cache = object::ReadCache::new(file);
    let Ok(elf) = object::File::parse(&cache) else {
        return vec![Finding::ok("program", "a script: what counts is its interpreter")];
    };
    let unwind = match elf.section_by_name(".eh_frame").is_some_and(|section| section.size() > 0) {
        true => Finding::ok("stacks", "it has unwind tables: stacks will be complete, without frame pointers"),
        false => Finding::bad("stacks", "it has no unwind tables (.eh_frame)", "link it without removing them"),
    };
    let mut symbolizer = Symbolizer::new(symbols::options(args));
    // Here and there in its code: not every function has lines, such as the one that it starts with.
    let code = elf.section_by_name(".text").map_or((elf.entry(), 1), |text| (text.address(), text.size()));
    let addresses: Vec<u64> = (0..LOOKED_AT)
        .map(|part| code.0.wrapping_add((u128::from(code.1) * u128::from(part) / u128::from(LOOKED_AT)) as u64))
        .collect();
    let names = match symbolizer.symbolize_file(path, &addresses) {
        Err(error) => Finding::hint("names", error.to_string(), "see mpp symbolize -e"),
        Ok(_) => names(&symbolizer, path),
    };
    vec![unwind, names]
}

fn names(symbolizer: &Symbolizer, path: &Path) -> Finding {
    let Some(report) = symbolizer.report().first() else { return Finding::ok("names", "not looked up") };
    let (_, file, text) = symbols::source(&report.source);
    let place = file.map(|file| format!(" {}", file.display())).unwrap_or_default();
    let found = format!("{text}{place}");
    match report.source.origin() {
        SymbolSource::Dwarf { .. } | SymbolSource::Pdb { .. } => Finding::ok("names", found),
        SymbolSource::Symtab { .. } | SymbolSource::MiniDebugInfo => Finding::hint(
            "names",
            found,
            "for lines, compile with -g (Rust: debug = \"line-tables-only\"), or install its debug package",
        ),
        _ => {
            let advice = format!(
                "it is stripped: install its debug package, or give --debug-dir DIR or --debuginfod on ({})",
                path.display()
            );
            Finding::hint("names", found, advice)
        }
    }
}
