//! Bundles: the profiles of a recording, and the symbols that their addresses need, in one file for another machine.
//!
//! A bundle is a tar archive, as a rule packed with gzip, of regular files only. The first one is [`MANIFEST`], which tells
//! what the others are; `docs/formats.md` has the details. Unpacked with `tar` it is the folder of the recording again.
//!
//! This module knows the container. What is in the files is not its business.

mod manifest;
mod read;
mod tar;
#[cfg(test)]
mod tests;
mod write;

use std::io::Read;

use flate2::read::GzDecoder;

pub use manifest::{BundledModule, BundledProfile, BundledTimeline, Manifest, SCHEMA, SCHEMA_VERSION};
pub use read::{Reader, open};
pub use write::write;

/// The name of the first file.
pub const MANIFEST: &str = "mpp-bundle.json";

/// How many first bytes of an input are enough for [`is_bundle`].
pub const HEAD: usize = 4 << 10;

const GZIP: &[u8] = b"\x1f\x8b";

/// Whether an input that begins like this is a bundle: an archive, packed or not, whose first file is the manifest.
pub fn is_bundle(head: &[u8]) -> bool {
    let mut unpacked = Vec::new();
    if head.starts_with(GZIP) {
        // What is cut off at the end of `head` is no reason to doubt what came before.
        let _ = GzDecoder::new(head).take(HEAD as u64).read_to_end(&mut unpacked);
    } else {
        unpacked.extend_from_slice(&head[..head.len().min(HEAD)]);
    }
    let mut rest = &unpacked[..];
    while let Some((block, behind)) = rest.split_first_chunk() {
        match tar::parse(block) {
            Ok(Some(header)) if header.is_file => return header.name == MANIFEST,
            Ok(Some(header)) => {
                let size = header.size.saturating_add(tar::padding(header.size));
                rest = usize::try_from(size).ok().and_then(|size| behind.get(size..)).unwrap_or_default();
            }
            Ok(None) | Err(_) => return false,
        }
    }
    false
}
