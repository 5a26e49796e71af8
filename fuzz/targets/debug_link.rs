//! Any bytes are the links of a program to its debug files. The first byte says where one link ends and the other begins.

#![no_main]

mod elf_file;

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Options, SymbolSource, Symbolizer};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| elf_file::path("debug-link"));

fuzz_target!(|data: &[u8]| {
    let Some((at, links)) = data.split_first() else { return };
    let (link, alt_link) = links.split_at(usize::from(*at).min(links.len()));
    let sections = [(".gnu_debuglink", link), (".gnu_debugaltlink", alt_link), (".debug_info", &[0; 16])];
    // With debug information of its own, a program's other link counts.
    let sections = &sections[..if at % 2 == 0 { 1 } else { 3 }];
    std::fs::write(&*FILE, elf_file::with_sections(sections)).expect("a temporary file");
    let (module, addresses) = elf_file::mapped(FILE.clone());
    let folder = std::env::temp_dir().join("mpp-fuzz-no-such-folder");
    let options = Options { threads: 1, debug_dirs: vec![folder.clone()], ..Options::default() };
    let mut symbolizer = Symbolizer::new(options);
    symbolizer.symbolize(&[module], &addresses);
    let report = &symbolizer.report()[0];
    assert_eq!(report.source, SymbolSource::None);
    let mut seen = std::collections::HashSet::new();
    for place in &report.looked_at {
        assert!(place.is_absolute() && seen.insert(place), "{place:?}");
        assert!(!place.components().any(|part| part == Component::ParentDir), "{place:?}");
        // The name in a debug link chooses a file in certain folders, and nothing else.
        let is_allowed = sections.len() > 1
            || [FILE.parent(), Some(folder.as_path()), Some(Path::new("/usr/lib"))].iter().flatten().any(|dir| place.starts_with(dir));
        assert!(is_allowed, "{place:?}");
    }
    let problems = report.problems.iter().map(ToString::to_string);
    for text in problems.chain(report.remedy.clone()) {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
});
