//! The bytes of one section: in a file, read piece by piece, or compressed in a file, and then unpacked as a whole.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::Error;
use crate::file::Source;
use crate::packed::Packed;

/// One section of a file. It can be copied, and read by many threads at once.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    source: Arc<Source>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// As it is in the file.
    InFile { offset: u64, len: u64 },
    /// It is compressed.
    Packed(Arc<Packed>),
}

impl Section {
    /// The part `offset..offset + len` of a file; `None` if the file is shorter than that.
    pub(crate) fn in_file(source: &Arc<Source>, offset: u64, len: u64) -> Option<Self> {
        source.holds(offset, len).then(|| Section { source: Arc::clone(source), place: Place::InFile { offset, len } })
    }

    /// A compressed part of a file, unpacked when the first piece of it is asked for.
    pub(crate) fn packed(packed: Packed) -> Self {
        Section { source: Arc::clone(packed.source()), place: Place::Packed(Arc::new(packed)) }
    }

    /// Its size in bytes, unpacked.
    pub(crate) fn len(&self) -> u64 {
        match &self.place {
            Place::InFile { len, .. } => *len,
            Place::Packed(packed) => packed.len(),
        }
    }

    /// A piece of it; nothing of it is kept here. It fails when the section has no such piece, or the file has become
    /// shorter.
    #[allow(dead_code, reason = "for containers other than ELF")]
    pub(crate) fn bytes(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, Error> {
        let size = self.size_of(&range)?;
        match &self.place {
            Place::InFile { offset, .. } => {
                let mut buffer = vec![0; usize::try_from(size).map_err(|_| self.cut_short(&range))?];
                self.source.read_at(offset + range.start, &mut buffer)?;
                Ok(Cow::Owned(buffer))
            }
            Place::Packed(packed) => Ok(Cow::Borrowed(&packed.bytes()?[range.start as usize..range.end as usize])),
        }
    }

    /// Reads a piece of it to the start of `buffer`, which becomes longer if need be but never shorter: so the same
    /// memory serves for many pieces, and is zeroed once. It fails like [`bytes`](Self::bytes), and when the piece is
    /// longer than what may still be kept of the file.
    pub(crate) fn read<'b>(&self, range: Range<u64>, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], Error> {
        let size = self.size_of(&range)?;
        self.source.check(size)?;
        let size = usize::try_from(size).map_err(|_| self.cut_short(&range))?;
        if buffer.len() < size {
            // Not `resize`, which would copy what is about to be overwritten.
            *buffer = Vec::new();
            *buffer = vec![0; size];
        }
        let piece = &mut buffer[..size];
        match &self.place {
            Place::InFile { offset, .. } => self.source.read_at(offset + range.start, piece)?,
            Place::Packed(packed) => piece.copy_from_slice(&packed.bytes()?[range.start as usize..range.end as usize]),
        }
        Ok(piece)
    }

    /// All of it if it is held in memory in any case, because it is compressed.
    pub(crate) fn in_memory(&self) -> Result<Option<&[u8]>, Error> {
        match &self.place {
            Place::InFile { .. } => Ok(None),
            Place::Packed(packed) => packed.bytes().map(Some),
        }
    }

    /// The size of a piece that is in the section.
    fn size_of(&self, range: &Range<u64>) -> Result<u64, Error> {
        let size = range.end.checked_sub(range.start).filter(|_| range.end <= self.len());
        size.ok_or_else(|| self.cut_short(range))
    }

    fn cut_short(&self, range: &Range<u64>) -> Error {
        let size = range.end.saturating_sub(range.start);
        Error::CutShort { path: self.source.path().to_owned(), offset: range.start, size }
    }

    /// All of it, counted against what may be kept of the file.
    #[allow(dead_code, reason = "for containers other than ELF")]
    pub(crate) fn all(&self) -> Result<Cow<'_, [u8]>, Error> {
        if let Place::InFile { len, .. } = self.place {
            self.source.charge(len)?;
        }
        self.bytes(0..self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Section;
    use crate::file::FileData;
    use crate::packed::{Packed, Packing};
    use crate::{Error, Options};
    use std::path::Path;

    #[test]
    fn pieces_inside_and_beyond() {
        let file = FileData::from_bytes(Path::new("m"), b"0123456789".to_vec(), &Options::default());
        assert!(Section::in_file(file.source(), 5, 6).is_none());
        assert!(Section::in_file(file.source(), u64::MAX, 2).is_none());
        let in_file = Section::in_file(file.source(), 2, 5).expect("a section");
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, b"23456").expect("packed");
        let bytes = encoder.finish().expect("packed");
        let place = (0, bytes.len() as u64);
        let zlib = FileData::from_bytes(Path::new("z"), bytes, &Options::default());
        let packed = Packed::new(zlib.source(), ".debug_x", Packing::Zlib, place, 5).expect("a section");
        for section in [&in_file, &Section::packed(packed)] {
            assert_eq!(section.len(), 5);
            assert_eq!(&*section.all().expect("all"), b"23456");
            assert_eq!(&*section.bytes(1..3).expect("a piece"), b"34");
            for range in [3..6, 6..6, u64::MAX..u64::MAX] {
                assert!(matches!(section.bytes(range), Err(Error::CutShort { .. })));
            }
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_is_an_error() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(path.path(), b"0123456789").expect("written");
        let file = FileData::open(path.path(), &Options::default()).expect("opened");
        let section = Section::in_file(file.source(), 0, 10).expect("a section");
        path.as_file().set_len(5).expect("shorter");
        assert!(section.bytes(0..5).is_ok());
        assert!(matches!(section.bytes(0..6), Err(Error::CutShort { offset: 0, size: 6, .. })));
    }
}
