//! An open file from which pieces are read as they are needed, with a limit on the sum of all pieces that are kept.
//!
//! Reading beats mapping here: a mapped file that somebody truncates kills the reader with SIGBUS, and a mapped
//! compressed section is copied anyway. Headers and symbol tables are kept until the [`FileData`] is dropped; debug
//! information is read through a [`Section`](crate::section::Section), which keeps nothing. So the memory used is the
//! size of what was asked for, not that of the file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use object::read::{ReadCache, ReadRef};

use crate::{Error, Options};

/// Pieces of one open regular file, kept as long as this is.
#[derive(Debug)]
pub(crate) struct FileData {
    source: Arc<Source>,
    cache: ReadCache<Sequential>,
}

/// Where the bytes of a file come from. Any number of threads may read at once.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    content: Content,
    len: u64,
    /// Bytes that may still be kept or unpacked.
    left: AtomicU64,
}

#[derive(Debug)]
enum Content {
    Disk(File),
    Memory(Vec<u8>),
}

impl FileData {
    /// Opens the regular file at `path`, following symbolic links.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let (file, len) = open_regular(path, options)?;
        Ok(Self::new(path, Content::Disk(file), len, options.max_file_memory))
    }

    /// A file that is in memory; `path` is what messages call it.
    pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>, options: &Options) -> Self {
        let len = bytes.len() as u64;
        Self::new(path, Content::Memory(bytes), len, options.max_file_memory)
    }

    fn new(path: &Path, content: Content, len: u64, limit: u64) -> Self {
        let source = Arc::new(Source { path: path.to_owned(), content, len, left: AtomicU64::new(limit) });
        FileData { cache: ReadCache::new(Sequential { source: Arc::clone(&source), at: 0 }), source }
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.source.path
    }

    /// The file itself, to be read from by sections.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }
}

impl Source {
    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buffer` with the bytes at `offset`. It fails where the file ends too early, also when it has become
    /// shorter since it was opened.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let result = match &self.content {
            Content::Disk(file) => file.read_exact_at(buffer, offset),
            Content::Memory(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|start| bytes.get(start..start.checked_add(buffer.len())?))
                .map(|piece| buffer.copy_from_slice(piece))
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::CutShort { path: self.path.clone(), offset, size: buffer.len() as u64 }
            }
            _ => Error::Io { path: self.path.clone(), source: error },
        })
    }

    /// The `size` bytes at `offset`. Nothing of them is kept here.
    pub(crate) fn piece(&self, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        // Before memory is asked for: headers may claim anything.
        let size_here = usize::try_from(size).ok().filter(|_| self.holds(offset, size));
        let cut_short = || Error::CutShort { path: self.path.clone(), offset, size };
        let mut bytes = vec![0; size_here.ok_or_else(cut_short)?];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether the file had all of `offset..offset + size` when it was opened.
    pub(crate) fn holds(&self, offset: u64, size: u64) -> bool {
        offset.checked_add(size).is_some_and(|end| end <= self.len)
    }

    /// `Err` when `bytes` of memory, which are about to be used for a moment, are more than may be kept.
    pub(crate) fn check(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.left.load(Relaxed) { Ok(()) } else { Err(self.too_large(bytes)) }
    }

    /// Why `bytes` of memory are refused.
    pub(crate) fn too_large(&self, bytes: u64) -> Error {
        let what = format!("a section of {bytes} bytes is more than the memory allowed for one file");
        Error::Limit { path: self.path.clone(), what }
    }

    /// Accounts for `bytes` of memory; `Err` when that is more than is left.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), Error> {
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(|_| ()).map_err(|_| self.too_large(bytes))
    }
}

impl<'a> ReadRef<'a> for &'a FileData {
    fn len(self) -> Result<u64, ()> {
        Ok(self.source.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        // Before charging: a header that claims more than the file holds must not use up the allowance.
        if !self.source.holds(offset, size) {
            return Err(());
        }
        self.source.charge(size).map_err(|_| ())?;
        (&self.cache).read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.source.charge(256).map_err(|_| ())?;
        (&self.cache).read_bytes_at_until(range, delimiter)
    }
}

/// Reads a source from front to back, for the cache.
#[derive(Debug)]
struct Sequential {
    source: Arc<Source>,
    at: u64,
}

impl Read for Sequential {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len.saturating_sub(self.at);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.source.read_at(self.at, &mut buffer[..length]).map_err(io::Error::other)?;
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Sequential {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// CRC-32 of all of the file at `path`, read from the start in small pieces.
pub(crate) fn crc32_of(path: &Path, options: &Options) -> Result<u32, Error> {
    let (mut file, _) = open_regular(path, options)?;
    let mut crc = crate::elf::crc32::Crc32::default();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(crc.finish()),
            Ok(n) => crc.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
        }
    }
}

/// Opens `path` if it is a regular file of acceptable size; the size comes along.
fn open_regular(path: &Path, options: &Options) -> Result<(File, u64), Error> {
    let io_error = |source| Error::Io { path: path.to_owned(), source };
    // Looked at before it is opened as well: opening a pipe would wait for somebody to write into it.
    if !fs::metadata(path).map_err(io_error)?.is_file() {
        return Err(Error::NotRegular { path: path.to_owned() });
    }
    let file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    if !metadata.is_file() {
        return Err(Error::NotRegular { path: path.to_owned() });
    }
    let (size, limit) = (metadata.len(), options.max_file_size);
    if size > limit {
        return Err(Error::TooLarge { path: path.to_owned(), size, limit });
    }
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    use super::FileData;
    use crate::{Error, Options};
    use object::read::ReadRef as _;
    use std::path::Path;

    #[test]
    fn files_in_memory_and_on_disk_read_alike_and_end_where_they_end() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(path.path(), b"0123456789").expect("written");
        let disk = FileData::open(path.path(), &Options::default()).expect("opened");
        let memory = FileData::from_bytes(Path::new("m"), b"0123456789".to_vec(), &Options::default());
        for file in [&disk, &memory] {
            assert_eq!(file.read_bytes_at(3, 4), Ok(&b"3456"[..]));
            assert_eq!(file.read_bytes_at(3, 8), Err(()));
            assert_eq!(file.read_bytes_at(u64::MAX, 2), Err(()));
            let mut buffer = [0; 3];
            assert!(file.source().read_at(7, &mut buffer).is_ok());
            assert_eq!(&buffer, b"789");
            let error = file.source().read_at(8, &mut buffer);
            assert!(matches!(error, Err(Error::CutShort { offset: 8, size: 3, .. })), "{error:?}");
        }
    }

    #[test]
    fn what_is_kept_is_limited() {
        let options = Options { max_file_memory: 10, ..Options::default() };
        let file = FileData::from_bytes(Path::new("m"), vec![0; 100], &options);
        assert!(file.read_bytes_at(0, 10).is_ok());
        assert_eq!(file.read_bytes_at(20, 1), Err(()));
        assert!(file.source().charge(1).is_err());
    }
}
