//! The first line.

use super::scan::Scan;
use crate::model::{Amount, Format};
use crate::text::excerpt;

/// What the first line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// One line for each record; the header has the totals.
    OneLine { format: Format, sample_rate: u64, live: Amount, allocated: Amount },
    /// jemalloc's form.
    Jemalloc { sample_rate: u64 },
}

/// Reads the first line.
pub(super) fn parse(line: &[u8]) -> Result<Header, String> {
    let mut scan = Scan::new(line);
    if scan.take(b"heap_v2/").is_some() {
        let sample_rate = rate(&mut scan)?;
        scan.end()?;
        return Ok(Header::Jemalloc { sample_rate });
    }
    scan.expect("heap profile:")?;
    let (live, allocated) = amounts(&mut scan)?;
    scan.expect("@")?;
    scan.spaces();
    let kind = scan.word();
    let mut kind = Scan::new(kind);
    let (format, sample_rate) = if kind.take(b"heap_v2/").is_some() {
        (Format::HeapV2Foreign, rate(&mut kind)?)
    } else if kind.take(b"heapz_v2/").is_some() {
        (Format::HeapzV2, rate(&mut kind)?)
    } else if kind.take(b"heap/").is_some() {
        (Format::GoHeapText, (rate(&mut kind)? / 2).max(1))
    } else if kind.take(b"heapprofile").is_some() {
        (Format::GperftoolsHeap, 1)
    } else {
        let found = excerpt(kind.rest());
        return Err(format!(
            "expected heap_v2/RATE, heapz_v2/RATE, heap/RATE or heapprofile after \"@\", found {found}"
        ));
    };
    kind.end()?;
    scan.end()?;
    Ok(Header::OneLine { format, sample_rate, live, allocated })
}

fn rate(scan: &mut Scan<'_>) -> Result<u64, String> {
    match scan.number("the sampling rate in bytes")? {
        0 => Err("the sampling rate is 0; expected bytes between two samples, at least 1".into()),
        rate => Ok(rate),
    }
}

/// `OBJECTS: BYTES [OBJECTS: BYTES]`: live and allocated. Leaves what follows.
pub(super) fn amounts(scan: &mut Scan<'_>) -> Result<(Amount, Amount), String> {
    let objects = scan.number("the number of live objects")?;
    scan.expect(":")?;
    let live = Amount { objects, bytes: scan.number("the live bytes")? };
    scan.expect("[")?;
    let objects = scan.number("the number of allocated objects")?;
    scan.expect(":")?;
    let allocated = Amount { objects, bytes: scan.number("the allocated bytes")? };
    scan.expect("]")?;
    Ok((live, allocated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_has_its_own_rate() {
        for (kind, format, rate) in [
            ("heap_v2/524288", Format::HeapV2Foreign, 524288),
            ("heapz_v2/7", Format::HeapzV2, 7),
            ("heap/1048576", Format::GoHeapText, 524288),
            ("heap/1", Format::GoHeapText, 1),
            ("heapprofile", Format::GperftoolsHeap, 1),
        ] {
            let header = parse(format!("heap profile:   3:  4 [ 5:6] @ {kind} ").as_bytes());
            let (live, allocated) = (Amount { objects: 3, bytes: 4 }, Amount { objects: 5, bytes: 6 });
            assert_eq!(header, Ok(Header::OneLine { format, sample_rate: rate, live, allocated }));
        }
        assert_eq!(parse(b"heap_v2/8192"), Ok(Header::Jemalloc { sample_rate: 8192 }));
    }

    #[test]
    fn absurd_headers_say_what_was_expected() {
        for (header, part) in [
            ("heap_v2/0", "rate is 0"),
            ("heap_v2/-1", "negative"),
            ("heap_v2/18446744073709551616", "too large"),
            ("heap_v2/1e400", "end of the line"),
            ("heap_v2/", "sampling rate"),
            ("heap profile: 1: 2 [3: 4] @ heap_v2", "heap_v2/RATE"),
            ("heap profile: 1: 2 [3: 4] @ heapprofile/5", "end of the line"),
            ("heap profile: 1: 2 [3: 4] @ heap_v2/5 x", "end of the line"),
            ("heap profile: -1: 2 [3: 4] @ heap_v2/5", "live objects"),
            ("heap profile: 1: 2 @ heap_v2/5", "\"[\""),
            ("heap profile:", "live objects"),
        ] {
            let error = parse(header.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{header}: {error}");
        }
    }
}
