//! Writes bundles. The same content gives the same bytes, whenever and by whomever it is written.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{MANIFEST, Manifest, tar};
use crate::error::WriteError;

/// Writes the manifest and then `files`, in this order, packed with gzip.
///
/// # Errors
/// When the output fails, or a name (1 to 99 bytes) or a size (below 8 GiB) does not fit into the format.
pub fn write<'a>(
    manifest: &Manifest,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    output: impl Write,
) -> Result<(), WriteError> {
    let mut packed = GzEncoder::new(output, Compression::default());
    let mut text = serde_json::to_vec_pretty(manifest).map_err(std::io::Error::from)?;
    text.push(b'\n');
    put(MANIFEST, &text, &mut packed)?;
    for (name, content) in files {
        put(name, content, &mut packed)?;
    }
    packed.write_all(&[0; 2 * tar::BLOCK])?;
    packed.finish()?.flush()?;
    Ok(())
}

fn put(name: &str, content: &[u8], output: &mut impl Write) -> Result<(), WriteError> {
    let header = tar::header(name, content.len() as u64).ok_or_else(|| WriteError::Inexpressible {
        format: "a bundle",
        reason: format!("the name or size of {} does not fit in", crate::text::escaped(name)),
    })?;
    output.write_all(&header)?;
    output.write_all(content)?;
    output.write_all(&[0; tar::BLOCK][..tar::padding(content.len() as u64) as usize])?;
    Ok(())
}
