//! What the tests of whole files share.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of `tests/data`.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn data(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files of `tests/data`, by name.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn all_data() -> Vec<(String, Vec<u8>)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
}

/// All files of the collection of dumps beside the repository. Says whether it is there.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn shared_corpus() -> Option<Vec<(String, Vec<u8>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if !root.is_dir() {
        println!("the shared corpus was not found; only the files of this repository are tested");
        return None;
    }
    let mut folders: Vec<PathBuf> =
        fs::read_dir(&root).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    let all: Vec<_> = folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| files(folder)).collect();
    println!("the shared corpus was found: {} files", all.len());
    Some(all)
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let named = |path: PathBuf| (path.display().to_string(), fs::read(&path).expect("a readable file"));
    paths.into_iter().filter(|path| path.is_file()).map(named).collect()
}
