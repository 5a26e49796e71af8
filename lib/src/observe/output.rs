//! A file that is written under a temporary name and takes its place only when it is complete.

use crate::os::{self, File};
use core::ffi::CStr;
use core::fmt;

/// Longest path, with its end.
pub(crate) const PATH: usize = 4096;
const SUFFIX: &[u8] = b".tmp";

/// A path in memory of its own.
#[derive(Clone)]
pub(crate) struct Path {
    bytes: [u8; PATH],
    length: usize,
}

impl Path {
    pub(crate) const EMPTY: Path = Path { bytes: [0; PATH], length: 0 };

    /// Append; false when it does not fit or holds a NUL.
    pub(crate) fn push(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        if end >= PATH || more.contains(&0) {
            return false;
        }
        self.bytes[self.length..end].copy_from_slice(more);
        self.bytes[end] = 0;
        self.length = end;
        true
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Remove the file that it names.
    pub(crate) fn remove(&self) {
        os::remove(self.as_c_str());
    }

    /// The folder that the path names a file in.
    fn folder(&self) -> Option<Path> {
        let slash = self.as_bytes().iter().rposition(|&b| b == b'/')?;
        let mut folder = Path::EMPTY;
        (slash > 0 && folder.push(&self.bytes[..slash])).then_some(folder)
    }
}

/// A buffered file on its way.
pub(crate) struct Output<'a> {
    file: File,
    buffer: &'a mut [u8],
    used: usize,
    failed: bool,
}

/// Write a file: `fill` it, then put it in its place. The folder is made if only the last part of it is missing. False, and
/// nothing is left behind, when it cannot be written.
pub(crate) fn write(path: &Path, buffer: &mut [u8], fill: impl FnOnce(&mut Output<'_>)) -> bool {
    let mut temporary = path.clone();
    if !temporary.push(SUFFIX) {
        return false;
    }
    let temporary = temporary.as_c_str();
    let created = File::create(temporary).or_else(|| {
        path.folder().filter(|folder| os::make_folder(folder.as_c_str())).and_then(|_| File::create(temporary))
    });
    let Some(file) = created else { return false };
    let mut output = Output { file, buffer, used: 0, failed: false };
    fill(&mut output);
    output.flush();
    let done = !output.failed && os::rename(temporary, path.as_c_str());
    if !done {
        os::remove(temporary);
    }
    done
}

impl Output<'_> {
    /// Append bytes. Errors are remembered and told at the end.
    pub(crate) fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.used == self.buffer.len() {
                self.flush();
            }
            let n = bytes.len().min(self.buffer.len() - self.used);
            self.buffer[self.used..self.used + n].copy_from_slice(&bytes[..n]);
            self.used += n;
            bytes = &bytes[n..];
        }
    }

    fn flush(&mut self) {
        self.failed |= !self.failed && !self.file.write_all(&self.buffer[..self.used]);
        self.used = 0;
    }
}

impl fmt::Write for Output<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
