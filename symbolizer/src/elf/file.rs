//! A file on disk from which pieces are read as they are needed, with a limit on the sum of all pieces.
//!
//! Reading beats mapping here: a mapped file that somebody truncates kills the reader with SIGBUS, and a mapped
//! compressed section is copied anyway. What is read stays in memory until the [`FileData`] is dropped, so the memory
//! used is the size of the headers, symbol tables and debug sections that were asked for, not that of the file.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::read::{ReadCache, ReadRef};

use crate::{Error, Options};

/// Pieces of one open regular file.
#[derive(Debug)]
pub(crate) struct FileData {
    path: PathBuf,
    cache: ReadCache<File>,
    len: u64,
    /// Bytes that may still be read or unpacked.
    left: Cell<u64>,
}

impl FileData {
    /// Opens the regular file at `path`, following symbolic links.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let (file, len) = open_regular(path, options)?;
        Ok(FileData {
            path: path.to_owned(),
            cache: ReadCache::new(file),
            len,
            left: Cell::new(options.max_file_memory),
        })
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accounts for `bytes` of memory; `Err` when that is more than is left.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), Error> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Error::Limit {
                path: self.path.clone(),
                what: format!("a section of {bytes} bytes is more than the memory allowed for one file"),
            }),
        }
    }
}

impl<'a> ReadRef<'a> for &'a FileData {
    fn len(self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        // Before charging: a header that claims more than the file holds must not use up the allowance.
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(());
        }
        self.charge(size).map_err(|_| ())?;
        (&self.cache).read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.charge(256).map_err(|_| ())?;
        (&self.cache).read_bytes_at_until(range, delimiter)
    }
}

/// CRC-32 of all of the file at `path`, read from the start in small pieces.
pub(crate) fn crc32_of(path: &Path, options: &Options) -> Result<u32, Error> {
    let (mut file, _) = open_regular(path, options)?;
    let mut crc = super::crc32::Crc32::default();
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
