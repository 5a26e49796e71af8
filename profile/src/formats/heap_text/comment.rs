//! Comment lines: what they tell a reader, if anything.

use super::super::maps::without_deleted;
use super::scan::Scan;
use crate::model::{BuildId, Truncation, TruncationReason};
use crate::text::excerpt;

/// Longest reason of a truncation that is kept, in bytes; the rest is cut off.
const MAX_REASON: usize = 256;
/// Longest key and value that are kept, in bytes; longer ones are comments for people.
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 4096;

/// A comment line that means something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Comment {
    /// `# stack truncated: REASON [at 0xADDRESS]`, of the stack in the line before.
    Truncated(Truncation),
    /// `# build_id HEX PATH`, of all mappings of this file.
    BuildId(BuildId, String),
    /// `# build_id_at START-END HEX PATH`, of this mapping only: start, end and id.
    BuildIdAt(u64, u64, BuildId),
    /// `# KEY = VALUE`.
    Value(String, String),
}

/// Reads a line that begins with `#`. `None` for a comment for people.
pub(super) fn parse(line: &[u8]) -> Result<Option<Comment>, String> {
    let text = line.strip_prefix(b"#").unwrap_or(line).trim_ascii();
    if let Some(reason) = text.strip_prefix(b"stack truncated:") {
        return Ok(Some(Comment::Truncated(truncation(
            String::from_utf8_lossy(&reason[..reason.len().min(MAX_REASON)]).trim(),
        ))));
    }
    if let Some(rest) = text.strip_prefix(b"build_id ") {
        return build_id(rest).map(Some);
    }
    if let Some(rest) = text.strip_prefix(b"build_id_at ") {
        return build_id_at(rest).map(Some);
    }
    Ok(value(text).map(|(key, value)| Comment::Value(key, value)))
}

fn truncation(text: &str) -> Truncation {
    let split = text.rsplit_once(" at 0x").and_then(|(reason, hex)| Some((reason, u64::from_str_radix(hex, 16).ok()?)));
    let (reason, at) = split.map_or((text, None), |(reason, address)| (reason, Some(address)));
    Truncation { reason: TruncationReason::from_text(reason), at }
}

fn build_id_at(rest: &[u8]) -> Result<Comment, String> {
    let mut scan = Scan::new(rest);
    let mut range = || {
        scan.spaces();
        let start = scan.hex_digits()?;
        scan.take(b"-")?;
        Some((start, scan.hex_digits()?))
    };
    let (start, end) = range().ok_or_else(|| format!("expected START-END and a build id, found {}", excerpt(rest)))?;
    match build_id(scan.rest())? {
        Comment::BuildId(id, _) => Ok(Comment::BuildIdAt(start, end, id)),
        other => Ok(other),
    }
}

fn build_id(rest: &[u8]) -> Result<Comment, String> {
    let mut scan = Scan::new(rest);
    scan.spaces();
    let hex = scan.word();
    let id = BuildId::from_hex(hex).ok_or_else(|| {
        format!("expected a build id of up to {} bytes in hex digits, found {}", BuildId::MAX_LEN, excerpt(hex))
    })?;
    scan.spaces();
    let path = String::from_utf8_lossy(scan.rest());
    Ok(Comment::BuildId(id, without_deleted(&path).0.to_owned()))
}

/// `KEY = VALUE`, also where no `#` precedes it.
pub(in crate::formats) fn value(text: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = (1..=MAX_KEY).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
    (is_key && value.len() <= MAX_VALUE).then(|| (key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncations() {
        for (line, reason, at) in [
            ("# stack truncated: depth limit", TruncationReason::DepthLimit, None),
            ("# stack truncated: no unwind info at 0x7f00", TruncationReason::NoUnwindInfo, Some(0x7f00)),
            ("#stack truncated:bad frame at 0xzz", TruncationReason::Other("bad frame at 0xzz".into()), None),
            ("# stack truncated:", TruncationReason::Other("".into()), None),
        ] {
            let expected = Comment::Truncated(Truncation { reason, at });
            assert_eq!(parse(line.as_bytes()), Ok(Some(expected)), "{line}");
        }
    }

    #[test]
    fn build_ids_keep_spaces_in_paths() {
        let id = BuildId::from_hex(b"00ff").unwrap();
        assert_eq!(parse(b"# build_id 00ff /a b/c (deleted)"), Ok(Some(Comment::BuildId(id, "/a b/c".into()))));
        assert!(parse(b"# build_id xyz /a").unwrap_err().contains("build id"));
        let id = BuildId::from_hex(b"00ff").unwrap();
        assert_eq!(parse(b"# build_id_at 7f00-7f10 00ff /a b"), Ok(Some(Comment::BuildIdAt(0x7f00, 0x7f10, id))));
        for line in ["# build_id_at 7f00 00ff /a", "# build_id_at 7f00-7f10 /a", "# build_id_at "] {
            assert!(parse(line.as_bytes()).is_err() || line.ends_with(' '), "{line}");
        }
    }

    #[test]
    fn values() {
        assert_eq!(parse(b"# sample_rate = 7"), Ok(Some(Comment::Value("sample_rate".into(), "7".into()))));
        for line in ["# mimalloc heap stats", "#", "# a b = c", "# = 1", "#\t0x4b798f\tmain.grow+0xaf\t./main.go:21"] {
            assert_eq!(parse(line.as_bytes()), Ok(None), "{line}");
        }
    }
}
