//! Any bytes are the packed symbols of a program: as they are, as the packed data in an intact container, or as the
//! file in it, by the first byte.

#![no_main]

mod elf_file;

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Options, Quality, Symbolizer};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| elf_file::path("gnu-debugdata"));

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    let section = match kind % 3 {
        0 => rest.to_vec(),
        1 => xz(rest, rest.len() as u64),
        _ => xz(&as_it_is(rest), rest.len() as u64),
    };
    std::fs::write(&*FILE, elf_file::with_sections(&[(".gnu_debugdata", &section)])).expect("a temporary file");
    let (module, addresses) = elf_file::mapped(FILE.clone());
    let mut symbolizer = Symbolizer::new(Options { threads: 1, max_file_memory: 16 << 20, ..Options::default() });
    let answers = symbolizer.symbolize(&[module], &addresses);
    for answer in &answers {
        assert_eq!(answer.frames.is_empty(), answer.quality == Quality::Nothing);
        assert!(answer.frames.len() <= 1);
    }
    let problems = &symbolizer.report()[0].problems;
    assert!(problems.len() <= 2, "{problems:?}");
    assert!(problems.iter().all(|problem| !problem.to_string().chars().any(char::is_control)), "{problems:?}");
});

/// LZMA2 that holds `content` unpacked.
fn as_it_is(content: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for (number, chunk) in content.chunks(1 << 16).enumerate() {
        // The first one starts a new dictionary.
        chunks.push(if number == 0 { 1 } else { 2 });
        chunks.extend(((chunk.len() - 1) as u16).to_be_bytes());
        chunks.extend(chunk);
    }
    chunks.push(0);
    chunks
}

/// A stream of xz without checksums of its content, of one block: LZMA2 data that is said to unpack to `size` bytes.
fn xz(data: &[u8], size: u64) -> Vec<u8> {
    let with_checksum = |bytes: &[u8]| [bytes, &crc32(bytes).to_le_bytes()].concat();
    let mut stream = b"\xfd7zXZ\0".to_vec();
    stream.extend(with_checksum(&[0, 0]));
    // Twelve bytes: no sizes, one filter, which is LZMA2 with a dictionary of 64 KiB.
    let header = with_checksum(&[2, 0, 0x21, 1, 8, 0, 0, 0]);
    let block = header.len() + data.len();
    stream.extend(header);
    stream.extend(data);
    stream.resize(stream.len().next_multiple_of(4), 0);
    let mut index = vec![0, 1];
    for mut number in [block as u64, size] {
        while number >= 0x80 {
            index.push(number as u8 | 0x80);
            number >>= 7;
        }
        index.push(number as u8);
    }
    index.resize(index.len().next_multiple_of(4), 0);
    let index = with_checksum(&index);
    stream.extend(&index);
    let footer = [&((index.len() / 4 - 1) as u32).to_le_bytes()[..], &[0, 0]].concat();
    stream.extend(crc32(&footer).to_le_bytes());
    stream.extend(footer);
    stream.extend(b"YZ");
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xEDB8_8320 };
        }
    }
    !crc
}
