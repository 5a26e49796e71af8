//! Text in JSON.

use crate::observe::output::Output;
use core::fmt::Write;

/// Write bytes as a string. What is no UTF-8 in them becomes the sign for that.
pub(super) fn string(output: &mut Output<'_>, bytes: &[u8]) {
    output.bytes(b"\"");
    inner(output, bytes);
    output.bytes(b"\"");
}

/// The same without the quotation marks, as a part of a string.
pub(super) fn inner(output: &mut Output<'_>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while let Some(at) = rest.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            output.bytes(&rest[..at]);
            match rest[at] {
                mark @ (b'"' | b'\\') => output.bytes(&[b'\\', mark]),
                control => _ = write!(output, "\\u{control:04x}"),
            }
            rest = &rest[at + 1..];
        }
        output.bytes(rest);
        if !chunk.invalid().is_empty() {
            output.bytes("\u{fffd}".as_bytes());
        }
    }
}
