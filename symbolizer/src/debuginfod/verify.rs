//! Whether a file is what was asked for.

use std::fs;
use std::path::Path;

use super::file::DebuginfodFile;
use crate::Options;
use crate::elf::Elf;
use crate::file::FileData;
use crate::locate::hex;
use crate::object::ObjectFile as _;

/// Most bytes that the headers and notes of one file may take.
const MAX_HEADERS: u64 = 256 << 20;

/// Refuses what is not a whole ELF file with that build id, with the reason. A source file must only be of acceptable
/// size: nothing in it tells what it belongs to.
pub(super) fn check(path: &Path, build_id: &[u8], file: &DebuginfodFile, max_size: u64) -> Result<(), String> {
    let data = fs::metadata(path).map_err(|error| error.to_string())?;
    match data.len() {
        _ if !data.is_file() => return Err("not a regular file".to_owned()),
        0 => return Err("an empty file".to_owned()),
        size if size > max_size => return Err(format!("{size} bytes, more than the limit of {max_size}")),
        _ if matches!(file, DebuginfodFile::Source(_)) => return Ok(()),
        _ => {}
    }
    let options = Options { max_file_size: max_size, max_file_memory: MAX_HEADERS, ..Options::default() };
    let file = FileData::open(path, &options).map_err(|error| error.to_string())?;
    let elf = Elf::read(&file).map_err(|error| error.to_string())?;
    if elf.identity() != Some(build_id) {
        let found = elf.identity().map_or_else(|| "none".to_owned(), hex);
        return Err(format!("its build id is {found} instead of {}", hex(build_id)));
    }
    // A connection that was closed early need not be noticed otherwise.
    if elf.is_cut_short() { Err("it is cut short".to_owned()) } else { Ok(()) }
}
