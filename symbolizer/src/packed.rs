//! Compressed parts of a file, unpacked when they are first needed.
//!
//! Many sections that could be asked for never are, and unpacking takes longer than all the rest of symbolizing. The
//! packed bytes are read piece by piece, so only what they unpack to is held.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::Error;
use crate::file::Source;

/// Bytes of packed data that are read at once.
const CHUNK: usize = 128 << 10;

/// The most that one byte of zlib data can unpack to: a match of 258 bytes takes at least two bits. A header that
/// claims more is wrong, and believing it would let a small file ask for any amount of memory.
const MAX_ZLIB_RATIO: u64 = 1032;

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// A zlib stream.
    Zlib,
    /// Zstandard frames.
    Zstd,
}

/// A compressed part of a file.
#[derive(Debug)]
pub(crate) struct Packed {
    source: Arc<Source>,
    /// What messages call it.
    name: String,
    packing: Packing,
    /// Where in the file the packed bytes are, and how many.
    offset: u64,
    packed_len: u64,
    /// What they say that they unpack to.
    len: u64,
    unpacked: OnceLock<Result<Vec<u8>, Failure>>,
}

/// Why it could not be unpacked: asked again, the answer is the same.
#[derive(Clone, Debug)]
enum Failure {
    TooLarge,
    Damaged(String),
}

impl Packed {
    /// The part `offset..offset + packed_len` of a file, which is said to unpack to `len` bytes. Fails when that cannot be.
    pub(crate) fn new(
        source: &Arc<Source>,
        name: &str,
        packing: Packing,
        (offset, packed_len): (u64, u64),
        len: u64,
    ) -> Result<Self, Error> {
        let (source, name) = (Arc::clone(source), name.to_owned());
        if packing == Packing::Zlib && len / MAX_ZLIB_RATIO > packed_len {
            return Err(bad(source.path(), &name, &format!("{packed_len} bytes cannot unpack to {len}")));
        }
        source.check(len)?;
        Ok(Packed { source, name, packing, offset, packed_len, len, unpacked: OnceLock::new() })
    }

    /// How many bytes it unpacks to.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The file it is in.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// What it unpacks to, kept from the first time on.
    pub(crate) fn bytes(&self) -> Result<&[u8], Error> {
        match self.unpacked.get_or_init(|| self.unpack()) {
            Ok(bytes) => Ok(bytes),
            Err(Failure::TooLarge) => Err(self.source.too_large(self.len)),
            Err(Failure::Damaged(what)) => Err(bad(self.source.path(), &self.name, what)),
        }
    }

    fn unpack(&self) -> Result<Vec<u8>, Failure> {
        let damaged = |error: io::Error| Failure::Damaged(format!("it cannot be unpacked: {error}"));
        self.source.charge(self.len).map_err(|_| Failure::TooLarge)?;
        let len = usize::try_from(self.len).map_err(|_| Failure::TooLarge)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| Failure::TooLarge)?;
        let packed = Pieces { source: &self.source, at: self.offset, left: self.packed_len };
        let mut packed = BufReader::with_capacity(CHUNK, packed);
        let limit = self.len.saturating_add(1);
        match self.packing {
            Packing::Zlib => {
                bytes.resize(len, 0);
                let mut unpacker = flate2::bufread::ZlibDecoder::new(packed);
                unpacker.read_exact(&mut bytes).map_err(damaged)?;
                // The end of the stream, with its checksum, comes after the last byte.
                if unpacker.read(&mut [0]).map_err(damaged)? != 0 {
                    return Err(Failure::Damaged(format!("it unpacks to more than {} bytes", self.len)));
                }
            }
            Packing::Zstd => {
                use io::BufRead as _;
                while !packed.fill_buf().map_err(damaged)?.is_empty() {
                    let frame = ruzstd::decoding::StreamingDecoder::new(&mut packed);
                    let frame = frame.map_err(|error| damaged(io::Error::other(error)))?;
                    frame.take(limit - bytes.len() as u64).read_to_end(&mut bytes).map_err(damaged)?;
                    if bytes.len() > len {
                        break;
                    }
                }
            }
        }
        if bytes.len() == len {
            Ok(bytes)
        } else {
            Err(Failure::Damaged(format!("it does not unpack to {} bytes as it says", self.len)))
        }
    }
}

/// Reads a part of a file from front to back.
struct Pieces<'s> {
    source: &'s Source,
    at: u64,
    left: u64,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        self.source.read_at(self.at, &mut buffer[..length]).map_err(io::Error::other)?;
        self.at += length as u64;
        self.left -= length as u64;
        Ok(length)
    }
}

fn bad(path: &Path, name: &str, what: &str) -> Error {
    Error::BadElf { path: path.to_owned(), what: format!("section {name}: {what}") }
}

#[cfg(test)]
mod tests {
    use super::{Packed, Packing};
    use crate::file::FileData;
    use crate::{Error, Options};
    use std::io::Write as _;
    use std::path::Path;

    const TEXT: &[u8] = b"what is said again and again and again and again and again and again and again is short";

    fn zlib() -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(TEXT).expect("packed");
        encoder.finish().expect("packed")
    }

    fn zstd() -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(TEXT, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn unpack(bytes: Vec<u8>, packing: Packing, len: usize, memory: u64) -> Result<Vec<u8>, Error> {
        let options = Options { max_file_memory: memory, ..Options::default() };
        let (size, file) = (bytes.len() as u64, FileData::from_bytes(Path::new("m"), bytes, &options));
        let packed = Packed::new(file.source(), ".debug_x", packing, (0, size), len as u64)?;
        let first = packed.bytes().map(<[u8]>::to_vec);
        assert_eq!(first.is_ok(), packed.bytes().is_ok(), "it changes its mind");
        first
    }

    #[test]
    fn only_what_unpacks_to_as_much_as_it_says() {
        for (bytes, packing) in [(zlib(), Packing::Zlib), (zstd(), Packing::Zstd)] {
            assert_eq!(unpack(bytes.clone(), packing, TEXT.len(), 1 << 20).expect("unpacked"), TEXT);
            for len in [0, 1, TEXT.len() - 1, TEXT.len() + 1, 2 * TEXT.len()] {
                assert!(matches!(unpack(bytes.clone(), packing, len, 1 << 20), Err(Error::BadElf { .. })), "{len}");
            }
            for cut in [1, 2, bytes.len() / 2, bytes.len() - 1] {
                assert!(unpack(bytes[..cut].to_vec(), packing, TEXT.len(), 1 << 20).is_err(), "cut to {cut}");
            }
            assert!(matches!(unpack(bytes, packing, TEXT.len(), 10), Err(Error::Limit { .. })));
        }
        let twice = [zstd(), zstd()].concat();
        assert_eq!(unpack(twice, Packing::Zstd, 2 * TEXT.len(), 1 << 20).expect("two frames"), TEXT.repeat(2));
    }

    #[test]
    fn more_than_zlib_can_pack_is_refused_before_any_memory_is_asked_for() {
        let result = unpack(zlib(), Packing::Zlib, 1 << 40, u64::MAX);
        assert!(result.is_err_and(|error| error.to_string().contains("cannot unpack to 1099511627776")));
    }
}
