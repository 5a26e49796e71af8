//! Headers of tar archives in the `ustar` form, with what GNU tar and others write besides.

/// Headers and the padding of contents are in units of so many bytes.
pub(super) const BLOCK: usize = 512;

/// Longest name that is written: what the header has room for, less the zero that some readers expect.
pub(super) const MAX_NAME: usize = 99;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Its name, with slashes.
    pub(super) name: String,
    /// Bytes of its content.
    pub(super) size: u64,
    /// A regular file. Else it is a folder or remarks about the next file, which say nothing here.
    pub(super) is_file: bool,
}

/// Where the parts of a header are.
mod field {
    use std::ops::Range;

    pub(super) const NAME: Range<usize> = 0..100;
    pub(super) const MODE: Range<usize> = 100..108;
    pub(super) const USER: Range<usize> = 108..116;
    pub(super) const GROUP: Range<usize> = 116..124;
    pub(super) const SIZE: Range<usize> = 124..136;
    pub(super) const TIME: Range<usize> = 136..148;
    pub(super) const CHECKSUM: Range<usize> = 148..156;
    pub(super) const KIND: usize = 156;
    pub(super) const MAGIC: Range<usize> = 257..262;
    pub(super) const MAGIC_AND_VERSION: Range<usize> = 257..265;
    pub(super) const PREFIX: Range<usize> = 345..500;
}

/// The header of a file with these many bytes; `None` if the name or size does not fit in.
pub(super) fn header(name: &str, size: u64) -> Option<[u8; BLOCK]> {
    if name.is_empty() || name.len() > MAX_NAME || size >= 1 << 33 {
        return None;
    }
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    let mut put = |range: std::ops::Range<usize>, number: u64| {
        let digits = format!("{number:0width$o}\0", width = range.len() - 1);
        block[range].copy_from_slice(digits.as_bytes());
    };
    // For the owner only, and nothing of whoever made it or when.
    put(field::MODE, 0o600);
    put(field::USER, 0);
    put(field::GROUP, 0);
    put(field::SIZE, size);
    put(field::TIME, 0);
    block[field::KIND] = b'0';
    block[field::MAGIC_AND_VERSION].copy_from_slice(b"ustar\x0000");
    let sum = checksum(&block);
    block[field::CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

/// Reads a header; `None` for the zeroes at the end.
///
/// # Errors
/// What was expected there.
pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Option<Header>, &'static str> {
    if block.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    if &block[field::MAGIC] != b"ustar" {
        return Err("expected the header of a file of a tar archive");
    }
    if octal(&block[field::CHECKSUM]) != Some(checksum(block)) {
        return Err("expected another checksum: the header of the file is damaged");
    }
    let size = octal(&block[field::SIZE]).ok_or("expected the size of a file")?;
    let is_file = match block[field::KIND] {
        b'0' | 0 => true,
        // Folders, and what newer forms of tar say about files in their own way.
        b'5' | b'x' | b'g' => false,
        _ => return Err("expected a regular file: a bundle has no links or devices"),
    };
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).map(str::to_owned).map_err(|_| "expected a name in UTF-8")
    };
    let (name, mut prefix) = (text(&block[field::NAME])?, String::new());
    // GNU's own form has something else there.
    if &block[field::MAGIC_AND_VERSION] == b"ustar\x0000" {
        prefix = text(&block[field::PREFIX])?;
    }
    let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
    let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
    Ok(Some(Header { name, size, is_file }))
}

/// How many zeroes follow a content.
pub(super) fn padding(size: u64) -> u64 {
    size.checked_next_multiple_of(BLOCK as u64).map_or(0, |end| end - size)
}

/// Digits between spaces and zeroes.
fn octal(bytes: &[u8]) -> Option<u64> {
    let start = bytes.iter().position(|&byte| byte != b' ')?;
    let digits = &bytes[start..];
    let end = digits.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    digits[..end].iter().try_fold(0u64, |number, &digit| match digit {
        b'0'..=b'7' => Some(number << 3 | u64::from(digit - b'0')),
        _ => None,
    })
}

/// The sum of all bytes, with those of the checksum itself counted as spaces.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let byte = |(index, &byte): (usize, &u8)| u64::from(if field::CHECKSUM.contains(&index) { b' ' } else { byte });
    block.iter().enumerate().map(byte).sum()
}
