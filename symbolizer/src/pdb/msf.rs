//! The container of a PDB: a file of equal blocks, in which numbered streams are stored in pieces (MSF 7.0).
//!
//! The first block tells the size of blocks and where the directory is; the directory tells the size of each stream
//! and its blocks. A stream is read piece by piece, as it is needed.

use std::sync::Arc;

use super::Fault;
use crate::Error;
use crate::cursor::Cursor;
use crate::file::Source;

const MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";

/// Sizes of blocks that linkers write, in bytes: 4 KiB as a rule, more for files beyond 4 GiB.
const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 512..=65536;

/// Blocks that the first block lists as holding the list of the blocks of the directory.
const MAX_MAP_BLOCKS: usize = 73;

/// The directory of a PDB.
#[derive(Debug)]
pub(crate) struct Msf {
    file: Arc<Source>,
    block_size: u32,
    streams: Vec<Entry>,
    /// The blocks of all streams, in order.
    blocks: Vec<u32>,
}

/// A stream in the directory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    size: u32,
    /// Index of its first block in the list of all blocks.
    first: usize,
}

impl Msf {
    /// Whether `start`, the first bytes of a file, are those of such a container.
    pub(crate) fn is_magic(start: &[u8]) -> bool {
        start.starts_with(MAGIC)
    }

    /// Reads the directory.
    pub(crate) fn open(file: &Arc<Source>) -> Result<Self, Error> {
        let bad = |what: &str| Error::BadPdb { path: file.path().to_owned(), what: what.to_owned() };
        let start = file.piece(0, file.len().min(512))?;
        if !Msf::is_magic(&start) {
            return Err(bad("not a PDB (MSF 7.0) file"));
        }
        let mut header = Cursor::starting_at(&start, MAGIC.len()).ok_or_else(|| bad("shorter than its header"))?;
        let mut number = || header.u32().ok_or_else(|| bad("shorter than its header"));
        let (block_size, _free_map, block_count, size, _unused) =
            (number()?, number()?, number()?, number()?, number()?);
        if !BLOCK_SIZES.contains(&block_size) || !block_size.is_power_of_two() {
            return Err(bad(&format!("blocks of {block_size} bytes")));
        }
        let count = size.div_ceil(block_size) as usize;
        let map_count = (count * 4).div_ceil(block_size as usize);
        if u64::from(size) > file.len() || map_count > MAX_MAP_BLOCKS {
            return Err(bad(&format!("a directory of {size} bytes in a file of {}", file.len())));
        }
        let map: Vec<u32> = (0..map_count).map(|_| number()).collect::<Result<_, _>>()?;
        let read_all = |blocks: &[u32], length: usize| -> Result<Vec<u8>, Error> {
            if let Some(block) = blocks.iter().find(|&&block| block >= block_count) {
                return Err(bad(&format!("block {block} of {block_count} in the directory")));
            }
            read_blocks(file, block_size, blocks, 0, length)
        };
        let list = numbers(&read_all(&map, count * 4)?);
        let directory = read_all(&list, size as usize)?;
        file.charge(u64::from(size))?;
        let (streams, blocks) =
            entries(&directory, block_size, file.len()).ok_or_else(|| bad("a damaged directory"))?;
        if let Some(block) = blocks.iter().find(|&&block| block >= block_count) {
            return Err(bad(&format!("block {block} of {block_count} in a stream")));
        }
        Ok(Msf { file: Arc::clone(file), block_size, streams, blocks })
    }

    /// The file it is in.
    pub(crate) fn file(&self) -> &Arc<Source> {
        &self.file
    }

    /// The stream with that number, if there is one.
    pub(crate) fn stream(&self, number: u32) -> Option<Stream<'_>> {
        let &Entry { size, first } = self.streams.get(number as usize)?;
        let blocks = self.blocks.get(first..)?.get(..size.div_ceil(self.block_size) as usize)?;
        Some(Stream { msf: self, number, size, blocks })
    }
}

/// Splits the directory: how many streams, the size of each, then the blocks of each.
fn entries(directory: &[u8], block_size: u32, file_size: u64) -> Option<(Vec<Entry>, Vec<u32>)> {
    /// The size of a stream that was deleted.
    const DELETED: u32 = u32::MAX;
    let mut cursor = Cursor::new(directory);
    let count = cursor.u32()? as usize;
    let sizes = numbers(cursor.take(count.checked_mul(4)?)?);
    let blocks = numbers(cursor.take(cursor.left() / 4 * 4)?);
    let mut streams = Vec::with_capacity(count);
    let mut first: usize = 0;
    for size in sizes {
        let size = if size == DELETED { 0 } else { size };
        // Blocks are not shared, so no stream is larger than the file.
        if u64::from(size) > file_size {
            return None;
        }
        streams.push(Entry { size, first });
        first = first.checked_add(size.div_ceil(block_size) as usize)?;
    }
    (first <= blocks.len()).then_some((streams, blocks))
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|&number| u32::from_le_bytes(number)).collect()
}

/// Reads `length` bytes that start `at` bytes into what is stored in `blocks`, neighbouring blocks at once.
fn read_blocks(file: &Source, block_size: u32, blocks: &[u32], at: usize, length: usize) -> Result<Vec<u8>, Error> {
    let size = block_size as usize;
    let mut bytes = Vec::with_capacity(length);
    let (mut index, mut skip) = (at / size, at % size);
    while bytes.len() < length {
        let Some(&first) = blocks.get(index) else { break };
        let mut run: usize = 1;
        while run * size < skip + length - bytes.len()
            && blocks.get(index + run) == first.checked_add(run as u32).as_ref()
        {
            run += 1;
        }
        let wanted = (run * size - skip).min(length - bytes.len());
        let piece = file.piece(u64::from(first) * u64::from(block_size) + skip as u64, wanted as u64)?;
        if bytes.is_empty() {
            bytes = piece
        } else {
            bytes.extend_from_slice(&piece)
        }
        (index, skip) = (index + run, 0);
    }
    Ok(bytes)
}

/// A stream of a PDB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<'m> {
    msf: &'m Msf,
    number: u32,
    size: u32,
    blocks: &'m [u32],
}

impl Stream<'_> {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// The `length` bytes at offset `at`.
    pub(crate) fn read(&self, at: usize, length: usize) -> Result<Vec<u8>, Fault> {
        if at.checked_add(length).is_none_or(|end| end > self.size()) {
            return Err(self.damaged(at, &format!("{length} bytes are to be read past the end at {:#x}", self.size)));
        }
        Ok(read_blocks(&self.msf.file, self.msf.block_size, self.blocks, at, length)?)
    }

    /// Up to `length` bytes at offset `at`, fewer at the end.
    pub(crate) fn read_up_to(&self, at: usize, length: usize) -> Result<Vec<u8>, Fault> {
        self.read(at, length.min(self.size().saturating_sub(at)))
    }

    /// A complaint about what is at offset `at`.
    pub(crate) fn damaged(&self, at: usize, what: &str) -> Fault {
        Fault::Damaged(format!("stream {}, offset {at:#x}: {what}", self.number))
    }
}
