//! The file on disk.
//!
//! It is opened for each append and closed again: a program that closes all descriptors it does not know of, and opens something else
//! under the same number, must never find our bytes in that. Nothing is written where the file does not end as we left it.

use super::block::checksum;
use crate::observe::output::Path;
use crate::os::{self, File};

const MAGIC: &[u8; 8] = b"\xf0mpptl\r\n";
pub(super) const VERSION: u32 = 1;
/// Bytes before the first block.
pub(super) const HEADER: usize = 64;
const SUFFIX: &[u8] = b".tmp";

/// What the header tells.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// Each event stands for 2 to the power of this.
    pub(super) level: u32,
    pub(super) process: u32,
    /// The start in nanoseconds since 1970 and as [`os::now`] told it.
    pub(super) wall: u64,
    pub(super) start: u64,
    /// Microseconds between ticks, at least.
    pub(super) interval: u64,
}

impl Header {
    pub(super) fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0u8; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        for (at, value) in [(8, VERSION), (12, HEADER as u32), (16, self.level), (20, self.process)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [(24, self.wall), (32, self.start), (40, self.interval)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = checksum(&[&bytes[..HEADER - 4]]);
        bytes[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// Why nothing more can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// It cannot be created, or not opened any more.
    Open,
    /// Somebody else has written to it.
    Foreign,
    /// The disk is full, or cannot be written to for another reason.
    Write,
    /// The limit on the size of files.
    Limit,
    /// What was written cannot be read again.
    Read,
    /// Even thinned it needs more than it may have.
    Budget,
    Memory,
    /// This is not the process that records.
    Process,
}

/// The file and what is known of it.
pub(super) struct Disk {
    pub(super) path: Path,
    pub(super) temporary: Path,
    pub(super) extent: Extent,
}

/// How much of a file there is.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Bytes.
    pub(super) size: u64,
    /// Who may write: not a child that was forked in the midst of it.
    process: u32,
}

impl Disk {
    pub(super) const NONE: Disk = Disk { path: Path::EMPTY, temporary: Path::EMPTY, extent: Extent::of(0) };

    /// Begin anew at the path that is set. The folder is made if only the last part of it is missing.
    pub(super) fn create(&mut self, header: &Header) -> Result<(), Trouble> {
        self.temporary.clear();
        if !self.temporary.push(self.path.as_bytes()) || !self.temporary.push(SUFFIX) {
            return Err(Trouble::Open);
        }
        let file = File::create(self.path.as_c_str()).or_else(|_| {
            self.path.make_folder();
            File::create(self.path.as_c_str())
        });
        let file = file.map_err(|_| Trouble::Open)?;
        self.extent = Extent::of(header.process);
        self.extent.write(&file, &header.bytes())
    }

    /// The file, ready to be written to.
    pub(super) fn open(&self) -> Result<File, Trouble> {
        let file = File::append(self.path.as_c_str()).ok_or(Trouble::Open)?;
        if file.size() == Some(self.extent.size) { Ok(file) } else { Err(Trouble::Foreign) }
    }

    pub(super) fn write(&mut self, file: &File, bytes: &[u8]) -> Result<(), Trouble> {
        self.extent.write(file, bytes)
    }
}

impl Extent {
    /// Nothing yet, by this process.
    pub(super) const fn of(process: u32) -> Extent {
        Extent { size: 0, process }
    }

    /// Put something behind what is there: all of it, or nothing.
    pub(super) fn write(&mut self, file: &File, bytes: &[u8]) -> Result<(), Trouble> {
        let size = self.size + bytes.len() as u64;
        if self.process != os::process_id() {
            return Err(Trouble::Process);
        }
        if size > os::file_size_limit() {
            return Err(Trouble::Limit);
        }
        if file.write_all(bytes).is_err() {
            file.truncate(self.size);
            return Err(Trouble::Write);
        }
        self.size = size;
        Ok(())
    }
}

impl Trouble {
    const ALL: [(Trouble, &'static [u8]); 8] = [
        (Trouble::Open, b"the timeline ends: cannot create or open "),
        (Trouble::Foreign, b"the timeline ends: somebody else has written to "),
        (Trouble::Write, b"the timeline ends: cannot write to "),
        (Trouble::Limit, b"the timeline ends: the limit on the size of files does not let it grow: "),
        (Trouble::Read, b"the timeline ends: cannot read back "),
        (Trouble::Budget, b"the timeline ends: MIMALLOC_TIMELINE_MAX is too small for the program's stacks: "),
        (Trouble::Memory, b"the timeline ends: no memory for "),
        (Trouble::Process, b""),
    ];

    /// A line for people, which the path of the file follows; empty if there is nothing to say.
    pub(super) fn message(self) -> &'static [u8] {
        Self::ALL[self as usize].1
    }

    /// Above 0.
    pub(super) fn code(self) -> u32 {
        self as u32 + 1
    }

    pub(super) fn from_code(code: u32) -> Option<Trouble> {
        Self::ALL.get((code as usize).checked_sub(1)?).map(|(trouble, _)| *trouble)
    }
}
