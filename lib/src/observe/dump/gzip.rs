//! gzip (RFC 1952): a short head, Deflate, a checksum and the length.

use super::deflate::Deflate;
use crate::observe::output::{Failure, Output, Sink};
use crate::observe::room::Room;

/// No name, no time; made on Unix.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// Packed bytes that are written at a time.
const BUFFER: usize = 16 * 1024;

/// Packs what is written on its way to a sink.
pub(super) struct Gzip<'a> {
    sink: &'a mut Sink<'a>,
    deflate: Deflate,
    buffer: Room<u8>,
    checksum: u32,
    length: u32,
}

impl<'a> Gzip<'a> {
    pub(super) fn new(sink: &'a mut Sink<'a>) -> Result<Gzip<'a>, Failure> {
        sink(&HEAD)?;
        // SAFETY: bytes may be zero.
        let buffer = unsafe { Room::zeroed(BUFFER) }?;
        Ok(Gzip { sink, deflate: Deflate::new()?, buffer, checksum: !0, length: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.checksum = bytes.iter().fold(self.checksum, |sum, &byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8);
        self.length = self.length.wrapping_add(bytes.len() as u32);
        let mut output = Output::new(self.sink, &mut self.buffer);
        self.deflate.write(bytes, &mut output)?;
        output.finish()
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let mut output = Output::new(self.sink, &mut self.buffer);
        self.deflate.finish(&mut output)?;
        output.bytes(&(!self.checksum).to_le_bytes());
        output.bytes(&self.length.to_le_bytes());
        output.finish()
    }
}

/// The checksum of each byte: the remainder of a division of polynomials, with the bits in reverse.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xEDB8_8320 ^ sum >> 1 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::vec::Vec;

    fn packed(content: &[u8], piece: usize) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut sink = |bytes: &[u8]| {
            packed.extend_from_slice(bytes);
            Ok(())
        };
        let mut gzip = Gzip::new(&mut sink).unwrap();
        content.chunks(piece).for_each(|piece| gzip.write(piece).unwrap());
        gzip.finish().unwrap();
        packed
    }

    /// As the gzip program unpacks it, which also checks the sum and the length.
    fn unpacked(packed: Vec<u8>) -> Vec<u8> {
        let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = gzip.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(&packed));
        let mut unpacked = Vec::new();
        gzip.stdout.take().unwrap().read_to_end(&mut unpacked).unwrap();
        writer.join().unwrap().unwrap();
        assert!(gzip.wait().unwrap().success());
        unpacked
    }

    fn noise(length: usize, from: u32) -> Vec<u8> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        (0..length).map(|_| (next() % from) as u8).collect()
    }

    #[test]
    fn the_gzip_program_unpacks_it() {
        let words: Vec<u8> = (0..60_000u32).flat_map(|i| std::format!("{:x} ", i * i % 977).into_bytes()).collect();
        // The same again at the farthest place a match can reach, and one beyond.
        let far = |gap: usize| [noise(300, 256), noise(gap, 3), noise(300, 256)].concat();
        for (content, piece) in [
            (Vec::new(), 1),
            (b"a".to_vec(), 1),
            (std::vec![0; 1_000_000], 70_000),
            (noise(300_000, 256), 16_384),
            (noise(300_000, 2), 1000),
            (noise(200_000, 40), 7),
            (words.clone(), 16_384),
            (far(32_768 - 300), 50_000),
            (far(32_768 - 299), 50_000),
            (far(32_768 - 301), 100),
        ] {
            let packed = packed(&content, piece);
            let length = packed.len();
            assert!(unpacked(packed) == content, "{} bytes", content.len());
            assert!(length < content.len() + content.len() / 50 + 100, "{length} of {}", content.len());
        }
        assert!(packed(&words, 16_384).len() < words.len() / 20);
        assert!(packed(&std::vec![0; 1_000_000], 1 << 16).len() < 1500);
    }
}
