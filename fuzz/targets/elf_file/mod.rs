//! Small ELF files around sections that are made of fuzzed bytes.

use std::path::PathBuf;

use mpp_symbolizer::Module;

/// Where the code of the file is, in the file and in memory.
const CODE: u64 = 0x1000;

/// Where the file is mapped.
const START: u64 = 0x7f00_0000_0000;

/// A program for 64-bit x86 with these sections and a page of code.
pub fn with_sections(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = vec![0; CODE as usize];
    file.resize(2 * CODE as usize, 0x90);
    let mut names = vec![0];
    // The first header is that of no section.
    let mut headers = vec![0; 64];
    let mut add = |name: &str, kind: u32, content: &[u8], names: &mut Vec<u8>, file: &mut Vec<u8>| {
        headers.extend((names.len() as u32).to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
        headers.extend(kind.to_le_bytes());
        let content = if kind == 3 { names.clone() } else { content.to_vec() };
        // Flags, address, offset, size; link and information; alignment, size of an entry.
        for number in [0, 0, file.len() as u64, content.len() as u64, 0, 1, 0] {
            headers.extend(number.to_le_bytes());
        }
        file.extend(content);
    };
    for (name, content) in sections {
        add(name, 1, content, &mut names, &mut file);
    }
    add(".shstrtab", 3, &[], &mut names, &mut file);
    let count = (headers.len() / 64) as u16;
    let at = file.len() as u64;
    file.extend(headers);
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for number in [0, 64, at] {
        header.extend(number.to_le_bytes());
    }
    header.extend(0_u32.to_le_bytes());
    for half in [64, 56, 1, 64, count, count - 1] {
        header.extend(half.to_le_bytes());
    }
    // One segment, executable: the page of code.
    header.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for number in [CODE, CODE, CODE, CODE, CODE, CODE] {
        header.extend(number.to_le_bytes());
    }
    file[..header.len()].copy_from_slice(&header);
    file
}

/// A path of a file of this process, to be overwritten for each input.
pub fn path(target: &str) -> PathBuf {
    std::env::temp_dir().join(format!("mpp-fuzz-{target}-{}", std::process::id()))
}

/// The page of code of the file at `path`, mapped, and addresses all over it.
pub fn mapped(path: PathBuf) -> (Module, Vec<u64>) {
    let module = Module { start: START, end: START + CODE, file_offset: CODE, path, build_id: None };
    (module, (0..CODE).step_by(64).map(|offset| START + offset).collect())
}
