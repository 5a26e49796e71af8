//! What an input seems to be, from its first bytes.

use crate::text::excerpt;

/// The outcome of looking at the first bytes of an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Detected {
    /// One of the text formats, after so many bytes and line ends of something else.
    HeapText { junk_bytes: usize, junk_lines: u64 },
    /// DHAT's JSON.
    Dhat,
    /// pprof's `profile.proto`, not packed.
    ProfileProto,
    /// Folded stacks.
    Folded,
    /// speedscope's JSON.
    Speedscope,
    /// The Firefox profiler's JSON.
    Firefox,
    /// Our own CSV.
    Csv,
    /// Callgrind's text.
    Callgrind,
    /// Something that is packed with gzip.
    Gzip,
    /// A recording of our own.
    Timeline,
    /// Something that is recognised but not read.
    Unsupported { what: &'static str, advice: &'static str },
    /// Nothing that is recognised; why, escaped.
    Unrecognised(String),
}

const GZIP: &[u8] = b"\x1f\x8b";
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Contents known by how they begin, in the order in which they are tried.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"\x7fELF", "an ELF program, library or core dump", "give the profile, not the program"),
    (b"MZ", "a Windows program", "give the profile, not the program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program", "give the profile, not the program"),
    (b"\xfe\xed\xfa\xcf", "a Mach-O program", "give the profile, not the program"),
    (b"\xce\xfa\xed\xfe", "a Mach-O program", "give the profile, not the program"),
    (b"\xfe\xed\xfa\xce", "a Mach-O program", "give the profile, not the program"),
    (b"\xca\xfe\xba\xbe", "a Mach-O or Java program", "give the profile, not the program"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it first"),
    (b"\xfd7zXZ\0", "xz data", "unpack it first"),
    (b"BZh", "bzip2 data", "unpack it first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"MIHS", "a heap snapshot, which has no stacks", "mpp heapmap shows it"),
    (b"PERFILE2", "a recording of perf", ""),
    (b"!<arch>", "a static library", "give the profile, not the program"),
    (b"--- heapz ", "a Java or remote heap profile", ""),
    (b"--- contentionz ", "a lock contention profile", "take a heap profile"),
    (b"--- contention", "a lock contention profile", "take a heap profile"),
    (b"--- mutex", "a lock contention profile", "take a heap profile"),
    (b"--- threadz ", "a list of threads", "take a heap profile"),
    (b"--- cpuz", "a CPU profile", "take a heap profile"),
    (b"threadcreate profile:", "Go's thread profile", "take a heap profile"),
    (b"goroutine profile:", "Go's goroutine profile", "take a heap profile"),
    (b"desc: ", "a massif recording of Valgrind", "record with valgrind --tool=dhat"),
    (b"<", "HTML or XML", "fetch the profile itself, not a page about it"),
];

/// Looks at the first bytes of an input: all of them or at least some kilobytes.
pub(super) fn detect(head: &[u8]) -> Detected {
    let bom = if head.starts_with(UTF8_BOM) { UTF8_BOM.len() } else { 0 };
    let text = &head[bom..];
    if head.starts_with(GZIP) {
        return Detected::Gzip;
    }
    if head.is_empty() {
        return Detected::Unrecognised("it is empty".into());
    }
    if head.starts_with(super::timeline::MAGIC) {
        return Detected::Timeline;
    }
    if head.get(257..262) == Some(b"ustar") {
        let what = "a tar archive, or a part of a bundle";
        return Detected::Unsupported { what, advice: "give the bundle as it is, or unpack it" };
    }
    if let Some(found) = heap_text(text, bom).or_else(|| magic(text)).or_else(|| binary(text)).or_else(|| json(text)) {
        return found;
    }
    let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    let first = text[..end].trim_ascii();
    if is_folded(first) {
        return Detected::Folded;
    }
    Detected::Unrecognised(format!(
        "it begins with {}; expected a line \"heap profile: …\" or \"heap_v2/RATE\"",
        excerpt(first)
    ))
}

/// The text formats, also when something was printed into the file before them, as jemalloc's warnings may be. Zero bytes
/// before a header mean that it is only a string in some binary file.
fn heap_text(text: &[u8], bom: usize) -> Option<Detected> {
    let mut at = 0;
    for (junk_lines, line) in (0..).zip(text.split_inclusive(|&byte| byte == b'\n')) {
        if line.starts_with(b"heap_v2/") || line.starts_with(b"heap profile:") {
            let is_growth = line.trim_ascii().ends_with(b"@ growthz") || line.trim_ascii().ends_with(b"@ growth");
            if is_growth && junk_lines == 0 {
                return Some(Detected::Unsupported { what: "a heap growth profile", advice: "take a heap profile" });
            }
            return Some(Detected::HeapText { junk_bytes: bom + at, junk_lines });
        }
        if line.contains(&0) {
            return None;
        }
        at += line.len();
    }
    None
}

fn magic(head: &[u8]) -> Option<Detected> {
    const CALLGRIND: [&[u8]; 4] = [b"# callgrind format", b"events: ", b"version: ", b"positions: "];
    if CALLGRIND.iter().any(|start| head.starts_with(start)) {
        return Some(Detected::Callgrind);
    }
    if head.starts_with(super::csv::START.as_bytes()) {
        return Some(Detected::Csv);
    }
    let &(_, what, advice) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic))?;
    Some(Detected::Unsupported { what, advice })
}

fn binary(head: &[u8]) -> Option<Detected> {
    let what = match head {
        _ if head.iter().all(|&byte| byte == 0) => {
            return Some(Detected::Unrecognised("it begins with zero bytes only".into()));
        }
        _ if is_cpu_profile(head) => "a CPU profile of gperftools",
        _ if is_profile_proto(head) => return Some(Detected::ProfileProto),
        _ => return None,
    };
    Some(Detected::Unsupported { what, advice: "take a heap profile" })
}

/// gperftools' CPU profiles begin with machine words of either size and order: 0, header words (3), version (0; Java's 1).
fn is_cpu_profile(head: &[u8]) -> bool {
    let little = |word: &[u8]| word.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let big = |word: &[u8]| word.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let begins = |size: usize, value: &dyn Fn(&[u8]) -> u64| {
        let words: Vec<u64> = head.chunks_exact(size).take(3).map(value).collect();
        matches!(words.as_slice(), [0, 3, 0 | 1])
    };
    [4, 8].into_iter().any(|size| begins(size, &little) || begins(size, &big))
}

/// A walk over the first fields: those of profile.proto are numbered 1 to 15 and are integers or length-delimited.
fn is_profile_proto(head: &[u8]) -> bool {
    const ENOUGH: usize = 4;
    let control = head.iter().take(64).any(|&byte| byte < b'\t');
    let mut rest = head;
    for field in 0..ENOUGH {
        let Some((&key, after)) = rest.split_first() else { break };
        let Some((value, after)) = varint(after) else {
            // It may be cut off.
            return control && field > 0 && after.len() < 9;
        };
        let skipped = match key & 7 {
            0 => Some(after),
            // A field that is longer than what is there to look at is as good as any.
            2 => Some(after.get(usize::try_from(value).unwrap_or(usize::MAX)..).unwrap_or(&[])),
            _ => None,
        };
        let Some(after) = skipped.filter(|_| (1..=15).contains(&(key >> 3)) && key < 0x80) else { return false };
        rest = after;
    }
    control
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

fn json(head: &[u8]) -> Option<Detected> {
    let text = head.trim_ascii_start();
    let has = |key: &str| text.windows(key.len()).any(|window| window == key.as_bytes());
    let what = match text.first()? {
        b'{' if has("\"dhatFileVersion\"") => return Some(Detected::Dhat),
        b'{' if has("speedscope.app/file-format-schema") => return Some(Detected::Speedscope),
        b'{' if has("\"preprocessedProfileVersion\"") => return Some(Detected::Firefox),
        b'{' | b'[' => "JSON",
        _ => return None,
    };
    Some(Detected::Unsupported { what, advice: "take a heap profile as heap_v2 text" })
}

/// `main;parse;grow 4096`.
fn is_folded(line: &[u8]) -> bool {
    let space = line.iter().rposition(|&byte| byte == b' ');
    space.is_some_and(|space| {
        let (frames, weight) = (&line[..space], &line[space + 1..]);
        frames.contains(&b';') && !weight.is_empty() && weight.iter().all(u8::is_ascii_digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(head: &[u8]) -> &'static str {
        match detect(head) {
            Detected::Unsupported { what, .. } => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn heap_text_with_and_without_something_before_it() {
        let plain = Detected::HeapText { junk_bytes: 0, junk_lines: 0 };
        assert_eq!(detect(b"heap_v2/524288\n"), plain);
        assert_eq!(detect(b"heap profile: 1: 2 [3: 4] @ heap_v2/1"), plain);
        assert_eq!(detect(b"\xef\xbb\xbfheap_v2/1\n"), Detected::HeapText { junk_bytes: 3, junk_lines: 0 });
        assert!(what(b"\x7fELF\0\nheap_v2/1\n").contains("ELF"));
        assert_eq!(detect(b"hello\n{\nheap_v2/1\n"), Detected::HeapText { junk_bytes: 8, junk_lines: 2 });
    }

    #[test]
    fn other_contents_are_named() {
        assert_eq!(detect(b"\x1f\x8b\x08"), Detected::Gzip);
        assert!(what(b"\x7fELF").contains("ELF"));
        assert_eq!(detect(b" {\"dhatFileVersion\":2"), Detected::Dhat);
        assert!(what(b"[1]").contains("JSON"));
        assert!(what(b"heap profile:     85: 178257920 [    85: 178257920] @ growthz\n").contains("growth"));
        assert_eq!(detect(b"main;a b;c 12\nx"), Detected::Folded);
        assert_eq!(detect(b"# callgrind format\n"), Detected::Callgrind);
        assert_eq!(detect(b"Z\x04\x08\x01\x10\x02`\x80 \n\x04\x08\x03\x10\x04\n\x04"), Detected::ProfileProto);
        let word = |value: u64| value.to_le_bytes();
        assert!(what(&[word(0), word(3), word(0), word(10_000)].concat()).contains("CPU"));
        let word = |value: u32| value.to_be_bytes();
        assert!(what(&[word(0), word(3), word(0), word(10_000)].concat()).contains("CPU"));
    }

    #[test]
    fn the_rest_is_not_recognised() {
        for head in [&b""[..], b"\0\0\0\0", b"hello", b"\n", b"\xef\xbb\xbf", b" heap_v2/1"] {
            assert!(matches!(detect(head), Detected::Unrecognised(_)), "{head:?}");
        }
    }
}
