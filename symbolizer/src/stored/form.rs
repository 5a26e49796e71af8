//! Stored answers as bytes: `docs/formats.md` describes them. Reading takes anything from anywhere: it never panics and
//! needs at most some ten times the memory of its input.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::numbers::{Input, put_bytes, put_difference, put_number};
use super::{Entry, FileState, StoredFrame, StoredSymbols, Texts};
use crate::elf::crc32::Crc32;
use crate::{Error, SymbolSource};

/// The first bytes. One that is no text, and both kinds of line end, so that damage by copying shows.
const MAGIC: &[u8; 8] = b"\xf0mppsy\r\n";

/// Raised when a reader of the old form would misread the new one.
const VERSION: u32 = 1;

/// Magic, version, checksum.
const HEADER: usize = 16;

/// Who writes. Answers of another version are good for a bundle, but a cache asks again: it may have known less.
pub(super) const WRITER: &str = concat!("mpp-symbolizer ", env!("CARGO_PKG_VERSION"), "/1");

/// Largest form that is read or written, in bytes. A million addresses take about ten million.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Most functions at one place; more than the readers of debug information give.
pub(super) const MAX_FRAMES: usize = 1 << 10;

/// Longest name or path, in bytes: that of the names which the symbolizer gives.
const MAX_TEXT: usize = 64 << 10;

/// Longest build id that is kept. Linkers write up to 32 bytes.
const MAX_BUILD_ID: usize = 1 << 10;

impl StoredSymbols {
    /// The stored form, the same for the same answers.
    ///
    /// # Errors
    /// If it would be larger than 64 MiB, which is also the most that is read, or the path or build id absurdly long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let limit = |what| Err(Error::Limit { path: self.path.clone(), what });
        let id_length = self.build_id.as_ref().map_or(0, Vec::len);
        if self.path.as_os_str().len() > MAX_TEXT || id_length > MAX_BUILD_ID {
            return limit("its path or build id is too long to be stored".to_owned());
        }
        let mut payload = Vec::new();
        put_bytes(&mut payload, self.writer.as_bytes());
        put_bytes(&mut payload, self.path.as_os_str().as_bytes());
        put_bytes(&mut payload, self.build_id.as_deref().unwrap_or_default());
        put_source(&mut payload, &self.source);
        match self.state {
            None => payload.push(0),
            Some(state) => {
                payload.push(1);
                put_number(&mut payload, state.size);
                put_difference(&mut payload, state.modified);
            }
        }
        put_number(&mut payload, self.texts.ends.len() as u64);
        self.texts.iter().for_each(|text| put_bytes(&mut payload, text.as_bytes()));
        put_number(&mut payload, self.frames.len() as u64);
        for frame in &self.frames {
            put_number(&mut payload, frame.function.into());
            put_number(&mut payload, frame.file.into());
            put_number(&mut payload, u64::from(frame.line) << 1 | u64::from(frame.inlined));
        }
        self.put_entries(&mut payload);
        if payload.len() > MAX_BYTES - HEADER {
            return limit(format!("its stored answers would have more than {MAX_BYTES} bytes"));
        }
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&checksum(&payload).to_le_bytes());
        bytes.append(&mut payload);
        Ok(bytes)
    }

    fn put_entries(&self, payload: &mut Vec<u8>) {
        put_number(payload, self.entries.len() as u64);
        let (mut next, mut distance) = (0u64, 0i64);
        for (index, entry) in self.entries.iter().enumerate() {
            put_number(payload, entry.offset.wrapping_sub(next));
            next = entry.offset.wrapping_add(1);
            // Within a segment the address is as far from the offset everywhere.
            let far = entry.file_address.wrapping_sub(entry.offset) as i64;
            put_difference(payload, far.wrapping_sub(distance));
            distance = far;
            let chain = self.chain(index);
            put_number(payload, chain.len() as u64);
            chain.iter().for_each(|&number| put_number(payload, number.into()));
        }
    }

    /// Reads the stored form. `path` is what errors call the input.
    ///
    /// # Errors
    /// If it is not whole and undamaged, of a version that is not known, or larger than 64 MiB.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Input::new(path, bytes, 0);
        if bytes.len() > MAX_BYTES {
            return Err(input.expected(&format!("at most {MAX_BYTES} bytes of stored answers")));
        }
        if !bytes.starts_with(MAGIC) {
            return Err(input.expected("stored answers of the symbolizer"));
        }
        input.take(MAGIC.len(), "a header")?;
        if input.take(4, "a version")? != VERSION.to_le_bytes() {
            return Err(Input::new(path, bytes, MAGIC.len()).expected(&format!("version {VERSION}")));
        }
        let sum = input.take(4, "a checksum")?;
        if bytes.get(HEADER..).is_none_or(|payload| sum != checksum(payload).to_le_bytes()) {
            return Err(Input::new(path, bytes, HEADER - 4).expected("the checksum of what follows: it is damaged"));
        }
        Self::read(&mut input)
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        let writer = input.text(MAX_TEXT, "the name of the writer")?.to_owned();
        let path = get_path(input)?;
        let build_id = input.bytes(MAX_BUILD_ID, "a build id")?;
        let build_id = (!build_id.is_empty()).then(|| build_id.to_vec());
        let source = get_source(input)?;
        let state = match input.number_up_to(1, "0 or 1")? {
            0 => None,
            _ => Some(FileState { size: input.number("a size")?, modified: input.difference("a time")? }),
        };
        let texts = get_texts(input)?;
        let frames = get_frames(input, texts.ends.len() as u64)?;
        let (entries, chains) = get_entries(input, frames.len() as u64)?;
        if input.left() > 0 {
            return Err(input.expected("the end"));
        }
        Ok(StoredSymbols { path, build_id, source, writer, state, texts, frames, chains, entries })
    }
}

fn get_texts(input: &mut Input<'_>) -> Result<Texts, Error> {
    let count = input.count(1, "the number of texts")?;
    let mut texts = Texts { all: String::new(), ends: Vec::with_capacity(count) };
    for _ in 0..count {
        texts.push(input.text(MAX_TEXT, "a text")?);
    }
    Ok(texts)
}

fn get_frames(input: &mut Input<'_>, texts: u64) -> Result<Vec<StoredFrame>, Error> {
    let count = input.count(3, "the number of frames")?;
    let mut frames = Vec::with_capacity(count);
    for _ in 0..count {
        let function = input.number_up_to(texts, "the number of a text")? as u32;
        let file = input.number_up_to(texts, "the number of a text")? as u32;
        let line = input.number_up_to(u64::from(u32::MAX) << 1 | 1, "a line")?;
        frames.push(StoredFrame { function, file, line: (line >> 1) as u32, inlined: line & 1 == 1 });
    }
    Ok(frames)
}

fn get_entries(input: &mut Input<'_>, frames: u64) -> Result<(Vec<Entry>, Vec<u32>), Error> {
    let count = input.count(3, "the number of places")?;
    let mut entries = Vec::with_capacity(count);
    let mut chains: Vec<u32> = Vec::new();
    // The least offset that the next one may have; none after the last offset that there is.
    let (mut next, mut distance) = (Some(0u64), 0i64);
    for _ in 0..count {
        let step = input.number("an offset")?;
        let offset = next.and_then(|next| next.checked_add(step)).ok_or_else(|| input.expected("a larger offset"))?;
        next = offset.checked_add(1);
        distance = distance.wrapping_add(input.difference("an address")?);
        let file_address = offset.wrapping_add(distance as u64);
        entries.push(Entry { offset, file_address, first: chains.len() as u32 });
        for _ in 0..input.number_up_to(MAX_FRAMES as u64, "the number of functions")? {
            let most = frames.checked_sub(1).ok_or_else(|| input.expected("no function"))?;
            chains.push(input.number_up_to(most, "the number of a frame")? as u32);
        }
    }
    Ok((entries, chains))
}

/// A text as long as texts may be.
pub(super) fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn put_source(payload: &mut Vec<u8>, source: &SymbolSource) {
    let nowhere = Path::new("");
    let (kind, file) = match source {
        SymbolSource::Dwarf { file } => (1, file.as_path()),
        SymbolSource::Symtab { file } => (2, file.as_path()),
        SymbolSource::Dynsym => (3, nowhere),
        SymbolSource::MiniDebugInfo => (4, nowhere),
        SymbolSource::PerfMap { file } => (5, file.as_path()),
        SymbolSource::Vdso => (6, nowhere),
        SymbolSource::Pdb { file } => (8, file.as_path()),
        SymbolSource::None | SymbolSource::Stored { .. } => (0, nowhere),
    };
    payload.push(kind);
    put_bytes(payload, file.as_os_str().as_bytes());
}

fn get_source(input: &mut Input<'_>) -> Result<SymbolSource, Error> {
    let kind = input.number("a kind of source")?;
    let file = get_path(input)?;
    Ok(match kind {
        1 => SymbolSource::Dwarf { file },
        2 => SymbolSource::Symtab { file },
        3 => SymbolSource::Dynsym,
        4 => SymbolSource::MiniDebugInfo,
        5 => SymbolSource::PerfMap { file },
        6 => SymbolSource::Vdso,
        8 => SymbolSource::Pdb { file },
        // Those of later versions are told as none.
        _ => SymbolSource::None,
    })
}

fn get_path(input: &mut Input<'_>) -> Result<PathBuf, Error> {
    Ok(OsStr::from_bytes(input.bytes(MAX_TEXT, "a path")?).into())
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = Crc32::default();
    sum.update(bytes);
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        let mut stored = sample();
        for state in [None, Some(FileState { size: 9, modified: -5 })] {
            stored.state = state;
            let bytes = stored.to_bytes().expect("it is small");
            assert_eq!(StoredSymbols::from_bytes(Path::new("x"), &bytes).expect("it was just written"), stored);
        }
        let empty = StoredSymbols::new(PathBuf::new(), None, SymbolSource::None, []);
        let bytes = empty.to_bytes().expect("it is small");
        assert_eq!(StoredSymbols::from_bytes(Path::new("x"), &bytes).expect("it was just written"), empty);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let bytes = sample().to_bytes().expect("it is small");
        for end in 0..bytes.len() {
            let error = StoredSymbols::from_bytes(Path::new("x"), &bytes[..end]).expect_err("it is cut off");
            assert!(error.to_string().starts_with("\"x\""), "{error}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(StoredSymbols::from_bytes(Path::new("x"), &changed).is_err(), "byte {at}");
        }
    }

    /// With the checksum made right again, every change is either refused or gives something that can be written.
    #[test]
    fn no_change_leads_astray() {
        let bytes = sample().to_bytes().expect("it is small");
        for at in HEADER..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let sum = checksum(&changed[HEADER..]).to_le_bytes();
                changed[HEADER - 4..HEADER].copy_from_slice(&sum);
                if let Ok(stored) = StoredSymbols::from_bytes(Path::new("x"), &changed) {
                    assert_eq!(stored.answers().count(), stored.len());
                    let again = stored.to_bytes().expect("it is small");
                    assert_eq!(StoredSymbols::from_bytes(Path::new("x"), &again).expect("just written"), stored);
                }
            }
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let mut bytes = sample().to_bytes().expect("it is small");
        bytes[8] = 2;
        let error = StoredSymbols::from_bytes(Path::new("x"), &bytes).expect_err("version 2");
        assert!(error.to_string().contains("expected version 1"), "{error}");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ü".repeat(MAX_TEXT);
        assert_eq!(shortened(&long).len(), MAX_TEXT);
        assert_eq!(shortened(&format!("x{long}")).len(), MAX_TEXT - 1);
    }
}
