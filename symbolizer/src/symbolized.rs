//! The answer for one address.

use std::sync::Arc;

/// What is known about one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbolized {
    /// Index, in the slice given to [`Symbolizer::symbolize`](crate::Symbolizer::symbolize), of the module the address
    /// lies in; `None` when it lies in none.
    pub module: Option<usize>,
    /// The address as the module's own file counts it: the virtual address of its ELF headers. While the file cannot be
    /// read or is not the right one, the offset in the file instead; without a module, the address itself.
    pub file_address: u64,
    /// The functions at this address: the innermost inlined one first, the one that owns the code last. Empty when
    /// nothing is known, and then `module+0x<file_address>` is all there is to print.
    pub frames: Vec<Frame>,
    /// How much is known.
    pub quality: Quality,
}

/// How much is known about an address, from most to least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// A source file and a line in it, and nearly always a function name.
    Lines,
    /// A function name only.
    Name,
    /// Nothing but the module, if that.
    #[default]
    Nothing,
}

impl Quality {
    /// What the functions at an address tell.
    pub(crate) fn of(frames: &[Frame]) -> Self {
        if frames.iter().any(|frame| frame.line != 0 && frame.file.is_some()) {
            Quality::Lines
        } else if frames.iter().any(|frame| frame.function.is_some()) {
            Quality::Name
        } else {
            Quality::Nothing
        }
    }
}

/// One function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function, when its name is known.
    pub function: Option<Name>,
    /// The source file as the compiler recorded it: absolute, or relative to an unknown folder. Bytes that are not
    /// UTF-8 are replaced.
    pub file: Option<Arc<str>>,
    /// The line in `file`, from 1; 0 when unknown.
    pub line: u32,
    /// Whether the compiler inlined this function into the one of the next frame.
    pub inlined: bool,
}

/// A function's name, twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// As the linker knows it (mangled), or as the source has it when the debug information gives no linker name.
    pub raw: Arc<str>,
    /// In the full style of [`NameStyle`](crate::NameStyle), but without the hashes of Rust's names, which differ from
    /// build to build; equal to `raw` when `raw` is not mangled or cannot be demangled.
    pub demangled: Arc<str>,
}

impl Name {
    /// Longest raw name that is kept, in bytes; the rest is cut off.
    const MAX_RAW: usize = 64 << 10;

    /// The name that a linker's name is, with bytes that are not UTF-8 replaced.
    pub fn from_raw(raw: &[u8]) -> Self {
        let raw = String::from_utf8_lossy(&raw[..raw.len().min(Self::MAX_RAW)]);
        let demangled = crate::demangle::name_to_keep(&raw);
        let demangled = (*demangled != *raw).then(|| Arc::from(demangled.into_owned()));
        let raw: Arc<str> = Arc::from(raw);
        Name { demangled: demangled.unwrap_or_else(|| Arc::clone(&raw)), raw }
    }
}
