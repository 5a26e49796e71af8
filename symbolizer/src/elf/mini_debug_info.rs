//! MiniDebugInfo: the symbols that `strip` took away, kept as a small ELF file packed with xz in the section
//! `.gnu_debugdata`. Fedora and its relatives ship nearly everything this way.

use xz4rust::{XzDecoder, XzNextBlockResult};

/// Largest file it may unpack to, in bytes. The largest programs of distributions have symbols of some 20 MB.
const MAX_SIZE: u64 = 256 << 20;

/// Largest dictionary, in bytes: that of the highest level of `xz`. It is as much memory as the header asks for, so a
/// header must not be able to ask for more.
const MAX_DICTIONARY: usize = 64 << 20;

/// How much is unpacked between two looks at the limits, in bytes.
const STEP: usize = 64 << 10;

/// Unpacks a stream of xz. `charge` is asked for each piece of memory before it is used.
///
/// xz packs a run of zeros to a ten-thousandth, so the packed size limits nothing, but what comes out does: time and
/// memory are those of at most `MAX_SIZE` bytes.
pub(crate) fn unpack<E>(packed: &[u8], charge: impl FnMut(u64) -> Result<(), E>) -> Result<Vec<u8>, Fault<E>> {
    unpack_at_most(MAX_SIZE, packed, charge)
}

fn unpack_at_most<E>(
    limit: u64,
    packed: &[u8],
    mut charge: impl FnMut(u64) -> Result<(), E>,
) -> Result<Vec<u8>, Fault<E>> {
    let mut decoder = XzDecoder::in_heap_with_alloc_dict_size(STEP, MAX_DICTIONARY);
    let (mut content, mut length, mut rest) = (Vec::new(), 0, packed);
    loop {
        if content.len() - length < STEP {
            charge(STEP as u64).map_err(Fault::Refused)?;
            if content.len() as u64 >= limit {
                return Err(Fault::Damaged(format!("it unpacks to more than {limit} bytes")));
            }
            content.resize(content.len() + STEP, 0);
        }
        let step = decoder.decode(rest, &mut content[length..]).map_err(|e| Fault::Damaged(e.to_string()))?;
        length += step.output_produced();
        rest = rest.get(step.input_consumed()..).unwrap_or_default();
        match step {
            XzNextBlockResult::EndOfStream(..) => break,
            XzNextBlockResult::NeedMoreData(0, 0) => return Err(Fault::Damaged("it is cut short".to_owned())),
            XzNextBlockResult::NeedMoreData(..) => {}
        }
    }
    content.truncate(length);
    Ok(content)
}

/// Why nothing was unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault<E> {
    /// What is wrong with the packed bytes.
    Damaged(String),
    /// The answer of `charge`.
    Refused(E),
}

#[cfg(test)]
mod tests {
    use super::{Fault, STEP, unpack, unpack_at_most};
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// What `xz` makes of `content`.
    fn packed(content: &[u8], flags: &[&str]) -> Vec<u8> {
        let mut xz = Command::new("xz")
            .args(flags)
            .args(["-c", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs the program xz (Debian: xz-utils)");
        let mut stdin = xz.stdin.take().expect("its input");
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(content).expect("xz reads"));
            let output = xz.wait_with_output().expect("xz ends");
            assert!(output.status.success());
            output.stdout
        })
    }

    fn free(_: u64) -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn what_xz_packs() {
        let text: Vec<u8> = (0..40_000u32).flat_map(|i| (i.wrapping_mul(i) >> 5).to_le_bytes()).collect();
        for content in [&b""[..], b"x", &text[..STEP], &text] {
            for flags in [&["-0"][..], &["-9"], &["-Ccrc32"], &["-Cnone"], &["--block-size=10000"]] {
                assert_eq!(unpack(&packed(content, flags), free).as_deref(), Ok(content), "{flags:?}");
            }
        }
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let content: Vec<u8> = (0..100u32).flat_map(|i| ((i * i) >> 3).to_le_bytes()).collect();
        let whole = packed(&content, &[]);
        let is_damaged = |bytes: &[u8]| matches!(unpack(bytes, free), Err(Fault::Damaged(_)));
        for at in 0..whole.len() {
            assert!(is_damaged(&whole[..at]), "cut at {at}");
            let mut changed = whole.clone();
            changed[at] ^= 0x20;
            // The end of the stream repeats what its start says, and is not read by everybody.
            assert!(is_damaged(&changed) || unpack(&changed, free).as_deref() == Ok(&content[..]), "changed at {at}");
        }
        assert!(is_damaged(b""));
    }

    #[test]
    fn it_stops_where_it_is_told_and_at_its_own_limit() {
        let zeros = packed(&vec![0; 8 * STEP], &[]);
        let mut left = 4;
        let charge = |bytes| {
            assert_eq!(bytes, STEP as u64);
            left -= 1;
            if left == 0 { Err("enough") } else { Ok(()) }
        };
        assert_eq!(unpack(&zeros, charge), Err(Fault::Refused("enough")));
        let limit = 4 * STEP as u64;
        assert!(unpack_at_most(limit, &packed(&vec![0; 3 * STEP], &[]), free).is_ok());
        let result = unpack_at_most(limit, &zeros, free);
        assert!(matches!(result, Err(Fault::Damaged(text)) if text.contains("more than")));
    }
}
