//! Does a program really use the allocator that it was started with? The loader is asked, not the environment: a library that
//! cannot be loaded is skipped with a warning, and a program may bring a `malloc` of its own.

use std::fs;
use std::path::Path;

use crate::peers::Peer;

/// The variables that make the loader write down where it finds symbols, in files that begin with `prefix`.
#[must_use]
pub fn environment(prefix: &Path) -> Vec<(String, String)> {
    vec![("LD_DEBUG".to_owned(), "bindings".to_owned()), ("LD_DEBUG_OUTPUT".to_owned(), prefix.display().to_string())]
}

/// Removes what the loader wrote for an earlier run.
///
/// # Errors
/// When the folder cannot be read.
pub fn clear(prefix: &Path) -> Result<(), String> {
    written(prefix).map(drop)
}

/// Reads what the loader wrote, and removes it. Every `malloc` must have been found in `peer`.
///
/// # Errors
/// A sentence with the file it was found in instead, or that it was never looked for.
pub fn check(prefix: &Path, peer: &Peer) -> Result<(), String> {
    let text = written(prefix)?;
    let bindings: Vec<_> = text.lines().filter_map(binding_of_malloc).collect();
    // Where a program at a fixed address takes the address of `malloc`, that is a stub in the program itself, for every
    // library too. It leads to where the program's own calls go, and only that counts.
    let is_stub = |file: &str| bindings.iter().any(|&(from, to)| from == file && peer.is_in(to));
    match bindings.iter().find(|(_, to)| !peer.is_in(to) && !is_stub(to)) {
        Some((_, other)) => Err(format!("its malloc is in {other}")),
        None if bindings.is_empty() => Err("it was not seen to look for malloc".to_owned()),
        None => Ok(()),
    }
}

/// All that the loader wrote under `prefix`; it is gone afterwards.
fn written(prefix: &Path) -> Result<String, String> {
    let (Some(folder), Some(start)) = (prefix.parent(), prefix.file_name()) else { return Err("no folder".to_owned()) };
    let start = start.to_string_lossy();
    let mut all = String::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&*start) {
            let text = fs::read(entry.path()).map_err(|error| error.to_string())?;
            all.push_str(&String::from_utf8_lossy(&text));
            all.push('\n');
            fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
        }
    }
    Ok(all)
}

/// From which file to which a line of the loader binds `malloc`:
/// ``1234: binding file a [0] to b [0]: normal symbol `malloc' [GLIBC_2.2.5]``.
fn binding_of_malloc(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("binding file ")?;
    let (files, symbol) = rest.split_once(": normal symbol `")?;
    let (from, to) = files.rsplit_once("] to ")?;
    let without_number = |file: &'_ str| file.rfind(" [").map_or(file.len(), |at| at);
    (symbol.split('\'').next() == Some("malloc")).then(|| (&from[..without_number(from)], &to[..without_number(to)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "     7:\tbinding file /usr/bin/x [0] to /lib/x86_64-linux-gnu/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]";

    #[test]
    fn only_malloc_itself_counts() {
        assert_eq!(binding_of_malloc(LINE), Some(("/usr/bin/x", "/lib/x86_64-linux-gnu/libc.so.6")));
        for other in ["malloc_usable_size", "mallocx", "free"] {
            assert_eq!(binding_of_malloc(&LINE.replace("`malloc'", &format!("`{other}'"))), None);
        }
        assert_eq!(binding_of_malloc("calling init: /lib/libc.so.6"), None);
    }

    #[test]
    fn one_malloc_elsewhere_is_enough_to_fail() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("bindings");
        let files = |texts: &[&str]| {
            for (number, text) in texts.iter().enumerate() {
                fs::write(folder.path().join(format!("bindings.{number}")), text).unwrap();
            }
        };
        files(&[LINE, "nothing\n"]);
        assert_eq!(check(&prefix, &Peer::glibc()), Ok(()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(check(&prefix, &Peer::glibc()).unwrap_err().contains("not seen"));
        // A library that finds it in the program, whose own calls go elsewhere or are not seen: the program's own allocator.
        let own = "7: binding file /lib/y.so [0] to /usr/bin/x [0]: normal symbol `malloc'";
        files(&[own]);
        assert_eq!(check(&prefix, &Peer::glibc()).unwrap_err(), "its malloc is in /usr/bin/x");
        // The same with the program's own calls in the C library: a stub that leads there.
        files(&[LINE, own]);
        assert_eq!(check(&prefix, &Peer::glibc()), Ok(()));
        files(&[own]);
        clear(&prefix).unwrap();
        assert!(check(&prefix, &Peer::glibc()).unwrap_err().contains("not seen"));
    }
}
