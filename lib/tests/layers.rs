//! The layer rule at the top of `lib.rs`: a module uses only those below it.

use std::path::{Path, PathBuf};

/// From the lowest to the highest.
const LAYERS: [&str; 7] = ["os", "options", "arena", "heap", "reclaim", "observe", "api"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Layers named in a line, as `crate::layer` or in `use crate::{layer, ...}`.
fn named(line: &str) -> impl Iterator<Item = usize> + '_ {
    let code = line.split("//").next().unwrap_or_default();
    let after = code.split("crate::").skip(1);
    after.flat_map(|rest| {
        let list =
            rest.strip_prefix('{').unwrap_or(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap());
        LAYERS
            .iter()
            .enumerate()
            .filter(move |(_, layer)| list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == **layer))
            .map(|(i, _)| i)
    })
}

#[test]
fn layers_use_only_those_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut looked_at = 0;
    for (level, layer) in LAYERS.iter().enumerate() {
        for file in sources(&root.join(layer)) {
            // Tests may look at anything.
            if file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs") {
                continue;
            }
            for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
                for used in named(line) {
                    looked_at += 1;
                    assert!(used <= level, "{}:{}: {layer} uses {}", file.display(), number + 1, LAYERS[used]);
                }
            }
        }
    }
    assert!(looked_at > 30, "the test sees what it should look at");
}

#[test]
fn the_check_sees_upward_use() {
    assert_eq!(named("use crate::heap::{Heap, SCRATCH};").collect::<Vec<_>>(), [3]);
    assert_eq!(named("use crate::{os, observe::life};").collect::<Vec<_>>(), [0, 5]);
    assert_eq!(named("let x = crate::HOOKS; // crate::observe").count(), 0);
}
