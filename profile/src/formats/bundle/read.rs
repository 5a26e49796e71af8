//! Reads bundles: a stream, once, from front to back. Only what is asked for is kept in memory.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind, Read};

use flate2::read::MultiGzDecoder;

use super::super::Limits;
use super::{GZIP, MANIFEST, Manifest, SCHEMA, SCHEMA_VERSION, tar};
use crate::error::{Position, ReadError};
use crate::text::escaped;

/// Largest manifest, in bytes: a few hundred for each profile and module.
const MAX_MANIFEST: u64 = 64 << 20;

/// Most files, folders and remarks in a bundle.
const MAX_FILES: usize = 1 << 20;

/// How much larger than what is kept a bundle may be, unpacked.
const MAX_FACTOR: u64 = 4;

/// A bundle whose manifest has been read.
pub struct Reader<'i> {
    stream: Stream<'i>,
    manifest: Manifest,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

/// Begins to read a bundle, packed or not. `name` is what errors call the input; offsets in them count unpacked bytes.
///
/// # Errors
/// If it cannot be read, is no bundle, is damaged, or of a version that is not known.
pub fn open<'i>(input: impl Read + 'i, name: &str, limits: &Limits) -> Result<Reader<'i>, ReadError> {
    let mut stream = Stream::new(Box::new(input), name, limits);
    stream.unpack()?;
    let header = stream.first_file()?.ok_or_else(|| stream.damaged("expected a manifest"))?;
    if header.name != MANIFEST || !header.is_file {
        return Err(stream.damaged(&format!("expected {MANIFEST}: this is no bundle")));
    }
    if header.size > MAX_MANIFEST.min(stream.most) {
        return Err(stream.too_large("the manifest is too large"));
    }
    let text = stream.content(header.size)?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| stream.damaged(&format!("{MANIFEST}: {}", escaped(&error.to_string()))))?;
    if manifest.schema != SCHEMA || manifest.schema_version > SCHEMA_VERSION {
        let found = format!("{} version {}", escaped(&manifest.schema), manifest.schema_version);
        return Err(stream.damaged(&format!("{MANIFEST} is of {found}; expected up to {SCHEMA} {SCHEMA_VERSION}")));
    }
    Ok(Reader { stream, manifest })
}

impl Reader<'_> {
    /// What the bundle says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads on to the end and keeps the files that are wanted, by name.
    ///
    /// # Errors
    /// If the bundle cannot be read, is damaged, has a file twice, or is larger than the limits.
    pub fn read(self, wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, Vec<u8>>, ReadError> {
        let Reader { mut stream, .. } = self;
        let mut files = BTreeMap::new();
        let mut left = stream.most;
        for _ in 0..MAX_FILES {
            let Some(header) = stream.header()? else { return stream.finish().map(|()| files) };
            if !header.is_file || !wanted(&header.name) {
                stream.skip(header.size)?;
                continue;
            }
            left = left
                .checked_sub(header.size)
                .ok_or_else(|| stream.too_large(&format!("the files have more than {} bytes", stream.most)))?;
            let content = stream.content(header.size)?;
            if files.insert(header.name.clone(), content).is_some() {
                return Err(stream.damaged(&format!("{} is there twice", escaped(&header.name))));
            }
        }
        Err(stream.too_large(&format!("more than {MAX_FILES} files")))
    }
}

/// The unpacked bytes, counted.
struct Stream<'i> {
    input: Box<dyn Read + 'i>,
    name: String,
    offset: u64,
    /// Most bytes that are kept.
    most: u64,
}

impl<'i> Stream<'i> {
    fn new(input: Box<dyn Read + 'i>, name: &str, limits: &Limits) -> Self {
        Stream { input, name: name.to_owned(), offset: 0, most: limits.input_bytes }
    }

    /// Looks at the first bytes, and puts the unpacker in front if they want it.
    fn unpack(&mut self) -> Result<(), ReadError> {
        let mut head = Vec::new();
        let read = self.input.by_ref().take(GZIP.len() as u64).read_to_end(&mut head);
        read.map_err(|error| self.failed(error))?;
        let is_packed = head == GZIP;
        let rest = std::mem::replace(&mut self.input, Box::new(std::io::empty()));
        let whole = BufReader::with_capacity(64 << 10, std::io::Cursor::new(head).chain(rest));
        self.input = if is_packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(())
    }

    /// The first header of a file. Other programs may put folders and remarks before it.
    fn first_file(&mut self) -> Result<Option<tar::Header>, ReadError> {
        for _ in 0..MAX_FILES {
            match self.header()? {
                Some(header) if !header.is_file => self.skip(header.size)?,
                found => return Ok(found),
            }
        }
        Ok(None)
    }

    /// The next header; `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<tar::Header>, ReadError> {
        let start = self.offset;
        let mut block = [0; tar::BLOCK];
        let read = self.input.read_exact(&mut block);
        read.map_err(|error| self.failed(error))?;
        self.advance(tar::BLOCK as u64)?;
        tar::parse(&block).map_err(|what| {
            self.offset = start;
            self.damaged(what)
        })
    }

    /// What is behind the end says nothing, but the checksum of the packed data comes after it.
    fn finish(&mut self) -> Result<(), ReadError> {
        let most = self.most.saturating_mul(MAX_FACTOR);
        let rest = std::io::copy(&mut self.input.by_ref().take(most), &mut std::io::sink());
        let rest = rest.map_err(|error| self.failed(error))?;
        self.advance(rest)
    }

    /// A content, whose memory grows with what is there, not with what is announced.
    fn content(&mut self, size: u64) -> Result<Vec<u8>, ReadError> {
        let mut content = Vec::new();
        let read = self.input.by_ref().take(size).read_to_end(&mut content);
        read.map_err(|error| self.failed(error))?;
        self.advance(content.len() as u64)?;
        if (content.len() as u64) < size {
            return Err(self.failed(ErrorKind::UnexpectedEof.into()));
        }
        self.pass(tar::padding(size))?;
        Ok(content)
    }

    /// Passes over a content.
    fn skip(&mut self, size: u64) -> Result<(), ReadError> {
        self.pass(size)?;
        self.pass(tar::padding(size))
    }

    fn pass(&mut self, size: u64) -> Result<(), ReadError> {
        if size > self.most.saturating_mul(MAX_FACTOR) {
            return Err(self.too_large("a file is too large"));
        }
        let passed = std::io::copy(&mut self.input.by_ref().take(size), &mut std::io::sink());
        let passed = passed.map_err(|error| self.failed(error))?;
        self.advance(passed)?;
        if passed < size { Err(self.failed(ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }

    fn advance(&mut self, bytes: u64) -> Result<(), ReadError> {
        self.offset = self.offset.saturating_add(bytes);
        let most = self.most.saturating_mul(MAX_FACTOR);
        if self.offset > most { Err(self.too_large(&format!("it has more than {most} bytes"))) } else { Ok(()) }
    }

    fn failed(&self, error: std::io::Error) -> ReadError {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged("the bundle is cut off"),
            ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                self.damaged(&format!("the gzip data is damaged: {}", escaped(&error.to_string())))
            }
            _ => ReadError::Io { name: self.name.clone(), source: error },
        }
    }

    fn damaged(&self, message: &str) -> ReadError {
        let (name, position) = (self.name.clone(), Position::Offset(self.offset));
        ReadError::Damaged { name, position, message: message.to_owned() }
    }

    fn too_large(&self, message: &str) -> ReadError {
        let (name, position) = (self.name.clone(), Position::Offset(self.offset));
        ReadError::TooLarge { name, position, message: message.to_owned() }
    }
}
