//! Where the source of a peer comes from: a crate that carries it, pinned with its checksum in a lock file, fetched by cargo.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The folder that holds a manifest and a lock file for each peer. Each is a workspace of its own: two of the crates claim the
/// same native library, and nothing of ours may depend on any.
fn manifests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The unpacked source of a crate, and its version.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) folder: PathBuf,
    pub(super) version: String,
}

/// Fetches `crate_name`, which the manifest in `manifest` depends on, unless it is there already.
pub(super) fn fetch(manifest: &str, crate_name: &str) -> Result<Source, String> {
    let path = manifests().join(manifest).join("Cargo.toml");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(&path);
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata: {}", words.lines().last().unwrap_or("no message")));
    }
    find(&output.stdout, crate_name).ok_or_else(|| format!("cargo metadata does not name {crate_name}"))
}

/// Finds a crate in what `cargo metadata` prints.
fn find(metadata: &[u8], crate_name: &str) -> Option<Source> {
    let metadata: Value = serde_json::from_slice(metadata).ok()?;
    let package = metadata["packages"].as_array()?.iter().find(|package| package["name"] == crate_name)?;
    Some(Source {
        folder: PathBuf::from(package["manifest_path"].as_str()?).parent()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_found_by_name() {
        let metadata = br#"{"packages": [
            {"name": "cc", "version": "1.0.0", "manifest_path": "/r/cc-1.0.0/Cargo.toml"},
            {"name": "x-sys", "version": "2.0.0+5", "manifest_path": "/r/x-sys-2.0.0/Cargo.toml"}]}"#;
        let source = find(metadata, "x-sys").unwrap();
        assert_eq!((source.folder, source.version.as_str()), (PathBuf::from("/r/x-sys-2.0.0"), "2.0.0+5"));
        assert!(find(metadata, "y-sys").is_none() && find(b"nonsense", "cc").is_none());
    }

    #[test]
    fn every_manifest_has_a_lock_file_with_checksums() {
        for recipe in super::super::recipes() {
            let Some((manifest, crate_name)) = recipe.source() else { continue };
            let lock = std::fs::read_to_string(manifests().join(manifest).join("Cargo.lock")).unwrap();
            let package =
                lock.split("[[package]]").find(|text| text.contains(&format!("name = \"{crate_name}\""))).unwrap();
            assert!(package.contains("checksum = "), "{crate_name}");
        }
    }
}
